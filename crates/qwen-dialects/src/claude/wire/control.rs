//! The nested control channel: what we ask of the host.

use std::borrow::Cow;

use qwen_events::{Confirmation, ControlCall, FileDiff, ToolCall, offer_rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claude::stream::Stream;
use crate::claude::words::claude_mode;
use crate::flat::{HookPayload, McpPayload, hook_payload, mcp_payload};
use crate::payload::Payload;

/// A control request to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlRequest<'a> {
    /// The id of the control request, repeated in its response.
    pub request_id: Cow<'a, str>,
    /// The body of the request.
    pub request: Question<'a>,
}

/// The body of a control request to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum Question<'a> {
    /// A permission request for a tool call.
    CanUseTool(Box<CanUseTool<'a>>),
    /// A call of a hook that the host implements.
    HookCallback(HookPayload<'a>),
    /// A message for an MCP server that the host implements.
    McpMessage(McpPayload<'a>),
}

/// A permission request for a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanUseTool<'a> {
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The display name of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<Cow<'a, str>>,
    /// The arguments of the call, a JSON object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub input: Payload<'a>,
    /// A one-line description of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
    /// Choices that the host may offer its user.
    #[serde(default)]
    pub permission_suggestions: Vec<Suggestion<'a>>,
    /// The id of the tool call.
    #[serde(default)]
    pub tool_use_id: Cow<'a, str>,
    /// The path outside the workspace that caused the request, if one did.
    #[serde(default)]
    pub blocked_path: Option<Cow<'a, str>>,
    /// The reason for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<Cow<'a, str>>,
    /// The id of the sub-agent that sent the request; absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// True if the user answers in the request itself, as for the model's questions and plans.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_user_interaction: bool,
    /// The tool kind of the Agent Client Protocol: `edit` for a change of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'a, str>>,
    /// The files that the call would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<FileLocation<'a>>,
    /// The change itself; absent if it does not fit into a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ProposedChange<'a>>,
}

/// A file that a tool call concerns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileLocation<'a> {
    /// The absolute path of the file.
    pub path: Cow<'a, str>,
}

/// The change of a file that a call proposes, in the form of the Agent Client Protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ProposedChange<'a> {
    /// A change of a text file.
    #[serde(rename_all = "camelCase")]
    Diff {
        /// The absolute path of the file.
        path: Cow<'a, str>,
        /// The text before the change; null for a new file.
        old_text: Option<Cow<'a, str>>,
        /// The text after the change.
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

/// A choice for the host's user: a change of rules (Claude's SDKs) or a button (Qwen's SDKs).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Suggestion<'a> {
    /// Change the approval mode.
    SetMode {
        /// The mode in Claude's vocabulary.
        mode: Cow<'a, str>,
        /// The scope of the change, such as `session`.
        destination: Cow<'a, str>,
    },
    /// Adds permission rules to a destination.
    #[serde(rename_all = "camelCase")]
    AddRules {
        /// The rules that are added.
        rules: Vec<Rule<'a>>,
        /// The effect of the rules: `allow`, `ask` or `deny`.
        behavior: Cow<'a, str>,
        /// The scope of the change, such as `session`.
        destination: Cow<'a, str>,
    },
    /// A button that approves.
    Allow(Button<'a>),
    /// A button that refuses.
    Deny(Button<'a>),
    /// A button that shows details.
    Modify(Button<'a>),
}

/// A permission rule that the suggestion would add.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rule<'a> {
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The commands that the rule covers; absent for all calls of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<Cow<'a, str>>,
}

/// A button that the host may show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Button<'a> {
    /// The label of the button.
    pub label: Cow<'a, str>,
    /// A description of the suggestion.
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
                    rule_changes(confirmation, call)
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
        payload.input = Payload::from_value(&input);
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

/// The changes of the rules that would make this question unnecessary next time.
fn rule_changes<'a>(confirmation: &Confirmation, call: &'a ToolCall) -> Vec<Suggestion<'a>> {
    let add = |rule_content| Suggestion::AddRules {
        rules: vec![Rule { tool_name: call.name.as_ref().into(), rule_content }],
        behavior: "allow".into(),
        destination: "session".into(),
    };
    match confirmation {
        Confirmation::Edit(_) | Confirmation::Plan { .. } => {
            vec![Suggestion::SetMode { mode: "acceptEdits".into(), destination: "session".into() }]
        }
        Confirmation::Mcp { .. } => vec![add(None)],
        Confirmation::Exec { .. } => {
            let rule = offer_rule(call, confirmation);
            let pattern = rule.as_deref().and_then(|rule| rule.strip_prefix("Bash(")?.strip_suffix(')'));
            pattern.map(|pattern| add(Some(pattern.to_owned().into()))).into_iter().collect()
        }
        Confirmation::Info { .. } => Vec::new(),
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
