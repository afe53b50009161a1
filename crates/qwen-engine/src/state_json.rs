//! The state of a graph as readers see it.

use std::sync::Arc;

use qwen_events::{Json, Message, Part, Role, ToolCall};
use serde_json::{Value, json};

use crate::react::ReactState;

/// The ReAct state: the conversation in the shape that the OpenAI wire has, and what is under way.
pub(crate) fn react(state: &ReactState) -> Json {
    conversation(&state.messages, &state.pending)
}

/// The same out of its parts.
pub(crate) fn conversation(messages: &[Message], pending: &[Arc<ToolCall>]) -> Json {
    let messages: Vec<Value> = messages.iter().flat_map(message).collect();
    let pending: Vec<Value> =
        pending.iter().map(|c| json!({"id": c.id.as_str(), "name": &*c.name})).collect();
    Json::trusted(json!({"messages": messages, "pending_tool_calls": pending}).to_string())
}

fn message(message: &Message) -> Vec<Value> {
    if message.role == Role::Tool {
        return message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Result(result) => Some(json!({
                    "role": "tool",
                    "tool_call_id": result.call_id.as_str(),
                    "content": &*result.text,
                    "is_error": result.is_error,
                })),
                _ => None,
            })
            .collect();
    }
    let role = if message.role == Role::User { "user" } else { "assistant" };
    let text: String = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            _ => None,
        })
        .collect();
    let calls: Vec<Value> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Call(call) => Some(json!({
                "id": call.id.as_str(),
                "name": &*call.name,
                "arguments": serde_json::from_str::<Value>(call.arguments.as_str()).unwrap_or_default(),
            })),
            _ => None,
        })
        .collect();
    let mut value = json!({"role": role, "content": text});
    if !calls.is_empty() {
        value["tool_calls"] = Value::Array(calls);
    }
    vec![value]
}
