//! The streams of `claude`, `claude-lite`, `loom`, `loom-export`, and the one document: what events become.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests may say what they expect, their scripts too"
)]

mod claude;
mod document;
mod examples;
mod judge;
mod lite;
mod loom;
mod random;
mod script;
