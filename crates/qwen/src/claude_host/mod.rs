//! Support for hosts of the `claude` dialect: options, session copy and transcripts.

pub mod agent_text;
mod agent_transcripts;
mod open_message;
mod options;
pub mod session_mirror;
pub mod transcript;

pub use options::ClaudeHostOptions;
