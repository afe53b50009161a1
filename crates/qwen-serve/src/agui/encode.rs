//! The steps of a turn as AG-UI events.
//!
//! The client refuses a run whose parts overlap in unexpected ways or stay open, so there is one open part at
//! a time, and every part is closed before the run ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use qwen_dialects::acp::{ASK_QUESTION_TOOLS, question_form};
use qwen_dialects::loom::rfc3339;
use qwen_events::Timestamp;
use serde_json::{Value, json};

use super::thoughts::ThoughtActivity;
use super::thread_messages::ThreadMessages;
use crate::sessions::now;
use crate::turn::{TurnOutcome, TurnStep};

/// The part of a message that is written.
#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Reasoning(String),
    Call(String),
}

/// What a run begins with.
#[derive(Debug, Default)]
pub struct PageRun {
    pub thread: String,
    pub run: String,
    /// The state that the page shares with the agent.
    pub state: Value,
    /// The messages that the page repeats.
    pub messages: Vec<Value>,
    /// How long an approval may stay open.
    pub approval_time: Option<Duration>,
}

/// The state of one run while its steps are written as AG-UI events.
#[derive(Default)]
pub struct RunEncoder {
    context: PageRun,
    /// How many messages this run has.
    messages: u64,
    open: Option<Part>,
    /// Calls of the page's tools.
    host_calls: BTreeSet<String>,
    /// The step of the agent's graph, and how many there were.
    step: Option<String>,
    steps: u64,
    /// The sub-agents that run: their ids by the call that started them.
    agents: BTreeMap<String, String>,
    thoughts: ThoughtActivity,
    transcript: ThreadMessages,
    /// True once the page has the whole state.
    has_state: bool,
    /// The interrupt that the run ended with.
    pub interrupt: Option<String>,
}

impl RunEncoder {
    pub fn new(context: PageRun) -> Self {
        let transcript = ThreadMessages::new(&context.messages);
        Self { context, transcript, ..Self::default() }
    }

    pub fn started(&self) -> Value {
        json!({"type": "RUN_STARTED", "threadId": self.context.thread, "runId": self.context.run, "protocolVersion": "1.0"})
    }

    /// The end of a run that was refused or failed.
    pub fn failed(&mut self, message: &str, code: &str, out: &mut Vec<Value>) {
        self.close_all(None, out);
        out.push(json!({"type": "RUN_ERROR", "message": message, "code": code}));
    }

    /// Takes the next step; true when the run is over.
    pub fn take(&mut self, step: TurnStep, is_host: impl Fn(&str) -> bool, out: &mut Vec<Value>) -> bool {
        let before = out.len();
        let is_over = self.write(step, is_host, out);
        for event in &out[before..] {
            self.transcript.note(event);
        }
        is_over
    }

    fn write(&mut self, step: TurnStep, is_host: impl Fn(&str) -> bool, out: &mut Vec<Value>) -> bool {
        match step {
            TurnStep::MessageStart => {
                self.close(out);
                self.leave_step(out);
                self.enter_step("think", out);
            }
            TurnStep::Text(delta) => {
                let id = self.part(Part::Text, |part| matches!(part, Part::Text(_)), out);
                out.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
            }
            TurnStep::Thought(delta) if !delta.is_empty() => {
                let id = self.part(Part::Reasoning, |part| matches!(part, Part::Reasoning(_)), out);
                out.push(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
            }
            TurnStep::Search { subject, description } => {
                if !ThoughtActivity::is_step(&subject) {
                    return self.write(TurnStep::Thought(description), is_host, out);
                }
                self.close(out);
                let id = format!("thoughts-{}", self.context.run);
                out.extend(self.thoughts.take(&id, &subject, &description));
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
            TurnStep::MessageEnd => {
                self.close(out);
                self.leave_step(out);
            }
            TurnStep::Todos(todos) => self.todos(&todos, out),
            TurnStep::Notice { event, value } => {
                out.push(json!({"type": "CUSTOM", "name": format!("qwen.{event}"), "value": value}));
            }
            TurnStep::Approval { id, call_id, name, arguments, reason } => {
                let interrupt = self.interrupt(&id, &call_id, &name, &arguments, &reason);
                self.close_all(Some(&id), out);
                self.snapshots(out);
                self.finish(&json!({"type": "interrupt", "interrupts": [interrupt]}), None, out);
                self.interrupt = Some(id);
                return true;
            }
            TurnStep::Paused { calls } => {
                self.close_all(None, out);
                self.finish(&json!({"type": "success", "pendingToolCallIds": calls}), None, out);
                return true;
            }
            TurnStep::End(end) => {
                self.end(&end, out);
                return true;
            }
            TurnStep::CallRunning { .. }
            | TurnStep::CallEnd { .. }
            | TurnStep::CallOutput { .. }
            | TurnStep::SubAgent { .. } => self.call(step, out),
            TurnStep::Thought(_) | TurnStep::CallArguments { .. } | TurnStep::ApprovalEnded { .. } => {}
        }
        false
    }

    /// Writes what a call does.
    fn call(&mut self, step: TurnStep, out: &mut Vec<Value>) {
        match step {
            TurnStep::CallRunning { .. } => self.act(out),
            TurnStep::CallEnd { id, output, status } if !self.host_calls.contains(&id) => {
                self.act(out);
                if let Some(agent) = self.agents.remove(&id) {
                    out.push(end_agent(&agent, &status));
                }
                let message = format!("result-{id}");
                out.push(json!({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": id, "content": output, "role": "tool"}));
            }
            TurnStep::CallOutput { id, text } => {
                out.push(json!({"type": "CUSTOM", "name": "qwen.tool_output", "value": {"toolCallId": id, "text": text}}));
            }
            TurnStep::SubAgent { call, name, description } if !self.agents.contains_key(&call) => {
                self.act(out);
                // Ids are never used again, and a resumed run starts the same sub-agent anew.
                let agent = format!("{call}-{}", self.context.run);
                out.push(json!({"type": "SUBAGENT_STARTED", "subagentRunId": agent, "name": name, "description": description, "parentToolCallId": call}));
                self.agents.insert(call, agent);
            }
            _ => {}
        }
    }

    /// The question of an approval. A question of the agent asks for answers, a call for permission.
    fn interrupt(&self, id: &str, call: &str, name: &str, arguments: &Value, reason: &str) -> Value {
        let form = question_form(arguments).filter(|_| ASK_QUESTION_TOOLS.contains(&name));
        let mut interrupt = match form {
            Some((message, schema)) => {
                json!({"reason": "input_required", "message": message, "responseSchema": schema})
            }
            None => json!({
                "reason": "tool_call", "message": reason,
                "responseSchema": {
                    "type": "object", "required": ["approved"],
                    "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}},
                },
            }),
        };
        interrupt["id"] = id.into();
        interrupt["toolCallId"] = call.into();
        interrupt["metadata"] = json!({"tool": name, "arguments": arguments});
        if let Some(time) = self.context.approval_time {
            let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            interrupt["expiresAt"] = rfc3339(Timestamp(now().saturating_add(time))).into();
        }
        interrupt
    }

    /// The to-do list as a part of the page's state: first the whole state, then what changes.
    fn todos(&mut self, todos: &Value, out: &mut Vec<Value>) {
        if !self.context.state.is_object() {
            self.context.state = json!({});
        }
        let is_known = self.context.state.get("todos").is_some();
        self.context.state["todos"] = todos.clone();
        if std::mem::replace(&mut self.has_state, true) && is_known {
            let patch = json!([{"op": "replace", "path": "/todos", "value": todos}]);
            out.push(json!({"type": "STATE_DELTA", "delta": patch}));
        } else {
            out.push(self.state_snapshot());
        }
    }

    fn state_snapshot(&self) -> Value {
        json!({"type": "STATE_SNAPSHOT", "snapshot": self.context.state})
    }

    /// What a page needs that resumes the run, possibly another one.
    fn snapshots(&mut self, out: &mut Vec<Value>) {
        for event in out.iter() {
            self.transcript.note(event);
        }
        let snapshot = self.transcript.snapshot();
        self.transcript = ThreadMessages::default();
        if self.context.state.is_object() {
            out.push(self.state_snapshot());
        }
        out.push(snapshot);
    }

    /// Enters the step in which calls run.
    fn act(&mut self, out: &mut Vec<Value>) {
        self.close(out);
        if self.step.is_none() {
            self.enter_step("act", out);
        }
    }

    fn enter_step(&mut self, name: &str, out: &mut Vec<Value>) {
        self.steps += 1;
        let name = format!("{name}-{}", self.steps);
        out.push(json!({"type": "STEP_STARTED", "stepName": name}));
        self.step = Some(name);
    }

    fn leave_step(&mut self, out: &mut Vec<Value>) {
        if let Some(name) = self.step.take() {
            out.push(json!({"type": "STEP_FINISHED", "stepName": name}));
        }
    }

    /// Closes everything, because the run ends: with an interrupt, or for good.
    fn close_all(&mut self, interrupt: Option<&str>, out: &mut Vec<Value>) {
        self.close(out);
        for agent in std::mem::take(&mut self.agents).into_values() {
            out.push(match interrupt {
                Some(id) => json!({"type": "SUBAGENT_FINISHED", "subagentRunId": agent, "outcome": {"type": "suspended", "interruptIds": [id]}}),
                None => end_agent(&agent, "canceled"),
            });
        }
        self.leave_step(out);
    }

    fn end(&mut self, end: &TurnOutcome, out: &mut Vec<Value>) {
        self.close_all(None, out);
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
        let mut event = json!({"type": "RUN_FINISHED", "threadId": self.context.thread, "runId": self.context.run, "outcome": outcome});
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
        let id = format!("m-{}-{}", self.context.run, self.messages);
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

fn end_agent(agent: &str, status: &str) -> Value {
    match status {
        "success" => {
            json!({"type": "SUBAGENT_FINISHED", "subagentRunId": agent, "outcome": {"type": "success"}})
        }
        status => {
            json!({"type": "SUBAGENT_ERROR", "subagentRunId": agent, "message": format!("The sub-agent ended: {status}.")})
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
        let mut encoder = RunEncoder::new(PageRun::default());
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
            "STEP_STARTED",
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
            "STEP_FINISHED",
            "RUN_FINISHED",
        ];
        assert_eq!(types(steps), expected);
    }
}
