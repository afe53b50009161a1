//! Message content in the form of OpenTelemetry's conventions, recorded only if the user enables it.

use serde_json::json;

use super::span::shortened;

/// One text message as JSON.
pub(super) struct Message(pub String);

impl Message {
    /// A message of `role`. A text that is too long is cut before it is encoded, because cut JSON would be
    /// invalid.
    pub fn from_text(role: &str, text: &str) -> Self {
        Self(json!([{"role": role, "parts": [{"type": "text", "content": shortened(text)}]}]).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_json_however_long_it_is() {
        for text in ["", "short \"and\" sweet", &"ä\n".repeat(100_000)] {
            let message: serde_json::Value =
                serde_json::from_str(&Message::from_text("user", text).0).unwrap();
            let content = message[0]["parts"][0]["content"].as_str().unwrap();
            assert!(text.starts_with(content.trim_end_matches('…')), "{content}");
            assert_eq!(content.len() < text.len(), text.len() > 100_000);
        }
    }
}
