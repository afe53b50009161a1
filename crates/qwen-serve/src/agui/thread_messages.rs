//! The messages of a thread as the page has them: what it sent, and what this run added.

use serde_json::{Value, json};

/// The messages for a snapshot, in the order in which the page shows them.
#[derive(Debug, Default)]
pub struct ThreadMessages {
    messages: Vec<Value>,
}

impl ThreadMessages {
    /// Begins with the page's messages. Reasoning and activity stay as the page has them: a snapshot without
    /// any leaves them alone.
    pub fn new(sent: &[Value]) -> Self {
        let is_kept = |message: &&Value| message["role"] != "reasoning" && message["role"] != "activity";
        Self { messages: sent.iter().filter(is_kept).cloned().collect() }
    }

    /// Notes an event of the run, if it adds to a message.
    pub fn note(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "TEXT_MESSAGE_START" => {
                self.messages.push(json!({"id": event["messageId"], "role": "assistant", "content": ""}));
            }
            "TEXT_MESSAGE_CONTENT" => {
                if let Some(message) = self.find("id", &event["messageId"]) {
                    append(&mut message["content"], &event["delta"]);
                }
            }
            "TOOL_CALL_START" => {
                let call = json!({"id": event["toolCallId"], "type": "function", "function": {"name": event["toolCallName"], "arguments": ""}});
                self.messages.push(json!({"id": event["toolCallId"], "role": "assistant", "toolCalls": [call]}));
            }
            "TOOL_CALL_ARGS" => {
                if let Some(message) = self.find("id", &event["toolCallId"]) {
                    append(&mut message["toolCalls"][0]["function"]["arguments"], &event["delta"]);
                }
            }
            "TOOL_CALL_RESULT" => self.messages.push(json!({
                "id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"], "content": event["content"],
            })),
            _ => {}
        }
    }

    /// The event that replaces the page's messages.
    pub fn snapshot(&self) -> Value {
        json!({"type": "MESSAGES_SNAPSHOT", "messages": self.messages})
    }

    fn find(&mut self, key: &str, value: &Value) -> Option<&mut Value> {
        self.messages.iter_mut().rev().find(|message| message[key] == *value)
    }
}

fn append(text: &mut Value, delta: &Value) {
    let joined = format!("{}{}", text.as_str().unwrap_or_default(), delta.as_str().unwrap_or_default());
    *text = joined.into();
}
