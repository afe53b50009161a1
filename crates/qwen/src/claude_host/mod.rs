//! What only the Claude Agent SDKs need: their copy of a session and their transcripts.

pub mod session_mirror;
pub mod transcript;
