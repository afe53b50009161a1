//! How a tool call went, as data: what stands beside a tool's result.

use std::borrow::Cow;

use qwen_events::{Display, FileDiff, TaskProgress, ToolEnd, ToolStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tool_output::ToolOutput;

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutcome<'a> {
    /// `success`, `error`, `denied` or `cancelled`.
    pub status: Cow<'a, str>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// A stable identifier of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<Cow<'a, str>>,
    /// The file with the whole output, if the text was truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_file: Option<Cow<'a, str>>,
    /// The result for display, if it is more than the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<ResultDisplay<'a>>,
    /// For hosts of Claude's family: what their CLI says about the result of this tool.
    #[serde(flatten)]
    #[schemars(skip)]
    pub output: Option<ToolOutput<'a>>,
}

/// The result of a tool for display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ResultDisplay<'a> {
    /// A plain text to display.
    Text(Cow<'a, str>),
    /// A structured result to display.
    Rich(RichDisplay<'a>),
}

/// The result of a tool for display, if it is more than text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RichDisplay<'a> {
    /// The change of a file.
    FileDiff {
        /// The path relative to the workspace.
        file_name: Cow<'a, str>,
        /// The absolute path of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<Cow<'a, str>>,
        /// The change as unified diff.
        diff: Cow<'a, str>,
        /// The text before the change; null for a new file.
        original: Option<Cow<'a, str>>,
        /// The text after the change.
        modified: Cow<'a, str>,
        /// The numbers of changed lines.
        stat: LineCounts,
    },
    /// The to-do list of the session.
    TodoList {
        /// The items of the list.
        todos: Vec<TodoItem<'a>>,
    },
    /// A plan for approval.
    PlanSummary {
        /// A summary on one line.
        message: Cow<'a, str>,
        /// The plan, in Markdown.
        plan: Cow<'a, str>,
    },
    /// The progress of a sub-agent.
    TaskExecution {
        /// The name of the sub-agent.
        agent: Cow<'a, str>,
        /// The task given to the sub-agent.
        description: Cow<'a, str>,
        /// `running`, `completed`, `failed` or `cancelled`.
        status: Cow<'a, str>,
        /// The number of tool calls so far.
        tool_calls: u64,
        /// The tokens used so far.
        tokens: u64,
        /// The sub-agent's final report.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Cow<'a, str>>,
    },
}

/// Line counts of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// An item of a to-do list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TodoItem<'a> {
    /// The id of the item.
    pub id: Cow<'a, str>,
    /// The text of the item.
    pub content: Cow<'a, str>,
    /// `pending`, `in_progress` or `completed`.
    pub status: Cow<'a, str>,
}

impl<'a> From<&'a ToolEnd> for ToolOutcome<'a> {
    fn from(end: &'a ToolEnd) -> Self {
        Self {
            status: match end.status {
                ToolStatus::Success => "success",
                ToolStatus::Error => "error",
                ToolStatus::Denied => "denied",
                ToolStatus::Cancelled => "cancelled",
            }
            .into(),
            duration_ms: end.duration_ms,
            exit_code: end.exit_code,
            error_code: end.error_code.map(Cow::Borrowed),
            output_file: end.output_file.as_deref().map(Cow::Borrowed),
            display: end.display.as_ref().map(ResultDisplay::from),
            output: None,
        }
    }
}

impl<'a> From<&'a Display> for ResultDisplay<'a> {
    fn from(display: &'a Display) -> Self {
        Self::Rich(match display {
            Display::Text(text) => return Self::Text(text.as_ref().into()),
            Display::FileDiff(diff) => file_diff(diff),
            Display::TodoList(todos) => RichDisplay::TodoList {
                todos: todos
                    .iter()
                    .map(|todo| TodoItem {
                        id: todo.id.as_ref().into(),
                        content: todo.content.as_ref().into(),
                        status: todo.status.name().into(),
                    })
                    .collect(),
            },
            Display::Plan { message, plan } => {
                RichDisplay::PlanSummary { message: message.as_ref().into(), plan: plan.as_ref().into() }
            }
            Display::Task(task) => task_execution(task),
        })
    }
}

fn file_diff(diff: &FileDiff) -> RichDisplay<'_> {
    RichDisplay::FileDiff {
        file_name: diff.file_name.as_ref().into(),
        file_path: Some(diff.file_path.as_ref().into()),
        diff: diff.diff.as_ref().into(),
        original: diff.original.as_deref().map(Cow::Borrowed),
        modified: diff.modified.as_ref().into(),
        stat: LineCounts {
            ai_added_lines: diff.stat.ai_added_lines,
            ai_removed_lines: diff.stat.ai_removed_lines,
            user_added_lines: diff.stat.user_added_lines,
            user_removed_lines: diff.stat.user_removed_lines,
        },
    }
}

fn task_execution(task: &TaskProgress) -> RichDisplay<'_> {
    RichDisplay::TaskExecution {
        agent: task.agent.as_ref().into(),
        description: task.description.as_ref().into(),
        status: task.status.into(),
        tool_calls: task.tool_calls,
        tokens: task.tokens,
        result: task.result.as_deref().map(Cow::Borrowed),
    }
}
