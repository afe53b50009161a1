//! The built-in tools, one file each.

mod ask_user_question;
mod change;
mod command_line;
mod edit;
mod exit_plan_mode;
mod glob;
mod grep_search;
mod list_directory;
mod nearest;
mod read_file;
mod run_shell_command;
mod save_memory;
mod shell_task;
mod todo_write;
mod walk;
mod web_fetch;
mod write_file;

use std::sync::Arc;

use qwen_events::{Json, ToolSpec};

use crate::{Outcome, Tool};

/// All of them, in the order in which the model is told about them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(read_file::ReadFile::new()),
        Arc::new(write_file::WriteFile::new()),
        Arc::new(edit::Edit::new()),
        Arc::new(list_directory::ListDirectory::new()),
        Arc::new(glob::Glob::new()),
        Arc::new(grep_search::GrepSearch::new()),
        Arc::new(run_shell_command::RunShellCommand::new()),
        Arc::new(shell_task::ShellTask::new()),
        Arc::new(todo_write::TodoWrite::new()),
        Arc::new(web_fetch::WebFetch::new()),
        Arc::new(save_memory::SaveMemory::new()),
        Arc::new(ask_user_question::AskUserQuestion::new()),
        Arc::new(exit_plan_mode::ExitPlanMode::new()),
    ]
}

/// A specification out of constants; the schema is written over several lines and sent as one.
fn spec(name: &str, description: &str, schema: &str) -> ToolSpec {
    let one_line: String = schema.lines().map(str::trim).collect();
    ToolSpec { name: name.into(), description: description.into(), parameters: Json::trusted(one_line) }
}

/// The outcome of a search that was cancelled.
fn cancelled() -> Outcome {
    Outcome { cancelled: true, ..Outcome::failure("cancelled", "The search was cancelled.") }
}
