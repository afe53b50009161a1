//! One story in which everything happens that can happen.

use std::sync::Arc;

use qwen_events::{
    Body, CallId, CancelResult, Channel, CommandCall, CommandKind, CommandResult, CommandResultBody,
    Confirmation, ConsoleLevel, ControlCall, ControlReply, Decision, Denial, DiffStat, Display, EndStatus,
    ErrorInfo, ErrorKind, FileDiff, HintResult, HintStatus, HintTrigger, Json, Level, LogScope, Media,
    MediaSource, PromptId, SessionEvent, SessionId, Suggestion, TaskProgress, Thinking, Timeout, Todo,
    TodoStatus, ToolEnd, ToolStatus, TurnEnd, Usage, Verdict,
};

use super::{PROMPT, SESSION, Story, call, tool_end, turn_end, turn_start, usage};

/// Everything that can happen, in one turn and around it.
pub fn everything() -> Story {
    let edit = call("call-edit", "edit", r#"{"file_path":"/workspace/demo/src/main.py"}"#);
    let shell = call("call-shell", "run_shell_command", r#"{"command":"cargo test"}"#);
    let agent = call("call-agent", "agent", r#"{"prompt":"look around"}"#);
    let inner = call("call-inner", "read_file", r#"{"file_path":"a.txt"}"#);
    let mut story = Story::new()
        .then(Body::Ready)
        .then(Body::Heartbeat(qwen_events::Heartbeat::idle(session())))
        .then(Body::Error(Box::new(
            ErrorInfo::new(ErrorKind::Input, "invalid_json", "not JSON").with_param("x"),
        )))
        .then(Body::CommandResult(Box::new(command_result(CommandResultBody::Message {
            level: Level::Info,
            content: "The current session has 3 history records.".into(),
        }))))
        .then(Body::CommandResult(Box::new(command_result(CommandResultBody::Dialog {
            name: "settings".into(),
            data: Json::trusted(r#"{"tab":"model"}"#),
        }))))
        .then(Body::CommandResult(Box::new(command_result(CommandResultBody::Tool {
            name: "read_file".into(),
            arguments: Json::trusted(r#"{"file_path":"a"}"#),
        }))))
        .then(Body::CommandResult(Box::new(command_result(CommandResultBody::SubmitPrompt {
            content: "go".into(),
        }))))
        .then(Body::HintResult(Box::new(hint_result())))
        .then(Body::TurnStart(Box::new(turn_start(PROMPT))))
        .then(Body::NodeEnter)
        .message_start()
        .thought("**Analyzing repo**\n")
        .thought("Listing tsconfig patterns...")
        .message("Let me look.", &[&edit, &shell, &agent])
        .then(Body::NodeExit { error: None })
        .then(Body::State(Json::empty_object()))
        .then(Body::Decision {
            call: Arc::clone(&edit),
            decision: Decision { verdict: Verdict::Ask, reason: "it writes".into(), rule: None },
        });
    for (at, confirmation) in confirmations().into_iter().enumerate() {
        let reason: Arc<str> = "apply_diff".into();
        story = story
            .then(Body::ControlRequest {
                request_id: format!("req-{at}").into(),
                session_id: session(),
                prompt_id: Some(PromptId::new(PROMPT)),
                call: Box::new(ControlCall::CanUseTool {
                    call: Arc::clone(&edit),
                    confirmation: Box::new(confirmation.clone()),
                    reason: reason.clone(),
                    blocked_path: Some("/etc/passwd".into()),
                    agent_id: Some("call-agent".into()),
                }),
            })
            .then(Body::Approval { call: Arc::clone(&edit), confirmation: Box::new(confirmation), reason })
            .then(Body::ControlCancel { request_id: format!("req-{at}").into() });
    }
    story = story
        .then(Body::ControlRequest {
            request_id: "req-hook".into(),
            session_id: session(),
            prompt_id: None,
            call: Box::new(ControlCall::HookCallback {
                callback_id: "hook_0".into(),
                input: Json::trusted(r#"{"hook_event_name":"PreToolUse"}"#),
                tool_use_id: Some("call-edit".into()),
            }),
        })
        .then(Body::ControlRequest {
            request_id: "req-mcp".into(),
            session_id: session(),
            prompt_id: None,
            call: Box::new(ControlCall::McpMessage {
                server: "calc".into(),
                message: Json::trusted(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
            }),
        })
        .then(Body::ToolStart(Arc::clone(&shell)))
        .then(Body::ToolOutput {
            call: Arc::clone(&shell),
            channel: Channel::Stdout,
            text: "\u{1b}[32mall tests passed\u{1b}[0m\n".into(),
        })
        .then(Body::ToolOutput {
            call: Arc::clone(&shell),
            channel: Channel::Stderr,
            text: "a warning".into(),
        })
        .then(Body::ToolEnd(Box::new(tool_end(&shell, ToolStatus::Success, "all tests passed"))));
    for display in displays() {
        story = story.then(Body::ToolDisplay { call: Arc::clone(&edit), display: Box::new(display.clone()) });
        let end = ToolEnd {
            display: Some(display),
            media: vec![
                Media { mime_type: "image/png".into(), source: MediaSource::Base64("iVBO".into()) },
                Media { mime_type: "image/png".into(), source: MediaSource::Url("https://a/b.png".into()) },
            ],
            output_file: Some("/tmp/out".into()),
            ..tool_end(&edit, ToolStatus::Error, "no such file")
        };
        story = story.then(Body::ToolEnd(Box::new(end)));
    }
    story = story
        .then(Body::ToolStart(Arc::clone(&agent)))
        .inside(Some("call-agent"))
        .message_start()
        .thought("A sub-agent thinks")
        .text("A sub-agent's words")
        .message("", &[&inner])
        .run(&inner, "inner")
        .inside(None)
        .then(Body::ToolEnd(Box::new(tool_end(&agent, ToolStatus::Cancelled, "stopped"))));
    for step in steps() {
        story = story.then(Body::Thinking(Box::new(step)));
    }
    for notice in notices() {
        story = story.then(Body::Session(Box::new(notice)));
    }
    for nested in [false, true] {
        for result in [
            Ok(Json::trusted(r#"{"model":"m"}"#)),
            Err(ErrorInfo::new(ErrorKind::Input, "unknown_subtype", "no such")),
        ] {
            story = story.then(Body::ControlReply(Box::new(ControlReply {
                request_id: "r-1".into(),
                nested,
                result,
            })));
        }
    }
    story
        .then(Body::Console { level: ConsoleLevel::Warn, scope: LogScope::Tool, text: "slow disk".into() })
        .then(Body::Custom(Json::trusted(r#"{"kind":"note"}"#)))
        .then(Body::Error(Box::new(ErrorInfo::new(ErrorKind::Network, "hook_failed", "a hook failed"))))
        .then(Body::CancelResult(Box::new(CancelResult {
            session_id: session(),
            prompt_id: None,
            cancelled: true,
            message: "The turn is being cancelled.".into(),
            reason: "escape".into(),
            request_id: Some("req-9".into()),
        })))
        .message("Fix completed; the file has been updated.", &[])
        .then(Body::TurnEnd(Box::new(TurnEnd {
            usage: Usage {
                cached_tokens: 5,
                cache_write_tokens: 2,
                thought_tokens: 7,
                estimated: true,
                ..usage(1600, 200)
            },
            denials: vec![Denial {
                tool_name: "edit".into(),
                call_id: CallId::new("call-edit"),
                arguments: Json::trusted(r#"{"file_path":"a"}"#),
                reason: "nobody was there to ask".into(),
            }],
            control_errors: vec![ErrorInfo::new(
                ErrorKind::Timeout(Timeout::Control),
                "control_timeout",
                "no answer",
            )],
            structured: Some(Json::trusted(r#"{"answer":42}"#)),
            ..turn_end(PROMPT, EndStatus::Done, "Fix completed; the file has been updated.")
        })))
        .then(Body::Fatal(Box::new(ErrorInfo::new(
            ErrorKind::Settings,
            "bad_settings",
            "settings.json is not JSON",
        ))))
}

pub fn session() -> SessionId {
    SessionId::parse(SESSION).unwrap()
}

pub fn command_result(body: CommandResultBody) -> CommandResult {
    let path = vec!["chat".into(), "list".into()];
    let command = CommandCall { kind: CommandKind::Slash, path, args: "".into() };
    CommandResult::new(session(), PromptId::new("session-123########8"), command, body)
}

pub fn hint_result() -> HintResult {
    HintResult {
        session_id: session(),
        prompt_id: PromptId::new("session-123########preview"),
        trigger: HintTrigger::Slash,
        status: HintStatus::Ok,
        suggestions: vec![Suggestion {
            label: "chat".into(),
            value: "chat".into(),
            description: Some("Manage conversation history.".into()),
        }],
        is_perfect_match: false,
        message: None,
    }
}

pub fn file_diff() -> FileDiff {
    FileDiff {
        file_name: "src/main.py".into(),
        file_path: "/workspace/demo/src/main.py".into(),
        diff: "--- a/src/main.py\n+++ b/src/main.py\n@@ -1 +1 @@\n-print('Hi')\n+print('Hello')".into(),
        original: Some("print('Hi')\n".into()),
        modified: "print('Hello')\n".into(),
        stat: DiffStat { ai_added_lines: 1, ai_removed_lines: 1, ..DiffStat::default() },
    }
}

pub fn confirmations() -> Vec<Confirmation> {
    vec![
        Confirmation::Edit(file_diff()),
        Confirmation::Exec { command: "ls -l | wc".into(), root_command: "ls, wc".into() },
        Confirmation::Mcp { server: "calc".into(), tool: "add".into(), display: "Add".into() },
        Confirmation::Info { prompt: "Fetch a page".into(), urls: vec!["https://a/".into()] },
        Confirmation::Plan { plan: "1. Look\n2. Fix".into() },
    ]
}

pub fn displays() -> Vec<Display> {
    vec![
        Display::Text("words".into()),
        Display::FileDiff(file_diff()),
        Display::TodoList(vec![Todo {
            id: "1".into(),
            content: "fix".into(),
            status: TodoStatus::InProgress,
        }]),
        Display::Plan { message: "A plan".into(), plan: "1. Look".into() },
        Display::Task(TaskProgress {
            agent: "explorer".into(),
            description: "look around".into(),
            status: "running",
            tool_calls: 1,
            tokens: 20,
            result: None,
        }),
    ]
}

pub fn steps() -> Vec<Thinking> {
    vec![
        Thinking::TotExpand { candidates: vec!["a".into(), "b".into(), "c".into()] },
        Thinking::TotEvaluate { chosen: 1, scores: vec![0.5, 1.0] },
        Thinking::TotBacktrack { reason: "dead end".into(), to_depth: 0 },
        Thinking::GotPlan { node_ids: vec!["n1".into(), "n2".into()], edge_count: 1 },
        Thinking::GotNodeStart { id: "n1".into() },
        Thinking::GotNodeComplete { id: "n1".into(), result_summary: "sorted".into() },
        Thinking::GotNodeFailed { id: "n2".into(), error: "no answer".into() },
        Thinking::GotExpand { id: "n2".into(), nodes_added: 2, edges_added: 3 },
    ]
}

pub fn notices() -> Vec<SessionEvent> {
    vec![
        SessionEvent::Compressed { original_tokens: 12000, new_tokens: 8000, manual: false },
        SessionEvent::MaxTokens { message: "Response truncated due to token limits.".into() },
        SessionEvent::MaxTurns { limit: 3 },
        SessionEvent::Cancelled,
        SessionEvent::Retry {
            attempt: 1,
            max_retries: 4,
            delay_ms: 500,
            status: Some(429),
            error: "too many".into(),
        },
        SessionEvent::ModelFallback { from: "a".into(), to: "b".into(), reason: "overloaded".into() },
        SessionEvent::LoopDetected { message: "the same call five times".into() },
        SessionEvent::ModeChanged { mode: "auto-edit".into() },
        SessionEvent::Finished,
    ]
}
