//! The conversation: what models read and write.

use std::sync::Arc;

use crate::{CallId, ToolCall};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person or program that prompts.
    User,
    /// The model.
    Assistant,
    /// The results of tool calls.
    Tool,
}

/// One entry of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// Whether it is more than blanks.
    pub fn says_something(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Text(text) if text.trim().is_empty()))
    }

    /// A message of one text.
    pub fn text(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self { role, parts: vec![Part::Text(text.into())] }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Plain text.
    Text(Arc<str>),
    /// The model's thinking; `signature` is what some providers want back.
    Thought {
        /// The thinking itself.
        text: Arc<str>,
        /// The provider's proof that it is theirs.
        signature: Option<Arc<str>>,
    },
    /// An image or a document.
    Media(Media),
    /// A tool call by the model.
    Call(Arc<ToolCall>),
    /// A tool's answer.
    Result(ToolResult),
}

impl Part {
    /// The text, where it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// An image or a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// The MIME type, such as `image/png`.
    pub mime_type: Arc<str>,
    /// Where the bytes are.
    pub source: MediaSource,
}

/// Where a medium's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// In line, as base64.
    Base64(Arc<str>),
    /// At an address.
    Url(Arc<str>),
}

/// What a tool call gave back to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: CallId,
    /// The tool's name.
    pub name: Arc<str>,
    /// The text for the model.
    pub text: Arc<str>,
    /// Images that go with the text.
    pub media: Vec<Media>,
    /// Whether it failed, was refused or was cancelled.
    pub is_error: bool,
}

/// Why the model stopped writing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It was done.
    Stop,
    /// It wants tools.
    ToolCalls,
    /// It ran into its output limit.
    Length,
    /// The provider's filter stopped it.
    ContentFilter,
}

impl Finish {
    /// The word of the OpenAI wire.
    pub fn openai(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// The MIME type of an image, recognised by its first bytes; none for anything else.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        // Two letters are a weak sign; the four reserved bytes, which are zero, make it a strong one.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some("image/bmp"),
        _ => None,
    }
}
