//! Messages, their content blocks and their tokens, as the `claude` dialect writes them.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::payload::Payload;

/// The model's message, whole or one block of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage<'a> {
    /// The message's id.
    pub id: Cow<'a, str>,
    /// Always `message`.
    #[serde(rename = "type", default)]
    pub kind: MessageKind,
    /// Always `assistant`.
    pub role: AssistantRole,
    /// The model that wrote it, or `<synthetic>` for words of ours.
    pub model: Cow<'a, str>,
    /// The content.
    #[serde(default)]
    pub content: Vec<Block<'a>>,
    /// Why the model stopped; null while that is not known.
    #[serde(default)]
    pub stop_reason: Option<Cow<'a, str>>,
    /// The text at which the model was told to stop; always null.
    #[serde(default)]
    pub stop_sequence: Option<Cow<'a, str>>,
    /// Tokens of this message, as far as they are known.
    #[serde(default)]
    pub usage: TokenUsage,
}

/// The word `message`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// `message`
    #[default]
    Message,
}

/// The word `assistant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AssistantRole {
    /// `assistant`
    Assistant,
}

/// The word `user`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    /// `user`
    User,
}

/// A tool's result, or words of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage<'a> {
    /// Always `user`.
    pub role: UserRole,
    /// The content.
    pub content: Content<'a>,
}

/// A text, or blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Content<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Blocks.
    Blocks(Vec<Block<'a>>),
}

/// A content block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    /// Text.
    Text {
        /// The text.
        text: Cow<'a, str>,
    },
    /// The model's thinking.
    Thinking {
        /// The thinking.
        thinking: Cow<'a, str>,
        /// The provider's proof; empty, but never absent: an SDK insists on it.
        #[serde(default)]
        signature: Cow<'a, str>,
    },
    /// A tool call.
    ToolUse {
        /// The call's id.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
        /// The arguments.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        input: Payload<'a>,
    },
    /// A tool's result.
    ToolResult {
        /// The call.
        tool_use_id: Cow<'a, str>,
        /// Whether it failed, was refused or was cancelled.
        #[serde(default)]
        is_error: bool,
        /// What went back to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
    },
    /// An image.
    Image {
        /// Where it is.
        source: Source<'a>,
    },
    /// A document.
    Document {
        /// Where it is.
        source: Source<'a>,
    },
}

/// Where an image or a document is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source<'a> {
    /// In line.
    Base64 {
        /// The MIME type.
        media_type: Cow<'a, str>,
        /// The bytes, as base64.
        data: Cow<'a, str>,
    },
    /// At an address.
    Url {
        /// The address.
        url: Cow<'a, str>,
    },
}

/// Tokens. In `input_tokens` the cached ones are left out for Claude's SDKs and included for Qwen's, as each expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Tokens read by the model.
    pub input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    #[serde(default)]
    pub cache_read_input_tokens: u64,
    /// Tokens newly written to the provider's cache.
    #[serde(default)]
    pub cache_creation_input_tokens: u64,
    /// All of them together.
    #[serde(default)]
    pub total_tokens: u64,
    /// For hosts of Claude's family, at the end of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation: Option<CacheCreation>,
    /// For hosts of Claude's family, at the end of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tool_use: Option<ServerToolUse>,
    /// For hosts of Claude's family, at the end of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<ServiceTier>,
}

/// Tokens newly written to the provider's cache, by how long they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CacheCreation {
    /// Tokens that are cached for one hour. Always 0, because no request asks for it.
    #[serde(default)]
    pub ephemeral_1h_input_tokens: u64,
    /// Tokens that are cached for five minutes.
    #[serde(default)]
    pub ephemeral_5m_input_tokens: u64,
}

/// Tools that the model's server runs: there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerToolUse {
    /// Web searches of the model's server. Always 0.
    #[serde(default)]
    pub web_search_requests: u64,
    /// Pages that the model's server fetched. Always 0.
    #[serde(default)]
    pub web_fetch_requests: u64,
}

/// How the model's server serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceTier {
    /// The default tier.
    Standard,
    /// With priority.
    Priority,
    /// In batches.
    Batch,
}
