//! Everything beside the conversation: questions, answers, notices, commands.

use qwen_dialects::StreamInfo;
use qwen_events::{
    Body, CancelResult, CommandCall, CommandKind, CommandResult, CommandResultBody, Confirmation,
    ControlCall, ControlReply, ErrorInfo, ErrorKind, Json, Level, PromptId, SessionEvent, SessionId,
    Thinking, ToolStatus,
};
use serde_json::{Value, json};

use super::{claude, kind, kinds, qwen_sdk};
use crate::script::{Script, bytes, call, lines};

#[test]
fn modes_are_written_in_the_words_of_both_families() {
    for (mode, claude_word) in [
        ("plan", "plan"),
        ("default", "default"),
        ("auto-edit", "acceptEdits"),
        ("yolo", "bypassPermissions"),
    ] {
        let mut script = Script::default();
        script.push(Body::Session(Box::new(SessionEvent::ModeChanged { mode: mode.into() })));
        let line = &lines(&claude(), &script.events)[0];
        assert_eq!(line["subtype"], "status");
        assert_eq!(line["status"], Value::Null);
        assert_eq!((&line["permissionMode"], &line["permission_mode"]), (&json!(claude_word), &json!(mode)));
    }
}

#[test]
fn session_state_follows_the_questions_and_rests_after_the_result() {
    let stateful = StreamInfo { session_state: true, ..claude() };
    let mut script = Script::turn();
    script.message().call("call_1", "write_file", "{}").call("call_2", "write_file", "{}").end();
    script.ask("req-1", "call_1").ask("req-2", "call_2");
    script.tool_start("call_1", "write_file");
    script.tool_end("call_1", "write_file", ToolStatus::Success, "ok");
    script.push(Body::ControlCancel { request_id: "req-2".into() });
    script.tool_end("call_2", "write_file", ToolStatus::Denied, "no");
    let lines = lines(&stateful, &script.done("x"));
    let states: Vec<_> = lines
        .iter()
        .filter(|line| matches!(kind(line).as_str(), "system/session_state_changed" | "result/success"))
        .map(|line| line["state"].as_str().unwrap_or("result"))
        .collect();
    assert_eq!(states, ["running", "requires_action", "requires_action", "running", "result", "idle"]);
    let state = lines.iter().find(|line| line["subtype"] == "session_state_changed").unwrap();
    assert_eq!(state["sdk_host_only"], true);
}

#[test]
fn the_host_is_asked_in_its_own_words() {
    let mut script = Script::default();
    script.ask("req-1", "call_1");
    let line = lines(&claude(), &script.events).remove(0);
    assert_eq!(
        line,
        json!({"type": "control_request", "request_id": "req-1", "request": {
            "subtype": "can_use_tool", "tool_name": "write_file", "display_name": "write_file",
            "input": {"file_path": "out.txt"}, "description": "Edit file: out.txt",
            "permission_suggestions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
            "tool_use_id": "call_1", "blocked_path": null, "decision_reason": "edits are asked about",
            "kind": "edit", "locations": [{"path": "/workspace/out.txt"}],
            "content": [{"type": "diff", "path": "/workspace/out.txt", "oldText": "a\n", "newText": "b\n"}],
        }})
    );
    let line = lines(&qwen_sdk(), &script.events).remove(0);
    assert_eq!(
        line["request"]["permission_suggestions"],
        json!([
            {"type": "allow", "label": "Allow Edit", "description": "Edit file: out.txt"},
            {"type": "deny", "label": "Deny", "description": "Block this file edit"},
            {"type": "modify", "label": "Review Changes",
             "description": "Review the proposed changes before applying"},
        ])
    );
}

fn ask(call: ControlCall) -> Body {
    Body::ControlRequest {
        request_id: "req-1".into(),
        session_id: SessionId::parse("sess-001").unwrap(),
        prompt_id: None,
        call: Box::new(call),
    }
}

#[test]
fn qwens_buttons_fit_what_is_asked() {
    for (confirmation, allow, description, deny) in [
        (
            Confirmation::Exec { command: "ls -l".into(), root_command: "ls".into() },
            "Allow Command",
            "Execute: ls -l",
            "Deny",
        ),
        (
            Confirmation::Mcp { server: "calc".into(), tool: "add".into(), display: "Add".into() },
            "Allow MCP Call",
            "calc: add",
            "Deny",
        ),
        (
            Confirmation::Info { prompt: "Fetch a page".into(), urls: Vec::new() },
            "Allow Info Request",
            "Fetch a page",
            "Deny",
        ),
        (Confirmation::Plan { plan: "1. do".into() }, "Approve Plan", "Carry this plan out", "Reject Plan"),
    ] {
        let mut script = Script::default();
        script.push(ask(ControlCall::CanUseTool {
            call: call("call_1", "x", "{}"),
            confirmation: Box::new(confirmation),
            reason: "r".into(),
            blocked_path: Some("/etc".into()),
            agent_id: Some("agent-1".into()),
        }));
        let line = lines(&qwen_sdk(), &script.events).remove(0);
        let request = &line["request"];
        let buttons = &request["permission_suggestions"];
        assert_eq!((&buttons[0]["label"], &buttons[0]["description"]), (&json!(allow), &json!(description)));
        assert_eq!((&buttons[1]["label"], buttons.as_array().unwrap().len()), (&json!(deny), 2));
        assert_eq!((&request["blocked_path"], &request["agent_id"]), (&json!("/etc"), &json!("agent-1")));
    }
}

#[test]
fn hooks_and_mcp_messages_reach_the_host_nested() {
    let mut script = Script::default();
    script.push(ask(ControlCall::HookCallback {
        callback_id: "hook_0".into(),
        input: Json::trusted(r#"{"hook_event_name":"PreToolUse"}"#),
        tool_use_id: Some("call_1".into()),
    }));
    script.push(ask(ControlCall::McpMessage {
        server: "calc".into(),
        message: Json::trusted(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
    }));
    script.push(Body::ControlCancel { request_id: "req-1".into() });
    let lines = lines(&claude(), &script.events);
    assert_eq!(
        lines[0]["request"],
        json!({"subtype": "hook_callback", "callback_id": "hook_0", "tool_use_id": "call_1",
               "input": {"hook_event_name": "PreToolUse"}})
    );
    assert_eq!(
        lines[1]["request"],
        json!({"subtype": "mcp_message", "server_name": "calc",
               "message": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}})
    );
    assert_eq!(lines[2], json!({"type": "control_cancel_request", "request_id": "req-1"}));
}

#[test]
fn answers_take_the_form_of_the_question() {
    let reply = |nested, result| {
        Body::ControlReply(Box::new(ControlReply { request_id: "r".into(), nested, result }))
    };
    let error = || ErrorInfo::new(ErrorKind::Input, "unknown_subtype", "no such thing");
    let mut script = Script::default();
    script.push(reply(true, Ok(Json::trusted(r#"{"mode":"plan"}"#)))).push(reply(true, Err(error())));
    script.push(reply(false, Ok(Json::trusted("{}")))).push(reply(false, Err(error())));
    assert_eq!(
        json!(lines(&claude(), &script.events)),
        json!([
            {"type": "control_response",
             "response": {"subtype": "success", "request_id": "r", "response": {"mode": "plan"}}},
            {"type": "control_response",
             "response": {"subtype": "error", "request_id": "r", "error": "no such thing"}},
            {"type": "control_response", "request_id": "r", "response": {"subtype": "success", "result": {}}},
            {"type": "control_response", "request_id": "r", "response": {"subtype": "error",
             "error": {"message": "no such thing", "code": "unknown_subtype", "retryable": false}}},
        ])
    );
}

#[test]
fn a_bad_line_costs_one_notice_and_a_fatal_error_is_one_result() {
    let mut script = Script::default();
    script.push(Body::Error(Box::new(
        ErrorInfo::new(ErrorKind::Input, "invalid_json", "not JSON").with_param("line"),
    )));
    script.push(Body::Error(Box::new(ErrorInfo::new(ErrorKind::Internal, "notice", "failed notice"))));
    script.push(Body::Fatal(Box::new(ErrorInfo::new(ErrorKind::Settings, "bad_settings", "no model"))));
    let lines = lines(&claude(), &script.events);
    assert_eq!(kinds(&lines), ["system/input_error", "system/error", "result/error_during_execution"]);
    assert_eq!(lines[0]["error"]["message"], "not JSON");
    assert_eq!(
        (&lines[0]["error"]["code"], &lines[0]["error"]["param"]),
        (&json!("invalid_json"), &json!("line"))
    );
    assert_eq!(lines[2]["errors"], json!(["no model"]));
    assert_eq!(lines[2]["session_id"], "sess-001");
}

fn command_result(body: CommandResultBody) -> Body {
    Body::CommandResult(Box::new(CommandResult {
        session_id: SessionId::parse("sess-001").unwrap(),
        prompt_id: PromptId::new("p"),
        message_uuid: None,
        message_origin: None,
        cleared_session: None,
        command: CommandCall { kind: CommandKind::Slash, path: vec!["help".into()], args: "".into() },
        body,
    }))
}

#[test]
fn a_command_is_answered_like_a_prompt() {
    let stateful = StreamInfo { session_state: true, ..claude() };
    for (level, is_error) in [(Level::Info, false), (Level::Error, true)] {
        let mut script = Script::default();
        script.push(command_result(CommandResultBody::Message { level, content: "Ask me.".into() }));
        let lines = lines(&stateful, &script.events);
        assert_eq!(kinds(&lines), ["assistant:text", "result/success", "system/session_state_changed"]);
        assert_eq!(lines[0]["message"]["model"], "<synthetic>");
        assert_eq!((&lines[1]["result"], &lines[1]["is_error"]), (&json!("Ask me."), &json!(is_error)));
    }
    let mut script = Script::default();
    script.push(command_result(CommandResultBody::SubmitPrompt { content: "go".into() }));
    assert!(lines(&stateful, &script.events).is_empty(), "its turn follows");
}

#[test]
fn notices_about_the_session_have_the_sdks_names() {
    let mut script = Script::default();
    for notice in [
        SessionEvent::Retry {
            attempt: 1,
            max_retries: 4,
            delay_ms: 500,
            status: Some(429),
            error: "slow down".into(),
        },
        SessionEvent::Compressed { original_tokens: 9000, new_tokens: 800, manual: false },
        SessionEvent::ModelFallback { from: "a".into(), to: "b".into(), reason: "gone".into() },
        SessionEvent::LoopDetected { message: "same call".into() },
        SessionEvent::Finished,
        SessionEvent::Cancelled,
    ] {
        script.push(Body::Session(Box::new(notice)));
    }
    script.push(Body::Thinking(Box::new(Thinking::TotExpand { candidates: vec!["x".into(), "y".into()] })));
    let lines = lines(&claude(), &script.events);
    assert_eq!(
        kinds(&lines),
        [
            "system/api_retry",
            "system/compact_boundary",
            "system/model_fallback",
            "system/loop_detected",
            "system/thinking_progress",
        ]
    );
    assert_eq!(lines[0]["retry_delay_ms"], 500);
    assert_eq!((&lines[0]["error_status"], &lines[0]["error"]), (&json!(429), &json!("rate_limit")));
    assert_eq!(lines[1]["compact_metadata"]["pre_tokens"], 9000);
    assert!(lines[4]["text"].as_str().unwrap().contains("x | y"));
}

#[test]
fn requests_that_are_no_prompts_are_answered_flat() {
    let session_id = SessionId::parse("sess-001").unwrap();
    let mut script = Script::default();
    script.push(Body::Heartbeat(qwen_events::Heartbeat::idle(session_id.clone())));
    script.push(Body::CancelResult(Box::new(CancelResult {
        session_id,
        prompt_id: None,
        cancelled: false,
        message: "nothing runs".into(),
        reason: "escape".into(),
        request_id: Some("r".into()),
    })));
    let lines = lines(&claude(), &script.events);
    assert_eq!(
        lines[0],
        json!({"type": "result/heartbeat", "session_id": "sess-001", "status": "ok", "ts": 1_739_430_000})
    );
    assert_eq!((&lines[1]["type"], &lines[1]["status"]), (&json!("result/cancel"), &json!("noop")));
    assert_eq!((&lines[2]["type"], &lines[2]["request_id"]), (&json!("control_response"), &json!("r")));
}

#[test]
fn what_only_people_or_graphs_need_stays_out() {
    let mut script = Script::default();
    script.push(Body::Ready).enter("think", 1).exit().state("{}");
    script.push(Body::Console {
        level: qwen_events::ConsoleLevel::Info,
        scope: qwen_events::LogScope::System,
        text: "log".into(),
    });
    assert!(bytes(&claude(), &script.events).is_empty());
}

#[test]
fn qwens_sdks_hear_no_notice_outside_a_turn() {
    let notice = || Body::Session(Box::new(SessionEvent::ModeChanged { mode: "plan".into() }));
    let mut outside = Script::default();
    outside.push(notice());
    assert!(lines(&qwen_sdk(), &outside.events).is_empty(), "one of them would take it for an answer");
    let mut inside = Script::turn();
    inside.push(notice());
    assert_eq!(kinds(&lines(&qwen_sdk(), &inside.events)), ["system/init", "system/status"]);
}
