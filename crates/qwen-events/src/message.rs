//! The conversation that models read and write.

use std::sync::Arc;

use crate::{CallId, ToolCall};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person or program that sends prompts.
    User,
    Assistant,
    /// The results of tool calls.
    Tool,
}

/// The tags that begin notes of this program to the model.
const NOTE_TAGS: [&str; 2] = ["<situation>", "<system-reminder>"];

/// One entry of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
}

impl Message {
    /// True if any part is more than white space.
    pub fn has_content(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Text(text) if text.trim().is_empty()))
    }

    /// True if a message holds only notes that this program added, such as a change of the situation.
    pub fn is_note(&self) -> bool {
        let is_tagged = |text: &str| NOTE_TAGS.iter().any(|tag| text.trim_start().starts_with(tag));
        self.parts.iter().all(|part| part.as_text().is_some_and(is_tagged))
    }

    /// A message with one text part.
    pub fn text(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self { role, parts: vec![Part::Text(text.into())] }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A plain text of the message.
    Text(Arc<str>),
    /// The model's thinking; some providers require the `signature` back.
    Thought {
        text: Arc<str>,
        /// The provider's signature of the thinking.
        signature: Option<Arc<str>>,
    },
    /// An image or a document.
    Media(Media),
    Call(Arc<ToolCall>),
    Result(ToolResult),
}

impl Part {
    /// The text, if this part is text.
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
    pub source: MediaSource,
}

/// The location of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// The data itself, encoded as base64.
    Base64(Arc<str>),
    Url(Arc<str>),
}

/// The result of a tool call, for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: CallId,
    pub name: Arc<str>,
    /// The text for the model.
    pub text: Arc<str>,
    /// Images that accompany the text.
    pub media: Vec<Media>,
    /// True if the call failed, was refused or was cancelled.
    pub is_error: bool,
}

/// The reason why the model stopped writing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The message is complete.
    Stop,
    /// The model called tools.
    ToolCalls,
    /// The message reached the output limit.
    Length,
    /// The provider's content filter stopped it.
    ContentFilter,
}

impl Finish {
    pub const ALL: [Self; 4] = [Self::Stop, Self::ToolCalls, Self::Length, Self::ContentFilter];

    /// The value of `finish_reason` on the OpenAI wire.
    pub fn openai(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// The MIME type of an image, detected from its first bytes; none for anything else.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        // Two letters are weak evidence; the four reserved zero bytes make it strong.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some("image/bmp"),
        _ => None,
    }
}
