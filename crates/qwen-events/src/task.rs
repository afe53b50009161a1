//! Work that has a life of its own: commands in the background, and sub-agents, which a call waits for or does not.

use std::sync::Arc;

use crate::CallId;

/// A piece of work that can be told of, looked at and stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name in the session.
    pub id: Arc<str>,
    /// What works.
    pub kind: TaskKind,
    /// The call that started it.
    pub call_id: CallId,
    /// What it is about, in few words.
    pub description: Arc<str>,
    /// The call that started it does not wait for it.
    pub background: bool,
}

/// What works on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskKind {
    /// A command.
    Command,
    /// The sub-agent of this name.
    Agent(Arc<str>),
}

/// Something happened to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEvent {
    /// The task.
    pub task: Arc<Task>,
    /// What happened.
    pub news: TaskUpdate,
}

/// What happens to a task: it starts once and ends at most once; those that are left when the process ends do so
/// unsaid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskUpdate {
    /// It started.
    Started,
    /// It took a step.
    Progress {
        /// What it spent so far.
        spent: TaskTotals,
        /// The tool that it used last.
        last_tool: Option<Arc<str>>,
    },
    /// It is over.
    Ended(TaskEnd),
}

/// What a sub-agent has spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskTotals {
    /// Tokens.
    pub tokens: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Time.
    pub duration_ms: u64,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// How.
    pub status: TaskStatus,
    /// What came of it, in few words.
    pub summary: Arc<str>,
    /// The file with all that it wrote; empty where there is none.
    pub output_file: Arc<str>,
    /// What it spent, where it is an agent.
    pub spent: Option<TaskTotals>,
}

/// How a task ended, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// By itself, and well.
    Completed,
    /// By itself, and not well.
    Failed,
    /// Somebody ended it.
    Stopped,
}

impl TaskStatus {
    /// The word that people and most wires use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}
