//! Parses bytes into a JSON object: the requirements that all dialects share.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::decode::scan;

/// The reason why a line, or a part of it, is invalid.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) rule: &'static str,
    pub(crate) message: String,
}

impl Violation {
    pub(crate) fn new(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, message: message.into() }
    }
}

/// A line that is one JSON object.
pub(crate) struct Object<'a> {
    pub(crate) text: &'a str,
    /// The line with its keys sorted by name, except that `type` comes first: wire types that hold raw JSON
    /// after a tag need the tag first, and writers may choose any order. None if the line already begins
    /// with its `type`.
    reordered: Option<String>,
    fields: Map<String, Value>,
}

/// The line as text.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Violation> {
    std::str::from_utf8(bytes).map_err(|error| {
        Violation::new("utf-8", format!("the line is not UTF-8 from byte {} on", error.valid_up_to()))
    })
}

impl<'a> Object<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Violation> {
        let value = serde_json::from_str(text)
            .map_err(|error| Violation::new("json", format!("the line is not JSON: {}", plain(&error))))?;
        let Value::Object(fields) = value else {
            return Err(Violation::new("json", "the line is JSON but not an object"));
        };
        scan::check(text).map_err(|error| Violation::new("json-text", error.message.to_string()))?;
        let begins_with_type = text
            .trim_ascii_start()
            .strip_prefix('{')
            .is_some_and(|rest| rest.trim_ascii_start().starts_with("\"type\""));
        let reordered = (!begins_with_type && fields.contains_key("type")).then(|| type_first(&fields));
        Ok(Self { text, reordered, fields })
    }

    /// A line that replaces another one.
    pub(crate) fn of_fields(fields: Map<String, Value>) -> Object<'static> {
        Object { text: "", reordered: Some(type_first(&fields)), fields }
    }

    pub(crate) fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field)
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    pub(crate) fn str(&self, field: &str) -> Option<&str> {
        self.get(field).and_then(Value::as_str)
    }

    /// The `type`, which nearly all lines have.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.str("type")
    }

    /// True for a numbered line of a hub that is not the first of its session.
    pub(crate) fn is_later_line(&self) -> bool {
        self.get("seq").and_then(Value::as_u64).is_some_and(|number| number > 1)
    }

    /// The key of an object with a single key.
    pub(crate) fn only_key(&self) -> Option<&str> {
        let mut keys = self.fields.keys();
        keys.next().filter(|_| keys.next().is_none()).map(String::as_str)
    }

    /// Deserializes the whole line as `T`.
    pub(crate) fn read<'s, T: Deserialize<'s>>(&'s self) -> Result<T, Violation> {
        serde_json::from_str(self.reordered.as_deref().unwrap_or(self.text))
            .map_err(|error| self.violation(&error))
    }

    fn violation(&self, error: &serde_json::Error) -> Violation {
        let message = plain(error);
        let kind = self.kind().unwrap_or_default();
        if message.starts_with(&format!("unknown variant `{kind}`")) {
            return self.unknown_type();
        }
        let of = if kind.is_empty() { String::new() } else { format!(" of type `{kind}`") };
        Violation::new("shape", format!("the line{of} does not have the shape it should: {message}"))
    }

    /// The violation of a line whose type the dialect does not have.
    pub(crate) fn unknown_type(&self) -> Violation {
        match self.get("type") {
            Some(kind) => Violation::new("unknown-type", format!("the dialect has no line of type {kind}")),
            None => {
                Violation::new("unknown-type", "the line has no `type` and no other mark of this dialect")
            }
        }
    }
}

fn type_first(fields: &Map<String, Value>) -> String {
    let mut text = String::from("{");
    let kind = fields.iter().filter(|(name, _)| *name == "type");
    for (name, value) in kind.chain(fields.iter().filter(|(name, _)| *name != "type")) {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&format!("{}:{value}", Value::from(name.as_str())));
    }
    text.push('}');
    text
}

/// Serde's message without the line number, which is always 1.
fn plain(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.split_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} at column {column}"),
        None => message,
    }
}

/// Checks that a field has one of the allowed values.
pub(crate) fn word(field: &str, found: &str, words: &[&str]) -> Result<(), Violation> {
    if words.contains(&found) {
        return Ok(());
    }
    Err(Violation::new("shape", format!("`{field}` is one of {}, not {found:?}", words.join(", "))))
}

/// The end statuses that several dialects share.
pub(crate) const END_STATUSES: [&str; 9] = [
    "done",
    "error",
    "cancelled",
    "interrupted",
    "max_turns",
    "max_tool_calls",
    "max_wall_time",
    "max_tokens",
    "budget",
];
