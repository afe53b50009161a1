//! The interface in front of an emulated terminal: inputs and events in, a screen out.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod answers;
mod drawing;
mod harness;
mod notifications;
mod pictures;
mod reflow;
mod requests;
mod scenes;
mod screens;
mod typing;
