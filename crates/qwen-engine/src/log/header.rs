//! The first line of a log, which identifies the session.

use std::sync::Arc;

use qwen_events::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::LogError;

/// The version of the format. A new entry type does not change it, because unknown types are skipped.
const VERSION: u64 = 1;

/// The maximum length of the session's title, in characters.
const TITLE_CHARS: usize = 160;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHeader {
    pub session_id: SessionId,
    /// The working directory in which it was started.
    pub cwd: Arc<str>,
    pub created: Timestamp,
    /// The version of the program that started it.
    pub version: Arc<str>,
    /// The session that it was forked from.
    pub parent: Option<Parent>,
    /// The beginning of the first prompt.
    pub title: Arc<str>,
}

/// The origin of a forked session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The session that it was forked from.
    pub session_id: SessionId,
    /// The fork point; `None` means the end of the parent.
    pub point: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct HeaderForm {
    #[serde(rename = "type")]
    kind: Kind,
    v: u64,
    session_id: Arc<str>,
    cwd: Arc<str>,
    created: u64,
    version: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<ParentForm>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    title: Arc<str>,
}

#[derive(Serialize, Deserialize)]
enum Kind {
    #[serde(rename = "session")]
    Session,
}

/// The fields that every version of the header has.
#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

#[derive(Serialize, Deserialize)]
struct ParentForm {
    session_id: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    point: Option<Arc<str>>,
}

impl LogHeader {
    /// Appends the header line.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let form = HeaderForm {
            kind: Kind::Session,
            v: VERSION,
            session_id: self.session_id.as_str().into(),
            cwd: self.cwd.clone(),
            created: self.created.0,
            version: self.version.clone(),
            parent: self.parent.as_ref().map(|parent| ParentForm {
                session_id: parent.session_id.as_str().into(),
                point: parent.point.clone(),
            }),
            title: self.title.clone(),
        };
        serde_json::to_writer(&mut *out, &form)?;
        out.push(b'\n');
        Ok(())
    }

    /// Parses the header line, without its line break, of the log of `id`. The file name takes precedence
    /// over the id in the header, because a log can be copied.
    pub(super) fn read(line: &[u8], id: &SessionId) -> Result<Self, LogError> {
        let damaged = || LogError::Damaged(id.clone());
        let version: Versioned = serde_json::from_slice(line).map_err(|_| damaged())?;
        if version.v != VERSION {
            return Err(LogError::Newer { id: id.clone(), version: version.v });
        }
        let form: HeaderForm = serde_json::from_slice(line).map_err(|_| damaged())?;
        let parent = form.parent.and_then(|parent| {
            Some(Parent { session_id: SessionId::parse(&parent.session_id).ok()?, point: parent.point })
        });
        Ok(Self {
            session_id: id.clone(),
            cwd: form.cwd,
            created: Timestamp(form.created),
            version: form.version,
            parent,
            title: form.title,
        })
    }
}

/// Derives the title of a session from its first prompt: the beginning, on one line.
pub fn derive_title(message: &str) -> Arc<str> {
    let words: Vec<&str> = message.split_whitespace().take(TITLE_CHARS).collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(TITLE_CHARS).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> SessionId {
        SessionId::parse("s-1").expect("an id")
    }

    #[test]
    fn a_header_comes_back_as_it_went() {
        let header = LogHeader {
            session_id: id(),
            cwd: "/work \"here\"".into(),
            created: Timestamp(1_739_430_000_123),
            version: "0.1.0".into(),
            parent: Some(Parent {
                session_id: SessionId::parse("s-0").expect("an id"),
                point: Some("p".into()),
            }),
            title: derive_title("  Fix\tthe\n\nbug \u{1b}[31m"),
        };
        assert_eq!(&*header.title, "Fix the bug [31m");
        let mut line = Vec::new();
        header.write(&mut line).expect("a line");
        assert_eq!(line.pop(), Some(b'\n'));
        assert_eq!(LogHeader::read(&line, &id()).expect("a header"), header);
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let newer = br#"{"v":2,"type":"something else"}"#;
        assert!(matches!(LogHeader::read(newer, &id()), Err(LogError::Newer { version: 2, .. })));
        for damaged in [&b"{\"v\":1}"[..], b"", b"\0\0\0", b"[]", b"{\"type\":\"session\"}"] {
            assert!(matches!(LogHeader::read(damaged, &id()), Err(LogError::Damaged(_))), "{damaged:?}");
        }
    }
}
