//! The four `x-qwen-*` records as they are written: separate lines between the messages.

use std::borrow::Cow;

use qwen_events::{Confirmation, DiffStat, Display, FileDiff, TaskProgress, Todo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{wire_struct, words};
use crate::tool_records::{confirmation_records, display_records};

words! {
    /// The literal `x-qwen-terminal`.
    TerminalType = "x-qwen-terminal";
    /// The literal `x-qwen-tool-display`.
    ToolDisplayType = "x-qwen-tool-display";
    /// The literal `x-qwen-thought`.
    ThoughtType = "x-qwen-thought";
    /// The literal `x-qwen-session-event`.
    SessionEventType = "x-qwen-session-event";
}

/// A styled range, counted in Unicode scalar values of the record's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span<'a> {
    /// The position of the first character.
    pub start: u64,
    /// The position after the last character.
    pub end: u64,
    /// The style of the range.
    pub style: SpanStyle<'a>,
}

/// The style of a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpanStyle<'a> {
    /// The name of a colour in the theme, such as `AccentGreen`.
    pub theme_token: Cow<'a, str>,
}

/// An escape sequence that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnsiCode<'a> {
    /// Its position in the record's text, in Unicode scalar values.
    pub offset: u64,
    /// The escape sequence that was removed.
    pub code: Cow<'a, str>,
}

wire_struct! {
    /// Terminal output: a tool's output, a log line, or the end of a run.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct TerminalRecord<'a> {
        /// `x-qwen-terminal`
        #[serde(rename = "type")]
        pub kind: TerminalType,
        /// `stdout` or `stderr`
        pub channel: Cow<'a, str>,
        /// `assistant`, `tool`, `console` or `system`
        pub source: Cow<'a, str>,
        /// The output without escape sequences.
        #[serde(default)]
        pub text: Cow<'a, str>,
        /// Styled ranges of `text`.
        #[serde(default)]
        pub spans: Vec<Span<'a>>,
        /// The removed escape sequences with their positions.
        #[serde(default)]
        pub ansi: Vec<AnsiCode<'a>>,
        /// The level of a console line.
        #[serde(default)]
        pub console_level: Option<Cow<'a, str>>,
        /// The origin of the output: `system`, `tool` or `debug`.
        pub log_scope?: Cow<'a, str>,
        /// The exit code of the run; only if the source is `system`.
        #[serde(default)]
        pub exit_code: Option<i32>,
        /// The id of the tool call that wrote.
        pub tool_call_id?: Cow<'a, str>,
        /// The id of the tool call that started the sub-agent whose tool wrote.
        pub parent_tool_call_id?: Cow<'a, str>,
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the turn's prompt; absent outside a turn.
        pub prompt_id?: Cow<'a, str>,
    }
}

wire_struct! {
    /// The state of a tool call.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ToolDisplayRecord<'a> {
        /// `x-qwen-tool-display`
        #[serde(rename = "type")]
        pub kind: ToolDisplayType,
        /// The id of the tool call.
        pub tool_call_id: Cow<'a, str>,
        /// The name of the tool.
        pub tool_name?: Cow<'a, str>,
        /// The id of the tool call that started the sub-agent.
        pub parent_tool_call_id?: Cow<'a, str>,
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the turn's prompt.
        pub prompt_id?: Cow<'a, str>,
        /// `pending`, `confirming`, `executing`, `success`, `error` or `canceled`
        pub status: Cow<'a, str>,
        /// The result for display.
        #[serde(default)]
        pub result_display: Option<ResultDisplay<'a>>,
        /// The content of the permission request while it is open.
        #[serde(default)]
        pub confirmation: Option<ConfirmationRecord<'a>>,
        /// The call has not started.
        #[serde(default)]
        pub pending: bool,
        /// Seconds since the Unix epoch.
        pub timestamp: u64,
    }
}

display_records!(
    /// The result of a tool for display.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    ResultDisplay {
        /// A plain text.
        String {
            /// The text of the block.
            text: Cow<'a, str>,
            /// A category for filtering: `tool`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            log_scope: Option<Cow<'a, str>>,
        },
        /// A changed file.
        FileDiff {
            /// The path as displayed to users.
            file_name: Cow<'a, str>,
            /// The unified diff.
            diff: Cow<'a, str>,
            /// The text before the change; null for a new file.
            original: Option<Cow<'a, str>>,
            /// The text after the change.
            modified: Cow<'a, str>,
            /// Line counts.
            stat: LineCounts,
        },
    } agent description
);

impl<'a> ResultDisplay<'a> {
    /// A plain text of a tool.
    pub(crate) fn text(text: &'a str) -> Self {
        Self::String { text: Cow::Borrowed(text), log_scope: Some(Cow::Borrowed("tool")) }
    }
}

impl<'a> From<&'a Display> for ResultDisplay<'a> {
    fn from(display: &'a Display) -> Self {
        match display {
            Display::Text(text) => Self::text(text),
            Display::FileDiff(diff) => Self::FileDiff {
                file_name: Cow::Borrowed(&diff.file_name),
                diff: Cow::Borrowed(&diff.diff),
                original: diff.original.as_deref().map(Cow::Borrowed),
                modified: Cow::Borrowed(&diff.modified),
                stat: LineCounts::from(&diff.stat),
            },
            Display::TodoList(todos) => Self::todos(todos),
            Display::Plan { message, plan } => Self::plan(message, plan),
            Display::Task(task) => Self::task(task),
        }
    }
}

/// Line counts of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineCounts {
    /// Lines that the model added.
    pub ai_added_lines: u64,
    /// Lines that the model removed.
    pub ai_removed_lines: u64,
    /// Lines that the user added while approving.
    pub user_added_lines: u64,
    /// Lines that the user removed while approving.
    pub user_removed_lines: u64,
}

impl From<&DiffStat> for LineCounts {
    fn from(stat: &DiffStat) -> Self {
        Self {
            ai_added_lines: stat.ai_added_lines,
            ai_removed_lines: stat.ai_removed_lines,
            user_added_lines: stat.user_added_lines,
            user_removed_lines: stat.user_removed_lines,
        }
    }
}

/// An item of a to-do list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TodoRecord<'a> {
    /// The id of the item.
    pub id: Cow<'a, str>,
    /// The text of the item.
    pub content: Cow<'a, str>,
    /// `pending`, `in_progress` or `completed`
    pub status: Cow<'a, str>,
}

impl<'a> From<&'a Todo> for TodoRecord<'a> {
    fn from(todo: &'a Todo) -> Self {
        Self {
            id: Cow::Borrowed(&todo.id),
            content: Cow::Borrowed(&todo.content),
            status: Cow::Borrowed(todo.status.name()),
        }
    }
}

confirmation_records!(
    /// The content of a permission request.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "type", rename_all = "snake_case")]
    ConfirmationRecord () {
        /// The path as displayed to users.
        file_name: Cow<'a, str>,
        /// The absolute path of the file.
        file_path: Cow<'a, str>,
        /// The unified diff.
        diff: Cow<'a, str>,
        /// The text before the change; null for a new file.
        original: Option<Cow<'a, str>>,
        /// The text after the change.
        modified: Cow<'a, str>,
        /// Line counts.
        stat: LineCounts,
    }
);

/// A heading for what someone is asked to agree to.
pub(crate) fn confirmation_title(confirmation: &Confirmation) -> Cow<'_, str> {
    match confirmation {
        Confirmation::Edit(diff) => format!("Confirm edit: {}", diff.file_name).into(),
        Confirmation::Exec { .. } => "Confirm shell command".into(),
        Confirmation::Mcp { server, display, .. } => {
            format!("Confirm MCP tool: {display} of {server}").into()
        }
        Confirmation::Info { .. } => "Confirm tool call".into(),
        Confirmation::Plan { .. } => "Confirm plan".into(),
    }
}

impl<'a> From<&'a Confirmation> for ConfirmationRecord<'a> {
    fn from(confirmation: &'a Confirmation) -> Self {
        Self::from_confirmation(confirmation, |title, diff| Self::Edit {
            title,
            file_name: Cow::Borrowed(&diff.file_name),
            file_path: Cow::Borrowed(&diff.file_path),
            diff: Cow::Borrowed(&diff.diff),
            original: diff.original.as_deref().map(Cow::Borrowed),
            modified: Cow::Borrowed(&diff.modified),
            stat: LineCounts::from(&diff.stat),
        })
    }
}

wire_struct! {
    /// A thought of the model.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ThoughtRecord<'a> {
        /// `x-qwen-thought`
        #[serde(rename = "type")]
        pub kind: ThoughtType,
        /// The subject of the thought.
        pub subject: Cow<'a, str>,
        /// The text of the thought.
        pub description: Cow<'a, str>,
        /// The id of the tool call that started the sub-agent.
        pub parent_tool_call_id?: Cow<'a, str>,
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the turn's prompt.
        pub prompt_id?: Cow<'a, str>,
    }
}

wire_struct! {
    /// A notice about the session.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct SessionEventRecord<'a> {
        /// `x-qwen-session-event`
        #[serde(rename = "type")]
        pub kind: SessionEventType,
        /// `Finished`, `ChatCompressed`, `MaxSessionTurns`, `USER_CANCELLED`, `MAX_TOKENS`, `Retry`, `ModelFallback`,
        /// `LoopDetected`, `ModeChanged`, `Steered` or `Custom`
        pub event: Cow<'a, str>,
        /// A message for users about the event.
        #[serde(default)]
        pub message: Cow<'a, str>,
        /// Figures that belong to the event.
        pub metrics?: Metrics,
        /// The payload of a custom event.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub value?: &'a RawValue,
        /// The id of the tool call that started the sub-agent.
        pub parent_tool_call_id?: Cow<'a, str>,
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the turn's prompt; absent outside a turn. For `Steered` the id of the prompt that joins;
        /// `value.turn` is the turn.
        pub prompt_id?: Cow<'a, str>,
    }
}

wire_struct! {
    /// Figures that belong to a notice.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    pub struct Metrics {
        /// The number of tokens before compaction.
        pub original_tokens?: u64,
        /// The number of tokens after compaction.
        pub compressed_tokens?: u64,
        /// The limit that was reached.
        pub limit?: u64,
        /// The attempt that failed, from 1.
        pub attempt?: u32,
        /// The maximum number of retries.
        pub max_retries?: u32,
        /// The delay before the next attempt in milliseconds.
        pub delay_ms?: u64,
        /// The HTTP status of the failed attempt.
        pub status?: u16,
    }
}
