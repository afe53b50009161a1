//! Spec 4 §1–3.

use serde_json::Value;

use super::{End, StreamContent, string, text, tokens};

pub fn read(lines: &[Value]) -> StreamContent {
    let mut told = StreamContent::default();
    for (at, line) in lines.iter().enumerate() {
        let value = &line["value"];
        assert!(line.get("value").is_some(), "an event without a value: {line}");
        match line["type"].as_str().unwrap() {
            "content" => told.text.push_str(value.as_str().unwrap()),
            "thought" => {
                string(&value["subject"]);
                string(&value["description"]);
            }
            "tool_call_request" => {
                assert!(value["isClientInitiated"].is_boolean() && value["prompt_id"].is_string(), "{line}");
                told.call(&value["callId"], &value["name"], &value["args"]);
            }
            "tool_call_response" => {
                assert!(value["responseParts"].is_array() && value.get("resultDisplay").is_some(), "{line}");
                told.result(&value["callId"], !value["error"].is_null(), &value["responseParts"][0]["text"]);
            }
            "finished" => {
                string(&value["reason"]);
                told.ends.push(end(at, "done", None, value));
            }
            "user_cancelled" => told.ends.push(end(at, "cancelled", text(&value["message"]), value)),
            "error" => {
                let error = text(&value["error"]["message"]);
                assert!(error.is_some(), "{line}");
                let status = match value["error"]["code"].as_str() {
                    _ if value.get("usageMetadata").is_none() => "fatal",
                    Some(word) if word.starts_with("max_") || word == "interrupted" || word == "budget" => {
                        word
                    }
                    _ => "error",
                };
                told.ends.push(end(at, status, error, value));
            }
            "input_error" | "warning" => told.errors.push(string(&value["error"]["message"])),
            "retry" => told.retries += 1,
            _ => {}
        }
    }
    told
}

fn end(line: usize, status: &str, error: Option<String>, value: &Value) -> End {
    let tokens = match value.get("usageMetadata") {
        Some(usage) => tokens(usage, "promptTokenCount", "candidatesTokenCount"),
        None => (0, 0),
    };
    End { line, status: status.to_owned(), error, tokens, reply: None }
}
