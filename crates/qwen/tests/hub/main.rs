//! `qwen hub` through the real binary: sessions on workers, faults at every moment, numbers, isolation, bad
//! input.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod addressing;
mod bad_input;
mod broken_workers;
mod chaos;
mod commits;
mod fault_worker;
mod faults;
mod following;
mod harness;
mod isolation;
mod numbers;
mod observing;
mod on_crash;
mod planted;
mod reuse;
mod sessions;
mod soak;
mod takeover;
mod tenant_users;
mod tenants;
