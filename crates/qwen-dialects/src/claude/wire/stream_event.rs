//! What a `stream_event` line carries: the model's message, piece by piece.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::{AssistantMessage, Block, TokenUsage};

/// A streaming event of the model's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent<'a> {
    /// The start of a message.
    MessageStart {
        /// The message without content.
        message: AssistantMessage<'a>,
    },
    /// The start of a content block.
    ContentBlockStart {
        /// The index of the block in its message, from 0.
        index: u32,
        /// The block without content.
        content_block: Block<'a>,
    },
    /// An increment of a block.
    ContentBlockDelta {
        /// The index of the block in its message, from 0.
        index: u32,
        /// The increment of the message.
        delta: Delta<'a>,
    },
    /// A block is complete.
    ContentBlockStop {
        /// The index of the block in its message, from 0.
        index: u32,
    },
    /// Top-level changes of the message before it ends.
    MessageDelta {
        /// The reason why the model stopped.
        delta: StopDelta<'a>,
        /// The tokens of the message.
        usage: TokenUsage,
    },
    /// The end of a message.
    MessageStop,
    /// Progress of a running tool (Qwen's SDKs only).
    ToolProgress {
        /// The id of the tool call.
        tool_use_id: Cow<'a, str>,
        /// The progress, as the tool describes it.
        content: Progress,
    },
}

/// An increment of a content block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta<'a> {
    /// A piece of a text block.
    TextDelta {
        /// The text of this piece.
        text: Cow<'a, str>,
    },
    /// Thinking; both keys hold the same text because readers use either name.
    ThinkingDelta {
        /// The text, under the name that Claude's SDKs read.
        #[serde(default)]
        thinking: Cow<'a, str>,
        /// The text, under the name of the specification.
        #[serde(default)]
        text: Cow<'a, str>,
    },
    /// Arguments of a tool call as JSON text.
    InputJsonDelta {
        /// The next piece of the JSON text.
        partial_json: Cow<'a, str>,
    },
}

/// The reason why the model stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopDelta<'a> {
    /// The stop reason; null if the message was interrupted.
    pub stop_reason: Option<Cow<'a, str>>,
    /// The stop sequence that ended the message; always null.
    #[serde(default)]
    pub stop_sequence: Option<Cow<'a, str>>,
}

/// The progress of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Progress {
    /// A running command produced output.
    #[serde(rename_all = "camelCase")]
    ShellProgress {
        /// Seconds since the start of the command.
        elapsed_ms: u64,
        /// Lines written so far.
        #[serde(default)]
        total_lines: u64,
        /// Bytes written so far.
        #[serde(default)]
        total_bytes: u64,
    },
}
