//! JSON that passes through a line: written as the text it came as, never rebuilt.

use std::borrow::Cow;

use qwen_events::Json;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value of any shape.
#[derive(Debug, Clone)]
pub struct Payload<'a>(Cow<'a, RawValue>);

impl<'a> Payload<'a> {
    /// The value that `json` carries. Total: a text that breaks its promise of being one value on one line must not
    /// break the stream, so it is mended or, failing that, sent as a string.
    pub fn new(json: &'a Json) -> Self {
        Self::from_text(json.as_str())
    }

    /// The value that `text` holds; see [`Payload::new`].
    pub fn from_text(text: &'a str) -> Self {
        match serde_json::from_str::<&RawValue>(text) {
            // Between tokens a line break is as good as a space, and inside strings JSON allows none.
            Ok(raw) if raw.get().contains(['\n', '\r']) => {
                Self::from_owned(raw.get().replace(['\n', '\r'], " ")).unwrap_or_else(Self::null)
            }
            Ok(raw) => Self(Cow::Borrowed(raw)),
            Err(_) => Self::from_value(&text),
        }
    }

    /// Serializes `value`; a value that cannot be serialized becomes null.
    pub fn from_value(value: &impl Serialize) -> Self {
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::null(), |raw| Self(Cow::Owned(raw)))
    }

    /// The value as text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    fn from_owned(text: String) -> Option<Self> {
        RawValue::from_string(text).ok().map(|raw| Self(Cow::Owned(raw)))
    }

    fn null() -> Self {
        Self(Cow::Borrowed(RawValue::NULL))
    }
}

impl PartialEq for Payload<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Payload<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A raw value cannot be read from inside a tagged enum, which serde buffers first; a tree can.
        serde_json::Value::deserialize(deserializer).map(|value| Self::from_value(&value))
    }
}

impl JsonSchema for Payload<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_always_one_value_on_one_line() {
        for (text, expected) in [
            (r#"{"b":1,"a":[2.50]}"#, r#"{"b":1,"a":[2.50]}"#),
            (" 7 ", "7"),
            ("{\n\"a\":\r\n1}", r#"{ "a":  1}"#),
            ("{broken", r#""{broken""#),
            ("", r#""""#),
        ] {
            assert_eq!(Payload::from_text(text).as_str(), expected, "{text:?}");
        }
    }
}
