//! The four `x-qwen-*` records as they are written: lines of their own beside the messages.

use std::borrow::Cow;

use qwen_events::{Confirmation, DiffStat, Display, FileDiff, TaskProgress, Todo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{wire_struct, words};
use crate::tool_records::{confirmation_records, display_records};

words! {
    /// What a terminal record says it is.
    TerminalType = "x-qwen-terminal";
    /// What a tool display says it is.
    ToolDisplayType = "x-qwen-tool-display";
    /// What a thought says it is.
    ThoughtType = "x-qwen-thought";
    /// What a session event says it is.
    SessionEventType = "x-qwen-session-event";
}

/// A styled range, counted in Unicode scalar values of the record's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span<'a> {
    /// The first one in it.
    pub start: u64,
    /// The first one after it.
    pub end: u64,
    /// How it looks.
    pub style: SpanStyle<'a>,
}

/// How a range looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpanStyle<'a> {
    /// The name of a colour in the theme, such as `AccentGreen`.
    pub theme_token: Cow<'a, str>,
}

/// An escape sequence that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnsiCode<'a> {
    /// Where it stood, in Unicode scalar values of the record's text.
    pub offset: u64,
    /// The sequence as it was.
    pub code: Cow<'a, str>,
}

wire_struct! {
    /// What a terminal would have shown: a tool's output, a log line, or the end of a run.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct TerminalRecord<'a> {
        /// `x-qwen-terminal`
        #[serde(rename = "type")]
        pub kind: TerminalType,
        /// `stdout` or `stderr`
        pub channel: Cow<'a, str>,
        /// `assistant`, `tool`, `console` or `system`
        pub source: Cow<'a, str>,
        /// What was written, escapes removed.
        #[serde(default)]
        pub text: Cow<'a, str>,
        /// Styled ranges of `text`.
        #[serde(default)]
        pub spans: Vec<Span<'a>>,
        /// The escapes that were removed, and where they stood.
        #[serde(default)]
        pub ansi: Vec<AnsiCode<'a>>,
        /// How loud a console line is.
        #[serde(default)]
        pub console_level: Option<Cow<'a, str>>,
        /// Which part of the program wrote: `system`, `tool` or `debug`.
        pub log_scope?: Cow<'a, str>,
        /// How the run ended; only where the source is `system`.
        #[serde(default)]
        pub exit_code: Option<i32>,
        /// The call that wrote.
        pub tool_call_id?: Cow<'a, str>,
        /// The call whose sub-agent's tool wrote.
        pub parent_tool_call_id?: Cow<'a, str>,
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The turn; absent outside one.
        pub prompt_id?: Cow<'a, str>,
    }
}

wire_struct! {
    /// How a tool call stands.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ToolDisplayRecord<'a> {
        /// `x-qwen-tool-display`
        #[serde(rename = "type")]
        pub kind: ToolDisplayType,
        /// The call.
        pub tool_call_id: Cow<'a, str>,
        /// The tool.
        pub tool_name?: Cow<'a, str>,
        /// The call whose sub-agent calls.
        pub parent_tool_call_id?: Cow<'a, str>,
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The turn.
        pub prompt_id?: Cow<'a, str>,
        /// `pending`, `confirming`, `executing`, `success`, `error` or `canceled`
        pub status: Cow<'a, str>,
        /// What people are shown.
        #[serde(default)]
        pub result_display: Option<ResultDisplay<'a>>,
        /// What someone is asked to agree to, while they are asked.
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
    /// What people are shown of a tool's work.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    ResultDisplay {
        /// A text.
        String {
            /// The text.
            text: Cow<'a, str>,
            /// For filtering: `tool`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            log_scope: Option<Cow<'a, str>>,
        },
        /// A changed file.
        FileDiff {
            /// The path as people know it.
            file_name: Cow<'a, str>,
            /// The unified diff.
            diff: Cow<'a, str>,
            /// The text before; null when the file is new.
            original: Option<Cow<'a, str>>,
            /// The text after.
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

/// One thing to do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TodoRecord<'a> {
    /// Its id.
    pub id: Cow<'a, str>,
    /// What to do.
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
    /// What someone is asked to agree to.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "type", rename_all = "snake_case")]
    ConfirmationRecord () {
        /// The path as people know it.
        file_name: Cow<'a, str>,
        /// The absolute path.
        file_path: Cow<'a, str>,
        /// The unified diff.
        diff: Cow<'a, str>,
        /// The text before; null when the file is new.
        original: Option<Cow<'a, str>>,
        /// The text after.
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
        Self::of(confirmation, |title, diff| Self::Edit {
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
    /// A thought.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ThoughtRecord<'a> {
        /// `x-qwen-thought`
        #[serde(rename = "type")]
        pub kind: ThoughtType,
        /// What it is about, in a few words.
        pub subject: Cow<'a, str>,
        /// The thought.
        pub description: Cow<'a, str>,
        /// The call whose sub-agent thinks.
        pub parent_tool_call_id?: Cow<'a, str>,
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The turn.
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
        /// What happened, in a sentence.
        #[serde(default)]
        pub message: Cow<'a, str>,
        /// Numbers that go with it.
        pub metrics?: Metrics,
        /// What a custom event carries.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub value?: &'a RawValue,
        /// The call whose sub-agent it is about.
        pub parent_tool_call_id?: Cow<'a, str>,
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The turn; absent outside one. Of `Steered`, the prompt that joins; `value.turn` is the turn.
        pub prompt_id?: Cow<'a, str>,
    }
}

wire_struct! {
    /// Numbers that go with a notice.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    pub struct Metrics {
        /// Tokens before compression.
        pub original_tokens?: u64,
        /// Tokens after compression.
        pub compressed_tokens?: u64,
        /// The limit that was reached.
        pub limit?: u64,
        /// The attempt that failed, from 1.
        pub attempt?: u32,
        /// How many retries there may be.
        pub max_retries?: u32,
        /// How long we wait before the next attempt.
        pub delay_ms?: u64,
        /// The HTTP status of the failed attempt.
        pub status?: u16,
    }
}
