//! The lines of a session without partial messages: each message is one line, when it is complete.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::sessions::Line;

/// Joins the chunks of each message.
#[derive(Debug, Default)]
pub struct MessageJoiner {
    /// The message that is written.
    open: Option<OpenMessage>,
}

#[derive(Debug)]
struct OpenMessage {
    /// The first chunk, whose keys the joined line keeps.
    first: Value,
    content: String,
    calls: Vec<Value>,
}

impl MessageJoiner {
    /// Takes a line and returns the lines that take its place, with their numbers.
    pub fn take(&mut self, line: &Line) -> Vec<Line> {
        let Ok(value) = serde_json::from_slice::<Value>(&line.text) else { return vec![line.clone()] };
        let is_chunk = value["object"] == "chat.completion.chunk" && value["choices"][0].is_object();
        if !is_chunk {
            return vec![line.clone()];
        }
        let choice = &value["choices"][0];
        let delta = &choice["delta"];
        let mut lines = Vec::new();
        if delta["role"].is_string() {
            lines.extend(self.close(line.number, &Value::Null));
            self.open = Some(OpenMessage { first: value.clone(), content: String::new(), calls: Vec::new() });
        }
        if let Some(open) = &mut self.open {
            open.content.push_str(delta["content"].as_str().unwrap_or_default());
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                open.add_call(call);
            }
        }
        let turn = &value["metadata"]["turn"];
        if choice["finish_reason"].is_string() || turn.is_object() {
            let joined = self.close(line.number, &value);
            if joined.is_none() {
                // A terminal record without a message.
                lines.push(Line {
                    number: line.number,
                    text: join_message(&value, line.number, "", &[], &value),
                });
            }
            lines.extend(joined);
        }
        // Numbers are unique: what is closed by the next message takes the number of its last line.
        let count = lines.len();
        if count > 1 {
            lines.drain(..count - 1);
        }
        lines
    }

    /// The message that is open, closed by `last`.
    fn close(&mut self, number: u64, last: &Value) -> Option<Line> {
        let open = self.open.take()?;
        let last = if last.is_null() { &open.first } else { last };
        let text = join_message(&open.first, number, &open.content, &open.calls, last);
        Some(Line { number, text })
    }
}

impl OpenMessage {
    fn add_call(&mut self, call: &Value) {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        if call["id"].is_string() {
            let mut call = call.clone();
            call["function"]["arguments"] = arguments.into();
            return self.calls.push(call);
        }
        let index = &call["index"];
        if let Some(known) = self.calls.iter_mut().rev().find(|known| known["index"] == *index) {
            let joined =
                format!("{}{arguments}", known["function"]["arguments"].as_str().unwrap_or_default());
            known["function"]["arguments"] = joined.into();
        }
    }
}

/// Writes a complete message as the `qwen` dialect does.
fn join_message(first: &Value, number: u64, content: &str, calls: &[Value], last: &Value) -> Bytes {
    let mut line = json!({"seq": number, "object": "chat.completion"});
    for key in ["id", "created", "model", "session_id", "prompt_id", "system_fingerprint"] {
        if !first[key].is_null() {
            line[key] = first[key].clone();
        }
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        let without_index = |call: &Value| {
            let mut call = call.clone();
            if let Some(call) = call.as_object_mut() {
                call.remove("index");
            }
            call
        };
        message["tool_calls"] = calls.iter().map(without_index).collect();
    }
    let reason = &last["choices"][0]["finish_reason"];
    line["choices"] = json!([{"index": 0, "message": message, "finish_reason": reason}]);
    for key in ["usage", "metadata"] {
        if !last[key].is_null() {
            line[key] = last[key].clone();
        }
    }
    line.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_one_line_when_it_is_complete() {
        let chunk = |delta: Value, finish: Value, more: Value| {
            let mut line = json!({"object": "chat.completion.chunk", "id": "c", "prompt_id": "p", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
            for (key, value) in more.as_object().cloned().unwrap_or_default() {
                line[key] = value;
            }
            line
        };
        let lines = [
            json!({"type": "x-qwen-session-event"}),
            chunk(json!({"role": "assistant"}), Value::Null, json!({})),
            chunk(json!({"content": "Let "}), Value::Null, json!({})),
            json!({"type": "x-qwen-thought"}),
            chunk(json!({"content": "me."}), Value::Null, json!({})),
            chunk(
                json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\""}}]}),
                Value::Null,
                json!({}),
            ),
            chunk(
                json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
                Value::Null,
                json!({}),
            ),
            chunk(json!({}), json!("tool_calls"), json!({"usage": {"prompt_tokens": 1}})),
            chunk(json!({"role": "assistant"}), Value::Null, json!({})),
            chunk(json!({"content": "Done."}), Value::Null, json!({})),
            chunk(json!({}), json!("stop"), json!({"metadata": {"turn": {"status": "done"}}})),
        ];
        let mut joiner = MessageJoiner::default();
        let mut joined = Vec::new();
        for (number, line) in (1..).zip(&lines) {
            let line = Line { number, text: line.to_string().into() };
            joined.extend(joiner.take(&line));
        }
        let numbers: Vec<u64> = joined.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 4, 8, 11]);
        let values: Vec<Value> =
            joined.iter().map(|line| serde_json::from_slice(&line.text).unwrap()).collect();
        let first = &values[2];
        assert_eq!(first["choices"][0]["message"]["content"], "Let me.");
        assert_eq!(
            first["choices"][0]["message"]["tool_calls"],
            json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}}])
        );
        assert_eq!(
            (&first["object"], &first["seq"], &first["usage"]["prompt_tokens"]),
            (&json!("chat.completion"), &json!(8), &json!(1))
        );
        assert_eq!(values[3]["choices"][0]["message"]["content"], "Done.");
        assert_eq!(values[3]["metadata"]["turn"]["status"], "done");
    }
}
