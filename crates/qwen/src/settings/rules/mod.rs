//! Permission rules in settings files: adding one, names that match no tool, and settings of `Network` rules.

pub(super) mod network;
pub mod tool_names;
pub mod writer;
