//! The conversation as JSON lines, one message per line.

use qwen_events::{Message, Part, Role};
use serde_json::{Value, json};

pub(super) fn write(messages: &[Message]) -> String {
    messages.iter().map(|message| format!("{}\n", line(message))).collect()
}

fn line(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let parts: Vec<Value> = message.parts.iter().filter_map(part).collect();
    json!({"role": role, "content": parts})
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => Some(json!({"type": "text", "text": &**text})),
        Part::Thought { .. } => None,
        Part::Media(media) => Some(json!({"type": "media", "mime_type": &*media.mime_type})),
        Part::Call(call) => {
            let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
            let id = call.id.as_str();
            Some(json!({"type": "tool_use", "id": id, "name": &*call.name, "input": arguments}))
        }
        Part::Result(result) => Some(json!({
            "type": "tool_result",
            "tool_use_id": result.call_id.as_str(),
            "name": &*result.name,
            "content": &*result.text,
            "is_error": result.is_error,
        })),
    }
}
