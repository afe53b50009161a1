//! The lines of a session as events of Qwen Code's daemon: ACP updates, permission requests and turn ends.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde_json::{Value, json};

use super::log::EventLog;
use crate::sessions::{Session, SessionLines, SessionReader, plain_text};
use crate::turn::{TurnOutcome, TurnStep, TurnSteps};

/// The option that permits a call once.
pub const ALLOW: &str = "proceed_once";

/// The option that denies a call.
pub const DENY: &str = "cancel";

/// Appends the events of a session to a log until one of them ends.
pub async fn pump(mut reader: SessionReader, session: Rc<Session>, log: Rc<EventLog>) {
    let mut projector =
        Projector { session: session.id.to_string(), log: log.clone(), turn: None, calls: BTreeMap::new() };
    while !log.is_closed.get() {
        match reader.next().await {
            SessionLines::Lines(lines) => {
                for line in lines {
                    if let Ok(value) = serde_json::from_slice::<Value>(&line.text) {
                        projector.line(line.number, &value);
                    }
                }
            }
            SessionLines::TooOld { .. } => reader.skip_to(session.last()),
            SessionLines::Ended => break,
        }
    }
    if session.is_deleted.get() && !log.is_closed.get() {
        log.push("session_closed", &json!({"sessionId": projector.session, "reason": "deleted"}), None, None);
    }
    log.close();
}

struct Projector {
    session: String,
    log: Rc<EventLog>,
    turn: Option<TurnSteps>,
    /// The calls of the message that is written: id, name and arguments.
    calls: BTreeMap<String, (String, String)>,
}

impl Projector {
    fn line(&mut self, number: u64, line: &Value) {
        let value = &line["value"];
        match value["kind"].as_str() {
            Some("prompt") => {
                let text = plain_text(&value["parts"]);
                let update =
                    json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}});
                return self.update(&update, value["prompt_id"].as_str());
            }
            Some("approval_decided") => {
                let allowed = value["decision"] == "allow";
                let option = if allowed { ALLOW } else { DENY };
                let id = value["request_id"].as_str().unwrap_or_default();
                return self.resolve(id, &json!({"outcome": "selected", "optionId": option}));
            }
            _ => {}
        }
        let Some(prompt_id) = line["prompt_id"].as_str() else { return };
        if self.turn.as_ref().is_none_or(|turn| turn.prompt_id != prompt_id) {
            self.turn = Some(TurnSteps::new(prompt_id.to_owned(), HashSet::new()));
            self.calls.clear();
        }
        let mut steps = Vec::new();
        if let Some(turn) = &mut self.turn {
            turn.read(number, line);
            while let Some((_, step)) = turn.next() {
                steps.push(step);
            }
        }
        for step in steps {
            self.step(step, prompt_id);
        }
    }

    fn step(&mut self, step: TurnStep, prompt_id: &str) {
        let text = |text: String| json!({"type": "text", "text": text});
        let update = match step {
            TurnStep::Text(words) => json!({"sessionUpdate": "agent_message_chunk", "content": text(words)}),
            TurnStep::Thought(words) | TurnStep::Search { description: words, .. } => {
                json!({"sessionUpdate": "agent_thought_chunk", "content": text(words)})
            }
            TurnStep::CallStart { id, name } => {
                self.calls.insert(id, (name, String::new()));
                return;
            }
            TurnStep::CallArguments { id, delta } => {
                if let Some((_, arguments)) = self.calls.get_mut(&id) {
                    arguments.push_str(&delta);
                }
                return;
            }
            TurnStep::MessageEnd => {
                for (id, (name, arguments)) in std::mem::take(&mut self.calls) {
                    let arguments = serde_json::from_str(&arguments).unwrap_or(Value::Null);
                    let mut call = tool_call(&id, &name, &arguments);
                    call["sessionUpdate"] = "tool_call".into();
                    self.update(&call, Some(prompt_id));
                }
                return;
            }
            TurnStep::CallRunning { id } => {
                json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"})
            }
            TurnStep::CallEnd { id, status, output } => {
                let status = if status == "success" { "completed" } else { "failed" };
                json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
                    "content": [{"type": "content", "content": text(output)}],
                })
            }
            TurnStep::Todos(todos) => plan(&todos),
            TurnStep::Approval { id, call_id, name, arguments, .. } => {
                return self.request(&id, &tool_call(&call_id, &name, &arguments), prompt_id);
            }
            TurnStep::ApprovalEnded { id } => return self.resolve(&id, &json!({"outcome": "cancelled"})),
            TurnStep::End(end) => return self.end(&end, prompt_id),
            TurnStep::MessageStart
            | TurnStep::SubAgent { .. }
            | TurnStep::CallOutput { .. }
            | TurnStep::Paused { .. }
            | TurnStep::Notice { .. } => return,
        };
        self.update(&update, Some(prompt_id));
    }

    fn update(&self, update: &Value, prompt_id: Option<&str>) {
        let data = json!({"sessionId": self.session, "update": update});
        self.log.push("session_update", &data, prompt_id, None);
    }

    fn request(&self, id: &str, call: &Value, prompt_id: &str) {
        self.log.open_requests.borrow_mut().insert(id.to_owned());
        let data = json!({
            "requestId": id, "sessionId": self.session, "toolCall": call,
            "options": [
                {"optionId": ALLOW, "name": "Allow once", "kind": "allow_once"},
                {"optionId": DENY, "name": "Reject", "kind": "reject_once"},
            ],
        });
        self.log.push("permission_request", &data, Some(prompt_id), None);
    }

    fn resolve(&self, id: &str, outcome: &Value) {
        if !self.log.open_requests.borrow_mut().remove(id) {
            return;
        }
        let mut data = json!({"requestId": id, "outcome": outcome});
        let voter = self.log.voters.borrow_mut().remove(id);
        if let Some(voter) = &voter {
            data["voterClientId"] = voter.as_str().into();
        }
        let prompt_id = self.turn.as_ref().map(|turn| turn.prompt_id.as_str());
        self.log.push("permission_resolved", &data, prompt_id, voter.as_deref());
    }

    fn end(&self, end: &TurnOutcome, prompt_id: &str) {
        let open: Vec<String> = self.log.open_requests.borrow().iter().cloned().collect();
        for id in open {
            self.resolve(&id, &json!({"outcome": "cancelled"}));
        }
        let is_overdue = self.log.overdue.borrow_mut().remove(prompt_id);
        let failure = match end.status.as_str() {
            _ if is_overdue => {
                Some(("The prompt's deadline has passed.".to_owned(), "prompt_deadline_exceeded".to_owned()))
            }
            "error" | "interrupted" => Some(end.error.clone().unwrap_or_default()),
            _ => None,
        };
        let mut data = json!({"sessionId": self.session, "promptId": prompt_id});
        let Some((message, code)) = failure else {
            data["stopReason"] = match (end.status.as_str(), end.finish_reason.as_str()) {
                ("cancelled", _) => "cancelled",
                ("max_tokens", _) => "max_tokens",
                (_, "length") => "length",
                _ => "end_turn",
            }
            .into();
            return self.log.push("turn_complete", &data, Some(prompt_id), None);
        };
        data["message"] = if message.is_empty() { "The turn failed.".into() } else { message.into() };
        if is_overdue {
            data["errorKind"] = code.as_str().into();
        }
        if !code.is_empty() {
            data["code"] = code.into();
        }
        self.log.push("turn_error", &data, Some(prompt_id), None);
    }
}

/// A call in ACP's form.
fn tool_call(id: &str, name: &str, arguments: &Value) -> Value {
    let kind = match name {
        "read_file" | "list_directory" => "read",
        "glob" | "grep_search" => "search",
        "edit" | "write_file" => "edit",
        "run_shell_command" => "execute",
        "web_fetch" | "web_search" => "fetch",
        _ => "other",
    };
    let detail =
        ["command", "path", "file_path", "pattern", "url"].iter().find_map(|key| arguments[*key].as_str());
    let title = detail.map_or_else(|| name.to_owned(), |detail| format!("{name}: {detail}"));
    json!({"toolCallId": id, "title": title, "kind": kind, "status": "pending", "rawInput": arguments, "_meta": {"toolName": name}})
}

fn plan(todos: &Value) -> Value {
    let entry =
        |todo: &Value| json!({"content": todo["content"], "priority": "medium", "status": todo["status"]});
    let entries: Vec<Value> = todos.as_array().into_iter().flatten().map(entry).collect();
    json!({"sessionUpdate": "plan", "entries": entries})
}

/// The events of a stored conversation, without ids.
pub fn replay(session: &str, messages: &Value) -> Vec<Value> {
    let mut events = Vec::new();
    let mut push = |update: Value| {
        let data = json!({"sessionId": session, "update": update});
        events.push(json!({"v": 1, "type": "session_update", "data": data}));
    };
    let chunk =
        |kind: &str, text: String| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    for message in messages.as_array().into_iter().flatten() {
        let text = plain_text(&message["content"]);
        match message["role"].as_str() {
            Some("user") => push(chunk("user_message_chunk", text)),
            Some("assistant") => {
                if !text.is_empty() {
                    push(chunk("agent_message_chunk", text));
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let name = call["function"]["name"].as_str().unwrap_or_default();
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    let arguments = serde_json::from_str(arguments).unwrap_or(Value::Null);
                    let mut update = tool_call(call["id"].as_str().unwrap_or_default(), name, &arguments);
                    update["sessionUpdate"] = "tool_call".into();
                    push(update);
                }
            }
            Some("tool") => {
                let status = if message["is_error"] == true { "failed" } else { "completed" };
                push(json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": message["tool_call_id"], "status": status,
                    "content": [{"type": "content", "content": {"type": "text", "text": text}}],
                }));
            }
            _ => {}
        }
    }
    events
}
