//! Constructors for the events of an Anthropic stream: every step is one named event and one write.

use serde_json::{Value, json};

use crate::Step;

/// An event with any name and body; `type` is added.
pub fn event(name: &str, mut body: Value) -> Step {
    if let Some(fields) = body.as_object_mut() {
        fields.insert("type".to_owned(), name.into());
    }
    Step::Chunk(format!("event: {name}\ndata: {body}\n\n").into_bytes().into())
}

/// The opening event, with the number of prompt tokens.
pub fn message_start(input_tokens: u64) -> Step {
    message_start_with(&json!({ "input_tokens": input_tokens, "output_tokens": 1 }))
}

/// The opening event, with arbitrary usage details.
pub fn message_start_with(usage: &Value) -> Step {
    event(
        "message_start",
        json!({ "message": {
            "id": "msg_mock",
            "type": "message",
            "role": "assistant",
            "model": "mock",
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage,
        } }),
    )
}

/// A text block begins.
pub fn text_start(index: usize) -> Step {
    event("content_block_start", json!({ "index": index, "content_block": { "type": "text", "text": "" } }))
}

/// A piece of a text block.
pub fn text(index: usize, piece: &str) -> Step {
    delta(index, &json!({ "type": "text_delta", "text": piece }))
}

/// A thinking block begins.
pub fn thought_start(index: usize) -> Step {
    event(
        "content_block_start",
        json!({ "index": index, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
    )
}

/// A piece of a thinking block.
pub fn thought(index: usize, piece: &str) -> Step {
    delta(index, &json!({ "type": "thinking_delta", "thinking": piece }))
}

/// The signature at the end of a thinking block.
pub fn signature(index: usize, signature: &str) -> Step {
    delta(index, &json!({ "type": "signature_delta", "signature": signature }))
}

/// A tool call begins.
pub fn call_start(index: usize, id: &str, name: &str) -> Step {
    event(
        "content_block_start",
        json!({ "index": index, "content_block": { "type": "tool_use", "id": id, "name": name, "input": {} } }),
    )
}

/// A piece of a call's arguments.
pub fn arguments(index: usize, piece: &str) -> Step {
    delta(index, &json!({ "type": "input_json_delta", "partial_json": piece }))
}

pub fn block_stop(index: usize) -> Step {
    event("content_block_stop", json!({ "index": index }))
}

/// The stop reason (`end_turn`, `tool_use`, `max_tokens`) and the number of output tokens.
pub fn message_delta(stop_reason: &str, output_tokens: u64) -> Step {
    event(
        "message_delta",
        json!({
            "delta": { "stop_reason": stop_reason, "stop_sequence": null },
            "usage": { "output_tokens": output_tokens },
        }),
    )
}

/// The end of the stream.
pub fn message_stop() -> Step {
    event("message_stop", json!({}))
}

pub fn ping() -> Step {
    event("ping", json!({}))
}

/// An error in the middle of the stream, such as `overloaded_error`.
pub fn error(kind: &str, message: &str) -> Step {
    event("error", json!({ "error": { "type": kind, "message": message } }))
}

fn delta(index: usize, delta: &Value) -> Step {
    event("content_block_delta", json!({ "index": index, "delta": delta }))
}
