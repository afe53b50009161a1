//! The crate as its users see it, against a real server on loopback that says whatever a test wants it to say.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asking;
mod connections;
mod openai_streams;
mod script;
mod server;
