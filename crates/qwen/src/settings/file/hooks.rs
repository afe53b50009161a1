//! `hooks`: programs and URLs that are notified of events and can influence them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Sourced;

type Groups = Vec<Sourced<HookGroup>>;

/// The hooks of each event.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase", default)]
pub struct Hooks {
    /// Before a tool runs; may forbid it or change its input.
    pub pre_tool_use: Groups,
    /// After a tool ran.
    pub post_tool_use: Groups,
    /// After a tool failed.
    pub post_tool_use_failure: Groups,
    /// Before a prompt is processed.
    pub user_prompt_submit: Groups,
    /// When a session starts.
    pub session_start: Groups,
    /// When a session ends.
    pub session_end: Groups,
    /// When the agent is done; may make it continue.
    pub stop: Groups,
    /// When a sub-agent starts.
    pub subagent_start: Groups,
    /// When a sub-agent is done.
    pub subagent_stop: Groups,
    /// Before the conversation is summarised.
    pub pre_compact: Groups,
    /// When the user is notified.
    pub notification: Groups,
    /// When a call needs approval; may answer.
    pub permission_request: Groups,
}

/// Hooks that are called for the same tools.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HookGroup {
    /// Which tools: names separated by `|`, in which `*` matches anything; empty means all.
    pub matcher: Option<String>,
    /// The hooks, which are called concurrently.
    pub hooks: Vec<Hook>,
}

/// A hook: a command, a URL or a prompt.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Hook {
    /// The kind of hook.
    #[serde(rename = "type")]
    pub kind: HookKind,
    /// The command line to run. It receives the event as JSON on standard input.
    pub command: Option<String>,
    /// The URL to which the event is posted.
    pub url: Option<String>,
    /// Additional headers of that request.
    pub headers: BTreeMap<String, String>,
    /// The time limit in seconds; 60 if absent.
    pub timeout: Option<f64>,
    /// The effect of a failing hook on the action; `continue` if absent.
    pub on_failure: OnFailure,
}

/// The kind of hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HookKind {
    /// Runs a command line in a shell.
    #[default]
    Command,
    /// Sends the event to a URL.
    Http,
}

/// The effect of a failing hook on the action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnFailure {
    /// The action continues as if no hook existed.
    #[default]
    Continue,
    /// The action is blocked.
    Block,
}

impl Hooks {
    /// The hook groups of every event, with the event's name.
    pub fn events(&self) -> [(&'static str, &[Sourced<HookGroup>]); 12] {
        [
            ("PreToolUse", &self.pre_tool_use),
            ("PostToolUse", &self.post_tool_use),
            ("PostToolUseFailure", &self.post_tool_use_failure),
            ("UserPromptSubmit", &self.user_prompt_submit),
            ("SessionStart", &self.session_start),
            ("SessionEnd", &self.session_end),
            ("Stop", &self.stop),
            ("SubagentStart", &self.subagent_start),
            ("SubagentStop", &self.subagent_stop),
            ("PreCompact", &self.pre_compact),
            ("Notification", &self.notification),
            ("PermissionRequest", &self.permission_request),
        ]
    }
}

impl Hook {
    /// Why the hook cannot be used, if it cannot.
    pub(super) fn problem(&self) -> Option<&'static str> {
        match self.kind {
            HookKind::Command if self.command.is_none() => {
                Some("expected \"command\", which a hook of this type needs")
            }
            HookKind::Http if self.url.is_none() => Some("expected \"url\", which a hook of this type needs"),
            _ if self.timeout.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) => {
                Some("expected a \"timeout\" of more than 0 seconds")
            }
            _ => None,
        }
    }
}
