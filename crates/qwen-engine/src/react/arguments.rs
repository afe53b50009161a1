//! The arguments of a call as the model wrote them. The value that is asked about, shown, logged and run must
//! be the same, so a text that two parsers could interpret differently is rejected before it is used.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use qwen_events::{CallId, Json, ToolCall};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Parses the arguments into one JSON object on one line, or describes the error. Some models send an empty
/// text to call a tool without parameters.
pub(crate) fn parse_arguments(text: &str) -> Result<Json, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Json::empty_object());
    }
    if !text.starts_with('{') {
        return Err("they are not a JSON object".to_owned());
    }
    // The parser's recursion limit bounds the nesting, and the range of a double bounds numbers.
    serde_json::from_str::<Unambiguous>(text).map_err(|error| error.to_string())?;
    if text.contains(['\n', '\r']) {
        // In valid JSON an unescaped line break is white space between tokens.
        return Ok(Json::trusted(text.replace(['\n', '\r'], " ")));
    }
    Ok(Json::trusted(text))
}

/// The call as the model wrote it. Invalid arguments are stored next to the call, which fails when it runs.
pub fn written_call(id: CallId, name: Arc<str>, text: String) -> ToolCall {
    match parse_arguments(&text) {
        Ok(arguments) => ToolCall { id, name, arguments, malformed: None, provider_fields: None },
        Err(_) => {
            let arguments = Json::empty_object();
            ToolCall { id, name, arguments, malformed: Some(text.into()), provider_fields: None }
        }
    }
}

/// A JSON value that all parsers interpret in the same way: no duplicate key, no lone surrogate, no number
/// out of range.
struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        let mut keys: HashSet<String> = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            entries.next_value::<Self>()?;
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is there twice")));
            }
            keys.insert(key);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_one_json_object_on_one_line() {
        let cases = [
            ("", "{}"),
            ("  ", "{}"),
            ("{}", "{}"),
            ("{\n \"a\": \"x\\ny\"\r\n}", "{  \"a\": \"x\\ny\"  }"),
            (
                r#"{"a":1e300,"b":[{"a":1},{"a":2}],"c":"\ud83d\ude00"}"#,
                r#"{"a":1e300,"b":[{"a":1},{"a":2}],"c":"\ud83d\ude00"}"#,
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_arguments(text).as_ref().map(Json::as_str), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn arguments_that_two_readers_could_understand_differently_are_refused() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(300), "]".repeat(300));
        let cases = [
            "[1]",
            "null",
            "{\"a\":",
            "{} {}",
            "{\"a\":1}x",
            r#"{"command":"touch harmless","command":"touch evil"}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"\udfff":1}"#,
            r#"{"a":1e400}"#,
            &deep,
        ];
        for text in cases {
            assert!(parse_arguments(text).is_err(), "{text:?}");
        }
    }
}
