//! The headers of messages in the streams of sessions. The state of a session is readable from them alone.

use async_nats::HeaderMap;
use qwen_kernel::ipc::CommitReason;

use crate::bus::BusIdentity;

const EPOCH: &str = "Q-Epoch";
const OWNER: &str = "Q-Owner";
const RELEASED: &str = "Q-Released";
const WORKSPACE: &str = "Q-Workspace";
const OFFSET: &str = "Q-Off";
const BASE: &str = "Q-Base";
const START: &str = "Q-Start";
const EFFECT: &str = "Q-Effect";
const END: &str = "Q-End";
const SEQ: &str = "Q-Seq";
const COUNT: &str = "Q-Count";
const PART: &str = "Q-Part";
const OPEN: &str = "Q-Open";
const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";

/// The headers of a message of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogHeaders {
    pub epoch: u64,
    /// The process that wrote it, as NAME/INCARNATION.
    pub owner: String,
    /// Where the session's files are, as `local:NODE` or `shared:ID`.
    pub workspace: Option<String>,
    /// True if that process gave the log up with it.
    pub is_released: bool,
    /// The offset of the payload in the log. What earlier messages have from there on is replaced.
    pub offset: u64,
    /// The length of the log without an append of which parts are missing; only in such a part.
    pub base: Option<u64>,
    /// The reason of the last complete append.
    pub last: Option<CommitReason>,
}

/// The headers of a message of numbered lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventHeaders {
    pub epoch: u64,
    pub owner: String,
    /// The number of the first line.
    pub first: u64,
    /// The number of lines of the message, or of all its parts.
    pub count: u64,
    /// The part and the number of parts, for lines that one message cannot hold.
    pub part: Option<(u64, u64)>,
    /// The turn that is open after the lines.
    pub open: Option<String>,
}

/// Sets the message that an append must follow; 0 is none.
pub fn set_expected(headers: &mut HeaderMap, sequence: u64) {
    headers.insert(EXPECTED, sequence.to_string());
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(async_nats::HeaderValue::as_str)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name)?.parse().ok()
}

impl LogHeaders {
    /// Reads the headers; none if the message is not one of a log.
    pub fn parse(headers: &HeaderMap) -> Option<Self> {
        let unescaped = |name| text(headers, name).map(unescape);
        let effect = || {
            let (tool, call) = text(headers, EFFECT)?.split_once(' ')?;
            Some(CommitReason::Effect { tool: unescape(tool), call: unescape(call) })
        };
        let last = unescaped(START)
            .map(|prompt_id| CommitReason::Start { prompt_id })
            .or_else(|| unescaped(END).map(|prompt_id| CommitReason::End { prompt_id }))
            .or_else(effect);
        Some(Self {
            epoch: number(headers, EPOCH)?,
            owner: text(headers, OWNER)?.to_owned(),
            workspace: unescaped(WORKSPACE),
            is_released: headers.get(RELEASED).is_some(),
            offset: number(headers, OFFSET)?,
            base: number(headers, BASE),
            last,
        })
    }

    /// Returns the headers as a message carries them.
    pub fn to_map(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(EPOCH, self.epoch.to_string());
        headers.insert(OWNER, self.owner.as_str());
        headers.insert(OFFSET, self.offset.to_string());
        if let Some(workspace) = &self.workspace {
            headers.insert(WORKSPACE, escape(workspace));
        }
        if self.is_released {
            headers.insert(RELEASED, "1");
        }
        if let Some(base) = self.base {
            headers.insert(BASE, base.to_string());
        }
        match &self.last {
            Some(CommitReason::Start { prompt_id }) => headers.insert(START, escape(prompt_id)),
            Some(CommitReason::End { prompt_id }) => headers.insert(END, escape(prompt_id)),
            Some(CommitReason::Effect { tool, call }) => {
                headers.insert(EFFECT, format!("{} {}", escape(tool), escape(call)));
            }
            None => {}
        }
        headers
    }

    /// Returns the length of the log after this message with a payload of `bytes`.
    pub fn length(&self, bytes: usize) -> u64 {
        self.base.unwrap_or_else(|| self.offset.saturating_add(bytes as u64))
    }

    /// Returns true if a process other than `identity` owns the log.
    pub fn is_owned_by_other(&self, identity: &BusIdentity) -> bool {
        !self.is_released && self.is_written_by_other(identity)
    }

    /// Returns true if a process other than `identity` wrote to the log last, even if it has given it up since.
    pub fn is_written_by_other(&self, identity: &BusIdentity) -> bool {
        self.owner != identity.to_string()
    }
}

impl EventHeaders {
    /// Reads the headers; none if the message is not one of numbered lines.
    pub fn parse(headers: &HeaderMap) -> Option<Self> {
        let part = match text(headers, PART) {
            None => None,
            Some(text) => {
                let (part, parts) = text.split_once('/')?;
                Some((part.parse().ok()?, parts.parse().ok()?))
            }
        };
        let first: u64 = number(headers, SEQ)?;
        let count = number(headers, COUNT)?;
        first.checked_add(count)?;
        Some(Self {
            epoch: number(headers, EPOCH)?,
            owner: text(headers, OWNER)?.to_owned(),
            first: first.max(1),
            count,
            part,
            open: text(headers, OPEN).map(unescape),
        })
    }

    /// Returns the headers as a message carries them.
    pub fn to_map(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(EPOCH, self.epoch.to_string());
        headers.insert(OWNER, self.owner.as_str());
        headers.insert(SEQ, self.first.to_string());
        headers.insert(COUNT, self.count.to_string());
        if let Some((part, parts)) = self.part {
            headers.insert(PART, format!("{part}/{parts}"));
        }
        if let Some(open) = &self.open {
            headers.insert(OPEN, escape(open));
        }
        headers
    }

    /// Returns true if further parts of the same lines must follow.
    pub fn is_incomplete(&self) -> bool {
        self.part.is_some_and(|(part, parts)| part < parts)
    }

    /// Returns the number of the last complete line after this message.
    pub fn last(&self) -> u64 {
        if self.is_incomplete() { self.first - 1 } else { self.first - 1 + self.count }
    }
}

/// Writes a value that may contain anything as visible ASCII.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02x}"));
        }
    }
    // An empty header value would be lost.
    if escaped.is_empty() { "%".to_owned() } else { escaped }
}

/// Reads what [`escape`] has written.
pub fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        if let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) {
            bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses the header block of a stored message.
pub fn parse_block(block: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in String::from_utf8_lossy(block).split("\r\n").skip(1) {
        if let Some((name, value)) = line.split_once(':')
            && let (Ok(name), Ok(value)) =
                (name.parse::<async_nats::HeaderName>(), value.trim().parse::<async_nats::HeaderValue>())
        {
            headers.append(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_log_come_back_with_any_ids() {
        for name in ["p", "", "ä / \"%\r\n x", "a b"] {
            for last in [
                CommitReason::Start { prompt_id: name.to_owned() },
                CommitReason::End { prompt_id: name.to_owned() },
                CommitReason::Effect { tool: name.to_owned(), call: name.to_owned() },
            ] {
                let headers = LogHeaders {
                    epoch: 7,
                    owner: "n/1".to_owned(),
                    workspace: Some(format!("local:{name}")),
                    is_released: name.is_empty(),
                    offset: 9,
                    base: Some(3),
                    last: Some(last),
                };
                assert_eq!(LogHeaders::parse(&headers.to_map()), Some(headers));
            }
        }
    }

    #[test]
    fn headers_of_lines_come_back_and_malformed_ones_are_refused() {
        let headers = EventHeaders {
            epoch: 2,
            owner: "n/1".to_owned(),
            first: 10,
            count: 3,
            part: Some((1, 2)),
            open: Some("p 1".to_owned()),
        };
        let map = headers.to_map();
        assert_eq!(EventHeaders::parse(&map), Some(headers.clone()));
        assert_eq!((headers.is_incomplete(), headers.last()), (true, 9));
        assert_eq!(EventHeaders { part: Some((2, 2)), ..headers }.last(), 12);
        for (name, value) in [
            (SEQ, "x"),
            (COUNT, "-1"),
            (EPOCH, ""),
            (PART, "1"),
            (PART, "a/b"),
            (SEQ, "18446744073709551615"),
        ] {
            let mut map = map.clone();
            map.insert(name, value);
            assert_eq!(EventHeaders::parse(&map), None, "{name}: {value}");
        }
        assert_eq!(EventHeaders::parse(&HeaderMap::new()), None);
    }

    #[test]
    fn a_stored_header_block_is_read_and_rubbish_in_it_is_skipped() {
        let headers = parse_block(b"NATS/1.0\r\nQ-Epoch: 3\r\nrubbish\r\n: x\r\nQ-Owner:n/1\r\n\r\n");
        assert_eq!(number(&headers, EPOCH), Some(3));
        assert_eq!(text(&headers, OWNER), Some("n/1"));
    }
}
