//! The content of a stream, whichever dialect it was written in, so that one check holds for all of them.

mod claude;
mod core;
mod lite;
mod loom;
mod qwen;

use serde_json::Value;

use crate::wire::Wire;

/// The content of a stream.
#[derive(Debug, Default)]
pub struct StreamContent {
    /// The lines as written; of a document, its events.
    pub lines: Vec<Value>,
    /// The terminal records, in order.
    pub ends: Vec<End>,
    /// Errors besides those that ended a turn.
    pub errors: Vec<String>,
    /// The model's text, joined.
    pub text: String,
    /// The calls that the model made.
    pub calls: Vec<Call>,
    /// What came of them.
    pub results: Vec<CallResult>,
    /// How often a model call was announced to be tried again.
    pub retries: usize,
}

/// A terminal record.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct End {
    /// The line that it is on, from 0.
    pub line: usize,
    /// Why the turn ended, in DESIGN's words; `fatal` where there was no turn.
    pub status: String,
    /// What went wrong.
    pub error: Option<String>,
    /// Tokens read and written.
    pub tokens: (u64, u64),
    /// The answer, where the record has it.
    pub reply: Option<String>,
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    pub id: String,
    pub is_error: bool,
    pub text: String,
}

impl StreamContent {
    /// Reads a whole stream, and fails where it breaks a rule of its dialect.
    #[track_caller]
    pub fn read(wire: Wire, stdout: &str) -> Self {
        let mut lines: Vec<Value> = stdout.lines().map(object).collect();
        let whole = wire.is_document() && !matches!(wire.dialect, "qwen" | "claude");
        if wire.is_document() {
            assert_eq!(lines.len(), 1, "a document is one line: {stdout}");
        }
        if whole {
            let document = lines.remove(0);
            let events = document["events"].as_array();
            lines.clone_from(events.unwrap_or_else(|| panic!("no events: {document}")));
            match wire.dialect {
                "loom" | "loom-export" => lines.push(serde_json::json!({ "reply": document["reply"] })),
                _ => assert!(document["reply"].is_string(), "{document}"),
            }
        }
        let mut told = match wire.dialect {
            "qwen" => qwen::read(wire, &lines),
            "claude" => claude::read(wire, &lines),
            "claude-lite" => lite::read(&lines),
            "loom" => loom::read(&lines),
            "loom-export" => loom::read_export(&lines),
            _ => core::read(&lines),
        };
        told.lines = lines;
        told
    }

    /// The one terminal record, which is the last line.
    #[track_caller]
    pub fn end(&self) -> &End {
        let [end] = &self.ends[..] else { panic!("not one terminal record: {:#?}", self.ends) };
        assert_eq!(end.line + 1, self.lines.len(), "the terminal record is not last: {:#?}", self.lines);
        end
    }

    fn result(&mut self, id: &Value, is_error: bool, text: &Value) {
        self.results.push(CallResult {
            id: string(id),
            is_error,
            text: text.as_str().unwrap_or("").to_owned(),
        });
    }

    fn call(&mut self, id: &Value, name: &Value, arguments: &Value) {
        assert!(arguments.is_object(), "arguments are an object: {arguments}");
        self.calls.push(Call { id: string(id), name: string(name), arguments: arguments.clone() });
    }
}

#[track_caller]
fn object(line: &str) -> Value {
    let value: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("a line that is no JSON ({error}): {line}"));
    assert!(value.is_object(), "a line that is no object: {line}");
    value
}

/// A text that must be there.
#[track_caller]
fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text is missing: {value}")).to_owned()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn tokens(usage: &Value, read: &str, written: &str) -> (u64, u64) {
    let count = |key: &str| usage[key].as_u64().unwrap_or_else(|| panic!("no {key} in {usage}"));
    (count(read), count(written))
}
