//! A span: something that took time, with what is known about it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::content::Message;
use super::context::Place;

/// The longest text in a span, in bytes; what is longer is cut.
const MAX_TEXT: usize = 16 * 1024;

/// How many marks a span may have; further ones are counted.
const MAX_MARKS: usize = 128;

/// Whether a span is work of ours, or our side of a call to somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Internal,
    Client,
}

/// What an attribute says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(Arc<str>),
    Texts(Vec<Arc<str>>),
    Whole(i64),
    Number(f64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(shortened(text).into())
    }
}

impl From<Message> for Value {
    fn from(message: Message) -> Self {
        Self::Text(message.0.into())
    }
}

/// A text that is not too long for a span.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_TEXT {
        return text.into();
    }
    let end = (0..=MAX_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end]).into()
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Whole(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Whole(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// What is known.
pub(super) type Attributes = Vec<(&'static str, Value)>;

/// Something that happened at a moment within a span.
#[derive(Debug)]
pub(super) struct Mark {
    pub at: u64,
    pub name: &'static str,
    pub attributes: Attributes,
}

/// Something that takes time.
#[derive(Debug)]
pub(super) struct Span {
    pub place: Place,
    /// The span above; none at the root of a trace.
    pub parent: Option<u64>,
    pub name: String,
    pub kind: Kind,
    /// Nanoseconds since the Unix epoch.
    pub start: u64,
    pub end: u64,
    pub attributes: Attributes,
    pub marks: Vec<Mark>,
    pub lost_marks: u64,
    /// What went wrong, in a word or a sentence.
    pub error: Option<Arc<str>>,
    begun: Instant,
}

impl Span {
    /// A span that begins now, below `parent` or at the root of a new trace.
    pub fn begin(parent: Option<&Place>, name: String, kind: Kind) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Self {
            place: parent.map_or_else(Place::root, Place::child),
            parent: parent.map(|parent| parent.span),
            name,
            kind,
            start,
            end: start,
            attributes: Vec::new(),
            marks: Vec::new(),
            lost_marks: 0,
            error: None,
            begun: Instant::now(),
        }
    }

    /// Adds what is known.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        self.attributes.push((key, value.into()));
    }

    /// Notes that something happened now.
    pub fn mark(&mut self, name: &'static str, attributes: Attributes) {
        if self.marks.len() < MAX_MARKS {
            self.marks.push(Mark { at: self.now(), name, attributes });
        } else {
            self.lost_marks += 1;
        }
    }

    /// Says that it went wrong: `kind` is a stable word, `cause` what people are told.
    pub fn fail(&mut self, kind: &str, cause: &str) {
        self.set("error.type", kind);
        self.error = Some(shortened(cause).into());
    }

    /// It is over now. The clock of the wall may be set meanwhile; how long it took is not told by that.
    pub fn finish(mut self) -> Self {
        self.end = self.now();
        self
    }

    /// About how much memory it takes.
    pub fn weight(&self) -> usize {
        let of = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Texts(texts) => texts.iter().map(|text| text.len()).sum(),
            Value::Whole(_) | Value::Number(_) => 8,
        };
        let attributes: usize = self.attributes.iter().map(|(_, value)| 48 + of(value)).sum();
        300 + attributes + self.marks.len() * 150
    }

    fn now(&self) -> u64 {
        self.start.saturating_add(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
