//! What a `stream_event` line carries: the model's message, piece by piece.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::{AssistantMessage, Block, TokenUsage};

/// A piece of the model's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent<'a> {
    /// A message starts.
    MessageStart {
        /// The message, still empty.
        message: AssistantMessage<'a>,
    },
    /// A block starts.
    ContentBlockStart {
        /// The block's place in its message, from 0.
        index: u32,
        /// The block, still empty.
        content_block: Block<'a>,
    },
    /// A block grows.
    ContentBlockDelta {
        /// The block's place.
        index: u32,
        /// What is added.
        delta: Delta<'a>,
    },
    /// A block is whole.
    ContentBlockStop {
        /// The block's place.
        index: u32,
    },
    /// The message is about to end.
    MessageDelta {
        /// Why the model stopped.
        delta: StopDelta<'a>,
        /// Tokens of the message.
        usage: TokenUsage,
    },
    /// The message is over.
    MessageStop,
    /// A tool is at work (Qwen's SDKs only).
    ToolProgress {
        /// The call.
        tool_use_id: Cow<'a, str>,
        /// How far it is.
        content: Progress,
    },
}

/// What is added to a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta<'a> {
    /// Text.
    TextDelta {
        /// The piece.
        text: Cow<'a, str>,
    },
    /// Thinking; the piece is there twice because readers look for it under two names.
    ThinkingDelta {
        /// The piece, as Claude's SDKs look for it.
        #[serde(default)]
        thinking: Cow<'a, str>,
        /// The piece, as spec 4 names it.
        #[serde(default)]
        text: Cow<'a, str>,
    },
    /// Arguments of a tool call.
    InputJsonDelta {
        /// The piece of JSON.
        partial_json: Cow<'a, str>,
    },
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopDelta<'a> {
    /// The reason; null when the message was cut off.
    pub stop_reason: Option<Cow<'a, str>>,
    /// Always null.
    #[serde(default)]
    pub stop_sequence: Option<Cow<'a, str>>,
}

/// How far a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Progress {
    /// A command writes.
    #[serde(rename_all = "camelCase")]
    ShellProgress {
        /// Since its start.
        elapsed_ms: u64,
        /// Lines so far.
        #[serde(default)]
        total_lines: u64,
        /// Bytes so far.
        #[serde(default)]
        total_bytes: u64,
    },
}
