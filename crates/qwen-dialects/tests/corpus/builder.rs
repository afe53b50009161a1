//! Tells the events of a turn the way the engine does, so that a trace is a few lines.

use std::collections::HashMap;
use std::sync::Arc;

use qwen_events::{
    AgentName, Body, CallId, Channel, Checkpoint, Confirmation, ControlCall, Decision, Denial, EndStatus,
    ErrorInfo, Event, Finish, Json, MessageEnd, ModelUsage, NodeRun, PromptId, Scope, SessionEvent,
    SessionId, Thinking, Timestamp, ToolCall, ToolEnd, ToolStatus, TurnEnd, TurnStart, Usage, Verdict,
};
use serde_json::{Value, json};

pub const SESSION: &str = "session-123";
pub const MODEL: &str = "qwen-coder";
/// 2025-02-13, in milliseconds.
const START: u64 = 1_739_430_000_000;
/// What passes between two events.
const STEP: u64 = 20;

/// How a turn ended, for the manifest.
pub struct Ended {
    pub prompt_id: String,
    pub status: EndStatus,
    pub reply: String,
}

/// A turn, or several, as events.
pub struct Trace {
    pub events: Vec<Event>,
    pub turns: Vec<Ended>,
    node: Option<Arc<NodeRun>>,
    /// The call whose sub-agent speaks.
    parent: Option<CallId>,
    runs: HashMap<String, u64>,
    steps: u64,
    agent: AgentName,
    /// The tools that each turn starts with.
    tools: &'static [&'static str],
    /// The conversation, as the graph's state shows it.
    conversation: Vec<Value>,
    pending: Vec<Value>,
    results: Vec<Value>,
    messages: u64,
    turn: Totals,
}

/// What a turn came to so far.
#[derive(Default)]
struct Totals {
    usage: Usage,
    model_calls: u64,
    tool_calls: u64,
    denials: Vec<Denial>,
    reply: String,
    started: u64,
}

/// A call that the model makes.
pub fn call(id: &str, name: &str, arguments: &str) -> Arc<ToolCall> {
    Arc::new(ToolCall::new(CallId::new(id), name.into(), Json::trusted(arguments)))
}

impl Trace {
    /// A stream that has just been opened.
    pub fn new() -> Self {
        let mut trace = Self {
            events: Vec::new(),
            turns: Vec::new(),
            node: None,
            parent: None,
            runs: HashMap::new(),
            steps: 0,
            agent: AgentName::React,
            tools: &["read_file", "edit", "run_shell_command"],
            conversation: Vec::new(),
            pending: Vec::new(),
            results: Vec::new(),
            messages: 0,
            turn: Totals::default(),
        };
        trace.then(Body::Ready);
        trace
    }

    /// Another agent than `react`.
    pub fn agent(mut self, agent: AgentName) -> Self {
        self.agent = agent;
        self
    }

    /// Other tools than the usual three.
    pub fn tools(mut self, tools: &'static [&'static str]) -> Self {
        self.tools = tools;
        self
    }

    pub fn then(&mut self, body: Body) {
        let at = Timestamp(START + STEP * self.events.len() as u64);
        let scope = Scope { node: self.node.clone(), parent: self.parent.clone(), ..Scope::default() };
        self.events.push(Event { at, scope, body });
    }

    /// The user says something.
    pub fn asks(&mut self, message: &str) {
        let turn = self.turns.len() as u64 + 1;
        let session_id = session();
        self.turn = Totals { started: self.events.len() as u64, ..Totals::default() };
        self.steps = 0;
        self.conversation.push(json!({"role": "user", "content": message}));
        self.then(Body::TurnStart(Box::new(TurnStart {
            parts: Vec::new(),
            turn,
            run_id: format!("run-{turn}").into(),
            agent: self.agent,
            message: message.into(),
            model: MODEL.into(),
            cwd: "/workspace/demo".into(),
            tools: self.tools.iter().map(|name| (*name).into()).collect(),
            slash_commands: vec!["help".into()],
            key_source: "OPENAI_API_KEY".into(),
            ..TurnStart::new(session_id.clone(), PromptId::of_turn(&session_id, turn))
        })));
    }

    /// A node run, from its entry to the state that it leaves behind.
    pub fn node(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.node_ending(name, None, inside);
    }

    /// A node run that fails.
    pub fn failing_node(&mut self, name: &str, error: &str, inside: impl FnOnce(&mut Self)) {
        self.node_ending(name, Some(error), inside);
    }

    fn node_ending(&mut self, name: &str, error: Option<&str>, inside: impl FnOnce(&mut Self)) {
        let run = self.runs.entry(name.to_owned()).or_default();
        *run += 1;
        self.node = Some(Arc::new(NodeRun::new(name, *run)));
        self.then(Body::NodeEnter);
        inside(self);
        self.then(Body::NodeExit { error: error.map(Into::into) });
        let state = self.state();
        self.then(Body::State(state));
        self.node = None;
        self.steps += 1;
    }

    /// *observe*: the results become part of the conversation.
    pub fn observe(&mut self) {
        self.node("observe", Self::take_results);
    }

    /// *observe* as the last node of a turn that has to end.
    pub fn observe_and_stop(&mut self, error: &str) {
        self.failing_node("observe", error, Self::take_results);
    }

    fn take_results(&mut self) {
        let results = std::mem::take(&mut self.results);
        self.conversation.extend(results);
    }

    fn state(&self) -> Json {
        Json::trusted(json!({"messages": self.conversation, "pending_tool_calls": self.pending}).to_string())
    }

    /// A whole message of the model, streamed.
    pub fn says(&mut self, pieces: &[&str], calls: &[&Arc<ToolCall>]) {
        self.thinks_and_says(&[], pieces, calls);
    }

    pub fn thinks_and_says(&mut self, thoughts: &[&str], pieces: &[&str], calls: &[&Arc<ToolCall>]) {
        self.start_message(thoughts, pieces);
        for (index, call) in calls.iter().enumerate() {
            let arguments = call.arguments.as_str();
            let middle = (0..=arguments.len() / 2).rfind(|at| arguments.is_char_boundary(*at)).unwrap_or(0);
            for piece in ["", &arguments[..middle], &arguments[middle..]] {
                self.then(Body::ToolCallDelta {
                    index: u32::try_from(index).unwrap(),
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: piece.into(),
                });
            }
        }
        for call in calls {
            self.then(Body::ToolCall(Arc::clone(call)));
        }
        self.end_message(&pieces.concat(), calls, false);
    }

    /// A message that is cut off after these pieces.
    pub fn breaks_off(&mut self, pieces: &[&str]) {
        self.start_message(&[], pieces);
        self.end_message(&pieces.concat(), &[], true);
    }

    fn start_message(&mut self, thoughts: &[&str], pieces: &[&str]) {
        self.messages += 1;
        self.turn.model_calls += 1;
        let message_id = self.message_id();
        self.then(Body::MessageStart { message_id, model: MODEL.into() });
        for thought in thoughts {
            self.then(Body::ThoughtDelta((*thought).into()));
        }
        for piece in pieces {
            self.then(Body::TextDelta((*piece).into()));
        }
    }

    fn end_message(&mut self, text: &str, calls: &[&Arc<ToolCall>], aborted: bool) {
        let mut usage = Usage::default();
        if !aborted {
            usage.prompt_tokens = 1000 + 100 * self.messages;
            usage.completion_tokens = 10 + self.messages;
            usage.cached_tokens = 512;
        }
        self.turn.usage.add(&usage);
        text.clone_into(&mut self.turn.reply);
        let mut entry = json!({"role": "assistant", "content": text});
        self.pending =
            calls.iter().map(|call| json!({"id": call.id.as_str(), "name": &*call.name})).collect();
        if !calls.is_empty() {
            let parsed = |call: &ToolCall| serde_json::from_str::<Value>(call.arguments.as_str()).unwrap();
            entry["tool_calls"] = calls
                .iter()
                .map(|call| json!({"id": call.id.as_str(), "name": &*call.name, "arguments": parsed(call)}))
                .collect();
        }
        self.conversation.push(entry);
        self.then(Body::MessageEnd(Box::new(MessageEnd {
            thought: "".into(),
            signature: None,
            thoughts: Vec::new(),
            message_id: self.message_id(),
            model: MODEL.into(),
            text: text.into(),
            calls: calls.iter().map(|call| Arc::clone(call)).collect(),
            finish: if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls },
            usage,
            aborted,
        })));
    }

    fn message_id(&self) -> Arc<str> {
        format!("msg-{}", self.messages).into()
    }

    /// A call is judged and may run.
    pub fn allowed(&mut self, call: &Arc<ToolCall>) {
        self.decision(call, Verdict::Allow, "it only reads", Some("Read"));
    }

    /// A command is judged and someone is asked.
    pub fn asked(&mut self, call: &Arc<ToolCall>, command: &str) {
        let root_command = command.split(' ').next().unwrap_or_default().into();
        self.asked_to_confirm(call, Confirmation::Exec { command: command.into(), root_command });
    }

    /// A call is judged and someone is asked.
    pub fn asked_to_confirm(&mut self, call: &Arc<ToolCall>, confirmation: Confirmation) {
        let reason = "no rule allows it";
        self.decision(call, Verdict::Ask, reason, None);
        let confirmation = Box::new(confirmation);
        self.then(Body::Approval {
            call: Arc::clone(call),
            confirmation: confirmation.clone(),
            reason: reason.into(),
        });
        let prompt_id = PromptId::of_turn(&session(), self.turns.len() as u64 + 1);
        self.then(Body::ControlRequest {
            request_id: format!("req-{}", call.id).into(),
            session_id: session(),
            prompt_id: Some(prompt_id),
            call: Box::new(ControlCall::CanUseTool {
                call: Arc::clone(call),
                confirmation,
                reason: reason.into(),
                blocked_path: None,
                agent_id: None,
            }),
        });
    }

    fn decision(&mut self, call: &Arc<ToolCall>, verdict: Verdict, reason: &str, rule: Option<&str>) {
        let decision = Decision { verdict, reason: reason.into(), rule: rule.map(Into::into) };
        self.then(Body::Decision { call: Arc::clone(call), decision });
    }

    /// A tool starts.
    pub fn starts(&mut self, call: &Arc<ToolCall>) {
        self.turn.tool_calls += 1;
        self.then(Body::ToolStart(Arc::clone(call)));
    }

    /// A tool writes something.
    pub fn writes(&mut self, call: &Arc<ToolCall>, channel: Channel, text: &str) {
        self.then(Body::ToolOutput { call: Arc::clone(call), channel, text: text.into() });
    }

    /// A call is over.
    pub fn ends(&mut self, call: &Arc<ToolCall>, status: ToolStatus, text: &str) {
        let (error_code, exit_code) = match status {
            ToolStatus::Success => (None, None),
            ToolStatus::Error => (Some("command_failed"), Some(1)),
            ToolStatus::Denied => (Some("permission_denied"), None),
            ToolStatus::Cancelled => (Some("cancelled"), None),
        };
        if status == ToolStatus::Denied {
            self.turn.denials.push(Denial {
                tool_name: call.name.clone(),
                call_id: call.id.clone(),
                arguments: call.arguments.clone(),
                reason: text.into(),
            });
        }
        self.pending.retain(|pending| pending["id"] != call.id.as_str());
        let is_error = status != ToolStatus::Success;
        // The state shows no more than the beginning, or two megabytes would be there ten times over.
        let shown: String = text.chars().take(200).collect();
        self.results.push(
            json!({"role": "tool", "tool_call_id": call.id.as_str(), "content": shown, "is_error": is_error}),
        );
        self.then(Body::ToolEnd(Box::new(ToolEnd {
            call: Arc::clone(call),
            status,
            text: text.into(),
            media: Vec::new(),
            display: None,
            error_code,
            output_file: None,
            exit_code,
            duration_ms: 40,
        })));
    }

    /// A call that may run, runs and succeeds.
    pub fn runs(&mut self, call: &Arc<ToolCall>, output: &str) {
        self.allowed(call);
        self.starts(call);
        self.ends(call, ToolStatus::Success, output);
    }

    /// What happens inside is told by the sub-agent that `call` started.
    pub fn inside(&mut self, call: &Arc<ToolCall>, inside: impl FnOnce(&mut Self)) {
        let (node, reply) = (self.node.take(), self.turn.reply.clone());
        self.parent = Some(call.id.clone());
        inside(self);
        self.parent = None;
        self.node = node;
        self.turn.reply = reply;
    }

    /// A step of a tree or graph of thoughts.
    pub fn step(&mut self, step: Thinking) {
        self.then(Body::Thinking(Box::new(step)));
    }

    /// A notice about the session.
    pub fn notice(&mut self, notice: SessionEvent) {
        self.then(Body::Session(Box::new(notice)));
    }

    /// The turn ends with the last message as its answer.
    pub fn done(&mut self) {
        self.checkpoint();
        self.notice(SessionEvent::Finished);
        self.ended(EndStatus::Done, None);
    }

    /// Someone stopped the turn.
    pub fn cancelled(&mut self) {
        self.checkpoint();
        self.notice(SessionEvent::Cancelled);
        self.ended(EndStatus::Cancelled, None);
    }

    /// The turn ends early, with what there is.
    pub fn stopped(&mut self, status: EndStatus, error: ErrorInfo) {
        self.checkpoint();
        self.ended(status, Some(error));
    }

    fn checkpoint(&mut self) {
        let at = Timestamp(START + STEP * self.events.len() as u64);
        let state = self.state();
        self.then(Body::Checkpoint(Box::new(Checkpoint {
            id: format!("checkpoint-{}-{}", self.turns.len() + 1, self.steps).into(),
            timestamp: at,
            step: self.steps,
            state,
            thread_id: session(),
            namespace: "".into(),
        })));
    }

    fn ended(&mut self, status: EndStatus, error: Option<ErrorInfo>) {
        let turn = std::mem::take(&mut self.turn);
        let prompt_id = PromptId::of_turn(&session(), self.turns.len() as u64 + 1);
        self.turns.push(Ended {
            prompt_id: prompt_id.as_str().to_owned(),
            status,
            reply: turn.reply.clone(),
        });
        let duration_ms = STEP * (self.events.len() as u64 - turn.started);
        self.then(Body::TurnEnd(Box::new(TurnEnd {
            error,
            reply: turn.reply.as_str().into(),
            usage: turn.usage,
            usage_by_model: vec![ModelUsage {
                model: MODEL.into(),
                calls: turn.model_calls,
                usage: turn.usage,
                cost_usd: 0.0,
            }],
            duration_ms,
            api_duration_ms: duration_ms / 2,
            model_calls: turn.model_calls,
            tool_calls: turn.tool_calls,
            denials: turn.denials,
            ..TurnEnd::new(prompt_id, status)
        })));
    }
}

pub fn session() -> SessionId {
    SessionId::parse(SESSION).unwrap()
}
