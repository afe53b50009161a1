//! The steps of a turn as AG-UI events.
//!
//! The client refuses a run whose parts overlap in unexpected ways or stay open, so there is one open part at
//! a time, and every part is closed before the run ends.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::turn::{TurnOutcome, TurnStep};

/// The part of a message that is written.
#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Reasoning(String),
    Call(String),
}

/// The state of one run while its steps are written as AG-UI events.
pub struct RunEncoder {
    thread: String,
    run: String,
    /// The number of the message, for ids that are unique in the thread.
    prefix: String,
    messages: u64,
    open: Option<Part>,
    /// Calls of the page's tools.
    host_calls: BTreeSet<String>,
}

impl RunEncoder {
    /// An encoder; `prefix` makes the ids of this run's messages unique in the thread.
    pub fn new(thread: &str, run: &str, prefix: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            run: run.to_owned(),
            prefix: prefix.to_owned(),
            messages: 0,
            open: None,
            host_calls: BTreeSet::new(),
        }
    }

    pub fn started(&self) -> Value {
        json!({"type": "RUN_STARTED", "threadId": self.thread, "runId": self.run, "protocolVersion": "1.0"})
    }

    /// The end of a run that was refused or failed.
    pub fn failed(&mut self, message: &str, code: &str, out: &mut Vec<Value>) {
        self.close(out);
        out.push(json!({"type": "RUN_ERROR", "message": message, "code": code}));
    }

    /// Takes the next step; true when the run is over.
    pub fn take(&mut self, step: TurnStep, is_host: impl Fn(&str) -> bool, out: &mut Vec<Value>) -> bool {
        match step {
            TurnStep::MessageStart => self.close(out),
            TurnStep::Text(delta) => {
                let id = self.part(Part::Text, |part| matches!(part, Part::Text(_)), out);
                out.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
            }
            TurnStep::Thought(delta) if !delta.is_empty() => {
                let id = self.part(Part::Reasoning, |part| matches!(part, Part::Reasoning(_)), out);
                out.push(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
            }
            TurnStep::CallStart { id, name } => {
                self.close(out);
                if is_host(&name) {
                    self.host_calls.insert(id.clone());
                }
                out.push(json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name}));
                self.open = Some(Part::Call(id));
            }
            TurnStep::CallArguments { id, delta } if self.open == Some(Part::Call(id.clone())) => {
                out.push(json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta}));
            }
            TurnStep::MessageEnd => self.close(out),
            TurnStep::CallEnd { id, output, .. } if !self.host_calls.contains(&id) => {
                self.close(out);
                let message = format!("result-{id}");
                out.push(json!({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": id, "content": output, "role": "tool"}));
            }
            TurnStep::CallOutput { id, text } => {
                out.push(json!({"type": "CUSTOM", "name": "qwen.tool_output", "value": {"toolCallId": id, "text": text}}));
            }
            TurnStep::Todos(todos) => {
                out.push(json!({"type": "STATE_SNAPSHOT", "snapshot": {"todos": todos}}));
            }
            TurnStep::Notice { event, value } => {
                out.push(json!({"type": "CUSTOM", "name": format!("qwen.{event}"), "value": value}));
            }
            TurnStep::Approval { id, call_id, name, arguments, reason } => {
                self.close(out);
                let interrupt = json!({
                    "id": id, "reason": "tool_call", "message": reason, "toolCallId": call_id,
                    "responseSchema": {
                        "type": "object", "required": ["approved"],
                        "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}},
                    },
                    "metadata": {"tool": name, "arguments": arguments},
                });
                self.finish(&json!({"type": "interrupt", "interrupts": [interrupt]}), None, out);
                return true;
            }
            TurnStep::Paused { calls } => {
                self.close(out);
                self.finish(&json!({"type": "success", "pendingToolCallIds": calls}), None, out);
                return true;
            }
            TurnStep::End(end) => {
                self.end(&end, out);
                return true;
            }
            TurnStep::Thought(_)
            | TurnStep::CallArguments { .. }
            | TurnStep::CallEnd { .. }
            | TurnStep::CallRunning { .. }
            | TurnStep::ApprovalEnded { .. } => {}
        }
        false
    }

    fn end(&mut self, end: &TurnOutcome, out: &mut Vec<Value>) {
        self.close(out);
        match end.status.as_str() {
            "error" | "interrupted" => {
                let (message, code) = end.error.clone().unwrap_or_default();
                let message = if message.is_empty() { "The turn failed.".to_owned() } else { message };
                out.push(json!({"type": "RUN_ERROR", "message": message, "code": code, "usage": usage(end)}));
            }
            "cancelled" => self.finish(&json!({"type": "cancelled"}), Some(end), out),
            _ => self.finish(&json!({"type": "success"}), Some(end), out),
        }
    }

    fn finish(&self, outcome: &Value, end: Option<&TurnOutcome>, out: &mut Vec<Value>) {
        let mut event =
            json!({"type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run, "outcome": outcome});
        if let Some(end) = end {
            event["result"] = json!({"status": end.status});
            event["usage"] = usage(end);
        }
        out.push(event);
    }

    /// The id of the open part of a kind, which is opened if another one is open.
    fn part(
        &mut self,
        make: impl Fn(String) -> Part,
        is_kind: impl Fn(&Part) -> bool,
        out: &mut Vec<Value>,
    ) -> String {
        if let Some(Part::Text(id) | Part::Reasoning(id)) = self.open.as_ref().filter(|part| is_kind(part)) {
            return id.clone();
        }
        self.close(out);
        self.messages += 1;
        let id = format!("{}-{}", self.prefix, self.messages);
        let part = make(id.clone());
        match &part {
            Part::Text(id) => {
                out.push(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}));
            }
            Part::Reasoning(id) => {
                out.push(json!({"type": "REASONING_START", "messageId": id}));
                out.push(json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}));
            }
            Part::Call(_) => {}
        }
        self.open = Some(part);
        id
    }

    fn close(&mut self, out: &mut Vec<Value>) {
        match self.open.take() {
            Some(Part::Text(id)) => out.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id})),
            Some(Part::Reasoning(id)) => {
                out.push(json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
                out.push(json!({"type": "REASONING_END", "messageId": id}));
            }
            Some(Part::Call(id)) => out.push(json!({"type": "TOOL_CALL_END", "toolCallId": id})),
            None => {}
        }
    }
}

fn usage(end: &TurnOutcome) -> Value {
    let count = |name: &str| end.usage[name].as_u64().unwrap_or_default();
    json!([{
        "inputTokens": count("prompt_tokens"), "outputTokens": count("completion_tokens"),
        "totalTokens": count("total_tokens"),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types of the events of a run.
    fn types(steps: Vec<TurnStep>) -> Vec<String> {
        let mut encoder = RunEncoder::new("t", "r", "m");
        let mut events = vec![encoder.started()];
        for step in steps {
            encoder.take(step, |name| name == "page_tool", &mut events);
        }
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_part_is_closed_before_the_next_one_and_the_end() {
        let text = |text: &str| TurnStep::Text(text.to_owned());
        let steps = vec![
            TurnStep::MessageStart,
            TurnStep::Thought("hm".to_owned()),
            text("I "),
            text("see"),
            TurnStep::CallStart { id: "c".to_owned(), name: "run".to_owned() },
            TurnStep::CallArguments { id: "c".to_owned(), delta: "{}".to_owned() },
            TurnStep::End(TurnOutcome { status: "cancelled".to_owned(), ..TurnOutcome::default() }),
        ];
        let expected = [
            "RUN_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "RUN_FINISHED",
        ];
        assert_eq!(types(steps), expected);
    }
}
