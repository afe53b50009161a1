//! An event as servers send it. One struct with all fields: dispatching on `type` first would parse each
//! event twice.

use serde_json::value::RawValue;

use crate::json::tolerant::{Content, Count, Text};

/// Any event of a stream.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    pub index: u64,
    #[serde(borrow)]
    pub message: Option<Message<'a>>,
    #[serde(borrow)]
    pub content_block: Option<Block<'a>>,
    #[serde(borrow)]
    pub delta: Option<Delta<'a>>,
    pub usage: Option<Counts>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// The message at the start of an answer; the complete answer if a server does not stream.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub model: Text<'a>,
    #[serde(borrow)]
    pub content: Vec<Block<'a>>,
    #[serde(borrow)]
    pub stop_reason: Text<'a>,
    pub usage: Option<Counts>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// A block of content.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    pub text: Content,
    pub thinking: Content,
    #[serde(borrow)]
    pub signature: Text<'a>,
    #[serde(borrow)]
    pub data: Text<'a>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
}

/// The change of a block or of the message.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    pub text: Content,
    pub partial_json: Content,
    pub thinking: Content,
    #[serde(borrow)]
    pub signature: Text<'a>,
    #[serde(borrow)]
    pub stop_reason: Text<'a>,
}

/// Tokens as this wire counts them.
#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "these are the names on the wire")]
pub(super) struct Counts {
    pub input_tokens: Count,
    pub output_tokens: Count,
    pub cache_read_input_tokens: Count,
    pub cache_creation_input_tokens: Count,
}
