//! Additions of the vendor's CLI and API to our wire types. They are read as the nearest form that the
//! rules know, so that such a stream is checked by the rules and not by the age of our types.

use serde_json::{Map, Value, json};

use super::super::syntax::Object;

/// Lines about the connection or the terminal of the vendor's CLI.
const LINES: [&str; 5] =
    ["tool_progress", "auth_status", "tool_use_summary", "prompt_suggestion", "keep_alive"];

/// Block types that the rules know.
const BLOCKS: [&str; 6] = ["text", "thinking", "tool_use", "tool_result", "image", "document"];

/// True for a vendor line that is unrelated to a turn.
pub(super) fn is_unrelated_to_turn(object: &Object<'_>) -> bool {
    object.kind().is_some_and(|kind| LINES.contains(&kind))
}

/// The line as the rules read it; none if it needs no change.
pub(super) fn read_as(object: &Object<'_>) -> Option<Object<'static>> {
    let mut fields = object.fields().clone();
    let changed = match object.kind()? {
        "assistant" => fields.get_mut("message").is_some_and(message),
        "user" => {
            fields.get_mut("message").and_then(|message| message.get_mut("content")).is_some_and(content)
        }
        "stream_event" => fields.get_mut("event").and_then(Value::as_object_mut).is_some_and(stream_event),
        "result" => usage(fields.get_mut("usage")),
        "message_start" | "content_block_start" | "content_block_delta" | "message_delta" => {
            stream_event(&mut fields)
        }
        _ => false,
    };
    changed.then(|| Object::of_fields(fields))
}

fn stream_event(event: &mut Map<String, Value>) -> bool {
    match event.get("type").and_then(Value::as_str) {
        Some("message_start") => event.get_mut("message").is_some_and(message),
        Some("message_delta") => usage(event.get_mut("usage")),
        Some("content_block_start") => event.get_mut("content_block").is_some_and(|block| {
            // Its arguments are streamed like those of any call.
            if is_of_type(block, &["server_tool_use", "mcp_tool_use"]) {
                block["type"] = "tool_use".into();
                return true;
            }
            unknown_block(block)
        }),
        Some("content_block_delta") => event.get_mut("delta").is_some_and(|delta| {
            if is_of_type(delta, &["signature_delta"]) {
                *delta = json!({"type": "thinking_delta"});
            } else if is_of_type(delta, &["citations_delta"]) {
                *delta = json!({"type": "text_delta", "text": ""});
            } else {
                return false;
            }
            true
        }),
        _ => false,
    }
}

fn message(message: &mut Value) -> bool {
    let counted = usage(message.get_mut("usage"));
    message.get_mut("content").is_some_and(content) || counted
}

fn content(content: &mut Value) -> bool {
    let Some(blocks) = content.as_array_mut() else { return false };
    let mut changed = false;
    for block in blocks {
        changed |= unknown_block(block);
    }
    changed
}

/// Treats a block of an unknown type as thinking that only the provider can read.
fn unknown_block(block: &mut Value) -> bool {
    let known = block.get("type").and_then(Value::as_str).is_none_or(|kind| BLOCKS.contains(&kind));
    if !known {
        *block = json!({"type": "thinking", "thinking": "", "signature": ""});
    }
    !known
}

/// Usage may be reported in part.
fn usage(usage: Option<&mut Value>) -> bool {
    let Some(usage) = usage.and_then(Value::as_object_mut) else { return false };
    let before = usage.len();
    for field in ["input_tokens", "output_tokens"] {
        usage.entry(field).or_insert_with(|| 0.into());
    }
    // Some counts are null until they are known.
    let nulls = usage.values().filter(|count| count.is_null()).count();
    usage.retain(|_, count| !count.is_null());
    usage.entry("input_tokens").or_insert_with(|| 0.into());
    nulls > 0 || usage.len() > before
}

fn is_of_type(value: &Value, kinds: &[&str]) -> bool {
    value.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
}
