//! Parses well-formed flags without clap. Defining the whole command line to clap would dominate the start-up
//! time.
//!
//! Everything else (an unknown or repeated flag, a missing value, a word that belongs to no flag) is left to
//! clap, which also produces every error message. A test compares both parsers for each flag and alias.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::cli::{CommitDescriptors, InputFormat, OutputFormat, Run, supervision};

/// Where the value of a flag goes.
enum Field<'a> {
    Switch(&'a mut bool),
    Text(&'a mut Option<String>),
    /// An optional text; empty if omitted.
    OptionalText(&'a mut Option<String>),
    Path(&'a mut Option<PathBuf>),
    Integer(&'a mut Option<i64>),
    Count(&'a mut Option<u64>),
    Amount(&'a mut Option<f64>),
    /// One item each time the flag is given.
    Items(&'a mut Vec<String>),
    /// Items with commas between them.
    CommaSeparated(&'a mut Vec<String>),
    /// One path each time the flag is given.
    Paths(&'a mut Vec<PathBuf>),
    Descriptors(&'a mut Option<CommitDescriptors>),
    Seconds(&'a mut Option<Duration>),
    Input(&'a mut Option<InputFormat>),
    Output(&'a mut Option<OutputFormat>),
}

/// Finds the field of a flag whose values have no rules beyond its type; `None` for all others.
fn find_field<'a>(run: &'a mut Run, flag: &str) -> Option<Field<'a>> {
    find_text(run, flag)
        .or_else(|run| find_switch(run, flag))
        .or_else(|run| find_number_or_list(run, flag))
        .ok()
}

/// Finds the field of a text or a path, or gives the flags back.
fn find_text<'a>(run: &'a mut Run, flag: &str) -> Result<Field<'a>, &'a mut Run> {
    Ok(match flag {
        "-p" | "--prompt" | "--print" => Field::OptionalText(&mut run.prompt),
        "-r" | "--resume" => Field::OptionalText(&mut run.resume),
        "-o" | "--output-format" => Field::Output(&mut run.output_format),
        "--input-format" => Field::Input(&mut run.input_format),
        "-m" | "--model" => Field::Text(&mut run.model),
        "--dialect" => Field::Text(&mut run.dialect),
        "--acp-client" => Field::Text(&mut run.acp.acp_client),
        "--acp" | "--experimental-acp" => Field::Switch(&mut run.acp.acp),
        "--agent" => Field::Text(&mut run.agent),
        "--system-prompt" => Field::Text(&mut run.system_prompt),
        "--append-system-prompt" => Field::Text(&mut run.append_system_prompt),
        "--policy-description" => Field::Text(&mut run.policy_description),
        "--approval-mode" | "--permission-mode" => Field::Text(&mut run.approval_mode),
        "--core-tools" | "--tools" => Field::Text(&mut run.core_tools),
        "--max-wall-time" => Field::Text(&mut run.max_wall_time),
        "--json-schema" => Field::Text(&mut run.json_schema),
        "--auth-type" => Field::Text(&mut run.auth_type),
        "--openai-base-url" | "--base-url" => Field::Text(&mut run.openai_base_url),
        "--openai-api-key" => Field::Text(&mut run.openai_api_key),
        "--proxy" => Field::Text(&mut run.proxy),
        "--effort" => Field::Text(&mut run.effort),
        "--session-id" => Field::Text(&mut run.session_id),
        "--bind-session" => Field::Text(&mut run.bind_session),
        "--resume-session-at" | "--at" => Field::Text(&mut run.resume_session_at),
        "--channel" => Field::Text(&mut run.channel),
        "--permission-prompt-tool" => Field::Text(&mut run.permission_prompt_tool),
        "--settings" => Field::Text(&mut run.configuration.settings),
        "--setting-sources" => Field::Text(&mut run.configuration.setting_sources),
        "--settings-profile" => Field::Text(&mut run.configuration.settings_profile),
        "--thinking" => Field::Text(&mut run.claude.thinking),
        "--thinking-display" => Field::Text(&mut run.claude.thinking_display),
        "--permission-prompts" => Field::Text(&mut run.claude.permission_prompts),
        "--managed-settings" => Field::Text(&mut run.claude.managed_settings),
        "--agents" => Field::Text(&mut run.claude.agents),
        "--telemetry-otlp-endpoint" => Field::Text(&mut run.telemetry.telemetry_otlp_endpoint),
        "--telemetry-outfile" => Field::Text(&mut run.telemetry.telemetry_outfile),
        "--system-prompt-file" => Field::Path(&mut run.system_prompt_file),
        "--append-system-prompt-file" => Field::Path(&mut run.append_system_prompt_file),
        "--record" => Field::Path(&mut run.record),
        "--output-last-message" => Field::Path(&mut run.diagnostics.output_last_message),
        "--debug-file" => Field::Path(&mut run.diagnostics.debug_file),
        _ => return Err(run),
    })
}

/// Finds the field of a flag without a value, or gives the flags back.
fn find_switch<'a>(run: &'a mut Run, flag: &str) -> Result<Field<'a>, &'a mut Run> {
    Ok(match flag {
        "--json" => Field::Switch(&mut run.json),
        "--verbose" => Field::Switch(&mut run.diagnostics.verbose),
        "--no-stdin" => Field::Switch(&mut run.diagnostics.no_stdin),
        "--fail-on-denied" => Field::Switch(&mut run.diagnostics.fail_on_denied),
        "--include-partial-messages" => Field::Switch(&mut run.include_partial_messages),
        "--include-hook-events" => Field::Switch(&mut run.claude.include_hook_events),
        "--forward-subagent-text" => Field::Switch(&mut run.claude.forward_subagent_text),
        "--await-initialize" => Field::Switch(&mut run.claude.await_initialize),
        "--replay-user-messages" => Field::Switch(&mut run.replay_user_messages),
        "-y" | "--yolo" => Field::Switch(&mut run.yolo),
        "--dangerously-skip-permissions" => Field::Switch(&mut run.tool_flags.dangerously_skip_permissions),
        "--allow-dangerously-skip-permissions" => {
            Field::Switch(&mut run.claude.allow_dangerously_skip_permissions)
        }
        "--strict-mcp-config" => Field::Switch(&mut run.tool_flags.strict_mcp_config),
        "--sandbox-network" => Field::Switch(&mut run.sandbox_network),
        "-c" | "--continue" => Field::Switch(&mut run.continue_latest),
        "--fork-session" => Field::Switch(&mut run.fork_session),
        "--ask-later" => Field::Switch(&mut run.ask_later),
        "--no-session-persistence" | "--no-chat-recording" => Field::Switch(&mut run.no_session_persistence),
        "--trust-workspace" => Field::Switch(&mut run.configuration.trust_workspace),
        "--safe-mode" => Field::Switch(&mut run.configuration.safe_mode),
        "--no-telemetry" => Field::Switch(&mut run.telemetry.no_telemetry),
        _ => return Err(run),
    })
}

/// Finds the field of a number or of a flag that may be repeated, or gives the flags back.
fn find_number_or_list<'a>(run: &'a mut Run, flag: &str) -> Result<Field<'a>, &'a mut Run> {
    Ok(match flag {
        "--max-session-turns" => Field::Integer(&mut run.max_session_turns),
        "--max-turns" => Field::Integer(&mut run.max_turns),
        "--max-tool-calls" => Field::Integer(&mut run.max_tool_calls),
        "--max-tokens-total" => Field::Count(&mut run.max_tokens_total),
        "--max-thinking-tokens" => Field::Count(&mut run.claude.max_thinking_tokens),
        "--task-budget" => Field::Count(&mut run.claude.task_budget),
        "--max-budget-usd" => Field::Amount(&mut run.max_budget_usd),
        "--allowed-tools" | "--allowedTools" => Field::Items(&mut run.allowed_tools),
        "--exclude-tools" | "--disallowedTools" | "--disallowed-tools" => {
            Field::Items(&mut run.exclude_tools)
        }
        "--mcp-config" => Field::Items(&mut run.mcp_config),
        "--answer" => Field::Items(&mut run.answer),
        "--stream-mode" => Field::CommaSeparated(&mut run.stream_mode),
        "--fallback-model" => Field::CommaSeparated(&mut run.fallback_model),
        "--betas" => Field::CommaSeparated(&mut run.claude.betas),
        "--include-directories" | "--add-dir" => Field::Paths(&mut run.include_directories),
        "--commit-fd" => Field::Descriptors(&mut run.supervision.commit_fd),
        "--leash" => Field::Seconds(&mut run.supervision.leash),
        "--question-timeout" => Field::Seconds(&mut run.supervision.question_timeout),
        "--private-dir" => Field::Paths(&mut run.supervision.private_dir),
        "--visible-dir" => Field::Paths(&mut run.supervision.visible_dir),
        _ => return Err(run),
    })
}

/// True if this module reads the flag.
pub(super) fn is_known(flag: &str) -> bool {
    find_field(&mut Run::default(), flag).is_some()
}

/// The flags of a line that has nothing else in it; `None` if clap has to read the line.
pub(super) fn read(arguments: &[OsString]) -> Option<Run> {
    let mut run = Run::default();
    let mut words = arguments.get(1..)?.iter().map(|argument| argument.to_str()).peekable();
    while let Some(word) = words.next() {
        let word = word?;
        let (flag, joined) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") && !value.is_empty() => (flag, Some(value)),
            Some(_) => return None,
            None => (word, None),
        };
        let field = find_field(&mut run, flag)?;
        // Whether a word with a leading hyphen is a flag or a value is left to clap.
        let mut value = || joined.or_else(|| words.next_if(|next| !is_hyphenated(*next)).flatten());
        match field {
            Field::Switch(switch) => {
                if joined.is_some() || std::mem::replace(switch, true) {
                    return None;
                }
            }
            Field::OptionalText(text) => {
                let value = value().unwrap_or_default();
                set(text, value.to_owned())?;
            }
            Field::Text(text) => set(text, value()?.to_owned())?,
            Field::Path(path) => set(path, nonempty_path(value()?)?)?,
            Field::Integer(number) => set(number, value()?.parse().ok()?)?,
            Field::Count(number) => set(number, value()?.parse().ok()?)?,
            Field::Amount(number) => set(number, value()?.parse().ok()?)?,
            Field::Items(items) => items.push(value()?.to_owned()),
            Field::CommaSeparated(items) => items.extend(value()?.split(',').map(str::to_owned)),
            Field::Paths(paths) => paths.push(nonempty_path(value()?)?),
            Field::Descriptors(descriptors) => set(descriptors, supervision::descriptors(value()?).ok()?)?,
            Field::Seconds(seconds) => set(seconds, supervision::seconds(value()?).ok()?)?,
            Field::Input(format) => set(format, InputFormat::from_str(value()?, false).ok()?)?,
            Field::Output(format) => set(format, OutputFormat::from_str(value()?, false).ok()?)?,
        }
    }
    Some(run)
}

/// True if clap might treat the word as a flag. Words that are not UTF-8 are left to clap too.
fn is_hyphenated(word: Option<&str>) -> bool {
    word.is_none_or(|word| word.starts_with('-'))
}

/// Sets a field that may be given only once.
fn set<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}

fn nonempty_path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, CommandFactory, FromArgMatches};

    use super::*;
    use crate::cli::Cli;

    /// The clap definition of a run's flags. Building it is slow, so each test does it once.
    fn flags() -> Command {
        Run::augment_args(Command::new("qwen"))
    }

    /// Asserts that both parsers agree on a line, or that it is left to clap. Returns whether it was parsed
    /// here.
    fn is_read_as_by_clap(words: &[&str], flags: &mut Command) -> bool {
        let arguments: Vec<OsString> = ["qwen"].iter().chain(words).map(OsString::from).collect();
        let Some(run) = read(&arguments) else { return false };
        let matches = flags.try_get_matches_from_mut(&arguments).ok();
        let by_clap = matches.and_then(|matches| Run::from_arg_matches(&matches).ok());
        assert_eq!(Some(format!("{run:?}")), by_clap.map(|run| format!("{run:?}")), "{words:?}");
        true
    }

    /// Every flag name and alias.
    fn spellings() -> Vec<String> {
        let command = Cli::command();
        let long = command.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases).flatten();
        let hidden = command.get_arguments().filter_map(clap::Arg::get_all_aliases).flatten();
        let short = command.get_arguments().filter_map(clap::Arg::get_short_and_visible_aliases).flatten();
        let mut all: Vec<String> = long.chain(hidden).map(|name| format!("--{name}")).collect();
        all.extend(short.map(|letter| format!("-{letter}")));
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn every_flag_means_what_clap_says_with_whatever_follows_it() {
        let values = [
            "",
            "-",
            "--",
            "-1",
            "-x",
            "--model",
            "-p",
            "0",
            "7",
            "+7",
            "1.5",
            "1e3",
            "inf",
            "word",
            "two words",
            "a,b",
            "a,,b",
            ",",
            "a=b",
            "=",
            "text",
            "json",
            "stream-json",
            "Stream-Json",
            "stream-chunk-json",
            "true",
            "claude",
            "{\"a\":1}",
            "é",
            "/a/b",
        ];
        let mut flags = flags();
        let mut read_here = std::collections::BTreeSet::new();
        for flag in spellings() {
            let mut lines: Vec<Vec<String>> = vec![vec![flag.clone()], vec![flag.clone(), flag.clone()]];
            for value in values {
                let joined = format!("{flag}={value}");
                lines.push(vec![flag.clone(), value.to_owned()]);
                lines.push(vec![joined.clone()]);
                lines.push(vec![format!("{flag}{value}")]);
                lines.push(vec![flag.clone(), value.to_owned(), flag.clone(), "9".to_owned()]);
                lines.push(vec![joined, "--yolo".to_owned(), "--model".to_owned(), "m".to_owned()]);
                lines.push(vec![flag.clone(), value.to_owned(), "--model".to_owned(), "m".to_owned()]);
                lines.push(vec![flag.clone(), value.to_owned(), "word".to_owned()]);
            }
            for line in lines {
                let line: Vec<&str> = line.iter().map(String::as_str).collect();
                if is_read_as_by_clap(&line, &mut flags) {
                    read_here.insert(flag.clone());
                }
            }
        }
        // clap defines every flag in this module's table.
        let table = include_str!("fast_path.rs").split("/// True if this module").next().unwrap_or_default();
        let named = table.split('"').filter(|text| text.starts_with('-') && !text.contains(' '));
        for flag in named {
            assert!(read_here.contains(flag), "{flag}");
        }
    }

    #[test]
    fn lines_that_programs_start_are_read_without_clap() {
        let mut flags = flags();
        for line in [
            "-p hi --model m --output-format stream-json --dialect claude --include-partial-messages",
            "--input-format stream-json --dialect qwen --model m",
            "--output-format stream-json --verbose --allowedTools Read,Edit --max-turns 3 --permission-mode plan \
             --mcp-config {} --include-partial-messages --fork-session --resume abc --input-format stream-json",
            "--channel=SDK --input-format stream-json --output-format stream-json --approval-mode yolo --continue",
            "-p --output-format json --no-session-persistence",
            "--commit-fd 9 --leash 2 --dialect qwen --input-format stream-json --model m --private-dir /a --visible-dir /b,c",
        ] {
            assert!(is_read_as_by_clap(&line.split_whitespace().collect::<Vec<_>>(), &mut flags), "{line}");
        }
    }

    #[test]
    fn irregular_lines_are_left_to_clap() {
        let mut flags = flags();
        for line in [
            "word",
            "-p hi word",
            "--no-such-flag",
            "--model",
            "--model a --model b",
            "-phi",
            "-yp hi",
            "-p hi -- x",
        ] {
            assert!(!is_read_as_by_clap(&line.split_whitespace().collect::<Vec<_>>(), &mut flags), "{line}");
        }
    }
}
