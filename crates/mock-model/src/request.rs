//! A received request.

use std::time::Instant;

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's wire, at `POST …/chat/completions`.
    OpenAi,
    /// Anthropic's wire, at `POST …/messages`.
    Anthropic,
}

impl Wire {
    /// The API that a path belongs to, regardless of its prefix.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or(path);
        if path.ends_with("/chat/completions") {
            Some(Self::OpenAi)
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else {
            None
        }
    }
}

/// A request to the model.
#[derive(Debug, Clone)]
pub struct Request {
    pub wire: Wire,
    /// The path, with its query.
    pub path: String,
    /// The connection that it arrived on, from 0: a keep-alive client reuses one.
    pub connection: usize,
    /// In order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body without the descriptions of the agent's situation, which depend on machine and day.
    pub body: Value,
    /// The body as sent, byte for byte.
    pub bytes: Vec<u8>,
    /// When the last byte arrived.
    pub arrived: Instant,
    /// `arrived` on the clock that processes share.
    pub arrived_ns: u64,
}

impl Request {
    /// A header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body as sent.
    pub fn full_body(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The conversation without descriptions of the agent's situation.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The joined text parts of the last message with the role `user`. Messages without text, which is how
    /// the Anthropic wire returns tool results, are skipped.
    pub fn last_user_text(&self) -> String {
        let users = self.messages().iter().rev().filter(|message| message["role"] == "user");
        users.map(|message| text_of(&message["content"])).find(|text| !text.is_empty()).unwrap_or_default()
    }

    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools.iter().filter_map(|tool| tool["function"]["name"].as_str().or(tool["name"].as_str())).collect()
    }

    /// The form in logs and in `/control/requests`.
    pub(crate) fn to_json(&self) -> Value {
        let headers: serde_json::Map<String, Value> =
            self.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        json!({
            "path": self.path,
            "connection": self.connection,
            "headers": headers,
            "body": self.body,
            "full_body": self.full_body(),
            "arrived_ns": self.arrived_ns,
        })
    }
}

/// Removes `<situation>…</situation>` from the user messages of a body, and messages that contain nothing else.
pub(crate) fn without_situation(mut body: Value) -> Value {
    let Some(messages) = body["messages"].as_array_mut() else { return body };
    messages.retain_mut(|message| {
        if message["role"] != "user" {
            return true;
        }
        match &mut message["content"] {
            Value::String(text) => strip(text) != Stripped::Empty,
            Value::Array(parts) => {
                let before = parts.len();
                parts.retain_mut(|part| match part.get_mut("text") {
                    Some(Value::String(text)) => strip(text) != Stripped::Empty,
                    _ => true,
                });
                before == 0 || !parts.is_empty()
            }
            _ => true,
        }
    });
    body
}

#[derive(PartialEq, Eq)]
enum Stripped {
    Unchanged,
    Shortened,
    Empty,
}

fn strip(text: &mut String) -> Stripped {
    const END: &str = "</situation>";
    let mut stripped = Stripped::Unchanged;
    while let Some(start) = text.find("<situation>\n") {
        let Some(end) = text[start..].find(END).map(|end| start + end + END.len()) else { break };
        let end = if text[end..].starts_with('\n') { end + 1 } else { end };
        let start = if end == text.len() && text[..start].ends_with('\n') { start - 1 } else { start };
        text.replace_range(start..end, "");
        stripped = Stripped::Shortened;
    }
    if stripped == Stripped::Shortened && text.is_empty() { Stripped::Empty } else { stripped }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
