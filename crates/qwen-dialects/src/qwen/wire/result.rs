//! The lines that answer requests (`result/*`), as they are written.

use std::borrow::Cow;

use qwen_events::{CommandCall, CommandKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{wire_struct, words};
words! {
    /// The literal `result/command`.
    CommandType = "result/command";
    /// The literal `result/command_hint`.
    HintType = "result/command_hint";
    /// The literal `result/heartbeat`.
    HeartbeatType = "result/heartbeat";
    /// The literal `result/cancel`.
    CancelType = "result/cancel";
}

wire_struct! {
    /// The result of a slash command.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct CommandLine<'a> {
        /// `result/command`
        #[serde(rename = "type")]
        pub kind: CommandType,
        /// The id of the session.
        pub session_id: Cow<'a, str>,
        /// The id of the prompt that contained the command.
        pub prompt_id: Cow<'a, str>,
        /// The command as it was parsed.
        pub command: CommandName<'a>,
        /// The outcome of the command.
        #[serde(borrow)]
        pub result: CommandOutcome<'a>,
        /// Features that are unavailable because there is no control channel.
        pub limitation?: Cow<'a, str>,
    }
}

/// A parsed command with its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CommandName<'a> {
    /// `slash`, `at` or `help`
    pub kind: Cow<'a, str>,
    /// The command's name followed by the names of its subcommands.
    pub path: Vec<Cow<'a, str>>,
    /// The arguments as typed.
    #[serde(default)]
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

wire_struct! {
    /// The outcome of a command.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct CommandOutcome<'a> {
        /// `message`, `dialog`, `tool` or `submit_prompt`
        #[serde(rename = "type")]
        pub kind: Cow<'a, str>,
        /// The level of a message: `info`, `warning` or `error`.
        pub level?: Cow<'a, str>,
        /// The text of a message, or the submitted prompt.
        pub content?: Cow<'a, str>,
        /// The name of the dialog.
        pub dialog?: Cow<'a, str>,
        /// The content of the dialog.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub data?: &'a RawValue,
        /// The tool that was run.
        #[serde(borrow)]
        pub tool?: ToolUse<'a>,
    }
}

/// A tool and its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse<'a> {
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments of the call, a JSON object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    #[serde(borrow)]
    pub arguments: &'a RawValue,
}

wire_struct! {
    /// Completions of the text that is being typed.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct HintLine<'a> {
        /// `result/command_hint`
        #[serde(rename = "type")]
        pub kind: HintType,
        /// The id of the session.
        pub session_id: Cow<'a, str>,
        /// The `prompt_id` of the request.
        pub prompt_id: Cow<'a, str>,
        /// `slash` or `at`
        pub trigger: Cow<'a, str>,
        /// `ok`, `loading` or `error`
        pub status: Cow<'a, str>,
        /// The suggestions, best first.
        pub suggestions: Vec<SuggestionItem<'a>>,
        /// Additional information about the suggestions.
        pub metadata: HintMetadata,
        /// The error, if there is one.
        pub message?: Cow<'a, str>,
    }
}

wire_struct! {
    /// A completion of the text that is being typed.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct SuggestionItem<'a> {
        /// The text to display.
        pub label: Cow<'a, str>,
        /// The text to insert.
        pub value: Cow<'a, str>,
        /// A description of the suggestion.
        pub description?: Cow<'a, str>,
    }
}

/// Additional information about suggestions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HintMetadata {
    /// True if the text already equals one of the suggestions.
    pub is_perfect_match: bool,
}

wire_struct! {
    /// A heartbeat of the worker.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct HeartbeatLine<'a> {
        /// `result/heartbeat`
        #[serde(rename = "type")]
        pub kind: HeartbeatType,
        /// The id of the session.
        pub session_id: Cow<'a, str>,
        /// The id of the running turn's prompt.
        pub prompt_id?: Cow<'a, str>,
        /// `ok`
        pub status: Cow<'a, str>,
        /// The activity of the running turn: `thinking`, `tool`, or `waiting` while the host runs a tool.
        pub activity?: Cow<'a, str>,
        /// The name of the tool that is running or that the host runs.
        pub tool?: Cow<'a, str>,
        /// Seconds since the Unix epoch.
        pub ts: u64,
    }
}

wire_struct! {
    /// The result of a cancel request.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct CancelLine<'a> {
        /// `result/cancel`
        #[serde(rename = "type")]
        pub kind: CancelType,
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the turn or queued prompt that the request named.
        pub prompt_id?: Cow<'a, str>,
        /// `ok`, or `noop` if there was nothing to cancel.
        pub status: Cow<'a, str>,
        /// The `reason` of the request.
        #[serde(default)]
        pub reason: Cow<'a, str>,
        /// A message for users about what was cancelled.
        #[serde(default)]
        pub message: Cow<'a, str>,
    }
}
