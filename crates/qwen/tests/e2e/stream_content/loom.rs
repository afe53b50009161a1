//! Spec 2, in both forms: the single-key form is put into the other one first.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{End, StreamContent, string};

pub fn read(lines: &[Value]) -> StreamContent {
    for (at, line) in lines.iter().enumerate() {
        // A document has its reply outside, without an envelope.
        if line.get("reply").is_none() || line.get("event_id").is_some() {
            assert_eq!(line["event_id"], at + 1, "event_id counts from 1 without gaps: {line}");
            assert_eq!(line["session_id"], lines[0]["session_id"], "{line}");
        }
    }
    events(lines)
}

pub fn read_export(lines: &[Value]) -> StreamContent {
    let lines: Vec<Value> = lines.iter().map(protocol_form).collect();
    events(&lines)
}

fn protocol_form(line: &Value) -> Value {
    let fields = line.as_object().unwrap();
    assert_eq!(fields.len(), 1, "an exported event has a single key: {line}");
    let (key, payload) = fields.iter().next().unwrap();
    let mut body = match key.as_str() {
        "reply" => return line.clone(),
        "Values" => return json!({ "type": "values", "state": payload }),
        "Custom" => return json!({ "type": "custom", "value": payload }),
        "Messages" => {
            let id = &payload["metadata"]["loom_node"];
            return json!({ "type": "message_chunk", "content": payload["chunk"]["content"], "id": id });
        }
        _ => payload.clone(),
    };
    let kind = match key.as_str() {
        "TaskStart" => "node_enter".to_owned(),
        "TaskEnd" => "node_exit".to_owned(),
        key => snake(key),
    };
    if let Some(node) = body.as_object_mut().unwrap().remove("node_id") {
        body["id"] = node;
    }
    body["type"] = kind.into();
    body
}

fn snake(key: &str) -> String {
    let mut out = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn events(lines: &[Value]) -> StreamContent {
    let mut told = StreamContent::default();
    // The node run under way: its name, and its id where there is an envelope.
    let mut node: Option<(String, Value)> = None;
    let mut started: HashMap<String, bool> = HashMap::new();
    let mut run_end = None;
    let mut tokens = (0, 0);
    for (at, line) in lines.iter().enumerate() {
        if let Some(reply) = line["reply"].as_str() {
            assert!(node.is_none(), "a reply inside a node run: {line}");
            assert!(started.values().all(|ended| *ended), "a tool_start without its tool_end: {started:?}");
            let status = run_end.take().unwrap_or_else(|| "done".to_owned());
            let error = if status == "done" { None } else { told.errors.pop() };
            let tokens = std::mem::take(&mut tokens);
            told.ends.push(End { line: at, status, error, tokens, reply: Some(reply.to_owned()) });
            continue;
        }
        let kind = string(&line["type"]);
        if let Some((name, id)) = &node {
            // In got_expand the thought's own name is in its place.
            assert!(
                line["node_id"] == *id || kind == "got_expand",
                "all of a node run shares its node_id: {line}"
            );
            if kind == "message_chunk" {
                assert_eq!(line["id"], *name.as_str(), "{line}");
            }
        }
        match kind.as_str() {
            "node_enter" => node = Some((string(&line["id"]), line["node_id"].clone())),
            "node_exit" => {
                assert!(line["result"] == "Ok" || line["result"]["Err"].is_string(), "{line}");
                assert_eq!(node.take().map(|(name, _)| name), Some(string(&line["id"])), "{line}");
            }
            "message_chunk" => told.text.push_str(line["content"].as_str().unwrap()),
            "usage" => {
                let (read, written) = super::tokens(line, "prompt_tokens", "completion_tokens");
                assert_eq!(line["total_tokens"], read + written);
                tokens = (tokens.0 + read, tokens.1 + written);
            }
            "tool_call" => told.call(&line["call_id"], &line["name"], &line["arguments"]),
            "tool_start" => assert!(started.insert(string(&line["call_id"]), false).is_none(), "{line}"),
            "tool_end" => {
                started.insert(string(&line["call_id"]), true);
                told.result(&line["call_id"], line["is_error"].as_bool().unwrap(), &line["result"]);
            }
            "custom" => match line["value"]["kind"].as_str() {
                Some("error") => told.errors.push(string(&line["value"]["message"])),
                Some("run_end") => run_end = Some(string(&line["value"]["status"])),
                Some("session_event") if line["value"]["event"] == "Retry" => told.retries += 1,
                _ => {}
            },
            _ => {}
        }
    }
    told
}
