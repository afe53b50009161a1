//! The `claude` dialect, as the SDKs read it.

use qwen_dialects::{Dialect, StreamInfo};
use qwen_events::{
    Body, CallId, CancelResult, CommandCall, CommandKind, CommandResult, CommandResultBody, Confirmation,
    ControlCall, ControlReply, Denial, Display, EndStatus, ErrorInfo, ErrorKind, Finish, Json, Level, Media,
    MediaSource, MessageEnd, PromptId, SessionEvent, SessionId, Thinking, Timeout, ToolStatus, TurnEnd,
    Usage,
};
use serde_json::{Value, json};

use crate::script::{
    Script, bytes, call, diff, info, lines, parse, tool_end, turn_end, turn_start, usage, whole_turn,
};

fn claude() -> StreamInfo {
    info(Dialect::Claude)
}

fn partial() -> StreamInfo {
    StreamInfo { partial_messages: true, ..claude() }
}

fn qwen_sdk() -> StreamInfo {
    StreamInfo { qwen_sdk: true, ..claude() }
}

/// A line in a few letters: `system/init`, `assistant:text`, `stream:content_block_start#0`.
fn kind(line: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match line["type"].as_str().unwrap() {
        "system" | "result" => format!("{}/{}", word(&line["type"]), word(&line["subtype"])),
        role @ ("assistant" | "user") => format!("{role}:{}", word(&line["message"]["content"][0]["type"])),
        "stream_event" => {
            let index = line["event"]["index"].as_u64().map(|index| format!("#{index}")).unwrap_or_default();
            format!("stream:{}{index}", word(&line["event"]["type"]))
        }
        other => other.to_owned(),
    }
}

fn kinds(lines: &[Value]) -> Vec<String> {
    lines.iter().map(kind).collect()
}

fn last_result(lines: &[Value]) -> &Value {
    lines.iter().rfind(|line| line["type"] == "result").expect("a result")
}

#[test]
fn a_turn_is_init_a_line_for_each_block_and_result_and_then_the_result() {
    let lines = lines(&claude(), &whole_turn());
    assert_eq!(
        kinds(&lines),
        [
            "system/init",
            "assistant:thinking",
            "assistant:text",
            "assistant:tool_use",
            "assistant:tool_use",
            "user:tool_result",
            "user:tool_result",
            "assistant:text",
            "result/success",
        ]
    );
    let first_message: Vec<_> = lines[1..5].iter().map(|line| &line["message"]["id"]).collect();
    assert!(first_message.iter().all(|id| *id == "msg-1"), "{first_message:?}");
    assert_eq!(lines[7]["message"]["id"], "msg-2");
    let reasons: Vec<_> = lines[1..5].iter().map(|line| &line["message"]["stop_reason"]).collect();
    assert_eq!(json!(reasons), json!([null, null, null, "tool_use"]));
    assert_eq!(lines[7]["message"]["stop_reason"], "end_turn");
    assert_eq!(lines[1]["message"]["content"][0]["signature"], "", "an SDK fails without it");
    assert_eq!(lines[3]["message"]["content"][0]["input"], json!({"file_path": "a"}));
    assert_eq!(
        lines[5]["message"]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "call_1", "is_error": false, "content": "the file"})
    );
    assert_eq!(lines[6]["message"]["content"][0]["is_error"], true);
    assert_eq!(lines[6]["tool_use_result"]["status"], "denied");
    for line in &lines {
        assert_eq!(line["session_id"], "sess-001", "{line}");
        assert_eq!(line["uuid"].as_str().map(str::len), Some(36), "{line}");
    }
}

#[test]
fn pieces_come_inside_their_blocks_and_each_block_closes_before_its_line() {
    let lines = lines(&partial(), &whole_turn());
    assert_eq!(
        kinds(&lines)[1..],
        [
            "stream:message_start",
            "stream:content_block_start#0",
            "stream:content_block_delta#0",
            "stream:content_block_delta#0",
            "stream:content_block_stop#0",
            "assistant:thinking",
            "stream:content_block_start#1",
            "stream:content_block_delta#1",
            "stream:content_block_delta#1",
            "stream:content_block_stop#1",
            "assistant:text",
            "stream:content_block_start#2",
            "stream:content_block_delta#2",
            "stream:content_block_delta#2",
            "stream:content_block_stop#2",
            "stream:content_block_start#3",
            "stream:content_block_delta#3",
            "assistant:tool_use",
            "stream:content_block_stop#3",
            "assistant:tool_use",
            "stream:message_delta",
            "stream:message_stop",
            "user:tool_result",
            "user:tool_result",
            "stream:message_start",
            "stream:content_block_start#0",
            "stream:content_block_delta#0",
            "stream:content_block_delta#0",
            "stream:content_block_stop#0",
            "assistant:text",
            "stream:message_delta",
            "stream:message_stop",
            "result/success",
        ]
    );
    let thinking = &lines[3]["event"]["delta"];
    assert_eq!(thinking["thinking"], thinking["text"], "readers look for it under two names");
    let arguments: String = lines
        .iter()
        .filter(|line| line["event"]["index"] == 2)
        .filter_map(|line| line["event"]["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(arguments, r#"{"file_path":"a"}"#);
    let delta = lines.iter().find(|line| kind(line) == "stream:message_delta").unwrap();
    assert_eq!(delta["event"]["delta"]["stop_reason"], "tool_use");
    assert_eq!(delta["event"]["usage"]["output_tokens"], 62);
}

#[test]
fn the_same_events_and_seed_give_the_same_bytes() {
    assert_eq!(bytes(&partial(), &whole_turn()), bytes(&partial(), &whole_turn()));
    let other = StreamInfo { seed: 8, ..partial() };
    assert_ne!(bytes(&partial(), &whole_turn()), bytes(&other, &whole_turn()));
}

#[test]
fn init_tells_each_sdk_what_it_looks_for() {
    let lines = lines(&claude(), &Script::turn().done(""));
    let init = &lines[0];
    let version: Vec<u64> =
        init["claude_code_version"].as_str().unwrap().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(version.len() == 3 && version >= vec![2, 1, 248], "{version:?}");
    for (key, expected) in [
        ("qwen_code_version", json!("0.1.0")),
        ("cwd", json!("/workspace")),
        ("model", json!("qwen-coder")),
        ("permissionMode", json!("acceptEdits")),
        ("permission_mode", json!("auto-edit")),
        ("tools", json!(["read_file", "write_file"])),
        ("mcp_servers", json!([{"name": "calc", "status": "connected"}])),
        ("slash_commands", json!(["help"])),
        ("apiKeySource", json!("OPENAI_API_KEY")),
        ("output_style", json!("default")),
        ("agents", json!(["general"])),
        ("skills", json!([])),
        ("plugins", json!([])),
    ] {
        assert_eq!(init[key], expected, "{key}");
    }
}

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
fn a_message_that_was_not_streamed_is_shown_whole() {
    let mut script = Script::turn();
    script.push(Body::MessageEnd(Box::new(MessageEnd {
        thought: "".into(),
        signature: None,
        message_id: "msg-1".into(),
        model: "qwen-coder".into(),
        text: "All at once.".into(),
        calls: vec![call("call_1", "read_file", r#"{"file_path":"a"}"#)],
        finish: Finish::ToolCalls,
        usage: usage(1, 1),
        aborted: false,
    })));
    let events = script.done("All at once.");
    let whole = lines(&claude(), &events);
    assert_eq!(kinds(&whole)[1..3], ["assistant:text", "assistant:tool_use"]);
    let streamed = lines(&partial(), &events);
    let pieces: Vec<_> = streamed.iter().filter_map(|line| line["event"].get("delta")).collect();
    assert_eq!(pieces[0]["text"], "All at once.");
    assert_eq!(pieces[1]["partial_json"], r#"{"file_path":"a"}"#);
}

#[test]
fn a_cancel_while_the_model_writes_leaves_a_partial_message_and_says_so() {
    let mut script = Script::turn();
    script.message().text("I was ").aborted();
    let events = script.finish(EndStatus::Cancelled, "I was ", None);
    let lines = lines(&claude(), &events);
    assert_eq!(
        kinds(&lines)[1..],
        ["assistant:text", "user:text", "result/error_during_execution"],
        "the order that the SDKs know"
    );
    assert_eq!(lines[1]["aborted"], true);
    assert_eq!(lines[1]["message"]["stop_reason"], Value::Null);
    assert_eq!(lines[2]["message"]["content"][0]["text"], "[Request interrupted by user]");
    assert_eq!(lines[3]["terminal_reason"], "aborted_streaming");
    assert!(lines[3]["errors"][0].is_string() && lines[3].get("error").is_none());
    let qwen = crate::script::lines(&qwen_sdk(), &events);
    assert_eq!(last_result(&qwen)["error"], json!({"message": "Operation cancelled."}));
}

#[test]
fn a_cancel_while_a_tool_runs_ends_the_tool_first() {
    let mut script = Script::turn();
    script.message().call("call_1", "run_shell_command", "{}").end();
    script.tool_start("call_1", "run_shell_command");
    script.tool_end("call_1", "run_shell_command", ToolStatus::Cancelled, "cancelled");
    let lines = lines(&claude(), &script.finish(EndStatus::Cancelled, "", None));
    assert_eq!(kinds(&lines)[2..], ["user:tool_result", "user:text", "result/error_during_execution"]);
    assert_eq!(lines[2]["message"]["content"][0]["is_error"], true);
    assert_eq!(lines[3]["message"]["content"][0]["text"], "[Request interrupted by user for tool use]");
    assert_eq!(lines[4]["terminal_reason"], "aborted_tools");
}

#[test]
fn a_half_written_call_is_never_shown_as_one() {
    let mut script = Script::turn();
    script.message().arguments(0, "call_1", "write_file", "{\"file_pa").aborted();
    let lines = lines(&partial(), &script.finish(EndStatus::Cancelled, "", None));
    assert!(!kinds(&lines).contains(&"assistant:tool_use".to_owned()));
    assert!(kinds(&lines).contains(&"stream:content_block_stop#0".to_owned()));
}

fn failure(kind: ErrorKind, status: Option<u16>) -> ErrorInfo {
    ErrorInfo { status, ..ErrorInfo::new(kind, "model_error", "the model is unhappy") }
}

#[test]
fn a_failed_model_call_is_an_answer_for_claude_and_an_error_for_qwen() {
    for (error, text) in [
        (failure(ErrorKind::Model, Some(400)), "API Error: 400 the model is unhappy"),
        (failure(ErrorKind::Auth, Some(401)), "API Error: 401 the model is unhappy"),
        (failure(ErrorKind::Network, None), "API Error: the model is unhappy"),
        (failure(ErrorKind::Timeout(Timeout::FirstToken), None), "API Error: the model is unhappy"),
    ] {
        let events = Script::turn().finish(EndStatus::Error, "", Some(error.clone()));
        let claude_lines = lines(&claude(), &events);
        assert_eq!(kinds(&claude_lines)[1..], ["assistant:text", "result/success"]);
        assert_eq!(claude_lines[1]["message"]["model"], "<synthetic>");
        assert_eq!(claude_lines[1]["message"]["content"][0]["text"], text);
        let result = &claude_lines[2];
        assert_eq!((&result["is_error"], &result["result"]), (&json!(true), &json!(text)));
        assert_eq!(result["terminal_reason"], "api_error");
        assert_eq!(result.get("api_error_status").cloned(), error.status.map(|status| json!(status)));

        let qwen_lines = lines(&qwen_sdk(), &events);
        assert_eq!(kinds(&qwen_lines)[1..], ["result/error_during_execution"]);
        assert_eq!(qwen_lines[1]["error"]["message"], "the model is unhappy");
    }
}

#[test]
fn every_way_a_turn_ends_has_its_subtype_and_reason() {
    let broken = || Some(ErrorInfo::new(ErrorKind::Internal, "internal", "our fault"));
    let slow = || Some(ErrorInfo::new(ErrorKind::Timeout(Timeout::Turn), "turn_timeout", "too slow"));
    for (status, error, subtype, reason) in [
        (EndStatus::Done, None, "success", "completed"),
        (EndStatus::Error, broken(), "error_during_execution", "error"),
        (EndStatus::Error, None, "error_during_execution", "error"),
        (EndStatus::Error, slow(), "error_during_execution", "error"),
        (EndStatus::Interrupted, None, "error_during_execution", "interrupted"),
        (EndStatus::MaxTurns, None, "error_max_turns", "max_turns"),
        (EndStatus::Budget, broken(), "error_max_budget_usd", "budget"),
        (EndStatus::MaxToolCalls, None, "error_during_execution", "max_tool_calls"),
        (EndStatus::MaxWallTime, slow(), "error_during_execution", "max_wall_time"),
        (EndStatus::MaxTokens, None, "error_during_execution", "max_tokens"),
    ] {
        let message = error.as_ref().map(|error| error.message.to_string());
        let all = lines(&claude(), &Script::turn().finish(status, "so far", error));
        let result = last_result(&all);
        assert_eq!(all.len(), 2, "one terminal record and nothing else");
        assert_eq!((&result["subtype"], &result["terminal_reason"]), (&json!(subtype), &json!(reason)));
        assert_eq!(result["is_error"], status != EndStatus::Done);
        if status == EndStatus::Done {
            assert_eq!(result["result"], "so far");
            assert!(result.get("errors").is_none());
        } else {
            let told = result["errors"][0].as_str().unwrap();
            assert!(message.is_none_or(|message| message == told) && !told.is_empty());
        }
        for key in ["duration_ms", "duration_api_ms", "num_turns", "total_cost_usd", "usage", "modelUsage"] {
            assert!(result.get(key).is_some(), "{key}");
        }
    }
}

#[test]
fn the_result_lists_refusals_and_what_was_spent() {
    let end = TurnEnd {
        denials: vec![Denial {
            tool_name: "write_file".into(),
            call_id: CallId::new("call_2"),
            arguments: Json::trusted(r#"{"file_path":"x"}"#),
            reason: "no".into(),
        }],
        structured: Some(Json::trusted(r#"{"n":1}"#)),
        reply: "ok".into(),
        ..turn_end()
    };
    let mut script = Script::turn();
    script.push(Body::TurnEnd(Box::new(end)));
    let all = lines(&claude(), &script.events);
    let result = last_result(&all);
    assert_eq!(
        result["permission_denials"],
        json!([{"tool_name": "write_file", "tool_use_id": "call_2", "tool_input": {"file_path": "x"}}])
    );
    assert_eq!(result["structured_output"], json!({"n": 1}));
    assert_eq!(result.get("structured_result"), None);
    assert_eq!(
        result["usage"],
        json!({"input_tokens": 70, "output_tokens": 62, "cache_read_input_tokens": 30,
               "cache_creation_input_tokens": 0, "total_tokens": 162}),
        "Claude's input tokens leave the cached ones out"
    );
    assert_eq!(result["modelUsage"]["qwen-coder"]["costUSD"], 0.25);
    assert_eq!(result["modelUsage"]["qwen-coder"]["inputTokens"], 70);
    let all = lines(&qwen_sdk(), &script.events);
    assert_eq!(last_result(&all)["structured_result"], json!({"n": 1}));
    assert_eq!(last_result(&all)["usage"]["input_tokens"], 100);
}

#[test]
fn usage_adds_up_over_turns_for_qwen_and_not_for_claude() {
    let events = [Script::turn().done("a"), Script::turn().done("b")].concat();
    assert_eq!(last_result(&lines(&claude(), &events))["usage"]["output_tokens"], 62);
    assert_eq!(last_result(&lines(&qwen_sdk(), &events))["usage"]["output_tokens"], 124);
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
fn rest_follows_the_result_however_the_turn_ended() {
    let stateful = StreamInfo { session_state: true, ..claude() };
    for status in [EndStatus::Error, EndStatus::Cancelled, EndStatus::MaxTurns, EndStatus::Interrupted] {
        let mut script = Script::turn();
        script.message().call("call_1", "write_file", "{}").end().ask("req-1", "call_1");
        let lines = lines(&stateful, &script.finish(status, "", None));
        let tail = &lines[lines.len() - 2..];
        assert_eq!((&tail[0]["type"], &tail[1]["state"]), (&json!("result"), &json!("idle")));
    }
}

#[test]
fn a_tools_result_never_makes_a_line_that_its_reader_cannot_take() {
    let long = "\"line\"\n\u{1}é".repeat(400_000);
    let picture =
        Media { mime_type: "image/png".into(), source: MediaSource::Base64("A".repeat(2_000_000).into()) };
    let mut huge_diff = diff("a.rs");
    huge_diff.modified = long.as_str().into();
    let plain = tool_end("call_1", "run_shell_command", ToolStatus::Success, "short");
    for (what, info, limit) in [("claude", claude(), 1 << 20), ("qwen", qwen_sdk(), 1 << 16)] {
        for (case, end, keeps) in [
            ("text", qwen_events::ToolEnd { text: long.as_str().into(), ..plain.clone() }, "left out"),
            (
                "display",
                qwen_events::ToolEnd { display: Some(Display::FileDiff(huge_diff.clone())), ..plain.clone() },
                "short",
            ),
            ("image", qwen_events::ToolEnd { media: vec![picture.clone()], ..plain.clone() }, "short"),
            (
                "all",
                qwen_events::ToolEnd {
                    text: long.as_str().into(),
                    media: vec![picture.clone()],
                    display: Some(Display::FileDiff(huge_diff.clone())),
                    output_file: Some("/tmp/out.txt".into()),
                    ..plain.clone()
                },
                "The whole is in /tmp/out.txt",
            ),
        ] {
            let mut script = Script::turn();
            script.push(Body::ToolEnd(Box::new(end)));
            let stream = bytes(&info, &script.events);
            let longest = stream.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap();
            assert!(longest < limit, "{what} {case}: {longest}");
            let line = parse(&stream).remove(1);
            let content = line["message"]["content"][0]["content"].as_str().unwrap();
            assert!(content.contains(keeps), "{what} {case}: {}", &content[..100.min(content.len())]);
            if case == "text" {
                assert!(content.starts_with("\"line\"\n") && content.ends_with('é'));
                assert!(longest > limit * 9 / 10, "{what}: not cut to the bone: {longest}");
            }
        }
    }
}

#[test]
fn images_in_a_result_are_blocks() {
    let end = qwen_events::ToolEnd {
        media: vec![
            Media { mime_type: "image/png".into(), source: MediaSource::Base64("AAAA".into()) },
            Media {
                mime_type: "application/pdf".into(),
                source: MediaSource::Url("https://x.test/a.pdf".into()),
            },
        ],
        ..tool_end("call_1", "read_file", ToolStatus::Success, "see")
    };
    let mut script = Script::turn();
    script.push(Body::ToolEnd(Box::new(end)));
    let line = lines(&claude(), &script.events).remove(1);
    assert_eq!(
        line["message"]["content"][0]["content"],
        json!([
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}},
        ])
    );
}

#[test]
fn a_sub_agents_lines_name_its_call_and_never_mix_with_the_main_agents() {
    let mut script = Script::turn();
    script.message().call("task_1", "agent", "{}").end().tool_start("task_1", "agent");
    script.inside(Some("task_1")).message().text("sub ");
    script.inside(Some("task_2")).message().text("other");
    script.inside(Some("task_1")).text("agent").end();
    script.tool_end("call_9", "read_file", ToolStatus::Success, "inner");
    script.inside(None).tool_end("task_1", "agent", ToolStatus::Success, "outer");
    for info in [claude(), partial()] {
        let lines = lines(&info, &script.events);
        let texts: Vec<_> = lines
            .iter()
            .filter(|line| kind(line) == "assistant:text")
            .map(|line| (&line["parent_tool_use_id"], &line["message"]["content"][0]["text"]))
            .collect();
        assert_eq!(json!(texts), json!([["task_1", "sub agent"]]));
        let results: Vec<_> = lines
            .iter()
            .filter(|line| kind(line) == "user:tool_result")
            .map(|line| &line["parent_tool_use_id"])
            .collect();
        assert_eq!(json!(results), json!(["task_1", null]));
        for line in lines.iter().filter(|line| line["event"]["delta"]["text"] == "other") {
            assert_eq!(line["parent_tool_use_id"], "task_2");
        }
    }
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
fn the_clients_own_message_is_repeated_only_on_request() {
    let mut start = turn_start("Hello");
    start.message_uuid = Some("11111111-2222-4333-8444-555555555555".into());
    let mut script = Script::default();
    script.push(Body::TurnStart(Box::new(start)));
    assert_eq!(lines(&claude(), &script.events).len(), 1);
    let replaying = StreamInfo { replay_user_messages: true, ..claude() };
    let line = lines(&replaying, &script.events).remove(1);
    assert_eq!(line["message"], json!({"role": "user", "content": "Hello"}));
    assert_eq!(line["uuid"], "11111111-2222-4333-8444-555555555555");
    assert_eq!(line["isReplay"], true);
}

#[test]
fn a_tools_progress_is_for_qwens_sdks_that_want_pieces() {
    let mut script = Script::turn();
    script.tool_start("call_1", "run_shell_command");
    for text in ["a\nb\n", "c"] {
        script.push(Body::ToolOutput {
            call: call("call_1", "run_shell_command", "{}"),
            channel: qwen_events::Channel::Stdout,
            text: text.into(),
        });
    }
    assert_eq!(lines(&partial(), &script.events).len(), 1);
    assert_eq!(lines(&qwen_sdk(), &script.events).len(), 1);
    let all = lines(&StreamInfo { partial_messages: true, ..qwen_sdk() }, &script.events);
    assert_eq!(
        all[2]["event"],
        json!({"type": "tool_progress", "tool_use_id": "call_1", "content":
            {"type": "shell_progress", "elapsedMs": 20, "totalLines": 2, "totalBytes": 5}})
    );
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
        SessionEvent::Compressed { original_tokens: 9000, new_tokens: 800 },
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
    script.push(Body::Heartbeat(session_id.clone()));
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
fn tokens_never_go_below_zero() {
    let odd = Usage { prompt_tokens: 5, cached_tokens: 30, ..Usage::default() };
    let mut script = Script::turn();
    script.push(Body::TurnEnd(Box::new(TurnEnd { usage: odd, ..turn_end() })));
    assert_eq!(last_result(&lines(&claude(), &script.events))["usage"]["input_tokens"], 0);
}
