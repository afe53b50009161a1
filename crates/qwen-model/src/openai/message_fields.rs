//! Provider-specific message fields that must be sent back: OpenRouter's `reasoning_details` and Google's
//! `extra_content`. The conversation carries them as the signature of the message's thinking, which is the
//! field for data that only its provider can read.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json::JsonWriter;

/// Marks a signature that holds such fields, so that no other wire mistakes it for its own.
pub(crate) const MARK: &str = "chat.completions:";

/// The fields of one message, merged from its chunks.
#[derive(Debug, Default)]
pub(super) struct MessageFields {
    details: Vec<Map<String, Value>>,
    extra: Option<Value>,
}

impl MessageFields {
    /// Adds the fields of one chunk.
    pub fn add(&mut self, details: Option<&RawValue>, extra: Option<&RawValue>) {
        if let Some(details) = details
            && let Ok(details) = serde_json::from_str::<Vec<Map<String, Value>>>(details.get())
        {
            for detail in details {
                self.add_detail(detail);
            }
        }
        if let Some(extra) = extra
            && let Ok(extra @ Value::Object(_)) = serde_json::from_str(extra.get())
        {
            self.extra = Some(extra);
        }
    }

    /// Adds a detail. One with the same type and index as the last continues it: their texts are joined.
    fn add_detail(&mut self, new: Map<String, Value>) {
        let same = |known: &Map<String, Value>| {
            known.get("type") == new.get("type") && known.get("index") == new.get("index")
        };
        match self.details.last_mut().filter(|known| same(known)) {
            None => self.details.push(new),
            Some(known) => {
                for (name, value) in new {
                    match (known.get_mut(&name), value) {
                        (Some(Value::String(text)), Value::String(more))
                            if matches!(name.as_str(), "text" | "summary" | "data" | "signature") =>
                        {
                            text.push_str(&more);
                        }
                        (_, Value::Null) => {}
                        (_, value) => {
                            known.insert(name, value);
                        }
                    }
                }
            }
        }
    }

    /// All fields as a signature; `None` without fields.
    pub fn signature(&self) -> Option<std::sync::Arc<str>> {
        let mut fields = Map::new();
        if !self.details.is_empty() {
            let details = self.details.iter().cloned().map(Value::Object).collect();
            fields.insert("reasoning_details".to_owned(), details);
        }
        if let Some(extra) = &self.extra {
            fields.insert("extra_content".to_owned(), extra.clone());
        }
        (!fields.is_empty()).then(|| format!("{MARK}{}", Value::Object(fields)).into())
    }
}

/// Writes the fields of a signature into the current message.
pub(super) fn write(w: &mut JsonWriter, signature: &str) {
    let Some(fields) = signature.strip_prefix(MARK) else { return };
    let Ok(fields) = serde_json::from_str::<Map<String, Value>>(fields) else { return };
    for name in ["reasoning_details", "extra_content"] {
        if let Some(value) = fields.get(name) {
            w.key(name).json_value(value);
        }
    }
}
