//! Spec 4 §4–5: the wire of the Claude Agent SDKs and of the Qwen Code SDKs, which is nearly the same.

pub mod hook;
pub mod rate_limit;
pub mod task;
pub mod wire;

mod blocks;
mod encode;
mod outcome;
mod stream;
mod thinking;
mod tool_result;
mod words;

pub use encode::ClaudeEncoder;
pub use words::claude_mode;

/// The schemas of this dialect's streams.
pub(crate) fn schemas() -> Vec<(&'static str, schemars::Schema)> {
    vec![("claude-stream", schemars::schema_for!(wire::Line<'static>))]
}

pub(crate) use thinking::sentence;
