//! Spec 3.

use serde_json::Value;

use super::{End, StreamContent, string, text, tokens};

pub fn read(lines: &[Value]) -> StreamContent {
    let mut told = StreamContent::default();
    let mut in_turn = false;
    for (at, line) in lines.iter().enumerate() {
        match line["type"].as_str() {
            Some("message_start") => {
                assert!(!in_turn, "a message_start in a turn: {line}");
                in_turn = true;
                string(&line["message"]["id"]);
                string(&line["message"]["model"]);
            }
            Some("content_block_delta") => told.text.push_str(line["text"].as_str().unwrap()),
            Some("thinking_delta") => {
                string(&line["text"]);
            }
            Some("tool_call") => told.call(&line["id"], &line["name"], &line["arguments"]),
            Some("tool_result") => told.result(&line["id"], line["is_error"] == true, &line["content"]),
            Some("error") => told.errors.push(string(&line["error"]["message"])),
            Some("message_stop") => {
                assert!(in_turn, "a message_stop without a message_start: {line}");
                in_turn = false;
                let reason = string(&line["stop_reason"]);
                let done = matches!(reason.as_str(), "stop_turn" | "content_filter")
                    || (reason == "max_tokens" && text(&lines[at - 1]["type"]).as_deref() != Some("error"));
                let status = if done { "done".to_owned() } else { reason };
                let tokens = tokens(&line["usage"], "input_tokens", "output_tokens");
                let error = if done { None } else { told.errors.pop() };
                told.ends.push(End { line: at, status, error, tokens, reply: None });
            }
            other => panic!("a line of the type {other:?}: {line}"),
        }
    }
    told
}
