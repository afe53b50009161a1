//! The built-in tools, one file each.

mod ask_user_question;
mod change;
mod edit;
mod exit_plan_mode;
mod glob;
mod grep_search;
mod list_directory;
mod notebook_edit;
mod read_file;
mod save_memory;
mod shell;
mod todo_write;
mod walk;
mod web_fetch;
mod write_file;

use std::sync::Arc;

use qwen_events::ToolDeclaration;

use crate::declared::{Declared, DeclaredTool};
use crate::{Outcome, Tool};

macro_rules! builtin {
    ([$($tool:ty),* $(,)?], only_for_claude: [$($claude:ty),* $(,)?]) => {
        /// The declarations of the built-in tools, in the order in which the model sees them.
        pub const DECLARATIONS: &[&ToolDeclaration] = &[$(<$tool>::DECLARATION,)* $(<$claude>::DECLARATION),*];

        /// The built-in tools, in the same order.
        pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
            vec![$(Arc::new(Declared::<$tool>::new())),*]
        }

        /// The built-in tools that only Claude's vocabulary offers.
        pub(crate) fn only_for_claude() -> Vec<Arc<dyn Tool>> {
            vec![$(Arc::new(Declared::<$claude>::new())),*]
        }
    };
}

builtin!([
    read_file::ReadFile,
    write_file::WriteFile,
    edit::Edit,
    list_directory::ListDirectory,
    glob::Glob,
    grep_search::GrepSearch,
    shell::run_shell_command::RunShellCommand,
    shell::shell_task::ShellTask,
    todo_write::TodoWrite,
    web_fetch::WebFetch,
    save_memory::SaveMemory,
    ask_user_question::AskUserQuestion,
    exit_plan_mode::ExitPlanMode,
], only_for_claude: [notebook_edit::NotebookEdit]);

/// The outcome of a search that was cancelled.
fn cancelled() -> Outcome {
    Outcome { cancelled: true, ..Outcome::failure("cancelled", "The search was cancelled.") }
}
