//! The issue "One event stream, every dialect" through the real binary, against a real server on loopback.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod faults;
mod fifo;
mod flow;
mod outlet;
mod stage;
mod told;
mod wire;
