//! `hooks`: programs and addresses that are told what happens, and may have a say.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Sourced;

type Groups = Vec<Sourced<HookGroup>>;

/// What is called, by event.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase", default)]
pub struct Hooks {
    /// Before a tool runs; may forbid it or change its input.
    pub pre_tool_use: Groups,
    /// After a tool ran.
    pub post_tool_use: Groups,
    /// After a tool failed.
    pub post_tool_use_failure: Groups,
    /// Before a prompt is worked on.
    pub user_prompt_submit: Groups,
    /// When a session starts.
    pub session_start: Groups,
    /// When a session ends.
    pub session_end: Groups,
    /// When the agent is done; may make it go on.
    pub stop: Groups,
    /// When a sub-agent starts.
    pub subagent_start: Groups,
    /// When a sub-agent is done.
    pub subagent_stop: Groups,
    /// Before the conversation is summarised.
    pub pre_compact: Groups,
    /// When the user is told something.
    pub notification: Groups,
    /// When the user is asked for a permission; may answer.
    pub permission_request: Groups,
}

/// Hooks that are called for the same tools.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HookGroup {
    /// Which tools: a name, or names with `|` between them, in which `*` stands for anything; empty means all.
    pub matcher: Option<String>,
    /// The hooks, called beside each other.
    pub hooks: Vec<Hook>,
}

/// One hook.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Hook {
    /// What is called.
    #[serde(rename = "type")]
    pub kind: HookKind,
    /// The command line to run, with what happened as JSON on its standard input.
    pub command: Option<String>,
    /// The address to post it to.
    pub url: Option<String>,
    /// Headers to post it with.
    pub headers: BTreeMap<String, String>,
    /// How long it may take, in seconds; 60 when absent.
    pub timeout: Option<f64>,
    /// What its failure means for what it watches; `continue` when absent.
    pub on_failure: OnFailure,
}

/// What is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HookKind {
    /// A command line.
    #[default]
    Command,
    /// An address.
    Http,
}

/// What the failure of a hook means for what it watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnFailure {
    /// It goes on.
    #[default]
    Continue,
    /// It does not.
    Block,
}

impl Hooks {
    /// All of them, each event with its name.
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
    /// What makes it unusable.
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
