//! The issue "One event stream, every dialect" through the real binary, against a real server on loopback.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod budget;
mod cancel;
mod examples;
mod faults;
mod fifo;
mod flags;
mod flow;
mod gauges;
mod heartbeat;
mod host_tools;
mod limits;
mod models;
mod outlet;
mod prompts;
mod repair;
mod secrets;
mod snapshots;
mod stage;
mod structured;
mod tasks;
mod terminal;
mod thoughts;
mod told;
mod toolbox;
mod tools;
mod voice;
mod watching;
mod wire;
mod worker;
