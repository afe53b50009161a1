//! The flags in the help of Claude's and of Qwen Code's CLI: each takes effect or is noted in one line, none
//! becomes a part of the prompt, and the prompt behind it arrives.

use mock_model::{MockModel, Reply};

use crate::harness::qwen;

/// What comes with a flag, with an example.
#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    Value(&'static str),
    /// A value that may be left out.
    Optional(&'static str),
    /// One or more items.
    Items(&'static str, &'static str),
}

/// What the flag does here.
#[derive(Clone, Copy, PartialEq)]
enum Effect {
    /// It does what it says.
    Honoured,
    /// It changes nothing, and one line says so.
    Noted,
    /// As `Honoured`, but a run needs more than this test has, such as a stored session; only its reading is
    /// tested.
    Read,
}

use Effect::{Honoured, Noted, Read};
use Takes::{Items, Nothing, Optional, Value};

/// `--resume` and `-r`, which take the word behind them, are tested with sessions.
type Flag = (&'static str, Takes, Effect);

const CLAUDE: &[Flag] = &[
    ("--add-dir", Items("/usr", "/tmp"), Honoured),
    ("--agent", Value("general-purpose"), Honoured),
    ("--agents", Value(r#"{"a":{"description":"d","prompt":"p"}}"#), Honoured),
    ("--allow-dangerously-skip-permissions", Nothing, Honoured),
    ("--allowedTools", Items("Read", "Edit"), Honoured),
    ("--allowed-tools", Items("Read", "Bash(git *)"), Honoured),
    ("--append-system-prompt", Value("be brief"), Honoured),
    ("--autocompact", Value("auto"), Noted),
    ("--ax-screen-reader", Nothing, Honoured),
    ("--bg", Nothing, Noted),
    ("--background", Nothing, Noted),
    ("--bare", Nothing, Noted),
    ("--betas", Items("one", "two"), Noted),
    ("--brief", Nothing, Noted),
    ("--chrome", Nothing, Noted),
    ("--cloud", Optional("task"), Noted),
    ("-c", Nothing, Read),
    ("--continue", Nothing, Read),
    ("--dangerously-skip-permissions", Nothing, Honoured),
    ("-d", Optional("hooks"), Read),
    ("--debug", Optional("hooks"), Read),
    ("--debug-file", Value("debug.log"), Honoured),
    ("--desktop", Nothing, Noted),
    ("--disable-slash-commands", Nothing, Noted),
    ("--disallowedTools", Items("Bash", "Edit"), Honoured),
    ("--disallowed-tools", Items("Bash", "Edit"), Honoured),
    ("--effort", Value("low"), Honoured),
    ("--environment", Value("ccpool_1"), Noted),
    ("--exclude-dynamic-system-prompt-sections", Nothing, Honoured),
    ("--fallback-model", Value("other"), Honoured),
    ("--file", Items("file_a:a.txt", "file_b:b.txt"), Noted),
    ("--fork-session", Nothing, Read),
    ("--forward-subagent-text", Nothing, Honoured),
    ("--from-pr", Optional("12"), Noted),
    ("--ide", Nothing, Noted),
    ("--include-hook-events", Nothing, Honoured),
    ("--include-partial-messages", Nothing, Honoured),
    ("--input-format", Value("text"), Honoured),
    ("--json-schema", Value(r#"{"type":"object"}"#), Read),
    ("--max-budget-usd", Value("5"), Read),
    ("--mcp-config", Items(r#"{"mcpServers":{}}"#, r#"{"mcpServers":{}}"#), Honoured),
    ("--model", Value("mock"), Honoured),
    ("-n", Value("name"), Noted),
    ("--name", Value("name"), Noted),
    ("--no-chrome", Nothing, Honoured),
    ("--no-session-persistence", Nothing, Honoured),
    ("--output-format", Value("text"), Honoured),
    ("--permission-mode", Value("acceptEdits"), Honoured),
    ("--permission-mode", Value("manual"), Honoured),
    ("--permission-prompts", Value("none"), Honoured),
    ("--plugin-dir", Value("/usr"), Read),
    ("--plugin-url", Value("http://127.0.0.1:1/a.zip"), Noted),
    ("--prompt-suggestions", Optional("true"), Noted),
    ("--remote-control", Optional("name"), Noted),
    ("--remote-control-session-name-prefix", Value("host"), Noted),
    ("--replay-user-messages", Nothing, Honoured),
    ("--restricted", Nothing, Honoured),
    ("--safe-mode", Nothing, Honoured),
    ("--session-id", Value("3f0a4f34-0000-4000-8000-000000000000"), Honoured),
    ("--setting-sources", Value("user,project"), Honoured),
    ("--settings", Value("{}"), Honoured),
    ("--strict-mcp-config", Nothing, Honoured),
    ("--system-prompt", Value("be brief"), Honoured),
    ("--system-prompt-snapshot", Value("on"), Noted),
    ("--teleport", Optional("id"), Noted),
    ("--tmux", Nothing, Noted),
    ("--tools", Items("Read", "Edit"), Honoured),
    ("--verbose", Nothing, Honoured),
    ("-w", Optional("name"), Noted),
    ("--worktree", Optional("name"), Noted),
];

const QWEN_CODE: &[Flag] = &[
    ("--telemetry", Nothing, Read),
    ("--telemetry-target", Value("local"), Read),
    ("--telemetry-otlp-endpoint", Value("http://127.0.0.1:1"), Read),
    ("--telemetry-otlp-protocol", Value("http"), Read),
    ("--telemetry-log-prompts", Nothing, Read),
    ("--telemetry-outfile", Value("traces.json"), Read),
    ("-d", Nothing, Read),
    ("--debug", Nothing, Read),
    ("--bare", Nothing, Noted),
    ("--proxy", Value("http://127.0.0.1:1"), Read),
    ("--chat-recording", Nothing, Honoured),
    ("-m", Value("mock"), Honoured),
    ("--model", Value("mock"), Honoured),
    ("--system-prompt", Value("be brief"), Honoured),
    ("--append-system-prompt", Value("be brief"), Honoured),
    ("-s", Nothing, Read),
    ("--sandbox", Nothing, Read),
    ("--sandbox-image", Value("image"), Noted),
    ("-y", Nothing, Honoured),
    ("--yolo", Nothing, Honoured),
    ("--approval-mode", Value("auto-edit"), Honoured),
    ("--checkpointing", Nothing, Noted),
    ("--experimental-lsp", Nothing, Noted),
    ("--channel", Value("CI"), Honoured),
    ("--allowed-mcp-server-names", Items("one", "two"), Honoured),
    ("--mcp-config", Value(r#"{"mcpServers":{}}"#), Honoured),
    ("--allowed-tools", Items("read_file", "edit"), Honoured),
    ("-e", Items("one", "two"), Noted),
    ("--extensions", Items("one", "two"), Noted),
    ("-l", Nothing, Noted),
    ("--list-extensions", Nothing, Noted),
    ("--include-directories", Items("/usr", "/tmp"), Honoured),
    ("--add-dir", Items("/usr", "/tmp"), Honoured),
    ("--openai-logging", Nothing, Noted),
    ("--openai-logging-dir", Value("logs"), Noted),
    ("--openai-api-key", Value("sk-test"), Honoured),
    ("--openai-base-url", Value("http://127.0.0.1:1"), Read),
    ("--screen-reader", Nothing, Honoured),
    ("--input-format", Value("text"), Honoured),
    ("-o", Value("text"), Honoured),
    ("--output-format", Value("text"), Honoured),
    ("--include-partial-messages", Nothing, Honoured),
    ("--json-fd", Value("9"), Noted),
    ("--json-file", Value("events.json"), Noted),
    ("--json-schema", Value(r#"{"type":"object"}"#), Read),
    ("--input-file", Value("input.jsonl"), Noted),
    ("-c", Nothing, Read),
    ("--continue", Nothing, Read),
    ("--session-id", Value("3f0a4f34-0000-4000-8000-000000000000"), Honoured),
    ("--max-session-turns", Value("5"), Honoured),
    ("--core-tools", Items("read_file", "edit"), Honoured),
    ("--exclude-tools", Items("run_shell_command", "edit"), Honoured),
    ("--disabled-slash-commands", Items("clear", "help"), Honoured),
    ("--auth-type", Value("openai"), Honoured),
];

/// Every way to write a flag with what comes with it.
fn written((flag, takes, _): &Flag) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let joined = |value: &str| vec![format!("{flag}={value}")];
    let is_long = flag.starts_with("--");
    let mut forms = match takes {
        Nothing => vec![words(&[flag])],
        Value(value) => vec![words(&[flag, value])],
        Optional(value) => vec![words(&[flag]), words(&[flag, value])],
        Items(first, second) => vec![words(&[flag, first]), words(&[flag, first, second])],
    };
    match takes {
        Value(value) | Optional(value) | Items(value, _) if is_long => forms.push(joined(value)),
        Nothing | Value(_) | Optional(_) | Items(..) => {}
    }
    forms
}

/// Runs a prompt behind every form of every flag, from a host of Claude's family or another.
fn check(flags: &[Flag], is_claude: bool) {
    let mock = MockModel::start();
    for flag in flags {
        for form in written(flag) {
            let mut program = qwen().with_model(&mock).env("OPENAI_MODEL", "mock");
            if is_claude {
                program = program.env("CLAUDE_CODE_ENTRYPOINT", "cli");
            }
            if flag.2 == Read {
                // Without `-p` a word behind a flag with an optional value is the prompt.
                if matches!(flag.1, Optional(_)) && form.len() > 1 {
                    continue;
                }
                let ended = program.args(&form).arg("config").run();
                assert_eq!(ended.code, Some(0), "{form:?}: {ended:?}");
                continue;
            }
            mock.push(Reply::text("Fine."));
            let ended = program.args(&form).args(["-p", "Hello there"]).run();
            assert_eq!((ended.code, &*ended.stdout), (Some(0), "Fine.\n"), "{form:?}: {ended:?}");
            let notes = ended.stderr.lines().filter(|line| line.contains("changes nothing here")).count();
            assert_eq!(notes, usize::from(flag.2 == Noted), "{form:?}: {ended:?}");
            let request = mock.requests().pop().unwrap();
            let prompt = request.messages().last().unwrap()["content"].to_string();
            assert!(prompt.ends_with("Hello there\""), "{form:?}: {prompt}");
            let value = form.iter().skip(1).find(|word| prompt.contains(word.as_str()));
            assert_eq!(value, None, "{form:?}: {prompt}");
        }
    }
}

#[test]
fn every_flag_of_claudes_cli_takes_effect_or_is_noted_and_never_becomes_a_prompt() {
    check(CLAUDE, true);
}

#[test]
fn every_flag_of_qwen_codes_cli_takes_effect_or_is_noted_and_never_becomes_a_prompt() {
    check(QWEN_CODE, false);
}

#[test]
fn a_prompt_without_a_flag_of_its_own_arrives_behind_every_switch_and_value() {
    let mock = MockModel::start();
    for flag in CLAUDE.iter().filter(|flag| flag.2 != Read) {
        let form = match flag.1 {
            Nothing => vec![flag.0],
            Value(value) => vec![flag.0, value],
            Optional(_) | Items(..) => continue,
        };
        mock.push(Reply::text("Fine."));
        let program =
            qwen().with_model(&mock).env("OPENAI_MODEL", "mock").env("CLAUDE_CODE_ENTRYPOINT", "cli");
        let ended = program.args(["--print"]).args(&form).arg("Hello there").run();
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "Fine.\n"), "{form:?}: {ended:?}");
        let request = mock.requests().pop().unwrap();
        let prompt = request.messages().last().unwrap()["content"].to_string();
        assert!(prompt.ends_with("Hello there\""), "{form:?}: {prompt}");
    }
}
