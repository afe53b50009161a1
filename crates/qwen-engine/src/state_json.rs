//! The state of a graph, as JSON for readers.

use std::sync::Arc;

use qwen_events::{CallId, Json, Message, Part, Role, ToolCall, ToolResult};
use serde_json::{Value, json};

use crate::react::ReactState;

/// The ReAct state: the conversation in the OpenAI wire format, and the pending work.
pub(crate) fn react(state: &ReactState) -> Json {
    conversation(&state.messages, &state.pending)
}

/// The ReAct state from its parts.
pub(crate) fn conversation(messages: &[Message], pending: &[Arc<ToolCall>]) -> Json {
    let messages: Vec<Value> = messages.iter().flat_map(message).collect();
    let pending: Vec<Value> =
        pending.iter().map(|c| json!({"id": c.id.as_str(), "name": &*c.name})).collect();
    Json::trusted(json!({"messages": messages, "pending_tool_calls": pending}).to_string())
}

/// Parses a conversation that was edited. Results get the names of the calls that they answer, in it or in
/// `before`.
pub(crate) fn read_messages(state: &Json, before: &[Message]) -> Result<Vec<Message>, String> {
    let state: Value = serde_json::from_str(state.as_str()).map_err(|error| error.to_string())?;
    let list = state["messages"].as_array().ok_or("messages must be a list")?;
    let mut messages: Vec<Message> = Vec::with_capacity(list.len());
    let mut calls = calls_of(before);
    for (at, form) in list.iter().enumerate() {
        let wrong = |what: &str| format!("messages.{at}: {what}");
        let text = match &form["content"] {
            Value::String(text) => text.as_str(),
            Value::Null => "",
            _ => return Err(wrong("content must be a text")),
        };
        let role = form["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = form["tool_call_id"].as_str().ok_or_else(|| wrong("a result needs a tool_call_id"))?;
            let name = calls.iter().rev().find(|call| call.id.as_str() == id);
            let name = name.map(|call| call.name.clone()).ok_or_else(|| wrong("it answers no call"))?;
            let is_error = form["is_error"].as_bool().unwrap_or_default();
            let result = Part::Result(ToolResult {
                call_id: CallId::new(id),
                name,
                text: text.into(),
                media: Vec::new(),
                is_error,
            });
            match messages.last_mut().filter(|last| last.role == Role::Tool) {
                Some(last) => last.parts.push(result),
                None => messages.push(Message { role: Role::Tool, parts: vec![result] }),
            }
            continue;
        }
        let role = match role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(wrong("role must be user, assistant or tool")),
        };
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(Part::Text(text.into()));
        }
        for wish in form["tool_calls"].as_array().into_iter().flatten() {
            let call = read_call(wish).ok_or_else(|| wrong("a call needs id, name and arguments"))?;
            calls.push(call.clone());
            parts.push(Part::Call(call));
        }
        messages.push(Message { role, parts });
    }
    Ok(messages)
}

fn calls_of(messages: &[Message]) -> Vec<Arc<ToolCall>> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(|part| if let Part::Call(call) = part { Some(call.clone()) } else { None }).collect()
}

fn read_call(form: &Value) -> Option<Arc<ToolCall>> {
    let arguments = form.get("arguments").filter(|arguments| arguments.is_object())?;
    Some(Arc::new(ToolCall::new(
        CallId::new(form["id"].as_str()?),
        form["name"].as_str()?.into(),
        Json::trusted(arguments.to_string()),
    )))
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
    let text: String = message.parts.iter().filter_map(Part::as_text).collect();
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
