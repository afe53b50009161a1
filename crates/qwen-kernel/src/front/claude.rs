//! The `claude` dialect: spec 4 §4–5.

use std::borrow::Cow;

use memchr::memmem;
use qwen_dialects::{Dialect, Format};
use qwen_events::ErrorInfo;
use serde::Deserialize;

use super::input::{self, ClientInput};
use super::{Front, OpenParts, WorkerOutput, probe, probe_number};

/// The front of the `claude` dialect. A flag binds a worker to its session, because clients of this dialect
/// send arbitrary values as `session_id`; there is no handshake line.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClaudeFront;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    #[serde(borrow)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ResultLine<'a> {
    #[serde(borrow)]
    subtype: Option<Cow<'a, str>>,
    is_error: Option<bool>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

/// Reads the last line of a turn. Its subtype is `success` or names the cause.
fn turn_end(line: &[u8]) -> WorkerOutput<'_> {
    let read = serde_json::from_slice::<ResultLine<'_>>(line).ok();
    let (status, tokens) = match read {
        Some(ResultLine { subtype, is_error, usage }) => {
            let status = match subtype {
                Some(subtype) if subtype == "success" && is_error != Some(true) => {
                    Some(Cow::Borrowed("done"))
                }
                Some(subtype) if subtype != "success" => Some(subtype),
                _ => Some(Cow::Borrowed("error")),
            };
            (status, usage.map_or((0, 0), |usage| (usage.input_tokens, usage.output_tokens)))
        }
        None => (None, (0, 0)),
    };
    WorkerOutput::TurnEnd { prompt_id: None, status, tokens }
}

/// The event of a piece of a message that is not a sub-agent's, from its type on.
fn own_stream_event(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"{\"type\":\"stream_event\"")?;
    let mark = b"\"parent_tool_use_id\":null,\"event\":{\"type\":\"";
    Some(&rest[memmem::find(rest, mark)? + mark.len()..])
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
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

    fn output<'a>(&self, line: &'a [u8]) -> WorkerOutput<'a> {
        if !line.starts_with(b"{") || !line.ends_with(b"}") {
            return WorkerOutput::Garbage;
        }
        let kind = line.strip_prefix(b"{\"type\":\"").unwrap_or_default();
        if kind.starts_with(b"result\"") {
            return turn_end(line);
        }
        if kind.starts_with(b"user\"") {
            // A tool result shows that a tool ran.
            return WorkerOutput::ToolStarted;
        }
        if kind.starts_with(b"system\"") && memmem::find(line, b"\"subtype\":\"input_error\"").is_some() {
            return WorkerOutput::Refused { prompt_id: None };
        }
        let wanted: [&[u8]; 4] =
            [b"control_request\"", b"control_cancel_request\"", b"control_response\"", b"result/heartbeat\""];
        let Some(place) = wanted.iter().position(|name| kind.starts_with(name)) else {
            return WorkerOutput::Plain;
        };
        let Ok(read) = serde_json::from_slice::<Line<'_>>(line) else { return WorkerOutput::Garbage };
        let inner = read.response.and_then(|response| response.request_id);
        let request_id = read.request_id.or(inner).unwrap_or_default();
        match place {
            0 => WorkerOutput::Question { request_id },
            1 => WorkerOutput::Withdrawn { request_id },
            2 => WorkerOutput::Answer { request_id },
            _ => read
                .session_id
                .and_then(|id| probe_number(&id))
                .map_or(WorkerOutput::Plain, WorkerOutput::Probe),
        }
    }

    fn note_parts(&self, line: &[u8], open: &mut OpenParts) {
        if line.starts_with(b"{\"type\":\"assistant\"") {
            // Inside a string every quote is escaped.
            open.has_shown_calls = memmem::find(line, b"\"type\":\"tool_use\"").is_some();
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

    fn prompt_id<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, str>> {
        // Turns have no ids on this wire; every line of a turn except the first `system` counts as a sign
        // of it.
        if line.starts_with(b"{\"type\":\"result/") {
            return None;
        }
        let read = serde_json::from_slice::<Line<'a>>(line).ok()?;
        (read.subtype.as_deref() != Some("input_error")).then_some(Cow::Borrowed(""))
    }

    fn probe(&self, number: u64) -> Option<Vec<u8>> {
        Some(probe(number))
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
