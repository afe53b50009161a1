//! A few words about a prompt, for logs.

use serde_json::Value;

/// The longest summary, in characters.
const LIMIT: usize = 80;

/// The beginning of what a prompt asks for, in one line; none if it has no text.
pub(crate) fn command_summary(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let places = ["/input", "/messages", "/message/content", "/prompt", "/command"];
    let text = places.iter().find_map(|place| line.pointer(place).and_then(text_of))?;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut summary: String = words.chars().take(LIMIT).collect();
    if summary.len() < words.len() {
        summary.push('…');
    }
    Some(summary)
}

/// The text of a value in one of the shapes of a prompt. Of several messages or parts, the last with a text
/// counts.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => items.iter().rev().find_map(text_of),
        Value::Object(fields) => ["text", "content", "parts", "command", "name"]
            .iter()
            .find_map(|key| fields.get(*key).and_then(text_of)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_prompt_are_found_in_every_shape() {
        for (line, wanted) in [
            (r#"{"input":{"parts":[{"type":"text","text":"fix\n the  bug"}]}}"#, Some("fix the bug")),
            (r#"{"messages":[{"role":"system","content":"x"},{"role":"user","content":"hi"}]}"#, Some("hi")),
            (r#"{"type":"user","message":{"content":[{"type":"text","text":"hello"}]}}"#, Some("hello")),
            (r#"{"session_id":"s"}"#, None),
            ("no json", None),
        ] {
            assert_eq!(command_summary(line.as_bytes()).as_deref(), wanted, "{line}");
        }
        let long = format!(r#"{{"prompt":"{}"}}"#, "ä".repeat(200));
        assert_eq!(command_summary(long.as_bytes()), Some("ä".repeat(LIMIT) + "…"));
    }
}
