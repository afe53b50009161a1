//! The crate as its users see it, against a real server on loopback that says whatever a test wants it to
//! say.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod anthropic;
mod asking;
mod built_in;
mod connections;
mod failures;
mod http_client;
mod openai_oddities;
mod openai_requests;
mod openai_streams;
mod script;
mod server;
