//! What the graph engine promises.
#![expect(clippy::expect_used, reason = "what the tests share may fail as they do")]

mod building;
mod cancelling;
mod care;
mod harness;
mod running;
