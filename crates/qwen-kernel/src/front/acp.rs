//! The `acp` dialect: the Agent Client Protocol. `qwen --acp` speaks with the client; here are the lines of its
//! workers, and the lines that it writes to them, which have the form of the other wires.

use std::borrow::Cow;

use memchr::memmem;
use qwen_dialects::{Dialect, Format};
use qwen_events::ErrorInfo;
use serde::Deserialize;

use super::input::{self, ClientInput};
use super::{Front, OpenParts};

/// The beginning of every update.
const UPDATE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",";

/// The beginning of a worker's first line.
const READY: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"_qwen/ready\",";

/// The beginning of the response that ends a turn with a result; its id follows.
const RESPONSE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"";

/// Before the kind of an update. Inside a string every quote is escaped.
const KIND: &[u8] = b"\"sessionUpdate\":\"";

/// The front of the `acp` dialect.
#[derive(Debug, Clone, Copy, Default)]
pub struct AcpFront;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    update: Option<CallUpdate<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallUpdate<'a> {
    #[serde(borrow)]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
}

/// The kind of an update and the rest of its line.
fn update_kind(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(UPDATE)?;
    Some(&rest[memmem::find(rest, KIND)? + KIND.len()..])
}

impl Front for AcpFront {
    fn dialect(&self) -> Dialect {
        Dialect::Acp
    }

    fn format(&self) -> Format {
        Format::StreamJson
    }

    fn input<'a>(&self, line: &'a [u8]) -> Result<ClientInput<'a>, ErrorInfo> {
        input::read(line)
    }

    fn note_parts(&self, line: &[u8], open: &mut OpenParts) {
        if line.starts_with(RESPONSE) && memmem::find(line, b"\"method\":\"").is_none() {
            *open = OpenParts::default();
            return;
        }
        let Some(kind) = update_kind(line).filter(|kind| kind.starts_with(b"tool_call")) else { return };
        let is_new = kind.starts_with(b"tool_call\"");
        let ends = |mark: &[u8]| memmem::find(kind, mark).is_some();
        if !is_new && !ends(b"\"status\":\"completed\"") && !ends(b"\"status\":\"failed\"") {
            return;
        }
        let read = serde_json::from_slice::<Line<'_>>(line).ok();
        let Some(call) = read.and_then(|read| read.params.update) else { return };
        let id = call.tool_call_id.unwrap_or_default();
        if matches!(call.status.as_deref(), Some("completed" | "failed")) {
            open.end_call(&id);
        } else if is_new {
            open.open_call(&id, call.name.as_deref().unwrap_or_default());
        }
    }

    fn begins_message(&self, _line: &[u8]) -> bool {
        false
    }

    fn handshake_version(&self, line: &[u8]) -> Option<String> {
        if !line.starts_with(READY) {
            return None;
        }
        let read = serde_json::from_slice::<Line<'_>>(line).ok()?;
        read.params.protocol_version.map(Cow::into_owned)
    }

    fn worker_flags(&self) -> Vec<String> {
        let flags = ["--dialect", "acp", "--input-format", "stream-json", "--output-format", "stream-json"];
        flags.map(str::to_owned).to_vec()
    }

    fn adopts_sessions(&self) -> bool {
        true
    }

    fn names_turns(&self) -> bool {
        false
    }

    fn has_handshake(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_open_until_their_end() {
        let mut open = OpenParts::default();
        let line = |update: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
            )
        };
        let begins = line(
            r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","name":"edit","status":"pending"}"#,
        );
        AcpFront.note_parts(begins.as_bytes(), &mut open);
        assert_eq!(open.calls().len(), 1);
        let ends = line(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}"#);
        AcpFront.note_parts(ends.as_bytes(), &mut open);
        assert!(open.is_empty());
        AcpFront.note_parts(begins.as_bytes(), &mut open);
        let response = br#"{"jsonrpc":"2.0","id":"p","result":{"stopReason":"end_turn"}}"#;
        AcpFront.note_parts(response, &mut open);
        assert!(open.is_empty(), "the turn has ended");
    }

    #[test]
    fn the_version_is_in_the_first_line() {
        let line = br#"{"jsonrpc":"2.0","method":"_qwen/ready","params":{"protocolVersion":"1.0"}}"#;
        assert_eq!(AcpFront.handshake_version(line).as_deref(), Some("1.0"));
        let response = br#"{"jsonrpc":"2.0","id":"p","result":{}}"#;
        assert_eq!(AcpFront.handshake_version(response), None);
    }
}
