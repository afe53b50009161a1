//! The `qwen` dialect: spec 1.

use std::borrow::Cow;

use memchr::memmem;
use qwen_dialects::{Dialect, Format};
use qwen_events::ErrorInfo;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::{self, ClientInput};
use super::{Front, OpenParts, WorkerOutput, probe, probe_number};

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
struct Line<'a> {
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<CommandResult<'a>>,
    usage: Option<Usage>,
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

/// The answer to a request in the nested form, which has the request id inside.
#[derive(Deserialize)]
struct NestedAnswer<'a> {
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
}

/// The error before a worker ends.
#[derive(Deserialize)]
struct FatalLine<'a> {
    #[serde(borrow)]
    error: FatalError<'a>,
}

#[derive(Deserialize)]
struct FatalError<'a> {
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    turn: Option<Turn<'a>>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct CommandResult<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
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

    fn output<'a>(&self, line: &'a [u8]) -> WorkerOutput<'a> {
        if !line.starts_with(b"{") || !line.ends_with(b"}") {
            return WorkerOutput::Garbage;
        }
        if line.starts_with(COMPLETION) {
            // Inside a string every quote is escaped, so these bytes are the key.
            if memmem::find(line, b"\"metadata\":{").is_none() {
                return WorkerOutput::Plain;
            }
            let Ok(read) = serde_json::from_slice::<Line<'_>>(line) else { return WorkerOutput::Garbage };
            return match read.metadata {
                Some(Metadata { protocol_version: Some(version), .. }) => WorkerOutput::Handshake(version),
                Some(Metadata { turn: Some(turn), .. }) => WorkerOutput::TurnEnd {
                    prompt_id: read.prompt_id,
                    status: turn.status,
                    tokens: read.usage.map_or((0, 0), |usage| (usage.prompt_tokens, usage.completion_tokens)),
                },
                Some(Metadata { error: Some(_), .. }) => WorkerOutput::Refused { prompt_id: read.prompt_id },
                _ => WorkerOutput::Plain,
            };
        }
        if line.starts_with(b"{\"type\":\"x-qwen-session-event\",\"event\":\"Steered\"") {
            let read = serde_json::from_slice::<Line<'_>>(line).ok();
            return WorkerOutput::Joined { prompt_id: read.and_then(|read| read.prompt_id) };
        }
        if line.starts_with(b"{\"type\":\"x-qwen-") {
            let starts = line.starts_with(b"{\"type\":\"x-qwen-tool-display\"")
                && memmem::find(line, b"\"status\":\"executing\"").is_some();
            return if starts { WorkerOutput::ToolStarted } else { WorkerOutput::Plain };
        }
        if line.starts_with(b"{\"error\":") {
            let read = serde_json::from_slice::<FatalLine<'_>>(line).ok();
            return WorkerOutput::Fatal { message: read.and_then(|read| read.error.message) };
        }
        let kind = line.strip_prefix(b"{\"type\":\"").unwrap_or_default();
        let wanted: [&[u8]; 5] = [
            b"control_request\"",
            b"control_cancel_request\"",
            b"control_response\"",
            b"result/heartbeat\"",
            b"result/command\"",
        ];
        let Some(place) = wanted.iter().position(|name| kind.starts_with(name)) else {
            return WorkerOutput::Plain;
        };
        let Ok(read) = serde_json::from_slice::<Line<'_>>(line) else { return WorkerOutput::Garbage };
        let nested = || serde_json::from_str::<NestedAnswer<'_>>(read.response?.get()).ok()?.request_id;
        let request_id = read.request_id.or_else(nested).unwrap_or_default();
        match place {
            0 => WorkerOutput::Question { request_id },
            1 => WorkerOutput::Withdrawn { request_id },
            2 => WorkerOutput::Answer { request_id },
            3 => read
                .session_id
                .and_then(|id| probe_number(&id))
                .map_or(WorkerOutput::Plain, WorkerOutput::Probe),
            _ => {
                let ends = read.result.and_then(|result| result.kind).as_deref() != Some("submit_prompt");
                WorkerOutput::Command { prompt_id: read.prompt_id, ends }
            }
        }
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

    fn prompt_id<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, str>> {
        // Results of requests may name any prompt, such as one that the client has not sent yet.
        if line.starts_with(b"{\"type\":\"result/") {
            return None;
        }
        serde_json::from_slice::<Line<'a>>(line).ok()?.prompt_id
    }

    fn probe(&self, number: u64) -> Option<Vec<u8>> {
        Some(probe(number))
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
    fn a_workers_lines_are_classified() {
        let cases: [(&str, WorkerOutput<'_>); 15] = [
            (
                r#"{"object":"chat.completion.chunk","id":"x","choices":[{"delta":{"content":"\"metadata\":{\"turn\":{"}}]}"#,
                WorkerOutput::Plain,
            ),
            (
                r#"{"object":"chat.completion","choices":[],"metadata":{"protocol_version":"1.0"}}"#,
                WorkerOutput::Handshake("1.0".into()),
            ),
            (
                r#"{"object":"chat.completion","prompt_id":"p","usage":{"prompt_tokens":3,"completion_tokens":4},"metadata":{"turn":{"status":"done"}}}"#,
                WorkerOutput::TurnEnd {
                    prompt_id: Some("p".into()),
                    status: Some("done".into()),
                    tokens: (3, 4),
                },
            ),
            (
                r#"{"object":"chat.completion","prompt_id":"p","metadata":{"error":{"code":"x"}}}"#,
                WorkerOutput::Refused { prompt_id: Some("p".into()) },
            ),
            (
                r#"{"type":"control_request","request_id":"r"}"#,
                WorkerOutput::Question { request_id: "r".into() },
            ),
            (
                r#"{"type":"control_cancel_request","request_id":"r"}"#,
                WorkerOutput::Withdrawn { request_id: "r".into() },
            ),
            (
                r#"{"type":"control_response","request_id":"r","response":{}}"#,
                WorkerOutput::Answer { request_id: "r".into() },
            ),
            (
                r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{}}}"#,
                WorkerOutput::Answer { request_id: "r".into() },
            ),
            (
                r#"{"type":"x-qwen-session-event","event":"Steered","prompt_id":"p","value":{"turn":"t"}}"#,
                WorkerOutput::Joined { prompt_id: Some("p".into()) },
            ),
            (r#"{"type":"result/heartbeat","session_id":"hub.probe.7"}"#, WorkerOutput::Probe(7)),
            (r#"{"type":"result/heartbeat","session_id":"s"}"#, WorkerOutput::Plain),
            (
                r#"{"type":"result/command","prompt_id":"p","result":{"type":"message"}}"#,
                WorkerOutput::Command { prompt_id: Some("p".into()), ends: true },
            ),
            (r#"{"type":"x-qwen-tool-display","status":"executing"}"#, WorkerOutput::ToolStarted),
            (
                r#"{"error":{"message":"no \"x\"","type":"t"}}"#,
                WorkerOutput::Fatal { message: Some("no \"x\"".into()) },
            ),
            ("Segmentation fault", WorkerOutput::Garbage),
        ];
        for (line, expected) in cases {
            assert_eq!(front().output(line.as_bytes()), expected, "{line}");
        }
        let hint = br#"{"type":"result/command_hint","session_id":"s","prompt_id":"preview"}"#;
        assert_eq!(front().prompt_id(hint), None, "a suggestion begins no turn");
        let asks = front().probe(9).unwrap();
        assert!(input::read(asks.trim_ascii_end()).is_ok());
    }
}
