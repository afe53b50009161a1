//! The issue "One event stream, every dialect" through the real binary, against a real server on loopback.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod answers;
mod budget;
mod cancel;
mod control_settings;
mod dialect_choice;
mod directories;
mod examples;
mod faults;
mod fifo;
mod flags;
mod flow;
mod harness;
mod heartbeat;
mod host_tools;
mod limits;
mod models;
mod prompts;
mod repair;
mod secrets;
mod snapshots;
mod stdout_kind;
mod stream_content;
mod structured;
mod tasks;
mod terminal;
mod thoughts;
mod toolbox;
mod tools;
mod watching;
mod wire;
mod worker;
