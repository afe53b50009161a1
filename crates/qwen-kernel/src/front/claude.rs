//! The `claude` dialect: spec 4 §4–5.

use memchr::memmem;
use qwen_dialects::{Dialect, Format};
use qwen_events::ErrorInfo;

use super::input::{self, ClientInput};
use super::{Front, OpenParts};

/// The front of the `claude` dialect. A flag binds a worker to its session, because clients of this dialect
/// send arbitrary values as `session_id`; there is no handshake line.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClaudeFront;

/// The event of a piece of a message that is not a sub-agent's, from its type on.
fn own_stream_event(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"{\"type\":\"stream_event\"")?;
    let mark = b"\"parent_tool_use_id\":null,\"event\":{\"type\":\"";
    Some(&rest[memmem::find(rest, mark)? + mark.len()..])
}

impl Front for ClaudeFront {
    fn dialect(&self) -> Dialect {
        Dialect::Claude
    }

    fn format(&self) -> Format {
        Format::StreamJson
    }

    fn input<'a>(&self, line: &'a [u8]) -> Result<ClientInput<'a>, ErrorInfo> {
        let mut input = input::read(line)?;
        // Clients of this wire send an empty session id, or `default`, for the session that they started.
        if matches!(input.session_id.as_deref(), Some("" | "default")) {
            input.session_id = None;
        }
        Ok(input)
    }

    fn note_parts(&self, line: &[u8], open: &mut OpenParts) {
        if line.starts_with(b"{\"type\":\"assistant\"") {
            // Inside a string every quote is escaped.
            open.has_shown_calls = memmem::find(line, b"\"type\":\"tool_use\"").is_some();
            return;
        }
        if line.starts_with(b"{\"type\":\"result\"") {
            *open = OpenParts::default();
            return;
        }
        let Some(event) = own_stream_event(line) else { return };
        if event.starts_with(b"message_start\"") {
            open.is_message_open = true;
            open.has_shown_calls = false;
        } else if event.starts_with(b"message_stop\"") {
            open.is_message_open = false;
        } else if let Some(index) = event.strip_prefix(b"content_block_start\",\"index\":") {
            let digits = index.iter().take_while(|byte| byte.is_ascii_digit()).count();
            open.block = std::str::from_utf8(&index[..digits]).ok().and_then(|digits| digits.parse().ok());
        } else if event.starts_with(b"content_block_stop\"") {
            open.block = None;
        }
    }

    fn begins_message(&self, _line: &[u8]) -> bool {
        false
    }

    fn handshake_version(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn worker_flags(&self) -> Vec<String> {
        let flags =
            ["--dialect", "claude", "--input-format", "stream-json", "--output-format", "stream-json"];
        flags.map(str::to_owned).to_vec()
    }

    fn adopts_sessions(&self) -> bool {
        false
    }

    fn names_turns(&self) -> bool {
        false
    }

    fn has_handshake(&self) -> bool {
        false
    }
}
