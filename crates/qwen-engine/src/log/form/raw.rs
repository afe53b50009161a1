//! Embedded JSON that is not interpreted.

use qwen_events::Json;
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A JSON text, written verbatim and read back without being parsed into a value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::log) struct Raw(pub Json);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.as_str();
        if text.contains(['\n', '\r'])
            && let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
        {
            // An entry must be one line, so the value is serialized again without line breaks.
            return value.serialize(serializer);
        }
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) => raw.serialize(serializer),
            // The text is not valid JSON; as a string it is preserved in full.
            Err(_) => text.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Json::trusted(raw.get())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_passes_through_as_it_is_and_always_stays_on_its_line() {
        let cases = [
            (r#"{"b":1.50,"a":[ ]}"#, r#"{"b":1.50,"a":[ ]}"#),
            ("{\n\"a\": \"x\\ny\"\r}", r#"{"a":"x\ny"}"#),
            ("null", "null"),
            ("no\nJSON", r#""no\nJSON""#),
        ];
        for (text, stored) in cases {
            let written = serde_json::to_string(&Raw(Json::trusted(text))).expect(text);
            assert_eq!(written, stored);
            let read: Raw = serde_json::from_str(&written).expect(stored);
            assert_eq!(read.0.as_str(), stored);
        }
    }
}
