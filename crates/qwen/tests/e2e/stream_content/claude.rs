//! Spec 4 §4–5 and the SDKs' pages.

use std::collections::HashSet;

use serde_json::Value;

use super::{End, StreamContent, string, text, tokens};
use crate::wire::Wire;

pub fn read(wire: Wire, lines: &[Value]) -> StreamContent {
    let mut told = StreamContent::default();
    let mut uuids = HashSet::new();
    let mut pieces = String::new();
    for (at, line) in lines.iter().enumerate() {
        if line["type"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("control_") || kind.starts_with("result/"))
        {
            continue;
        }
        assert!(line["session_id"].is_string(), "{line}");
        // Qwen Code's hosts find the session's id there, in every init line.
        let names_the_session = line["subtype"] == "init" && line["uuid"] == line["session_id"];
        assert!(uuids.insert(string(&line["uuid"])) || names_the_session, "a uuid twice: {line}");
        match line["type"].as_str() {
            Some("assistant") => assistant(&mut told, &line["message"]),
            Some("user") => {
                for block in line["message"]["content"].as_array().into_iter().flatten() {
                    if block["type"] == "tool_result" {
                        told.result(&block["tool_use_id"], block["is_error"] == true, &block["content"]);
                    }
                }
            }
            Some("system") => match line["subtype"].as_str() {
                Some("api_retry") => told.retries += 1,
                Some("error" | "input_error") => told.errors.push(string(&line["error"]["message"])),
                _ => {}
            },
            Some("stream_event") => {
                assert!(wire.partial, "a stream_event that nobody asked for: {line}");
                assert!(line.get("parent_tool_use_id").is_some(), "{line}");
                let delta = &line["event"]["delta"];
                if delta["type"] == "text_delta" {
                    pieces.push_str(delta["text"].as_str().unwrap());
                }
            }
            Some("result") => told.ends.push(result(at, line)),
            other => panic!("a line of the type {other:?}: {line}"),
        }
    }
    if wire.partial && !wire.is_document() {
        assert_eq!(pieces, told.text, "the pieces joined are the messages");
    }
    if wire.is_document() {
        told.text = told.ends.iter().filter_map(|end| end.reply.clone()).collect();
    }
    told
}

fn assistant(told: &mut StreamContent, message: &Value) {
    if message["model"] == "<synthetic>" {
        return;
    }
    for block in message["content"].as_array().unwrap() {
        match block["type"].as_str() {
            Some("text") => told.text.push_str(block["text"].as_str().unwrap()),
            Some("tool_use") => told.call(&block["id"], &block["name"], &block["input"]),
            _ => {}
        }
    }
}

fn result(at: usize, line: &Value) -> End {
    for key in
        ["duration_ms", "duration_api_ms", "num_turns", "total_cost_usd", "permission_denials", "usage"]
    {
        assert!(line.get(key).is_some(), "a result without {key}: {line}");
    }
    let failed = line["is_error"].as_bool().unwrap();
    if line["subtype"] != "success" {
        assert!(failed, "{line}");
        assert_eq!(line["errors"].as_array().map(Vec::len), Some(1), "{line}");
    }
    let reason = string(&line["terminal_reason"]);
    let status = match reason.as_str() {
        "completed" => "done",
        "api_error" => "error",
        "aborted_streaming" | "aborted_tools" => "cancelled",
        other => other,
    };
    assert_eq!(failed, status != "done", "{line}");
    let error = text(&line["errors"][0]).or_else(|| text(&line["result"])).filter(|_| failed);
    End {
        line: at,
        status: status.to_owned(),
        error,
        tokens: tokens(&line["usage"], "input_tokens", "output_tokens"),
        reply: text(&line["result"]).filter(|_| !failed),
    }
}
