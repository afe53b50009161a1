//! What tests may rely on.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod client;
mod process;
mod program;
mod server;
