//! `qwen --acp` as an editor sees it: the real binary, real workers, a scripted model over HTTP. Every frame of
//! every test is checked against our own description of the protocol.
#![expect(clippy::unwrap_used, reason = "tests may state what they expect, helpers too")]

mod agents;
mod bad_input;
mod coverage;
mod editor;
mod endings;
mod frames;
mod kit;
mod permissions;
mod random;
mod sessions;
mod settings;
mod sizes;
mod turns;
