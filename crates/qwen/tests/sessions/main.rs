//! Sessions through the real binary: kept, taken up, forked, killed, looked at.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod asking;
mod commands;
mod forking;
mod harness;
mod keeping;
mod killing;
mod killing_thoughts;
mod long;
mod resuming;
mod thinking;
mod travelling;
mod undoing;
mod waiting;
