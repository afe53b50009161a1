//! The `qwen` dialect: spec 1.

use std::borrow::Cow;

use memchr::memmem;
use qwen_dialects::{Dialect, Format};
use qwen_events::ErrorInfo;
use serde::Deserialize;

use super::input::{self, ClientInput};
use super::{Front, OpenParts};

/// The beginning of every line that is a piece of a message.
const CHUNK: &[u8] = b"{\"object\":\"chat.completion.chunk\"";

/// The beginning of every line that is a message or a piece of one.
const COMPLETION: &[u8] = b"{\"object\":\"chat.completion";

/// In the last line of a message with tool calls. Inside a string every quote is escaped.
const CALLS_FOLLOW: &[u8] = b"\"finish_reason\":\"tool_calls\"";

/// The end of a piece that is not the last one of its message.
const GOES_ON: &[u8] = b",\"finish_reason\":null}]}";

/// The front of the `qwen` dialect.
#[derive(Debug, Clone, Copy)]
pub struct QwenFront {
    format: Format,
}

impl QwenFront {
    /// A front whose workers write `format`.
    pub fn new(format: Format) -> Self {
        Self { format }
    }
}

#[derive(Deserialize)]
struct Handshake {
    metadata: HandshakeMetadata,
}

#[derive(Deserialize)]
struct HandshakeMetadata {
    protocol_version: String,
}

/// How far a tool call is.
#[derive(Deserialize)]
struct ToolDisplay<'a> {
    #[serde(borrow)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow)]
    tool_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Cow<'a, str>,
}

impl Front for QwenFront {
    fn dialect(&self) -> Dialect {
        Dialect::Qwen
    }

    fn format(&self) -> Format {
        self.format
    }

    fn input<'a>(&self, line: &'a [u8]) -> Result<ClientInput<'a>, ErrorInfo> {
        input::read(line)
    }

    fn note_parts(&self, line: &[u8], open: &mut OpenParts) {
        if line.starts_with(COMPLETION) {
            open.is_message_open = line.starts_with(CHUNK) && line.ends_with(GOES_ON);
            open.has_shown_calls = !open.is_message_open && memmem::find(line, CALLS_FOLLOW).is_some();
        } else if line.starts_with(b"{\"type\":\"x-qwen-tool-display\"")
            && let Ok(call) = serde_json::from_slice::<ToolDisplay<'_>>(line)
        {
            match &*call.status {
                "success" | "error" | "canceled" => open.end_call(&call.tool_call_id),
                _ => open.open_call(&call.tool_call_id, call.tool_name.as_deref().unwrap_or_default()),
            }
        }
    }

    fn begins_message(&self, line: &[u8]) -> bool {
        line.starts_with(CHUNK) && memmem::find(line, b"\"delta\":{\"role\":").is_some()
    }

    fn handshake_version(&self, line: &[u8]) -> Option<String> {
        let read: Handshake = serde_json::from_slice(line).ok()?;
        Some(read.metadata.protocol_version)
    }

    fn worker_flags(&self) -> Vec<String> {
        let flags =
            ["--dialect", "qwen", "--input-format", "stream-json", "--output-format", self.format.name()];
        flags.map(str::to_owned).to_vec()
    }

    fn adopts_sessions(&self) -> bool {
        true
    }

    fn names_turns(&self) -> bool {
        true
    }

    fn has_handshake(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front() -> QwenFront {
        QwenFront::new(Format::StreamChunkJson)
    }

    #[test]
    fn a_handshake_names_its_version() {
        let handshake = br#"{"object":"chat.completion","choices":[],"metadata":{"protocol_version":"1.0"}}"#;
        assert_eq!(front().handshake_version(handshake).as_deref(), Some("1.0"));
        for line in [&b"{}"[..], b"{\"metadata\":{\"protocol_version\":7}}", b"Segmentation fault"] {
            assert_eq!(front().handshake_version(line), None);
        }
    }

    #[test]
    fn the_open_parts_of_a_turn_are_noted() {
        let mut open = OpenParts::default();
        let chunk = br#"{"object":"chat.completion.chunk","choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#;
        front().note_parts(chunk, &mut open);
        assert!(open.is_message_open);
        let last =
            br#"{"object":"chat.completion.chunk","choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;
        front().note_parts(last, &mut open);
        assert!(!open.is_message_open && open.has_shown_calls);
        let display = |status: &str| {
            format!(
                r#"{{"type":"x-qwen-tool-display","tool_call_id":"c","tool_name":"t","status":"{status}"}}"#
            )
        };
        front().note_parts(display("executing").as_bytes(), &mut open);
        assert_eq!(open.calls().len(), 1);
        front().note_parts(display("success").as_bytes(), &mut open);
        assert!(open.is_empty());
    }
}
