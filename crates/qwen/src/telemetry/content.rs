//! What was said, in the form that the conventions have for it. Only where the user asked for it to be told.

use serde_json::json;

use super::span::shortened;

/// One message of words, as JSON.
pub(super) struct Message(pub String);

impl Message {
    /// What somebody said. Too long a text is cut before it becomes JSON, which would be none when cut itself.
    pub fn of(role: &str, text: &str) -> Self {
        Self(json!([{"role": role, "parts": [{"type": "text", "content": shortened(text)}]}]).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_json_however_long_it_is() {
        for text in ["", "short \"and\" sweet", &"ä\n".repeat(100_000)] {
            let message: serde_json::Value = serde_json::from_str(&Message::of("user", text).0).unwrap();
            let content = message[0]["parts"][0]["content"].as_str().unwrap();
            assert!(text.starts_with(content.trim_end_matches('…')), "{content}");
            assert_eq!(content.len() < text.len(), text.len() > 100_000);
        }
    }
}
