//! `qwen serve` through the real binary and raw sockets: the gate, sessions, events, approvals, restarts.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod acp;
mod approvals;
mod dialects;
mod documentation;
mod events;
mod gate;
mod harness;
mod lifecycle;
mod limits;
mod openapi;
mod reconnects;
mod sessions;
mod socket;
mod websocket;
