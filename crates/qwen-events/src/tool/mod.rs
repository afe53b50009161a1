//! Tool calls: declaration, permission decision, execution, display.

pub mod declaration;
pub mod earlier_calls;
pub mod file_lines;
pub mod hunk;
pub mod rule_offer;
pub mod search_result;

use std::sync::Arc;

use crate::{CallId, Json, Media};

/// A tool as described to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: Arc<str>,
    /// The description for the model.
    pub description: Arc<str>,
    /// The JSON Schema of its arguments.
    pub parameters: Json,
}

/// A complete call by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Unique in its session.
    pub id: CallId,
    pub name: Arc<str>,
    /// Always one JSON object.
    pub arguments: Json,
    /// The model's original text, if it was not a JSON object; such a call fails and never runs.
    pub malformed: Option<Arc<str>>,
    /// Fields that the provider set on the call and expects back unchanged, as one JSON object.
    pub provider_fields: Option<Json>,
}

impl ToolCall {
    /// A call whose arguments are one JSON object.
    pub fn new(id: CallId, name: Arc<str>, arguments: Json) -> Self {
        Self { id, name, arguments, malformed: None, provider_fields: None }
    }
}

/// The permission decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The call runs without approval.
    Allow,
    /// The user or the host must approve the call.
    Ask,
    /// The call does not run.
    Deny,
}

/// A permission decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The reason, as a sentence for users.
    pub reason: Arc<str>,
    /// The rule that decided, such as `Bash(git log *)`.
    pub rule: Option<Arc<str>>,
}

/// What is shown to the person who approves a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Confirmation {
    /// A file will change.
    Edit(FileDiff),
    /// A command will run.
    Exec {
        command: Arc<str>,
        /// The programs that it starts, comma-separated.
        root_command: Arc<str>,
    },
    /// A tool of an MCP server will be called.
    Mcp {
        server: Arc<str>,
        /// The tool's name on the server.
        tool: Arc<str>,
        /// The tool's display name.
        display: Arc<str>,
    },
    /// Anything else, described in text.
    Info {
        /// A description of the effect.
        prompt: Arc<str>,
        /// URLs that will be fetched.
        urls: Vec<Arc<str>>,
    },
    /// A plan to approve.
    Plan {
        /// The plan, written in Markdown.
        plan: Arc<str>,
    },
}

/// The stream that output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    Stdout,
    Stderr,
}

impl Channel {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    Success,
    /// It ran and failed, or could not run.
    Error,
    /// It was refused and never started.
    Denied,
    /// It was cancelled, before or after it started.
    Cancelled,
}

/// The end of a call. Every call gets exactly one, started or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEnd {
    pub call: Arc<ToolCall>,
    pub status: ToolStatus,
    /// The result for the model.
    pub text: Arc<str>,
    /// Images for the model.
    pub media: Vec<Media>,
    /// What users see, if it differs from the text.
    pub display: Option<Display>,
    /// A stable error code, such as `file_not_found`.
    pub error_code: Option<&'static str>,
    /// The file with the complete output, if the text was truncated.
    pub output_file: Option<Arc<str>>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    pub duration_ms: u64,
}

impl ToolEnd {
    /// The end of a call whose process ended before it had a result.
    pub fn interrupted(call: Arc<ToolCall>, text: Arc<str>) -> Self {
        Self {
            call,
            status: ToolStatus::Cancelled,
            text,
            media: Vec::new(),
            display: None,
            error_code: Some("interrupted"),
            output_file: None,
            exit_code: None,
            duration_ms: 0,
        }
    }
}

/// What users see of a tool's work.
#[derive(Debug, Clone, PartialEq)]
pub enum Display {
    Text(Arc<str>),
    FileDiff(FileDiff),
    TodoList(Vec<Todo>),
    Plan {
        /// A description on one line.
        message: Arc<str>,
        /// The plan, written in Markdown.
        plan: Arc<str>,
    },
    /// The progress of a sub-agent.
    Task(TaskProgress),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// The display path, relative to the workspace.
    pub file_name: Arc<str>,
    /// The absolute path of the file.
    pub file_path: Arc<str>,
    /// The change as unified diff.
    pub diff: Arc<str>,
    /// The text before; none for a new file.
    pub original: Option<Arc<str>>,
    /// The text after the change.
    pub modified: Arc<str>,
    pub stat: DiffStat,
}

/// Line counts of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffStat {
    /// Lines that the model added.
    pub ai_added_lines: u64,
    /// Lines that the model removed.
    pub ai_removed_lines: u64,
    /// Lines that the user added while approving.
    pub user_added_lines: u64,
    /// Lines that the user removed while approving.
    pub user_removed_lines: u64,
}

/// One item of a to-do list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Todo {
    pub id: Arc<str>,
    pub content: Arc<str>,
    pub status: TodoStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

impl TodoStatus {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// The progress of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProgress {
    pub agent: Arc<str>,
    /// A short description of its task.
    pub description: Arc<str>,
    /// `running`, `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// The number so far.
    pub tool_calls: u64,
    /// The number so far.
    pub tokens: u64,
    /// The final message of the sub-agent.
    pub result: Option<Arc<str>>,
}
