//! Specs 2, 3 and 4 through the real binary: every table row, every field list and every rule of DESIGN about
//! the dialects besides `qwen`. `docs/contributing/spec2-coverage.md` and its siblings say which test holds which line.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod choosing;
mod claude;
mod core_endings;
mod core_tools;
mod harness;
mod lite;
mod loom_endings;
mod loom_envelope;
mod loom_events;
mod loom_modes;
mod loom_order;
mod loom_thoughts;
