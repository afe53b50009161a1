//! What only hosts of the `claude` dialect need: their options, their copy of a session and their transcripts.

mod options;
pub mod session_mirror;
pub mod transcript;

pub use options::ClaudeHostOptions;
