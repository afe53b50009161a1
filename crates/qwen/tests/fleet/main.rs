//! Sessions over a real bus, with real processes. The tests need `tests/fleet/install`; `make test-fleet` runs them.
#![cfg(feature = "fleet")]
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod bad_input;
mod chaos;
mod commands;
mod deploy;
mod harness;
mod history;
mod hubs;
mod link;
mod matrix;
mod nodes;
mod placement;
mod tenants;
