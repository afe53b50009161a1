//! Tasks: background commands and sub-agents, whether or not a call waits for them.

use std::sync::Arc;

use crate::CallId;

/// A task that can be reported, inspected and stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Unique in the session.
    pub id: Arc<str>,
    pub kind: TaskKind,
    /// The call that started it.
    pub call_id: CallId,
    pub description: Arc<str>,
    /// True if the call that started it does not wait for it.
    pub background: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskKind {
    Command,
    /// The sub-agent with this name.
    Agent(Arc<str>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEvent {
    pub task: Arc<Task>,
    pub news: TaskUpdate,
}

/// A state change of a task. A task starts once and ends at most once; tasks that still run when the
/// process ends get no end event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskUpdate {
    Started,
    Progress {
        /// The totals so far.
        spent: TaskTotals,
        /// The most recently used tool.
        last_tool: Option<Arc<str>>,
    },
    Ended(TaskEnd),
}

/// The resources that a sub-agent has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskTotals {
    pub tokens: u64,
    pub tool_calls: u64,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    pub status: TaskStatus,
    /// A short description of the result.
    pub summary: Arc<str>,
    /// The file with the complete output; empty if there is none.
    pub output_file: Arc<str>,
    /// The totals, if the task is a sub-agent.
    pub spent: Option<TaskTotals>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// The task finished without an error.
    Completed,
    /// It finished with a failure.
    Failed,
    /// The user or the model stopped the task.
    Stopped,
}

impl TaskStatus {
    /// The name in messages and on most wires.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}
