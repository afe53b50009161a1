//! The lines that answer requests (`result/*`), as they are written.

use std::borrow::Cow;

use qwen_events::{CommandCall, CommandKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{wire_struct, words};
words! {
    /// What the end of a command says it is.
    CommandType = "result/command";
    /// What suggestions say they are.
    HintType = "result/command_hint";
    /// What a heartbeat says it is.
    HeartbeatType = "result/heartbeat";
    /// What the end of a cancel request says it is.
    CancelType = "result/cancel";
}

wire_struct! {
    /// The end of a command.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct CommandLine<'a> {
        /// `result/command`
        #[serde(rename = "type")]
        pub kind: CommandType,
        /// The session.
        pub session_id: Cow<'a, str>,
        /// The prompt that held the command.
        pub prompt_id: Cow<'a, str>,
        /// The command as it was understood.
        pub command: CommandName<'a>,
        /// What came of it.
        #[serde(borrow)]
        pub result: CommandOutcome<'a>,
        /// What the host cannot do in this run, because there is no control channel.
        pub limitation?: Cow<'a, str>,
    }
}

/// A command and its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CommandName<'a> {
    /// `slash`, `at` or `help`
    pub kind: Cow<'a, str>,
    /// Its name and sub-names.
    pub path: Vec<Cow<'a, str>>,
    /// The rest, as typed.
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
    /// What came of a command.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct CommandOutcome<'a> {
        /// `message`, `dialog`, `tool` or `submit_prompt`
        #[serde(rename = "type")]
        pub kind: Cow<'a, str>,
        /// How loud a message is: `info`, `warning` or `error`.
        pub level?: Cow<'a, str>,
        /// The words of a message, or the prompt that is submitted.
        pub content?: Cow<'a, str>,
        /// The name of the dialog.
        pub dialog?: Cow<'a, str>,
        /// What the dialog shows.
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
    /// The tool.
    pub name: Cow<'a, str>,
    /// The arguments, an object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    #[serde(borrow)]
    pub arguments: &'a RawValue,
}

wire_struct! {
    /// Suggestions for what is being typed.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct HintLine<'a> {
        /// `result/command_hint`
        #[serde(rename = "type")]
        pub kind: HintType,
        /// The session.
        pub session_id: Cow<'a, str>,
        /// The request's prompt id.
        pub prompt_id: Cow<'a, str>,
        /// `slash` or `at`
        pub trigger: Cow<'a, str>,
        /// `ok`, `loading` or `error`
        pub status: Cow<'a, str>,
        /// The suggestions, best first.
        pub suggestions: Vec<SuggestionItem<'a>>,
        /// What goes beside them.
        pub metadata: HintMetadata,
        /// What went wrong.
        pub message?: Cow<'a, str>,
    }
}

wire_struct! {
    /// A suggestion.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct SuggestionItem<'a> {
        /// What is shown.
        pub label: Cow<'a, str>,
        /// What is inserted.
        pub value: Cow<'a, str>,
        /// What it means.
        pub description?: Cow<'a, str>,
    }
}

/// What goes beside suggestions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HintMetadata {
    /// The text already names one of them exactly.
    pub is_perfect_match: bool,
}

wire_struct! {
    /// A sign of life.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct HeartbeatLine<'a> {
        /// `result/heartbeat`
        #[serde(rename = "type")]
        pub kind: HeartbeatType,
        /// The session.
        pub session_id: Cow<'a, str>,
        /// The turn under way.
        pub prompt_id?: Cow<'a, str>,
        /// `ok`
        pub status: Cow<'a, str>,
        /// What the turn under way is doing: `thinking`, `tool`, or `waiting` for the host to run one.
        pub activity?: Cow<'a, str>,
        /// The tool that runs, or is waited for.
        pub tool?: Cow<'a, str>,
        /// Seconds since the Unix epoch.
        pub ts: u64,
    }
}

wire_struct! {
    /// The end of a cancel request.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct CancelLine<'a> {
        /// `result/cancel`
        #[serde(rename = "type")]
        pub kind: CancelType,
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The turn or queued prompt that was meant.
        pub prompt_id?: Cow<'a, str>,
        /// `ok`, or `noop` where there was nothing to cancel.
        pub status: Cow<'a, str>,
        /// The reason that the request gave.
        #[serde(default)]
        pub reason: Cow<'a, str>,
        /// What happened, in a sentence.
        #[serde(default)]
        pub message: Cow<'a, str>,
    }
}
