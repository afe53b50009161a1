//! Commands, `@` references, hints and hooks through the real binary, against a model on loopback.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod agents;
mod harness;
mod hook_programs;
mod hooks;
mod listener;
mod mcp_list;
mod mcp_revisions;
mod resources;
mod slash;
mod wired;
