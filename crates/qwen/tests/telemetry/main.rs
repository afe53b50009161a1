//! Traces, through the real binary and against a collector that listens on loopback.

#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod chaining;
mod collector;
mod content;
mod endings;
mod exporting;
mod harness;
mod hub;
mod settings;
mod spans;
