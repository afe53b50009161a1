//! The lines that answer requests (`result/*`), as they are written.

use std::borrow::Cow;

use qwen_events::{CommandCall, CommandKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::word;
word!(
    /// What the end of a command says it is.
    CommandType = "result/command"
);
word!(
    /// What suggestions say they are.
    HintType = "result/command_hint"
);
word!(
    /// What a heartbeat says it is.
    HeartbeatType = "result/heartbeat"
);
word!(
    /// What the end of a cancel request says it is.
    CancelType = "result/cancel"
);

/// The end of a command.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CommandLine<'a> {
    /// `result/command`
    #[serde(rename = "type")]
    pub kind: CommandType,
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The prompt that held the command.
    #[serde(borrow)]
    pub prompt_id: Cow<'a, str>,
    /// The command as it was understood.
    #[serde(borrow)]
    pub command: CommandName<'a>,
    /// What came of it.
    #[serde(borrow)]
    pub result: CommandOutcome<'a>,
    /// What the host cannot do in this run, because there is no control channel.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub limitation: Option<Cow<'a, str>>,
}

/// A command and its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CommandName<'a> {
    /// `slash`, `at` or `help`
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Its name and sub-names.
    #[serde(borrow)]
    pub path: Vec<Cow<'a, str>>,
    /// The rest, as typed.
    #[serde(borrow, default)]
    pub args: Cow<'a, str>,
}

impl<'a> From<&'a CommandCall> for CommandName<'a> {
    fn from(call: &'a CommandCall) -> Self {
        let kind = match call.kind {
            CommandKind::Slash => "slash",
            CommandKind::At => "at",
            CommandKind::Help => "help",
        };
        Self {
            kind: Cow::Borrowed(kind),
            path: call.path.iter().map(|name| Cow::Borrowed(&**name)).collect(),
            args: Cow::Borrowed(&call.args),
        }
    }
}

/// What came of a command.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CommandOutcome<'a> {
    /// `message`, `dialog`, `tool` or `submit_prompt`
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// How loud a message is: `info`, `warning` or `error`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Cow<'a, str>>,
    /// The words of a message, or the prompt that is submitted.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Cow<'a, str>>,
    /// The name of the dialog.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Cow<'a, str>>,
    /// What the dialog shows.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub data: Option<&'a RawValue>,
    /// The tool that was run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolUse<'a>>,
}

/// A tool and its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse<'a> {
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The arguments, an object.
    #[serde(borrow)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub arguments: &'a RawValue,
}

/// Suggestions for what is being typed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HintLine<'a> {
    /// `result/command_hint`
    #[serde(rename = "type")]
    pub kind: HintType,
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The request's prompt id.
    #[serde(borrow)]
    pub prompt_id: Cow<'a, str>,
    /// `slash` or `at`
    #[serde(borrow)]
    pub trigger: Cow<'a, str>,
    /// `ok`, `loading` or `error`
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// The suggestions, best first.
    #[serde(borrow)]
    pub suggestions: Vec<SuggestionItem<'a>>,
    /// What goes beside them.
    pub metadata: HintMetadata,
    /// What went wrong.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
}

/// A suggestion.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SuggestionItem<'a> {
    /// What is shown.
    #[serde(borrow)]
    pub label: Cow<'a, str>,
    /// What is inserted.
    #[serde(borrow)]
    pub value: Cow<'a, str>,
    /// What it means.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}

/// What goes beside suggestions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HintMetadata {
    /// The text already names one of them exactly.
    pub is_perfect_match: bool,
}

/// A sign of life.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatLine<'a> {
    /// `result/heartbeat`
    #[serde(rename = "type")]
    pub kind: HeartbeatType,
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The turn under way.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// `ok`
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// What the turn under way is doing: `thinking`, `tool`, or `waiting` for the host to run one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Cow<'a, str>>,
    /// The tool that runs, or is waited for.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Cow<'a, str>>,
    /// Seconds since the Unix epoch.
    pub ts: u64,
}

/// The end of a cancel request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CancelLine<'a> {
    /// `result/cancel`
    #[serde(rename = "type")]
    pub kind: CancelType,
    /// The session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The turn or queued prompt that was meant.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// `ok`, or `noop` where there was nothing to cancel.
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// The reason that the request gave.
    #[serde(borrow, default)]
    pub reason: Cow<'a, str>,
    /// What happened, in a sentence.
    #[serde(borrow, default)]
    pub message: Cow<'a, str>,
}
