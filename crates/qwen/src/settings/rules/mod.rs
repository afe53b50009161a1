//! Permission rules in settings files: adding one, and names that match no tool.

pub mod tool_names;
pub mod writer;
