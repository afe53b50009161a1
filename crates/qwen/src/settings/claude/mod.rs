//! Model and permission options that Claude's SDKs pass as flags and variables.

pub mod config;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use qwen_events::{ErrorInfo, Reasoning, Thoughts};
use qwen_model::{ModelConfig, Provider, Secret};
use serde_json::{Map, Value};

use crate::claude_host::ClaudeHostOptions;
use crate::cli::{ClaudeFlags, Run};
use crate::settings::{Invocation, bad_flag, sessions};

/// The header that enables beta features on Anthropic's wire.
const BETA_HEADER: &str = "anthropic-beta";

/// The beta feature that informs the model of a turn's budget.
const TASK_BUDGET_BETA: &str = "task-budgets-2026-03-13";

/// The variable in which a host names itself.
const CLIENT_APP: &str = "CLAUDE_AGENT_SDK_CLIENT_APP";

const USER_AGENT: &str = "user-agent";

/// The variables with which a host requests `session_state_changed` lines.
const SESSION_STATE: [&str; 2] =
    ["CLAUDE_CODE_SDK_READS_SESSION_STATE", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"];

/// The variable with which a host requests the text of sub-agents.
const FORWARD_AGENT_TEXT: &str = "CLAUDE_CODE_FORWARD_SUBAGENT_TEXT";

/// True if a variable of Claude's CLI switches something on.
fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on")
}

/// The defaults for reasoning and its display, for requests that set none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThinkingFlags {
    /// Whether and how much the model reasons before it answers.
    pub reasoning: Option<Reasoning>,
    /// How much of the reasoning is shown.
    pub thoughts: Option<Thoughts>,
}

pub(crate) fn thinking(flags: &ClaudeFlags) -> Result<ThinkingFlags, ErrorInfo> {
    let budget = flags.max_thinking_tokens.map(Reasoning::of_tokens);
    let reasoning = match flags.thinking.as_deref() {
        None => budget,
        Some("disabled") => Some(Reasoning::Off),
        Some("adaptive") => Some(Reasoning::Adaptive),
        Some("enabled") => Some(budget.unwrap_or(Reasoning::Adaptive)),
        Some(other) => {
            return Err(bad_flag(format!("--thinking '{other}': it is adaptive, enabled or disabled")));
        }
    };
    let thoughts = flags.thinking_display.as_deref().map(|word| {
        Thoughts::parse(word)
            .ok_or_else(|| bad_flag(format!("--thinking-display '{word}': it is summarized or omitted")))
    });
    Ok(ThinkingFlags { reasoning, thoughts: thoughts.transpose()? })
}

/// The options that a host of the `claude` dialect passed at start.
pub(crate) fn host_options(
    run: &Run,
    invocation: &Invocation,
    recording: Option<bool>,
) -> Result<ClaudeHostOptions, ErrorInfo> {
    let claude_family = config::is_claude_family(invocation) && run.channel.is_none();
    Ok(ClaudeHostOptions {
        mirror_folder: sessions::mirror(run, invocation, recording),
        streams_mirror: run.claude.session_mirror.is_some(),
        transcripts: sessions::transcripts(invocation),
        partial_messages: run.include_partial_messages,
        await_initialize: run.claude.await_initialize,
        resume_drops_turn: run.claude.resume_drops_turn.clone().filter(|id| !id.is_empty()),
        session_state: SESSION_STATE.iter().any(|name| invocation.var(name).is_some_and(is_true)),
        forwards_agent_text: claude_family.then(|| {
            let forwards =
                run.claude.forward_subagent_text || invocation.var(FORWARD_AGENT_TEXT).is_some_and(is_true);
            Arc::new(AtomicBool::new(forwards))
        }),
        claude_family,
        qwen_sdk: run.channel.as_deref() == Some("SDK"),
        permission_prompts: run.permission_prompt_tool.is_some() && host_answers(&run.claude)?,
        permission_tool: permission_tool(run),
    })
}

/// True if permission requests may go to the host.
fn host_answers(flags: &ClaudeFlags) -> Result<bool, ErrorInfo> {
    match flags.permission_prompts.as_deref() {
        None | Some("host") => Ok(true),
        Some("none") => Ok(false),
        Some(other) => Err(bad_flag(format!("--permission-prompts '{other}': it is host or none"))),
    }
}

/// The MCP tool that `--permission-prompt-tool` names; none for `stdio`, which means the control channel.
fn permission_tool(run: &Run) -> Option<Arc<str>> {
    run.permission_prompt_tool.as_deref().filter(|name| name.starts_with("mcp__")).map(Arc::from)
}

/// Sends the name of the host program to the model's server, if the host set it.
pub(crate) fn set_user_agent(config: &mut ModelConfig, invocation: &Invocation) {
    let Some(app) = invocation.var(CLIENT_APP).filter(|app| !app.is_empty()) else { return };
    if !config.extra_headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(USER_AGENT)) {
        let agent = format!("qwen/{} (client-app/{app})", env!("CARGO_PKG_VERSION"));
        config.extra_headers.push((USER_AGENT.to_owned(), Secret::new(agent)));
    }
}

/// The contents of `--managed-settings`.
#[derive(Default)]
pub(crate) struct Managed {
    /// The restrictions: deny rules, ask rules and the requirement of a sandbox.
    pub forbidding: Vec<(&'static str, Value)>,
    /// Its other keys, which would allow something or do not concern permissions.
    pub ignored: Vec<String>,
}

pub(crate) fn managed(flags: &ClaudeFlags) -> Result<Managed, ErrorInfo> {
    let Some(given) = flags.managed_settings.as_deref().filter(|given| !given.trim().is_empty()) else {
        return Ok(Managed::default());
    };
    let mut settings: Map<String, Value> =
        serde_json::from_str(given).map_err(|error| bad_flag(format!("--managed-settings: {error}")))?;
    let mut take = |group: &str, key: &str| settings.get_mut(group)?.as_object_mut()?.remove(key);
    let found = [
        ("permissions.deny", take("permissions", "deny")),
        ("permissions.ask", take("permissions", "ask")),
        ("permissions.disableBypassPermissionsMode", take("permissions", "disableBypassPermissionsMode")),
        ("tools.sandbox", take("sandbox", "enabled").filter(|enabled| *enabled == true)),
    ];
    settings.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
    let forbidding = found.into_iter().filter_map(|(path, value)| Some((path, value?))).collect();
    Ok(Managed { forbidding, ignored: settings.into_iter().map(|(key, _)| key).collect() })
}

/// Requests the beta features that the flags name, if the server uses Anthropic's API.
pub(crate) fn add_beta_headers(config: &mut ModelConfig, flags: &ClaudeFlags, warnings: &mut Vec<String>) {
    let named = flags.betas.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    let mut names: Vec<&str> = named.collect();
    if config.provider != Provider::Anthropic {
        let given = [("betas", !names.is_empty()), ("task-budget", flags.task_budget.is_some())];
        let note = |flag| format!("--{flag} changes nothing here: only Anthropic's API supports it");
        warnings.extend(given.into_iter().filter(|(_, given)| *given).map(|(flag, _)| note(flag)));
        return;
    }
    if flags.task_budget.is_some() && !names.contains(&TASK_BUDGET_BETA) {
        names.push(TASK_BUDGET_BETA);
    }
    if names.is_empty() {
        return;
    }
    // The settings may already request some.
    let header = config.extra_headers.iter().position(|(name, _)| name.eq_ignore_ascii_case(BETA_HEADER));
    let before = header.map(|at| config.extra_headers.remove(at).1.expose().to_owned());
    let all: Vec<&str> = before.as_deref().into_iter().chain(names).collect();
    config.extra_headers.push((BETA_HEADER.to_owned(), Secret::new(all.join(","))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(thinking: Option<&str>, tokens: Option<u64>) -> ClaudeFlags {
        ClaudeFlags {
            thinking: thinking.map(str::to_owned),
            max_thinking_tokens: tokens,
            ..ClaudeFlags::default()
        }
    }

    #[test]
    fn the_kind_of_thinking_goes_before_its_budget() {
        let cases = [
            (None, None, None),
            (None, Some(0), Some(Reasoning::Off)),
            (None, Some(5000), Some(Reasoning::Budget(5000))),
            (Some("adaptive"), Some(5000), Some(Reasoning::Adaptive)),
            (Some("disabled"), Some(5000), Some(Reasoning::Off)),
            (Some("enabled"), Some(5000), Some(Reasoning::Budget(5000))),
            (Some("enabled"), None, Some(Reasoning::Adaptive)),
        ];
        for (kind, tokens, expected) in cases {
            let read = thinking(&flags(kind, tokens)).expect("flags");
            assert_eq!(read.reasoning, expected, "{kind:?} {tokens:?}");
        }
        assert!(thinking(&flags(Some("hard"), None)).is_err());
    }

    #[test]
    fn betas_are_one_header_of_anthropics_wire_and_a_note_elsewhere() {
        let asked = ClaudeFlags {
            betas: vec!["one".to_owned(), " two".to_owned()],
            task_budget: Some(9),
            ..ClaudeFlags::default()
        };
        let mut warnings = Vec::new();
        let mut config = ModelConfig::new(Provider::Anthropic, "m");
        config.extra_headers.push(("Anthropic-Beta".to_owned(), Secret::new("zero")));
        add_beta_headers(&mut config, &asked, &mut warnings);
        let headers: Vec<_> =
            config.extra_headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [(BETA_HEADER, "zero,one,two,task-budgets-2026-03-13")]);
        assert!(warnings.is_empty());
        add_beta_headers(&mut ModelConfig::new(Provider::OpenAi, "m"), &asked, &mut warnings);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }
}
