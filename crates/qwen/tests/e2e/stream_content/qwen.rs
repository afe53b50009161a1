//! Spec 1, in both formats.

use serde_json::{Map, Value};

use super::{End, StreamContent, string, text, tokens};
use crate::wire::Wire;

pub fn read(wire: Wire, lines: &[Value]) -> StreamContent {
    let mut told = StreamContent::default();
    let object = if wire.format == "stream-chunk-json" { "chat.completion.chunk" } else { "chat.completion" };
    // The arguments of calls as they are written, by their place in the message.
    let mut writing: Vec<Map<String, Value>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line["object"].is_null() && line["error"].is_object() {
            let error = text(&line["error"]["message"]);
            for key in ["type", "param", "code"] {
                assert!(line["error"].get(key).is_some(), "an error without {key}: {line}");
            }
            told.ends.push(End { line: at, status: "fatal".into(), error, ..End::default() });
            continue;
        }
        if let Some(kind) = line["type"].as_str() {
            side_line(&mut told, kind, line);
            continue;
        }
        assert_eq!(line["object"], object, "{line}");
        let session = string(&line["session_id"]);
        assert_eq!(line["id"], format!("chatcmpl-{session}"), "{line}");
        assert!(line["created"].is_u64() && line["model"].is_string(), "{line}");
        if at == 0 && !wire.is_document() {
            handshake(wire, line);
            continue;
        }
        let choice = &line["choices"][0];
        if wire.format == "stream-chunk-json" {
            delta(&mut told, &mut writing, choice);
        } else {
            let message = &choice["message"];
            assert_eq!(message["role"], "assistant", "{line}");
            assert!(choice["finish_reason"].is_string(), "{line}");
            told.text.push_str(message["content"].as_str().unwrap_or(""));
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                whole_call(&mut told, call);
            }
        }
        let metadata = &line["metadata"];
        if let Some(turn) = metadata["turn"].as_object() {
            for key in ["duration_ms", "model_calls", "tool_calls", "permission_denials", "usage_by_model"] {
                assert!(turn.contains_key(key), "metadata.turn without {key}: {line}");
            }
            assert!(line["prompt_id"].is_string(), "{line}");
            told.ends.push(End {
                line: at,
                status: string(&turn["status"]),
                error: text(&metadata["error"]["message"]),
                tokens: tokens(&line["usage"], "prompt_tokens", "completion_tokens"),
                reply: text(&choice["message"]["content"]),
            });
        } else if metadata["error"].is_object() {
            told.errors.push(string(&metadata["error"]["message"]));
        }
    }
    told
}

fn handshake(wire: Wire, line: &Value) {
    assert_eq!(line["choices"], serde_json::json!([]), "the handshake comes first: {line}");
    assert!(line.get("usage").is_none(), "the handshake has no usage: {line}");
    let metadata = &line["metadata"];
    assert_eq!(metadata["protocol_version"], "1.0");
    assert_eq!(metadata["output_format"], wire.format);
    assert!(metadata["input_format"].is_string() && metadata["capabilities"].is_array(), "{line}");
    assert_eq!(metadata["session_id"], line["session_id"]);
}

fn side_line(told: &mut StreamContent, kind: &str, line: &Value) {
    match kind {
        "x-qwen-tool-display" => {
            let status = string(&line["status"]);
            if matches!(status.as_str(), "success" | "error" | "canceled") {
                told.result(&line["tool_call_id"], status != "success", &line["result_display"]["text"]);
            }
        }
        "x-qwen-session-event" if line["event"] == "Retry" => told.retries += 1,
        _ => {}
    }
    if kind.starts_with("x-qwen-") {
        assert!(line["session_id"].is_string() && line["prompt_id"].is_string(), "{line}");
    }
}

fn delta(told: &mut StreamContent, writing: &mut Vec<Map<String, Value>>, choice: &Value) {
    told.text.push_str(choice["delta"]["content"].as_str().unwrap_or(""));
    for piece in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
        let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
        if index == writing.len() {
            writing.push(piece.as_object().unwrap().clone());
            continue;
        }
        let more = string(&piece["function"]["arguments"]);
        let so_far = string(&writing[index]["function"]["arguments"]);
        writing[index]["function"]["arguments"] = format!("{so_far}{more}").into();
    }
    if choice["finish_reason"].is_string() {
        for call in writing.drain(..) {
            whole_call(told, &call.into());
        }
    }
}

fn whole_call(told: &mut StreamContent, call: &Value) {
    assert_eq!(call["type"], "function", "{call}");
    let written = string(&call["function"]["arguments"]);
    // The pieces of a chunk stream are the model's own; whole messages always carry an object.
    let arguments = serde_json::from_str(&written).ok().filter(Value::is_object);
    told.call(&call["id"], &call["function"]["name"], &arguments.unwrap_or_else(|| serde_json::json!({})));
}
