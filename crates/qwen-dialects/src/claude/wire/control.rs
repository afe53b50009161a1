//! The nested control channel: what we ask of the host.

use std::borrow::Cow;

use qwen_events::{Confirmation, ControlCall, FileDiff};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claude::stream::Stream;
use crate::claude::words::claude_mode;
use crate::flat::{HookPayload, McpPayload, hook_payload, mcp_payload};
use crate::payload::Payload;

/// A question to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlRequest<'a> {
    /// The question's id.
    pub request_id: Cow<'a, str>,
    /// The question.
    pub request: Question<'a>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum Question<'a> {
    /// May this call run?
    CanUseTool(Box<CanUseTool<'a>>),
    /// A hook that lives in the host.
    HookCallback(HookPayload<'a>),
    /// A message for an MCP server that lives in the host.
    McpMessage(McpPayload<'a>),
}

/// May this call run?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanUseTool<'a> {
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// The tool's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<Cow<'a, str>>,
    /// The arguments.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub input: Payload<'a>,
    /// What will happen, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
    /// What the host may offer its user.
    #[serde(default)]
    pub permission_suggestions: Vec<Suggestion<'a>>,
    /// The call.
    #[serde(default)]
    pub tool_use_id: Cow<'a, str>,
    /// The path that is out of bounds, where that is the reason.
    #[serde(default)]
    pub blocked_path: Option<Cow<'a, str>>,
    /// Why we ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<Cow<'a, str>>,
    /// The sub-agent that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The answer is given in the question itself: questions of the model, and its plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_user_interaction: bool,
    /// For a change of a file, `edit`: the kind of call in the words of the Agent Client Protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'a, str>>,
    /// The files that would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<FileLocation<'a>>,
    /// The change itself; left out where a line cannot hold it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ProposedChange<'a>>,
}

/// A file that a call concerns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileLocation<'a> {
    /// The absolute path.
    pub path: Cow<'a, str>,
}

/// The change of a file that a call proposes, as the Agent Client Protocol shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ProposedChange<'a> {
    /// A changed text.
    #[serde(rename_all = "camelCase")]
    Diff {
        /// The absolute path.
        path: Cow<'a, str>,
        /// The text before; null for a new file.
        old_text: Option<Cow<'a, str>>,
        /// The text after.
        new_text: Cow<'a, str>,
    },
}

/// The longest texts, in bytes, that a permission request repeats: Python's SDK accepts lines of 1 MiB.
const MAX_CHANGE: usize = 128 * 1024;

/// The change that a confirmation is about.
fn proposed_change(confirmation: &Confirmation) -> Option<&FileDiff> {
    match confirmation {
        Confirmation::Edit(diff) => Some(diff),
        Confirmation::Exec { .. }
        | Confirmation::Mcp { .. }
        | Confirmation::Info { .. }
        | Confirmation::Plan { .. } => None,
    }
}

fn locations(diff: &FileDiff) -> Vec<FileLocation<'_>> {
    vec![FileLocation { path: diff.file_path.as_ref().into() }]
}

fn changes(diff: &FileDiff) -> Vec<ProposedChange<'_>> {
    let size = diff.modified.len() + diff.original.as_ref().map_or(0, |text| text.len());
    if size > MAX_CHANGE {
        return Vec::new();
    }
    vec![ProposedChange::Diff {
        path: diff.file_path.as_ref().into(),
        old_text: diff.original.as_deref().map(Cow::Borrowed),
        new_text: diff.modified.as_ref().into(),
    }]
}

/// What the host may offer its user: a change of the rules (Claude's SDKs) or a button (Qwen's).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Suggestion<'a> {
    /// Use another approval mode from now on.
    SetMode {
        /// The mode, in Claude's words.
        mode: Cow<'a, str>,
        /// How long that lasts.
        destination: Cow<'a, str>,
    },
    /// Follow these rules from now on.
    #[serde(rename_all = "camelCase")]
    AddRules {
        /// The rules.
        rules: Vec<Rule<'a>>,
        /// What they say.
        behavior: Cow<'a, str>,
        /// How long that lasts.
        destination: Cow<'a, str>,
    },
    /// A button for yes.
    Allow(Button<'a>),
    /// A button for no.
    Deny(Button<'a>),
    /// A button for a closer look.
    Modify(Button<'a>),
}

/// A rule that a suggestion adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rule<'a> {
    /// The tool.
    pub tool_name: Cow<'a, str>,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Button<'a> {
    /// What it says.
    pub label: Cow<'a, str>,
    /// What it means.
    pub description: Cow<'a, str>,
}

/// A question in the words of the SDK that is asked.
pub(in crate::claude) fn question<'a>(call: &'a ControlCall, stream: &Stream) -> Question<'a> {
    let qwen_sdk = stream.qwen_sdk;
    match call {
        ControlCall::CanUseTool { call, confirmation, reason, blocked_path, agent_id } => {
            Question::CanUseTool(Box::new(CanUseTool {
                tool_name: call.name.as_ref().into(),
                display_name: Some(match confirmation.as_ref() {
                    Confirmation::Mcp { display, .. } => display.as_ref().into(),
                    _ => call.name.as_ref().into(),
                }),
                input: Payload::new(&call.arguments),
                description: Some(description(confirmation)),
                permission_suggestions: if qwen_sdk {
                    buttons(confirmation)
                } else {
                    rule_changes(confirmation, &call.name)
                },
                tool_use_id: call.id.as_str().into(),
                blocked_path: blocked_path.as_deref().map(Cow::Borrowed),
                decision_reason: Some(reason.as_ref().into()),
                agent_id: agent_id.as_deref().map(Cow::Borrowed),
                requires_user_interaction: stream.claude_host
                    && (matches!(confirmation.as_ref(), Confirmation::Plan { .. })
                        || &*call.name == "AskUserQuestion"),
                kind: proposed_change(confirmation).map(|_| "edit".into()),
                locations: proposed_change(confirmation).map(locations).unwrap_or_default(),
                content: proposed_change(confirmation).map(changes).unwrap_or_default(),
            }))
        }
        ControlCall::HookCallback { callback_id, input, tool_use_id } => {
            let payload = hook_payload(callback_id, input, tool_use_id.as_deref());
            Question::HookCallback(if qwen_sdk { payload } else { in_claudes_words(payload) })
        }
        ControlCall::McpMessage { server, message } => Question::McpMessage(mcp_payload(server, message)),
    }
}

/// What a hook is told, with the approval mode as Claude calls it.
fn in_claudes_words(mut payload: HookPayload<'_>) -> HookPayload<'_> {
    if let Ok(mut input) = serde_json::from_str::<serde_json::Map<_, _>>(payload.input.as_str())
        && let Some(serde_json::Value::String(mode)) = input.get_mut("permission_mode")
    {
        *mode = claude_mode(mode).to_owned();
        payload.input = Payload::of(&input);
    }
    payload
}

fn description(confirmation: &Confirmation) -> Cow<'_, str> {
    match confirmation {
        Confirmation::Edit(diff) => format!("Edit file: {}", diff.file_name).into(),
        Confirmation::Exec { command, .. } => format!("Execute: {command}").into(),
        Confirmation::Mcp { server, tool, .. } => format!("{server}: {tool}").into(),
        Confirmation::Info { prompt, .. } => prompt.as_ref().into(),
        Confirmation::Plan { plan } => plan.as_ref().into(),
    }
}

/// The changes of the rules that would make this question unnecessary next time. A command gets none: no rule can be
/// read off one command line without allowing more than was asked.
fn rule_changes<'a>(confirmation: &Confirmation, tool_name: &'a str) -> Vec<Suggestion<'a>> {
    match confirmation {
        Confirmation::Edit(_) | Confirmation::Plan { .. } => {
            vec![Suggestion::SetMode { mode: "acceptEdits".into(), destination: "session".into() }]
        }
        Confirmation::Mcp { .. } => vec![Suggestion::AddRules {
            rules: vec![Rule { tool_name: tool_name.into() }],
            behavior: "allow".into(),
            destination: "session".into(),
        }],
        Confirmation::Exec { .. } | Confirmation::Info { .. } => Vec::new(),
    }
}

fn buttons(confirmation: &Confirmation) -> Vec<Suggestion<'_>> {
    let (allow, deny, blocked) = match confirmation {
        Confirmation::Edit(_) => ("Allow Edit", "Deny", "Block this file edit"),
        Confirmation::Exec { .. } => ("Allow Command", "Deny", "Block this command"),
        Confirmation::Mcp { .. } => ("Allow MCP Call", "Deny", "Block this MCP call"),
        Confirmation::Info { .. } => ("Allow Info Request", "Deny", "Block this request"),
        Confirmation::Plan { .. } => ("Approve Plan", "Reject Plan", "Do not carry this plan out"),
    };
    let allowed = match confirmation {
        Confirmation::Plan { .. } => "Carry this plan out".into(),
        other => description(other),
    };
    let mut buttons = vec![
        Suggestion::Allow(Button { label: allow.into(), description: allowed }),
        Suggestion::Deny(Button { label: deny.into(), description: blocked.into() }),
    ];
    if matches!(confirmation, Confirmation::Edit(_)) {
        buttons.push(Suggestion::Modify(Button {
            label: "Review Changes".into(),
            description: "Review the proposed changes before applying".into(),
        }));
    }
    buttons
}
