//! The arguments of a call as the model wrote them. What is asked about, shown, logged and run must be one value, so a text
//! that two readers could understand differently is refused before anyone sees it.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use qwen_events::{CallId, Json, ToolCall};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The arguments as one JSON object on one line, or what is wrong with them. No arguments at all is how some models call a
/// tool that takes none.
pub(crate) fn parse_arguments(text: &str) -> Result<Json, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Json::empty_object());
    }
    if !text.starts_with('{') {
        return Err("they are no JSON object".to_owned());
    }
    // Nesting is bounded by the parser's recursion limit, numbers by the range of a double.
    serde_json::from_str::<Unambiguous>(text).map_err(|error| error.to_string())?;
    if text.contains(['\n', '\r']) {
        // In valid JSON a bare line break is white space between tokens: inside a string it would be escaped.
        return Ok(Json::trusted(text.replace(['\n', '\r'], " ")));
    }
    Ok(Json::trusted(text))
}

/// The call that the model wrote. Arguments that cannot be used are kept beside the call, and it fails when it is made.
pub(crate) fn written_call(id: CallId, name: Arc<str>, text: String) -> ToolCall {
    match parse_arguments(&text) {
        Ok(arguments) => ToolCall { id, name, arguments, malformed: None, provider_fields: None },
        Err(_) => {
            let arguments = Json::empty_object();
            ToolCall { id, name, arguments, malformed: Some(text.into()), provider_fields: None }
        }
    }
}

/// A JSON value that every reader understands in the same way: no key twice, no lone surrogate, no number out of range.
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
                return Err(A::Error::custom(format_args!("the key {key:?} stands there twice")));
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
