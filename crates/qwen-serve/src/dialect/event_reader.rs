//! Reads a session's lines as the events that other dialects are written from.
//!
//! Rationale: the numbered `qwen` lines are the only stream that is stored. They have everything that is
//! shown, so a reader of another dialect reads them as events, and the encoder of that dialect writes these.
//! What the lines do not have (the arguments of a sub-agent's calls, say) is empty.

use std::collections::HashMap;
use std::sync::Arc;

use qwen_events::{
    Body, CallId, CommandCall, CommandKind, CommandResult, CommandResultBody, ControlCall, ErrorInfo,
    ErrorKind, Event, Json, Level, MessageEnd, NodeRun, PromptId, Scope, SessionEvent, SessionId, Timestamp,
    ToolCall, TurnEnd, TurnStart,
};
use serde_json::Value;

use super::record_values::{
    channel, confirmation, console_level, display, error, finish, log_scope, session_event, status, text,
    tool_end, turn_end, usage,
};

/// What the stream says about its session only in part.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    pub session: SessionId,
    pub workspace: Arc<str>,
    pub mode: Arc<str>,
}

/// Reads the lines of a session, in order.
pub struct EventReader {
    facts: SessionFacts,
    /// The texts of prompts whose turns have not begun.
    prompts: HashMap<String, Arc<str>>,
    turn: Option<OpenTurn>,
    /// How many turns have begun.
    turns: u64,
    /// Seconds since the Unix epoch, of the last line that has a time.
    seconds: u64,
    /// The permission requests without an answer.
    questions: Vec<String>,
}

/// A turn that has begun and not ended.
struct OpenTurn {
    id: PromptId,
    message: Option<OpenMessage>,
    /// The calls so far, by id.
    calls: HashMap<String, Arc<ToolCall>>,
    /// The calls that have started and not ended.
    started: Vec<String>,
    /// The text of the last message.
    reply: Arc<str>,
    node: Option<Arc<NodeRun>>,
    /// How many node runs have begun, by name.
    runs: HashMap<&'static str, u64>,
}

/// A message that is being written.
#[derive(Default)]
struct OpenMessage {
    id: Arc<str>,
    model: Arc<str>,
    text: String,
    thought: String,
    /// The calls by their index: id, name and the arguments so far.
    calls: Vec<(u64, CallId, Arc<str>, String)>,
    /// The ids of calls that are complete.
    complete: Vec<Arc<ToolCall>>,
}

impl EventReader {
    pub fn new(facts: SessionFacts) -> Self {
        Self { facts, prompts: HashMap::new(), turn: None, turns: 0, seconds: 0, questions: Vec::new() }
    }

    /// The events of a line. `number` is the line's number.
    pub fn read(&mut self, number: u64, line: &Value) -> Vec<Event> {
        let seconds = line["created"].as_u64().or_else(|| line["timestamp"].as_u64());
        self.seconds = seconds.unwrap_or(self.seconds);
        let mut events = Vec::new();
        match line["type"].as_str() {
            None if line["object"] == "chat.completion.chunk" || line["object"] == "chat.completion" => {
                self.chunk(number, line, &mut events);
            }
            Some("x-qwen-session-event") => self.session_event(line, &mut events),
            Some("x-qwen-thought") => self.thought(line, &mut events),
            Some("x-qwen-tool-display") => self.display(line, &mut events),
            Some("x-qwen-terminal") => self.terminal(line, &mut events),
            Some("control_request") if line["subtype"] == "can_use_tool" => self.question(line, &mut events),
            Some("control_cancel_request") => {
                self.end_question(&text(&line["request_id"]), &mut events);
            }
            Some("result/command") => self.command(line, &mut events),
            _ => {}
        }
        events
    }

    fn event(&self, parent: Option<&str>, body: Body) -> Event {
        let node = self.turn.as_ref().and_then(|turn| turn.node.clone());
        let scope = Scope { node, parent: parent.map(CallId::new), thought: None };
        Event { at: Timestamp(self.seconds * 1000), scope, body }
    }

    /// Begins the turn of the line's prompt, unless it runs. False if the line belongs to no turn: a prompt
    /// that was withdrawn while another one runs has none.
    fn enter_turn(&mut self, line: &Value, events: &mut Vec<Event>) -> bool {
        let Some(prompt_id) = line["prompt_id"].as_str() else { return false };
        if let Some(turn) = &self.turn {
            return turn.id.as_str() == prompt_id;
        }
        self.turns += 1;
        let id = PromptId::new(prompt_id);
        let message = self.prompts.remove(prompt_id).unwrap_or_default();
        self.turn = Some(OpenTurn {
            id: id.clone(),
            message: None,
            calls: HashMap::new(),
            started: Vec::new(),
            reply: Arc::default(),
            node: None,
            runs: HashMap::new(),
        });
        let start = TurnStart {
            turn: self.turns,
            run_id: format!("run-{}", self.turns).into(),
            message,
            model: line["model"].as_str().unwrap_or_default().into(),
            cwd: self.facts.workspace.clone(),
            permission_mode: self.facts.mode.clone(),
            ..TurnStart::new(self.facts.session.clone(), id)
        };
        events.push(self.event(None, Body::TurnStart(Box::new(start))));
        true
    }

    /// Enters a node of the agent's graph: `think` writes a message, `act` runs its calls.
    fn enter_node(&mut self, name: &'static str, events: &mut Vec<Event>) {
        let Some(turn) = &self.turn else { return };
        if turn.node.as_ref().is_some_and(|node| &*node.name == name) {
            return;
        }
        self.leave_node(events);
        if let Some(turn) = &mut self.turn {
            let run = turn.runs.entry(name).or_default();
            *run += 1;
            turn.node = Some(Arc::new(NodeRun::new(name, *run)));
        }
        events.push(self.event(None, Body::NodeEnter));
    }

    fn leave_node(&mut self, events: &mut Vec<Event>) {
        if self.turn.as_ref().is_none_or(|turn| turn.node.is_none()) {
            return;
        }
        events.push(self.event(None, Body::NodeExit { error: None }));
        let steps = self.turn.as_ref().map_or(0, |turn| turn.runs.values().sum::<u64>());
        let state = serde_json::json!({"steps": steps}).to_string();
        events.push(self.event(None, Body::State(Json::trusted(state))));
        if let Some(turn) = &mut self.turn {
            turn.node = None;
        }
    }

    fn chunk(&mut self, number: u64, line: &Value, events: &mut Vec<Event>) {
        let choice = &line["choices"][0];
        let ended = &line["metadata"]["turn"];
        if !ended.is_object() && line["metadata"]["error"].is_object() {
            let prompt_id = line["prompt_id"].as_str().map(PromptId::new);
            let session = self.facts.session.as_str();
            let error = error(&line["metadata"]["error"]).for_prompt(Some(session), prompt_id);
            events.push(self.event(None, Body::Error(Box::new(error))));
            return;
        }
        if !choice.is_object() {
            return;
        }
        if !self.enter_turn(line, events) {
            if let Some(prompt_id) = line["prompt_id"].as_str().filter(|_| ended.is_object()) {
                self.prompts.remove(prompt_id);
                let end = turn_end(PromptId::new(prompt_id), Arc::default(), line);
                events.push(self.event(None, Body::TurnEnd(Box::new(end))));
            }
            return;
        }
        let delta = &choice["delta"];
        if delta["role"].is_string() {
            self.start_message(number, line, events);
        }
        self.pieces(delta, events);
        if choice["finish_reason"].is_string() {
            self.end_message(line, events);
        }
        if ended.is_object() {
            self.end_turn(line, events);
        }
    }

    fn start_message(&mut self, number: u64, line: &Value, events: &mut Vec<Event>) {
        self.end_message(&Value::Null, events);
        // Each message is a separate run, also after a message without calls.
        self.leave_node(events);
        self.enter_node("think", events);
        let id: Arc<str> = format!("msg-{number}").into();
        let model: Arc<str> = line["model"].as_str().unwrap_or_default().into();
        if let Some(turn) = &mut self.turn {
            turn.message =
                Some(OpenMessage { id: id.clone(), model: model.clone(), ..OpenMessage::default() });
        }
        events.push(self.event(None, Body::MessageStart { message_id: id, model }));
    }

    fn pieces(&mut self, delta: &Value, events: &mut Vec<Event>) {
        let Some(message) = self.turn.as_mut().and_then(|turn| turn.message.as_mut()) else { return };
        let mut bodies = Vec::new();
        if let Some(piece) = delta["content"].as_str().filter(|piece| !piece.is_empty()) {
            message.text.push_str(piece);
            bodies.push(Body::TextDelta(piece.into()));
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().unwrap_or_default();
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if let Some(id) = call["id"].as_str() {
                let name: Arc<str> = text(&call["function"]["name"]).into();
                message.calls.push((index, CallId::new(id), name, String::new()));
            }
            let open = message.calls.iter_mut().rev().find(|(known, ..)| *known == index);
            if let Some((_, id, name, joined)) = open {
                joined.push_str(arguments);
                bodies.push(Body::ToolCallDelta {
                    index: u32::try_from(index).unwrap_or(u32::MAX),
                    call_id: id.clone(),
                    name: name.clone(),
                    arguments: arguments.into(),
                });
            }
        }
        for body in bodies {
            events.push(self.event(None, body));
        }
    }

    /// Completes the calls of the open message: all, or the one with this id.
    fn complete_calls(&mut self, only: Option<&str>, events: &mut Vec<Event>) {
        let Some(turn) = &mut self.turn else { return };
        let Some(message) = &mut turn.message else { return };
        let mut bodies = Vec::new();
        for (_, id, name, arguments) in &message.calls {
            let is_meant = only.is_none_or(|only| only == id.as_str());
            if !is_meant || turn.calls.contains_key(id.as_str()) {
                continue;
            }
            let is_object = serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_ok();
            let json = if is_object { Json::trusted(arguments.as_str()) } else { Json::empty_object() };
            let call = ToolCall {
                malformed: (!is_object).then(|| arguments.as_str().into()),
                ..ToolCall::new(id.clone(), name.clone(), json)
            };
            let call = Arc::new(call);
            turn.calls.insert(id.as_str().to_owned(), call.clone());
            message.complete.push(call.clone());
            bodies.push(Body::ToolCall(call));
        }
        for body in bodies {
            events.push(self.event(None, body));
        }
    }

    fn end_message(&mut self, line: &Value, events: &mut Vec<Event>) {
        self.complete_calls(None, events);
        let Some(turn) = &mut self.turn else { return };
        let Some(message) = turn.message.take() else { return };
        turn.reply = message.text.as_str().into();
        let is_terminal = line["metadata"]["turn"].is_object();
        let end = MessageEnd {
            message_id: message.id,
            model: message.model,
            text: message.text.into(),
            thought: message.thought.into(),
            signature: None,
            thoughts: Vec::new(),
            finish: finish(&line["choices"][0]["finish_reason"], !message.complete.is_empty()),
            calls: message.complete,
            // The terminal record has the usage of the whole turn.
            usage: if is_terminal { qwen_events::Usage::default() } else { usage(&line["usage"]) },
            aborted: line.is_null(),
        };
        events.push(self.event(None, Body::MessageEnd(Box::new(end))));
    }

    fn end_turn(&mut self, line: &Value, events: &mut Vec<Event>) {
        self.end_message(line, events);
        for request_id in std::mem::take(&mut self.questions) {
            events.push(self.event(None, Body::ControlCancel { request_id: request_id.into() }));
        }
        self.leave_node(events);
        let Some(turn) = self.turn.take() else { return };
        let end: TurnEnd = turn_end(turn.id, turn.reply, line);
        events.push(self.event(None, Body::TurnEnd(Box::new(end))));
    }

    fn thought(&mut self, line: &Value, events: &mut Vec<Event>) {
        if !self.enter_turn(line, events) {
            return;
        }
        let (subject, description) = (text(&line["subject"]), text(&line["description"]));
        let begins = subject.strip_suffix('…').unwrap_or(&subject);
        let block = if description.starts_with(begins) {
            description
        } else {
            format!("**{subject}**\n{description}")
        };
        let parent = line["parent_tool_call_id"].as_str();
        let open = self.turn.as_mut().and_then(|turn| turn.message.as_mut());
        match (parent, open) {
            (None, Some(message)) => {
                message.thought.push_str(&block);
                events.push(self.event(None, Body::ThoughtDelta(block.into())));
            }
            (Some(parent), _) => events.push(self.event(Some(parent), Body::ThoughtDelta(block.into()))),
            // A step of a tree or graph of thoughts.
            (None, None) => {
                let step = serde_json::json!({"kind": "thought", "text": block}).to_string();
                events.push(self.event(None, Body::Custom(Json::trusted(step))));
            }
        }
    }

    /// The call with this id. A sub-agent's call is only known by its name.
    fn call(&mut self, id: &str, name: &str, arguments: Option<&Value>) -> Arc<ToolCall> {
        let new = || {
            let arguments = arguments.map_or_else(Json::empty_object, |json| Json::trusted(json.to_string()));
            Arc::new(ToolCall::new(CallId::new(id), name.into(), arguments))
        };
        match &mut self.turn {
            Some(turn) => turn.calls.entry(id.to_owned()).or_insert_with(new).clone(),
            None => new(),
        }
    }

    fn display(&mut self, line: &Value, events: &mut Vec<Event>) {
        if !self.enter_turn(line, events) {
            return;
        }
        let id = text(&line["tool_call_id"]);
        let parent = line["parent_tool_call_id"].as_str();
        let word = text(&line["status"]);
        if word == "pending" && parent.is_none() {
            return self.complete_calls(Some(&id), events);
        }
        let call = self.call(&id, line["tool_name"].as_str().unwrap_or_default(), None);
        if parent.is_none() && word != "pending" {
            // The message is complete once its calls run.
            self.end_message(&Value::Null, events);
            self.enter_node("act", events);
        }
        let shown = display(&line["result_display"], &self.facts.workspace);
        let started = self.turn.as_mut().map(|turn| &mut turn.started);
        let was_started = started.as_ref().is_some_and(|started| started.contains(&id));
        let body = match (word.as_str(), shown) {
            ("pending", _) => Body::ToolCall(call),
            ("confirming", _) => Body::Approval {
                call,
                confirmation: Box::new(confirmation(&line["confirmation"])),
                reason: Arc::default(),
            },
            ("executing", None) if !was_started => {
                if let Some(started) = started {
                    started.push(id);
                }
                Body::ToolStart(call)
            }
            ("executing", Some(display)) => Body::ToolDisplay { call, display: Box::new(display) },
            ("executing", None) => return,
            (word, shown) => {
                if let Some(started) = started {
                    started.retain(|started| *started != id);
                }
                Body::ToolEnd(Box::new(tool_end(call, status(word, was_started), shown)))
            }
        };
        events.push(self.event(parent, body));
    }

    fn terminal(&mut self, line: &Value, events: &mut Vec<Event>) {
        let written = text(&line["text"]);
        if let Some(level) = line["console_level"].as_str() {
            let (level, scope) = (console_level(level), log_scope(&line["log_scope"]));
            events.push(self.event(None, Body::Console { level, scope, text: written.into() }));
        } else if let Some(id) = line["tool_call_id"].as_str()
            && !written.is_empty()
            && self.enter_turn(line, events)
        {
            let call = self.call(id, "", None);
            let channel = channel(&line["channel"]);
            let body = Body::ToolOutput { call, channel, text: written.into() };
            events.push(self.event(line["parent_tool_call_id"].as_str(), body));
        }
    }

    fn question(&mut self, line: &Value, events: &mut Vec<Event>) {
        if !self.enter_turn(line, events) {
            return;
        }
        let request_id = text(&line["request_id"]);
        let (tool, metadata) = (&line["tool"], &line["metadata"]);
        let id = metadata["tool_call_id"].as_str().unwrap_or(&request_id);
        let call = self.call(id, tool["name"].as_str().unwrap_or_default(), Some(&tool["arguments"]));
        let request = ControlCall::CanUseTool {
            call,
            confirmation: Box::new(confirmation(&metadata["confirmation"])),
            reason: text(&metadata["reason"]).into(),
            blocked_path: metadata["blocked_path"].as_str().map(Arc::from),
            agent_id: metadata["agent_id"].as_str().map(Arc::from),
        };
        self.questions.push(request_id.clone());
        let body = Body::ControlRequest {
            request_id: request_id.into(),
            session_id: self.facts.session.clone(),
            prompt_id: self.turn.as_ref().map(|turn| turn.id.clone()),
            call: Box::new(request),
        };
        events.push(self.event(None, body));
    }

    /// Withdraws a question that was answered elsewhere or has lost its turn.
    fn end_question(&mut self, request_id: &str, events: &mut Vec<Event>) {
        if let Some(at) = self.questions.iter().position(|open| open == request_id) {
            self.questions.remove(at);
            events.push(self.event(None, Body::ControlCancel { request_id: request_id.into() }));
        }
    }

    fn session_event(&mut self, line: &Value, events: &mut Vec<Event>) {
        let value = &line["value"];
        let prompt_id = text(&value["prompt_id"]);
        match (line["event"].as_str().unwrap_or_default(), value["kind"].as_str()) {
            ("Custom", Some("prompt")) => {
                self.prompts.insert(prompt_id, crate::sessions::plain_text(&value["parts"]).into());
            }
            ("Custom", Some("approval_decided")) => {
                self.end_question(&text(&value["request_id"]), events);
            }
            ("Custom", Some("prompt_lost")) => {
                self.prompts.remove(&prompt_id);
                let end = TurnEnd {
                    session_id: Some(self.facts.session.clone()),
                    error: Some(ErrorInfo::new(
                        ErrorKind::Internal,
                        "prompt_lost",
                        "The server was killed before the prompt's turn began. Send it again.",
                    )),
                    ..TurnEnd::new(PromptId::new(prompt_id), qwen_events::EndStatus::Interrupted)
                };
                events.push(self.event(None, Body::TurnEnd(Box::new(end))));
            }
            ("Custom", _) => {
                events.push(self.event(None, Body::Custom(Json::trusted(value.to_string()))));
            }
            // The end of the turn has its own record.
            ("Finished" | "USER_CANCELLED", _) => {}
            (name, _) => {
                let Some(event) = session_event(name, line) else { return };
                if let SessionEvent::ModeChanged { mode } = &event {
                    self.facts.mode = mode.clone();
                }
                let parent = line["parent_tool_call_id"].as_str();
                events.push(self.event(parent, Body::Session(Box::new(event))));
            }
        }
    }

    fn command(&mut self, line: &Value, events: &mut Vec<Event>) {
        let prompt_id = PromptId::new(text(&line["prompt_id"]));
        self.prompts.remove(prompt_id.as_str());
        let result = &line["result"];
        let json = |value: &Value| Json::trusted(value.to_string());
        let body = match result["type"].as_str().unwrap_or_default() {
            "dialog" => CommandResultBody::Dialog {
                name: text(&result["dialog"]).into(),
                data: json(&result["data"]),
            },
            "tool" => CommandResultBody::Tool {
                name: text(&result["tool"]["name"]).into(),
                arguments: json(&result["tool"]["arguments"]),
            },
            "submit_prompt" => return,
            _ => CommandResultBody::Message {
                level: match result["level"].as_str() {
                    Some("error") => Level::Error,
                    Some("warning") => Level::Warning,
                    _ => Level::Info,
                },
                content: text(&result["content"]).into(),
            },
        };
        let command = CommandCall { kind: CommandKind::Slash, path: Vec::new(), args: Arc::default() };
        let result = CommandResult::new(self.facts.session.clone(), prompt_id, command, body);
        events.push(self.event(None, Body::CommandResult(Box::new(result))));
    }
}
