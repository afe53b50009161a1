//! `qwen serve`: sessions over HTTP. One more front of the kernel: the server is the only client of a hub in
//! its own process, keeps the numbered lines of every session, and lets any number of clients read and drive
//! them, in the protocols that they already have.
//!
//! Nothing here runs a command or reads a file for a client: whatever a client wants done is a prompt of a
//! session, with its rules, trust and sandbox.

mod acp;
mod agui;
mod api;
mod daemon;
mod dialect;
mod gate;
mod listen;
mod mcp;
mod openai;
mod options;
mod page;
mod respond;
mod routes;
mod server;
mod sessions;
mod token;
mod turn;
mod websocket;

pub use listen::Listener;
pub use mcp::McpLines;
pub use options::{DEFAULT_ADDRESS, Listen, ServeError, ServeLimits, ServeOptions, TlsFiles};
pub use page::recording;
pub use server::{McpParts, ServeParts, SessionParts, serve, serve_mcp};
pub use sessions::{NextOutput, SessionHub, StoredSessions};
pub use token::Tokens;
