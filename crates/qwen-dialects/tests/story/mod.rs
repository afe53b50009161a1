//! Canned stories: the events of turns as the engine tells them.
#![allow(dead_code, unused_imports, reason = "each test file tells some of the stories")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a story that cannot be told is a failed test")]

mod everything;

use std::sync::Arc;

use qwen_dialects::{Dialect, Encoder, Format, StreamInfo};
use qwen_events::{
    Body, CallId, Decision, EndStatus, ErrorInfo, Event, Finish, Json, MessageEnd, ModelUsage, PromptId,
    Scope, SessionId, Timestamp, ToolCall, ToolEnd, ToolStatus, TurnEnd, TurnStart, Usage, Verdict,
};

pub use self::everything::*;

pub const SESSION: &str = "session-123";
pub const PROMPT: &str = "session-123########1";
pub const MODEL: &str = "qwen-coder";
/// 2025-02-13, in milliseconds.
pub const START: u64 = 1_739_430_000_000;

pub fn info(dialect: Dialect, format: Format) -> StreamInfo {
    StreamInfo {
        model: MODEL.into(),
        version: "1.2.3",
        seed: 1,
        ..StreamInfo::new(dialect, format, SessionId::parse(SESSION).unwrap())
    }
}

/// Events as they come, a tenth of a second apart.
#[derive(Default)]
pub struct Story {
    pub events: Vec<Event>,
    parent: Option<CallId>,
}

impl Story {
    pub fn new() -> Self {
        Self::default()
    }

    /// A story that begins with a turn.
    pub fn turn() -> Self {
        Self::new().then(Body::TurnStart(Box::new(turn_start(PROMPT))))
    }

    pub fn then(mut self, body: Body) -> Self {
        let at = Timestamp(START + 100 * self.events.len() as u64);
        self.events.push(Event {
            at,
            scope: Scope { parent: self.parent.clone(), ..Scope::default() },
            body,
        });
        self
    }

    /// What follows is told by the sub-agent of `call`; none is the main agent.
    pub fn inside(mut self, call: Option<&str>) -> Self {
        self.parent = call.map(CallId::new);
        self
    }

    pub fn message_start(self) -> Self {
        self.then(Body::MessageStart { message_id: "msg-1".into(), model: MODEL.into() })
    }

    pub fn text(self, text: &str) -> Self {
        self.then(Body::TextDelta(text.into()))
    }

    pub fn thought(self, text: &str) -> Self {
        self.then(Body::ThoughtDelta(text.into()))
    }

    pub fn message_end(self, text: &str, calls: &[&Arc<ToolCall>]) -> Self {
        let finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        self.then(Body::MessageEnd(Box::new(message_end(text, calls, finish))))
    }

    /// A whole message: its start, its text in two pieces, its calls in two pieces each, its end.
    pub fn message(self, text: &str, calls: &[&Arc<ToolCall>]) -> Self {
        let mut story = self.message_start();
        let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        for piece in [&text[..middle], &text[middle..]] {
            if !piece.is_empty() {
                story = story.text(piece);
            }
        }
        for (index, call) in calls.iter().enumerate() {
            let (first, rest) = call.arguments.as_str().split_at(1);
            for arguments in [first, rest] {
                story = story.then(Body::ToolCallDelta {
                    index: u32::try_from(index).unwrap(),
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: arguments.into(),
                });
            }
            story = story.then(Body::ToolCall(Arc::clone(call)));
        }
        story.message_end(text, calls)
    }

    /// A call that runs and gives `text` back.
    pub fn run(self, call: &Arc<ToolCall>, text: &str) -> Self {
        let decision = Decision { verdict: Verdict::Allow, reason: "it only reads".into(), rule: None };
        self.then(Body::Decision { call: Arc::clone(call), decision })
            .then(Body::ToolStart(Arc::clone(call)))
            .then(Body::ToolEnd(Box::new(tool_end(call, ToolStatus::Success, text))))
    }

    pub fn end(self, status: EndStatus, reply: &str, error: Option<ErrorInfo>) -> Self {
        let end = TurnEnd { error, ..turn_end(PROMPT, status, reply) };
        self.then(Body::TurnEnd(Box::new(end)))
    }

    pub fn done(self, reply: &str) -> Self {
        self.end(EndStatus::Done, reply, None)
    }

    /// What `encoder` writes, line by line.
    pub fn lines(&self, mut encoder: Box<dyn Encoder>) -> Vec<String> {
        let mut out = Vec::new();
        for event in &self.events {
            encoder.encode(event, &mut out);
            assert!(out.last().is_none_or(|byte| *byte == b'\n'), "a line is written whole");
        }
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    /// The same as JSON.
    pub fn told(&self, encoder: Box<dyn Encoder>) -> Vec<serde_json::Value> {
        self.lines(encoder).iter().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

pub fn call(id: &str, name: &str, arguments: &str) -> Arc<ToolCall> {
    Arc::new(ToolCall::new(CallId::new(id), name.into(), Json::trusted(arguments)))
}

pub fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
    Usage { prompt_tokens, completion_tokens, ..Usage::default() }
}

pub fn message_end(text: &str, calls: &[&Arc<ToolCall>], finish: Finish) -> MessageEnd {
    MessageEnd {
        thought: "".into(),
        signature: None,
        thoughts: Vec::new(),
        message_id: "msg-1".into(),
        model: MODEL.into(),
        text: text.into(),
        calls: calls.iter().map(|call| Arc::clone(call)).collect(),
        finish,
        usage: usage(1200, 80),
        aborted: false,
    }
}

pub fn tool_end(call: &Arc<ToolCall>, status: ToolStatus, text: &str) -> ToolEnd {
    ToolEnd {
        call: Arc::clone(call),
        status,
        text: text.into(),
        media: Vec::new(),
        display: None,
        error_code: (status != ToolStatus::Success).then_some("file_not_found"),
        output_file: None,
        exit_code: None,
        duration_ms: 5,
    }
}

pub fn turn_start(prompt_id: &str) -> TurnStart {
    TurnStart {
        parts: Vec::new(),
        turn: 1,
        run_id: "run-1".into(),
        message: "Please fix the bug in @main.py".into(),
        model: MODEL.into(),
        cwd: "/workspace/demo".into(),
        tools: vec!["read_file".into(), "edit".into()],
        key_source: "OPENAI_API_KEY".into(),
        ..TurnStart::new(SessionId::parse(SESSION).unwrap(), PromptId::new(prompt_id))
    }
}

pub fn turn_end(prompt_id: &str, status: EndStatus, reply: &str) -> TurnEnd {
    TurnEnd {
        reply: reply.into(),
        usage: usage(1600, 200),
        usage_by_model: vec![ModelUsage {
            model: MODEL.into(),
            calls: 2,
            usage: usage(1600, 200),
            cost_usd: 0.0,
        }],
        duration_ms: 1234,
        api_duration_ms: 1000,
        model_calls: 2,
        tool_calls: 1,
        ..TurnEnd::new(PromptId::new(prompt_id), status)
    }
}
