//! Wire-specific knowledge of the router: where a line carries its session id and its request id, and what a
//! turn has open when its worker dies.
//!
//! A front never decodes payloads. It reads the top-level keys of a client's line (which are rare). Workers report
//! what their lines mean on their commit sockets; of a worker's line (which are many) a front only notes by its
//! prefix whether it begins or ends a message or a call. Adding a wire means adding a front; the router does not
//! change.

mod acp;
mod claude;
mod input;
mod open_parts;
mod qwen;
mod summary;
mod write;

use std::borrow::Cow;

use qwen_dialects::{Dialect, Format};
use qwen_events::{ErrorInfo, SessionId};

pub use acp::AcpFront;
pub use claude::ClaudeFront;
pub use input::{ClientInput, InputKind};
pub use open_parts::{OpenParts, ShownCall};
pub use qwen::QwenFront;
pub(crate) use summary::command_summary;
pub use write::LineWriter;

/// The knowledge about one wire.
pub trait Front: Send + Sync {
    fn dialect(&self) -> Dialect;

    /// The amount of detail that workers write per turn.
    fn format(&self) -> Format;

    /// Reads the keys of a client's line that the router needs.
    fn input<'a>(&self, line: &'a [u8]) -> Result<ClientInput<'a>, ErrorInfo>;

    /// Notes what a worker's line opens and closes in its turn, so that the turn can be ended in the worker's
    /// place.
    fn note_parts(&self, line: &[u8], open: &mut OpenParts);

    /// True for the line that begins a message of several lines.
    fn begins_message(&self, line: &[u8]) -> bool;

    /// The protocol version in a handshake line, for the error about a worker of another version.
    fn handshake_version(&self, line: &[u8]) -> Option<String>;

    /// The flags that make a worker use this wire.
    fn worker_flags(&self) -> Vec<String>;

    /// True if a worker adopts the session of its first request, so that it can be started before a session
    /// is known.
    fn adopts_sessions(&self) -> bool;

    /// True if the lines of a turn carry its id, so that a worker can be asked for the end of a turn.
    fn names_turns(&self) -> bool;

    /// True if the first line of a worker is a handshake that the hub replaces by its own.
    fn has_handshake(&self) -> bool;
}

/// Returns the session that a line names.
pub fn session_id_of(line: &[u8]) -> Option<SessionId> {
    let text = serde_json::from_str::<Cow<'_, str>>(input::top_level(line, "session_id")?).ok()?;
    SessionId::parse(&text).ok()
}

/// Replaces the `"session_id":"…"` of a line, or inserts it as the first key if absent.
pub fn with_session_id(line: &[u8], session_id: &SessionId) -> Vec<u8> {
    with_text(line, "session_id", session_id.as_str())
}

/// Replaces the value of the top-level key `name`, or adds the key if absent. `value` must need no escapes.
/// The rest of the line is unchanged.
pub(crate) fn with_text(line: &[u8], name: &str, value: &str) -> Vec<u8> {
    if let Some(old) = input::top_level(line, name) {
        let start = old.as_ptr() as usize - line.as_ptr() as usize;
        let mut changed = line[..start].to_vec();
        changed.extend_from_slice(format!("\"{value}\"").as_bytes());
        changed.extend_from_slice(&line[start + old.len()..]);
        return changed;
    }
    let open = line.iter().position(|byte| *byte == b'{').unwrap_or(0);
    let rest = &line[open + 1..];
    let empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let mut changed = line[..=open].to_vec();
    changed.extend_from_slice(format!("\"{name}\":\"{value}\"").as_bytes());
    if !empty {
        changed.push(b',');
    }
    changed.extend_from_slice(rest);
    changed
}

/// Sets the top-level key `name` of a line to true.
pub(crate) fn with_true(line: &[u8], name: &str) -> Vec<u8> {
    let placed = with_text(line, name, "");
    let Some(value) = input::top_level(&placed, name) else { return placed };
    let start = value.as_ptr() as usize - placed.as_ptr() as usize;
    [&placed[..start], b"true", &placed[start + value.len()..]].concat()
}

/// Splits a line that [`push_numbered`] has written into its number and the line without it.
pub fn split_number(line: &[u8]) -> Option<(u64, Vec<u8>)> {
    let rest = line.strip_prefix(b"{\"seq\":")?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let number = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    let rest = &rest[end..];
    Some((number, [b"{", rest.strip_prefix(b",").unwrap_or(rest)].concat()))
}

/// Writes `line` (which must be an object) with `"seq":n` as its first key, and a line break.
pub fn push_numbered(out: &mut Vec<u8>, number: u64, line: &[u8]) {
    out.extend_from_slice(b"{\"seq\":");
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    let body = line.strip_prefix(b"{").unwrap_or(line);
    if body.first() != Some(&b'}') {
        out.push(b',');
    }
    out.extend_from_slice(body);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_replaced_or_added() {
        let id = SessionId::parse("s1").unwrap();
        let cases = [
            (r#"{"a":1}"#, r#"{"session_id":"s1","a":1}"#),
            ("{}", r#"{"session_id":"s1"}"#),
            (
                r#"{"a":{"session_id":"x"},"session_id":"_new"}"#,
                r#"{"a":{"session_id":"x"},"session_id":"s1"}"#,
            ),
            (r#" {"session_id" : "" ,"b":2}"#, r#" {"session_id" : "s1" ,"b":2}"#),
        ];
        for (line, expected) in cases {
            assert_eq!(String::from_utf8(with_session_id(line.as_bytes(), &id)).unwrap(), expected);
        }
    }

    #[test]
    fn a_number_is_the_first_key_and_the_rest_is_unchanged() {
        let mut out = Vec::new();
        push_numbered(&mut out, 1, br#"{"a":1}"#);
        push_numbered(&mut out, 1230, b"{}");
        assert_eq!(String::from_utf8(out).unwrap(), "{\"seq\":1,\"a\":1}\n{\"seq\":1230}\n");
    }
}
