//! Turns as the engine tells them, in a few words each.

use std::sync::Arc;

use qwen_dialects::{Dialect, Format, StreamInfo, encoder};
use qwen_events::{
    Body, CallId, CommandCall, CommandKind, CommandResult, CommandResultBody, Confirmation, ControlCall,
    Decision, EndStatus, ErrorInfo, Event, FileDiff, Finish, Json, Level, McpServer, MessageEnd, ModelUsage,
    NodeRun, PromptId, Scope, SessionId, Timestamp, ToolCall, ToolEnd, ToolStatus, TurnEnd, TurnStart, Usage,
    Verdict,
};
use serde_json::Value;

/// What the stream of `dialect` is told at its start.
pub fn info(dialect: Dialect) -> StreamInfo {
    StreamInfo {
        model: "qwen-coder".into(),
        version: "0.1.0",
        seed: 7,
        ..StreamInfo::new(dialect, Format::StreamJson, SessionId::parse("sess-001").unwrap())
    }
}

/// The bytes that `events` become.
pub fn bytes(info: &StreamInfo, events: &[Event]) -> Vec<u8> {
    let mut encoder = encoder(info);
    let mut out = Vec::new();
    for event in events {
        encoder.encode(event, &mut out);
    }
    out
}

/// The lines that `events` become.
pub fn lines(info: &StreamInfo, events: &[Event]) -> Vec<Value> {
    parse(&bytes(info, events))
}

/// The lines of a stream; each must be one JSON object.
pub fn parse(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is not whole");
    text.lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(value.is_object(), "{line}");
            value
        })
        .collect()
}

/// A turn being told.
#[derive(Default)]
pub struct Script {
    pub events: Vec<Event>,
    node: Option<Arc<NodeRun>>,
    parent: Option<CallId>,
    text: String,
    calls: Vec<Arc<ToolCall>>,
    messages: u64,
}

impl Script {
    /// The result of `/help`.
    pub fn help_command(&mut self, args: &str) {
        let session_id = SessionId::parse("sess-001").unwrap();
        let path = vec!["help".into()];
        let command = CommandCall { kind: CommandKind::Slash, path, args: args.into() };
        let body = CommandResultBody::Message { level: Level::Info, content: "Ask me.".into() };
        let result = CommandResult::new(session_id, PromptId::new("p-1"), command, body);
        self.push(Body::CommandResult(Box::new(result)));
    }

    /// A turn that has just started with the words "Hello".
    pub fn turn() -> Self {
        let mut script = Self::default();
        script.push(Body::TurnStart(Box::new(turn_start("Hello"))));
        script
    }

    pub fn push(&mut self, body: Body) -> &mut Self {
        let at = Timestamp(1_739_430_000_000 + 10 * self.events.len() as u64);
        let scope = Scope { node: self.node.clone(), parent: self.parent.clone(), thought: None };
        self.events.push(Event { at, scope, body });
        self
    }

    /// From here on the sub-agent of `call` speaks; none: the main agent.
    pub fn inside(&mut self, call: Option<&str>) -> &mut Self {
        self.parent = call.map(CallId::new);
        self
    }

    pub fn enter(&mut self, name: &str, n: u64) -> &mut Self {
        self.node = Some(Arc::new(NodeRun::new(name, n)));
        self.push(Body::NodeEnter)
    }

    pub fn exit(&mut self) -> &mut Self {
        self.push(Body::NodeExit { error: None })
    }

    pub fn state(&mut self, json: &str) -> &mut Self {
        self.push(Body::State(Json::trusted(json)))
    }

    pub fn message(&mut self) -> &mut Self {
        self.messages += 1;
        self.text.clear();
        self.calls.clear();
        let message_id = format!("msg-{}", self.messages).into();
        self.push(Body::MessageStart { message_id, model: "qwen-coder".into() })
    }

    pub fn text(&mut self, piece: &str) -> &mut Self {
        self.text.push_str(piece);
        self.push(Body::TextDelta(piece.into()))
    }

    pub fn thought(&mut self, piece: &str) -> &mut Self {
        self.push(Body::ThoughtDelta(piece.into()))
    }

    pub fn arguments(&mut self, index: u32, id: &str, name: &str, piece: &str) -> &mut Self {
        self.push(Body::ToolCallDelta {
            index,
            call_id: CallId::new(id),
            name: name.into(),
            arguments: piece.into(),
        })
    }

    pub fn call(&mut self, id: &str, name: &str, arguments: &str) -> &mut Self {
        let call = call(id, name, arguments);
        self.calls.push(call.clone());
        self.push(Body::ToolCall(call))
    }

    pub fn end(&mut self) -> &mut Self {
        self.end_with(false)
    }

    pub fn aborted(&mut self) -> &mut Self {
        self.end_with(true)
    }

    fn end_with(&mut self, aborted: bool) -> &mut Self {
        let end = MessageEnd {
            thought: "".into(),
            signature: None,
            thoughts: Vec::new(),
            message_id: format!("msg-{}", self.messages).into(),
            model: "qwen-coder".into(),
            text: self.text.as_str().into(),
            calls: std::mem::take(&mut self.calls),
            finish: Finish::Stop,
            usage: usage(100, 62),
            aborted,
        };
        self.push(Body::MessageEnd(Box::new(end)))
    }

    pub fn tool_start(&mut self, id: &str, name: &str) -> &mut Self {
        self.push(Body::ToolStart(call(id, name, "{}")))
    }

    pub fn tool_output(&mut self, id: &str, name: &str, text: &str) -> &mut Self {
        let channel = qwen_events::Channel::Stdout;
        self.push(Body::ToolOutput { call: call(id, name, "{}"), channel, text: text.into() })
    }

    pub fn tool_end(&mut self, id: &str, name: &str, status: ToolStatus, text: &str) -> &mut Self {
        self.push(Body::ToolEnd(Box::new(tool_end(id, name, status, text))))
    }

    /// The host is asked about an edit by the call `id`.
    pub fn ask(&mut self, request: &str, id: &str) -> &mut Self {
        let call = call(id, "write_file", r#"{"file_path":"out.txt"}"#);
        let decision = Decision { verdict: Verdict::Ask, reason: "edits are asked about".into(), rule: None };
        self.push(Body::Decision { call: call.clone(), decision });
        self.push(Body::Approval {
            call: call.clone(),
            confirmation: Box::new(edit("out.txt")),
            reason: "edits are asked about".into(),
        });
        self.push(Body::ControlRequest {
            request_id: request.into(),
            session_id: SessionId::parse("sess-001").unwrap(),
            prompt_id: Some(PromptId::new("sess-001########1")),
            call: Box::new(ControlCall::CanUseTool {
                call,
                confirmation: Box::new(edit("out.txt")),
                reason: "edits are asked about".into(),
                blocked_path: None,
                agent_id: None,
            }),
        })
    }

    /// The turn ends as `status` says, with `reply`.
    pub fn finish(&mut self, status: EndStatus, reply: &str, error: Option<ErrorInfo>) -> Vec<Event> {
        self.node = None;
        self.parent = None;
        let end = TurnEnd { status, error, reply: reply.into(), ..turn_end() };
        self.push(Body::TurnEnd(Box::new(end)));
        std::mem::take(&mut self.events)
    }

    pub fn done(&mut self, reply: &str) -> Vec<Event> {
        self.finish(EndStatus::Done, reply, None)
    }
}

pub fn turn_start(message: &str) -> TurnStart {
    TurnStart {
        parts: Vec::new(),
        turn: 1,
        run_id: "run-1".into(),
        message: message.into(),
        model: "qwen-coder".into(),
        cwd: "/workspace".into(),
        permission_mode: "auto-edit".into(),
        tools: vec!["read_file".into(), "write_file".into()],
        mcp_servers: vec![McpServer { name: "calc".into(), status: "connected".into() }],
        slash_commands: vec!["help".into()],
        agents: vec!["general".into()],
        key_source: "OPENAI_API_KEY".into(),
        ..TurnStart::new(SessionId::parse("sess-001").unwrap(), PromptId::new("sess-001########1"))
    }
}

pub fn turn_end() -> TurnEnd {
    TurnEnd {
        reply: "".into(),
        usage: usage(100, 62),
        usage_by_model: vec![ModelUsage {
            model: "qwen-coder".into(),
            calls: 1,
            usage: usage(100, 62),
            cost_usd: 0.25,
        }],
        cost_usd: 0.25,
        duration_ms: 1200,
        api_duration_ms: 900,
        model_calls: 1,
        ..TurnEnd::new(PromptId::new("sess-001########1"), EndStatus::Done)
    }
}

pub fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
    Usage { prompt_tokens, completion_tokens, cached_tokens: 30, ..Usage::default() }
}

pub fn call(id: &str, name: &str, arguments: &str) -> Arc<ToolCall> {
    Arc::new(ToolCall::new(CallId::new(id), name.into(), Json::trusted(arguments)))
}

pub fn tool_end(id: &str, name: &str, status: ToolStatus, text: &str) -> ToolEnd {
    ToolEnd {
        call: call(id, name, "{}"),
        status,
        text: text.into(),
        media: Vec::new(),
        display: None,
        error_code: None,
        output_file: None,
        exit_code: None,
        duration_ms: 5,
    }
}

pub fn edit(file: &str) -> Confirmation {
    Confirmation::Edit(diff(file))
}

pub fn diff(file: &str) -> FileDiff {
    FileDiff {
        file_name: file.into(),
        file_path: format!("/workspace/{file}").into(),
        diff: "@@ -1 +1 @@\n-a\n+b\n".into(),
        original: Some("a\n".into()),
        modified: "b\n".into(),
        stat: qwen_events::DiffStat::default(),
    }
}

/// A turn with everything in it: a thought, text, two calls (one refused), their results, an answer.
pub fn whole_turn() -> Vec<Event> {
    let mut script = Script::turn();
    script.enter("think", 1).message().thought("**Plan** look ").thought("first").text("I ").text("look.");
    script.arguments(0, "call_1", "read_file", "{\"file_path\":").arguments(
        0,
        "call_1",
        "read_file",
        "\"a\"}",
    );
    script.arguments(1, "call_2", "write_file", "").arguments(1, "call_2", "write_file", "{}");
    script.call("call_1", "read_file", r#"{"file_path":"a"}"#).call("call_2", "write_file", "{}").end();
    script.exit().state(r#"{"step":1}"#).enter("act", 1);
    script.tool_start("call_1", "read_file");
    script.tool_output("call_1", "read_file", "reading\n");
    script.tool_end("call_1", "read_file", ToolStatus::Success, "the file");
    script.tool_end("call_2", "write_file", ToolStatus::Denied, "This call was declined.");
    script.exit().state(r#"{"step":2}"#).enter("think", 2).message().text("Done").text(".").end();
    script.exit().state(r#"{"step":3}"#).done("Done.")
}
