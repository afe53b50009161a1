//! The kernel as a Rust SDK: the shared behaviours of the SDKs (`sdk/BEHAVIOURS.md`), with the real binary as
//! worker.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod behaviours;
mod callbacks;
mod failures;
mod harness;
mod host;
mod promises;
mod sessions;
mod turns;
