//! The built-in tools, one file each.

mod read_file;
mod run_shell_command;
mod shell_task;

use std::sync::Arc;

use qwen_events::{Json, ToolSpec};

use crate::Tool;

/// All of them, in the order in which the model is told about them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(read_file::ReadFile::new()),
        Arc::new(run_shell_command::RunShellCommand::new()),
        Arc::new(shell_task::ShellTask::new()),
    ]
}

/// A specification out of constants; the schema is written over several lines and sent as one.
fn spec(name: &str, description: &str, schema: &str) -> ToolSpec {
    let one_line: String = schema.lines().map(str::trim).collect();
    ToolSpec { name: name.into(), description: description.into(), parameters: Json::trusted(one_line) }
}
