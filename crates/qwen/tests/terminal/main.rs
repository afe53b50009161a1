//! The interactive terminal through the real binary on a real pseudo-terminal: keys are typed, the screen is
//! read.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod approvals;
mod approved_text;
mod basics;
mod conversation;
#[path = "../../../qwen-tui/tests/interface/drawing.rs"]
#[expect(dead_code, reason = "the recording needs a part of it")]
mod drawing;
mod failures;
mod harness;
mod hostile;
mod new_user;
mod page;
mod parity;
mod plain;
mod preferences;
mod presentation;
mod recording;
mod scrollback;
mod sessions;
mod transcript;
mod visible_requests;
