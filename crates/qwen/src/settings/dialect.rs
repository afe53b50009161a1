//! Chooses the wire dialect. Three specs define three formats named `stream-json`, and the callers of each
//! must get theirs without naming it. This file implements the order of precedence from DESIGN.

use qwen_dialects::acp::AcpClient;
use qwen_dialects::{Dialect, Format, StreamMode};
use qwen_events::ErrorInfo;

use super::{Invocation, bad_flag};
use crate::cli::{AcpFlags, InputFormat, Run};

pub(super) fn resolve(
    run: &Run,
    invocation: &Invocation,
    setting: Option<Dialect>,
    format: Option<Format>,
) -> Result<Dialect, ErrorInfo> {
    let named = |word: &str, place: &str| {
        Dialect::parse(word).ok_or_else(|| {
            let names = Dialect::ALL.map(Dialect::name).join(", ");
            bad_flag(format!("{place} '{word}': the dialects are {names}"))
        })
    };
    if let Some(word) = &run.dialect {
        return named(word, "--dialect");
    }
    if let Some(word) = invocation.var("QWEN_DIALECT") {
        return named(word, "QWEN_DIALECT");
    }
    if let Some(dialect) = setting {
        return Ok(dialect);
    }
    let claude_caller = run.channel.as_deref() == Some("SDK")
        || run.permission_prompt_tool.is_some()
        || run.include_partial_messages
        || run.diagnostics.verbose
        || invocation.var("CLAUDE_CODE_ENTRYPOINT").is_some_and(|v| v.starts_with("sdk-"))
        || invocation.program == "claude";
    let text_prompt = matches!(run.input_format, None | Some(InputFormat::Text));
    Ok(if claude_caller {
        Dialect::Claude
    } else if run.json {
        Dialect::Loom
    } else if text_prompt && format == Some(Format::StreamJson) {
        Dialect::ClaudeLite
    } else {
        Dialect::Qwen
    })
}

/// What the editor behind a worker can show.
pub(super) fn acp_client(flags: &AcpFlags) -> Result<AcpClient, ErrorInfo> {
    let names = flags.acp_client.as_deref().unwrap_or_default();
    let client = AcpClient::parse(names).map_err(|problem| bad_flag(format!("--acp-client: {problem}")))?;
    let unstable_usage = client.unstable_usage || flags.acp_unstable.iter().any(|name| name == "usage");
    Ok(AcpClient { unstable_usage, ..client })
}

pub(super) fn stream_modes(words: &[String]) -> Result<Vec<StreamMode>, ErrorInfo> {
    words
        .iter()
        .map(|word| {
            StreamMode::parse(word.trim()).ok_or_else(|| {
                bad_flag(format!(
                    "--stream-mode '{word}': the modes are values, updates, messages, custom, checkpoints, tasks, \
                     tools, debug and the types of the events"
                ))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::OutputWire;
    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_caller_gets_the_wire_that_it_expects() {
        let cases: &[(&str, &[(&str, &str)], &str)] = &[
            ("-p x", &[], "qwen"),
            ("-p x --output-format stream-json", &[], "claude-lite"),
            ("-p x --output-format stream-chunk-json", &[], "qwen"),
            ("-p x --output-format json", &[], "qwen"),
            ("-p x --json", &[], "loom"),
            ("--input-format stream-json --output-format stream-json", &[], "qwen"),
            ("--input-format stream-json --output-format stream-json --channel=SDK", &[], "claude"),
            ("--input-format stream-json --output-format stream-json --verbose", &[], "claude"),
            ("-p x --output-format stream-json --include-partial-messages", &[], "claude"),
            ("-p x --output-format stream-json --permission-prompt-tool stdio", &[], "claude"),
            ("-p x --output-format stream-json", &[("CLAUDE_CODE_ENTRYPOINT", "sdk-py")], "claude"),
            ("-p x --output-format stream-json", &[("CLAUDE_CODE_ENTRYPOINT", "cli")], "claude-lite"),
            ("-p x --output-format stream-json", &[("QWEN_DIALECT", "core")], "core"),
            ("-p x --output-format stream-json --dialect loom", &[("QWEN_DIALECT", "core")], "loom"),
            ("-p x --dialect loom-export --verbose", &[], "loom-export"),
        ];
        for (flags, vars, expected) in cases {
            let cli = Cli::parse_from(std::iter::once("qwen").chain(flags.split(' ')));
            let wire = OutputWire::resolve(&cli.run, &Invocation::from_variables(vars), None).expect(flags);
            assert_eq!(wire.dialect.name(), *expected, "{flags} {vars:?}");
        }
    }

    #[test]
    fn a_dialect_that_is_none_is_named_in_the_error() {
        let cli = Cli::parse_from(["qwen", "-p", "x", "--dialect", "klingon"]);
        let error =
            OutputWire::resolve(&cli.run, &Invocation::from_variables(&[]), None).err().expect("an error");
        assert!(error.message.contains("'klingon'") && error.message.contains("claude-lite"), "{error}");
    }
}
