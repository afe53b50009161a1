//! The agent's tools. A [`Tool`] runs a call and returns an [`Outcome`]; it streams output through its
//! [`CallContext`]. Permission is decided before a call reaches this crate.

mod arguments;
mod background;
mod builtin;
mod declared;
mod ledger;
mod mcp_tool;
mod memory;
mod output;
mod refusal;
mod registry;
mod session_resources;
mod shell_directory;
mod tool;
mod tree_walk;
mod vocabulary;
mod web;
pub mod workspace;

pub use arguments::{ArgumentError, Arguments};
pub use background::{BackgroundTask, BackgroundTasks, Ended, TaskListener};
pub use builtin::DECLARATIONS;
pub use declared::{schema, spec};
pub use ledger::{Freshness, ReadLedger};
pub use mcp_tool::mcp_tools;
pub use memory::MemoryFiles;
pub use output::transcript::shorten;
pub use registry::Registry;
pub use session_resources::{Before, BeforeWrite, LinesChanged, MayShow, SessionResources, WriteListener};
pub use shell_directory::{ShellDirectory, may_change_directory};
pub use tool::{CallContext, DiscardedOutput, Outcome, OutputSink, Tool, ToolFuture};
pub use tree_walk::{tree_walk, tree_walk_along};
pub use vocabulary::ToolVocabulary;
pub use web::{MayFollow, WebAccess};
