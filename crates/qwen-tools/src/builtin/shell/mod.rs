//! The tools for shell commands, in the foreground and in the background.

mod command_line;
mod follow;
pub(super) mod run_shell_command;
mod shell_report;
pub(super) mod shell_task;
