//! Settings, trust, flags and secrets through the real binary.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod claude;
mod documented;
mod errors;
mod flags;
mod foreign_flags;
mod harness;
mod layers;
mod secrets;
mod trust;
mod trust_content;
