//! Guesses the dialect of a line.

use serde_json::Value;

use super::document::Document;
use super::syntax::Object;
use crate::dialect::Dialect;

/// The dialect of `object`; none if several dialects have such a line.
pub(crate) fn dialect(object: &Object<'_>) -> Option<Dialect> {
    if let Some(Ok(document)) = Document::read(object) {
        let mut events = document.events.iter().filter_map(|event| Object::parse(event.get()).ok());
        return events.find_map(|event| dialect(&event));
    }
    if object.has("jsonrpc") {
        return Some(Dialect::Acp);
    }
    match object.kind() {
        Some(kind) => by_type(object, kind),
        None if object.has("choices") || object.has("error") => Some(Dialect::Qwen),
        None if object.has("reply") && object.only_key().is_none() => Some(Dialect::Loom),
        None if object.has("reply") => Some(Dialect::LoomExport),
        None => {
            let exported = |key: &str| key.starts_with(|first: char| first.is_ascii_uppercase());
            object.only_key().filter(|key| exported(key)).map(|_| Dialect::LoomExport)
        }
    }
}

fn by_type(object: &Object<'_>, kind: &str) -> Option<Dialect> {
    let enveloped = ["session_id", "node_id", "event_id", "call_id"].iter().any(|field| object.has(field));
    Some(match kind {
        "system" | "assistant" | "user" | "result" | "stream_event" => Dialect::Claude,
        "control_request" if object.get("request").is_some_and(Value::is_object) => Dialect::Claude,
        "content_block_start" | "content_block_stop" | "message_delta" => Dialect::Claude,
        // An unwrapped event of `claude`, or a `claude-lite` line with a field more.
        "message_start" if object.get("message").is_some_and(|message| message.get("role").is_some()) => {
            return None;
        }
        "content_block_delta" if object.has("delta") => Dialect::Claude,
        "message_stop" if !object.has("stop_reason") && !object.has("reason") => Dialect::Claude,
        "message_start" | "content_block_delta" | "message_stop" | "thinking_delta" | "tool_result" => {
            Dialect::ClaudeLite
        }
        "tool_call" if object.has("id") => Dialect::ClaudeLite,
        "tool_call" if enveloped => Dialect::Loom,
        "tool_call" => return None,
        "error" if object.has("error") => Dialect::ClaudeLite,
        // Both forms have it; the envelope distinguishes them.
        "custom" if enveloped => Dialect::Loom,
        "custom" => return None,
        "run_start" | "node_enter" | "node_exit" | "message_chunk" | "usage" | "values" | "updates"
        | "checkpoint" | "tool_call_chunk" | "tool_start" | "tool_output" | "tool_end" | "tool_approval" => {
            Dialect::Loom
        }
        _ if kind.starts_with("tot_") || kind.starts_with("got_") => Dialect::Loom,
        "user_cancelled" => Dialect::Core,
        _ if object.has("value") => Dialect::Core,
        "result/command" => Dialect::Qwen,
        _ if kind.starts_with("x-qwen-") => Dialect::Qwen,
        _ => return None,
    })
}
