//! A session in the making: events as a turn says them, and the store that keeps them.

use std::path::PathBuf;
use std::sync::Arc;

use qwen_engine::log::{LogHeader, Recorder, Store};
use qwen_events::{
    Body, CallId, Channel, EndStatus, Event, Finish, Json, Message, MessageEnd, NodeRun, Part, PromptId,
    Role, Scope, SessionId, Timestamp, ToolCall, ToolEnd, ToolStatus, TurnEnd, TurnStart, Usage,
};
use tempfile::TempDir;

/// A store of its own.
pub struct Place {
    home: TempDir,
    pub store: Store,
}

impl Place {
    pub fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        Self { store: Store::new(home.path()), home }
    }

    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// A recorder for a session that begins.
    pub fn begin(&self, id: &str) -> Recorder {
        Recorder::begin(Some(self.store.clone()), header(id))
    }

    /// Writes the whole text of a log.
    pub fn put(&self, id: &str, bytes: &[u8]) {
        let path = self.store.path(&session(id));
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, bytes).expect("written");
    }

    /// The whole text of a log.
    pub fn get(&self, id: &str) -> Vec<u8> {
        std::fs::read(self.store.path(&session(id))).expect("a log")
    }
}

pub fn session(id: &str) -> SessionId {
    SessionId::parse(id).expect("a session id")
}

pub fn header(id: &str) -> LogHeader {
    LogHeader {
        session_id: session(id),
        cwd: "/work/project".into(),
        created: Timestamp(1_700_000_000_000),
        version: "0.1.0".into(),
        parent: None,
        title: Arc::default(),
    }
}

/// Says events in order, one a millisecond.
#[derive(Default)]
pub struct Story {
    pub events: Vec<Event>,
    node: Option<Arc<NodeRun>>,
    runs: Vec<&'static str>,
}

impl Story {
    pub fn say(&mut self, body: Body) -> &mut Self {
        let at = Timestamp(1_700_000_000_000 + self.events.len() as u64);
        self.events.push(Event { at, scope: Scope { node: self.node.clone(), ..Scope::default() }, body });
        self
    }

    pub fn turn(&mut self, turn: u64, words: &str) -> &mut Self {
        self.node = None;
        self.say(Body::TurnStart(Box::new(start(turn, words))))
    }

    pub fn enter(&mut self, name: &'static str) -> &mut Self {
        self.runs.push(name);
        let count = self.runs.iter().filter(|run| **run == name).count() as u64;
        self.node = Some(Arc::new(NodeRun::new(name, count)));
        self.say(Body::NodeEnter)
    }

    pub fn exit(&mut self) -> &mut Self {
        self.say(Body::NodeExit { error: None });
        self.node = None;
        self
    }

    /// *think*: a whole message.
    pub fn think(&mut self, text: &str, calls: &[Arc<ToolCall>]) -> &mut Self {
        self.enter("think").say(message(text, calls)).exit()
    }

    /// *act* and *observe*: all calls run and end well.
    pub fn act(&mut self, calls: &[Arc<ToolCall>]) -> &mut Self {
        self.enter("act");
        for call in calls {
            self.say(Body::ToolStart(call.clone()));
        }
        for call in calls {
            let text = format!("output of {}", call.id).into();
            self.say(Body::ToolOutput { call: call.clone(), channel: Channel::Stdout, text });
            self.say(tool_end(call, ToolStatus::Success));
        }
        self.exit().enter("observe").exit()
    }

    pub fn end(&mut self, turn: u64, reply: &str) -> &mut Self {
        self.node = None;
        self.say(Body::TurnEnd(Box::new(turn_end(turn, reply))))
    }

    /// Keeps what was said since the last time this was called with the same `from`.
    pub fn record(&self, recorder: &mut Recorder) {
        for event in &self.events {
            recorder.record(event).expect("kept");
        }
    }
}

pub fn start(turn: u64, words: &str) -> TurnStart {
    TurnStart {
        turn,
        run_id: format!("run-{turn}").into(),
        message: words.into(),
        parts: vec![Part::Text(words.into())],
        message_uuid: Some(format!("uuid-{turn}").into()),
        model: "mock".into(),
        cwd: "/work/project".into(),
        tools: vec!["read_file".into()],
        ..TurnStart::new(session("s"), PromptId::of_turn(&session("s"), turn))
    }
}

pub fn message(text: &str, calls: &[Arc<ToolCall>]) -> Body {
    Body::MessageEnd(Box::new(MessageEnd {
        message_id: format!("msg-{text}").into(),
        model: "mock".into(),
        text: text.into(),
        thought: Arc::default(),
        signature: None,
        thoughts: Vec::new(),
        calls: calls.to_vec(),
        finish: if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls },
        usage: Usage { prompt_tokens: 10, completion_tokens: 2, ..Usage::default() },
        aborted: false,
    }))
}

pub fn call(id: &str) -> Arc<ToolCall> {
    Arc::new(ToolCall::new(
        CallId::new(id),
        "read_file".into(),
        Json::trusted(format!(r#"{{"file_path":"{id}.txt","limit":1e3}}"#)),
    ))
}

pub fn tool_end(call: &Arc<ToolCall>, status: ToolStatus) -> Body {
    Body::ToolEnd(Box::new(ToolEnd {
        call: call.clone(),
        status,
        text: format!("result of {}", call.id).into(),
        media: Vec::new(),
        display: None,
        error_code: (status != ToolStatus::Success).then_some("file_not_found"),
        output_file: None,
        exit_code: None,
        duration_ms: 3,
    }))
}

pub fn turn_end(turn: u64, reply: &str) -> TurnEnd {
    let usage = Usage { prompt_tokens: 10, completion_tokens: 2, ..Usage::default() };
    TurnEnd {
        reply: reply.into(),
        usage,
        usage_by_model: vec![qwen_events::ModelUsage {
            model: "mock".into(),
            calls: 1,
            usage,
            cost_usd: 0.5,
        }],
        cost_usd: 0.5,
        duration_ms: 20,
        api_duration_ms: 10,
        model_calls: 1,
        ..TurnEnd::new(PromptId::of_turn(&session("s"), turn), EndStatus::Done)
    }
}

/// A turn with two calls beside each other, and one without.
pub fn two_turns() -> Story {
    let calls = [call("call_1"), call("call_2")];
    let mut story = Story::default();
    story.turn(1, "Read two files").think("I look.", &calls).act(&calls).think("They are fine.", &[]);
    story
        .end(1, "They are fine.")
        .turn(2, "Thanks")
        .think("You are welcome.", &[])
        .end(2, "You are welcome.");
    story
}

/// What the two turns say.
pub fn two_turns_messages() -> Vec<Message> {
    let calls = [call("call_1"), call("call_2")];
    let results = calls.iter().map(|call| {
        Part::Result(qwen_events::ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            text: format!("result of {}", call.id).into(),
            media: Vec::new(),
            is_error: false,
        })
    });
    let mut asks = vec![Part::Text("I look.".into())];
    asks.extend(calls.iter().cloned().map(Part::Call));
    vec![
        Message::text(Role::User, "Read two files"),
        Message { role: Role::Assistant, parts: asks },
        Message { role: Role::Tool, parts: results.collect() },
        Message::text(Role::Assistant, "They are fine."),
        Message::text(Role::User, "Thanks"),
        Message::text(Role::Assistant, "You are welcome."),
    ]
}

/// Why a model would refuse a conversation; none when it would not.
pub fn invalid(messages: &[Message]) -> Option<String> {
    let calls = |message: &Message| -> Vec<CallId> {
        let id = |part: &Part| match part {
            Part::Call(call) => Some(call.id.clone()),
            _ => None,
        };
        message.parts.iter().filter_map(id).collect()
    };
    let results = |message: &Message| -> Vec<CallId> {
        let id = |part: &Part| match part {
            Part::Result(result) => Some(result.call_id.clone()),
            _ => None,
        };
        message.parts.iter().filter_map(id).collect()
    };
    for (at, message) in messages.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| &messages[at]);
        let asked = before.map(calls).unwrap_or_default();
        if message.role == Role::Tool || !asked.is_empty() {
            if results(message) != asked {
                return Some(format!("message {at} answers {:?}, asked was {asked:?}", results(message)));
            }
        } else if message.parts.is_empty() {
            return Some(format!("message {at} is empty"));
        }
    }
    let open = messages.last().map(calls).unwrap_or_default();
    (!open.is_empty()).then(|| format!("the last message asks for {open:?}"))
}
