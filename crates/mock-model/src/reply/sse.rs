//! Constructors for the events of an OpenAI-compatible stream: every step is one `data:` event and one
//! write.

use serde_json::{Value, json};

use crate::Step;

fn data(body: &Value) -> Step {
    Step::Chunk(format!("data: {body}\n\n").into_bytes().into())
}

fn chunk(delta: &Value, finish: Option<&str>) -> Step {
    data(&json!({
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "mock",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    }))
}

/// The opening delta, which only has the role.
pub fn role() -> Step {
    chunk(&json!({ "role": "assistant", "content": "" }), None)
}

/// A piece of the answer.
pub fn text(piece: &str) -> Step {
    chunk(&json!({ "content": piece }), None)
}

/// A piece of the model's thinking, as `reasoning_content`.
pub fn thought(piece: &str) -> Step {
    chunk(&json!({ "reasoning_content": piece }), None)
}

/// The start of a tool call, or the whole call if `arguments` is complete.
pub fn call(index: usize, id: &str, name: &str, arguments: &str) -> Step {
    chunk(
        &json!({ "tool_calls": [{
            "index": index,
            "id": id,
            "type": "function",
            "function": { "name": name, "arguments": arguments },
        }] }),
        None,
    )
}

/// A further piece of a call's arguments.
pub fn arguments(index: usize, piece: &str) -> Step {
    chunk(&json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }), None)
}

/// Token usage, in the closing chunk without choices.
pub fn usage(prompt_tokens: u64, completion_tokens: u64) -> Step {
    usage_object(&json!({
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }))
}

/// Token usage with arbitrary details.
pub fn usage_object(usage: &Value) -> Step {
    data(&json!({
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "mock",
        "choices": [],
        "usage": usage,
    }))
}

/// The stop reason: `stop`, `tool_calls`, `length`, `content_filter`.
pub fn finish(reason: &str) -> Step {
    chunk(&json!({}), Some(reason))
}

/// An error in the middle of the stream.
pub fn error(message: &str) -> Step {
    data(&json!({ "error": { "message": message, "type": "server_error", "code": null } }))
}

/// A comment, which keeps the connection alive and carries no data.
pub fn comment(text: &str) -> Step {
    Step::Chunk(format!(": {text}\n\n").into_bytes().into())
}

/// The end of the stream.
pub fn done() -> Step {
    raw("data: [DONE]\n\n")
}

/// Raw bytes: half an event, several events, or none.
pub fn raw(bytes: impl AsRef<[u8]>) -> Step {
    Step::Chunk(bytes.as_ref().into())
}
