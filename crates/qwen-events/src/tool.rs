//! Tool calls: asked for, judged, run, shown.

use std::sync::Arc;

use crate::{CallId, Json, Media};

/// A tool as the model is told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: Arc<str>,
    /// What it does, for the model.
    pub description: Arc<str>,
    /// The JSON Schema of its arguments.
    pub parameters: Json,
}

/// A whole call by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The call's id, unique in its session.
    pub id: CallId,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments: always one JSON object.
    pub arguments: Json,
    /// What the model really wrote, where that was no JSON object; such a call fails and is never run.
    pub malformed: Option<Arc<str>>,
    /// Fields that the provider put on the call and wants back unchanged with it, as one JSON object.
    pub provider_fields: Option<Json>,
}

/// Who may run a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// Someone must be asked.
    Ask,
    /// It does not run.
    Deny,
}

/// A judgement on a call and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The judgement.
    pub verdict: Verdict,
    /// The reason, in a sentence.
    pub reason: Arc<str>,
    /// The rule that decided, such as `Bash(git log *)`.
    pub rule: Option<Arc<str>>,
}

/// What a person is shown when asked about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Confirmation {
    /// A file will change.
    Edit(FileDiff),
    /// A command will run.
    Exec {
        /// The command line.
        command: Arc<str>,
        /// The programs that it starts, comma-separated.
        root_command: Arc<str>,
    },
    /// A tool of an MCP server will be called.
    Mcp {
        /// The server.
        server: Arc<str>,
        /// The tool's name there.
        tool: Arc<str>,
        /// The tool's name for people.
        display: Arc<str>,
    },
    /// Something else, in words.
    Info {
        /// What will happen.
        prompt: Arc<str>,
        /// Addresses that will be visited.
        urls: Vec<Arc<str>>,
    },
    /// A plan to agree to.
    Plan {
        /// The plan, in Markdown.
        plan: Arc<str>,
    },
}

/// Where output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Channel {
    /// The word that the wire uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    /// It did its work.
    Success,
    /// It ran and failed, or could not be run.
    Error,
    /// It was refused and never started.
    Denied,
    /// It was cancelled, before or after it started.
    Cancelled,
}

/// The end of a call. Every call gets exactly one, and every started one too.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEnd {
    /// The call.
    pub call: Arc<ToolCall>,
    /// How it ended.
    pub status: ToolStatus,
    /// The text that goes back to the model.
    pub text: Arc<str>,
    /// Images that go back with it.
    pub media: Vec<Media>,
    /// What people are shown, where it is more than the text.
    pub display: Option<Display>,
    /// A stable word for what went wrong, such as `file_not_found`.
    pub error_code: Option<&'static str>,
    /// Where the whole output is kept, when the text was cut.
    pub output_file: Option<Arc<str>>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// How long it ran.
    pub duration_ms: u64,
}

/// What people are shown of a tool's work.
#[derive(Debug, Clone, PartialEq)]
pub enum Display {
    /// A text.
    Text(Arc<str>),
    /// A changed file.
    FileDiff(FileDiff),
    /// A list of things to do.
    TodoList(Vec<Todo>),
    /// A plan.
    Plan {
        /// A line about it.
        message: Arc<str>,
        /// The plan, in Markdown.
        plan: Arc<str>,
    },
    /// A sub-agent at work.
    Task(TaskProgress),
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// The path as people know it, relative to the workspace.
    pub file_name: Arc<str>,
    /// The absolute path.
    pub file_path: Arc<str>,
    /// The unified diff.
    pub diff: Arc<str>,
    /// The text before; none when the file is new.
    pub original: Option<Arc<str>>,
    /// The text after.
    pub modified: Arc<str>,
    /// Line counts.
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

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Todo {
    /// Its id.
    pub id: Arc<str>,
    /// What to do.
    pub content: Arc<str>,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a thing to do is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    /// The word that the wire uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// A sub-agent at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProgress {
    /// The sub-agent's name.
    pub agent: Arc<str>,
    /// What it was asked to do, in a few words.
    pub description: Arc<str>,
    /// `running`, `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// Its tool calls so far.
    pub tool_calls: u64,
    /// Its tokens so far.
    pub tokens: u64,
    /// What it said at the end.
    pub result: Option<Arc<str>>,
}
