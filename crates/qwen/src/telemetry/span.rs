//! A span: an operation with a duration and attributes.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::content::Message;
use super::context::SpanContext;

/// The longest text in a span, in bytes; a longer one is cut.
const MAX_TEXT: usize = 16 * 1024;

/// The maximum number of events in a span; further ones are counted.
const MAX_MARKS: usize = 128;

/// Whether a span is our own work or our side of a call to another service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Internal,
    Client,
}

/// The value of an attribute.
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

/// Cuts a text to the maximum length in a span.
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

pub(super) type Attributes = Vec<(&'static str, Value)>;

/// An event at a moment within a span.
#[derive(Debug)]
pub(super) struct Mark {
    pub at: u64,
    pub name: &'static str,
    pub attributes: Attributes,
}

/// An operation with a duration.
#[derive(Debug)]
pub(super) struct Span {
    pub context: SpanContext,
    /// The parent span; none at the root of a trace.
    pub parent: Option<u64>,
    pub name: String,
    pub kind: Kind,
    /// Nanoseconds since the Unix epoch.
    pub start: u64,
    pub end: u64,
    pub attributes: Attributes,
    pub marks: Vec<Mark>,
    pub lost_marks: u64,
    /// The error message, if the operation failed.
    pub error: Option<Arc<str>>,
    started: Instant,
}

impl Span {
    /// Starts a span now, below `parent` or at the root of a new trace.
    pub fn begin(parent: Option<&SpanContext>, name: String, kind: Kind) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Self {
            context: parent.map_or_else(SpanContext::root, SpanContext::child),
            parent: parent.map(|parent| parent.span),
            name,
            kind,
            start,
            end: start,
            attributes: Vec::new(),
            marks: Vec::new(),
            lost_marks: 0,
            error: None,
            started: Instant::now(),
        }
    }

    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        self.attributes.push((key, value.into()));
    }

    /// Adds an event at the current time.
    pub fn mark(&mut self, name: &'static str, attributes: Attributes) {
        if self.marks.len() < MAX_MARKS {
            self.marks.push(Mark { at: self.now(), name, attributes });
        } else {
            self.lost_marks += 1;
        }
    }

    /// Marks the span as failed: `kind` is a stable identifier, `cause` the message for users.
    pub fn fail(&mut self, kind: &str, cause: &str) {
        self.set("error.type", kind);
        self.error = Some(shortened(cause).into());
    }

    /// Ends the span now. The duration comes from a monotonic clock, because the wall clock may be changed
    /// meanwhile.
    pub fn finish(mut self) -> Self {
        self.end = self.now();
        self
    }

    /// Its approximate memory size, in bytes.
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
        self.start.saturating_add(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
