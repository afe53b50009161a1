//! What was said, in the form that the conventions have for it. Only where the user asked for it to be told.

use serde_json::json;

/// One message of words.
pub(super) fn message(role: &str, text: &str) -> String {
    json!([{"role": role, "parts": [{"type": "text", "content": text}]}]).to_string()
}
