//! What the records, answers and control lines of the `qwen` dialect promise, in both formats.

mod story;

use std::sync::Arc;

use qwen_dialects::{Dialect, Format, qwen};
use qwen_events::{
    Body, CancelResult, Channel, ControlReply, EndStatus, ErrorInfo, ErrorKind, Json, SessionEvent,
    ToolStatus,
};
use serde_json::{Value, json};
use story::{PROMPT, SESSION, Story, call, file_diff, tool_end};

/// The lines of `kind`, which are the same in both formats.
#[track_caller]
fn of_type(story: &Story, kind: &str) -> Vec<Value> {
    let [whole, chunks] = [Format::StreamJson, Format::StreamChunkJson].map(|format| {
        let mut lines = story.told(qwen::encoder(&story::info(Dialect::Qwen, format)));
        lines.retain(|line| line["type"] == kind);
        lines
    });
    assert_eq!(whole, chunks);
    whole
}

fn fields<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().map(|line| &line[name]).collect()
}

#[test]
fn a_call_is_shown_from_pending_to_its_end() {
    let edit = call("call-1", "edit", "{}");
    let story = Story::turn()
        .message("", &[&edit])
        .then(Body::Approval {
            call: Arc::clone(&edit),
            confirmation: Box::new(qwen_events::Confirmation::Edit(file_diff())),
            reason: "it writes".into(),
        })
        .then(Body::ToolStart(Arc::clone(&edit)))
        .then(Body::ToolDisplay {
            call: Arc::clone(&edit),
            display: Box::new(qwen_events::Display::FileDiff(file_diff())),
        })
        .then(Body::ToolEnd(Box::new(tool_end(&edit, ToolStatus::Success, "edited"))))
        .done("");
    let shown = of_type(&story, "x-qwen-tool-display");
    assert_eq!(fields(&shown, "status"), ["pending", "confirming", "executing", "executing", "success"]);
    assert_eq!(fields(&shown, "pending"), [true, true, false, false, false]);
    assert_eq!(shown[1]["confirmation"]["type"], "edit");
    assert_eq!(shown[2]["confirmation"], Value::Null);
    assert_eq!(shown[3]["result_display"]["kind"], "file_diff");
    assert_eq!(shown[4]["result_display"], json!({"kind": "string", "text": "edited", "log_scope": "tool"}));
    assert_eq!(shown[4]["timestamp"], 1_739_430_000);
}

#[test]
fn a_call_that_fails_is_refused_or_cancelled_says_so() {
    let edit = call("call-1", "edit", "{}");
    for (status, word) in
        [(ToolStatus::Error, "error"), (ToolStatus::Denied, "error"), (ToolStatus::Cancelled, "canceled")]
    {
        let story = Story::turn().then(Body::ToolEnd(Box::new(tool_end(&edit, status, "no")))).done("");
        assert_eq!(fields(&of_type(&story, "x-qwen-tool-display"), "status"), [word]);
    }
}

#[test]
fn a_tools_output_is_text_with_its_colours_beside_it() {
    let shell = call("call-1", "run_shell_command", "{}");
    let output =
        |channel, text: &str| Body::ToolOutput { call: Arc::clone(&shell), channel, text: text.into() };
    let story = Story::turn()
        .then(output(Channel::Stdout, "\u{1b}[3"))
        .then(output(Channel::Stderr, "grr"))
        .then(output(Channel::Stdout, "2mok"))
        .then(output(Channel::Stdout, "\u{1b}["))
        .then(Body::ToolEnd(Box::new(tool_end(&shell, ToolStatus::Success, "ok"))))
        .done("");
    let mut shown = of_type(&story, "x-qwen-terminal");
    let exit = shown.pop().unwrap();
    assert_eq!(fields(&shown, "text"), ["grr", "ok", ""]);
    assert_eq!(fields(&shown, "channel"), ["stderr", "stdout", "stdout"]);
    assert_eq!(shown[1]["spans"], json!([{"start": 0, "end": 2, "style": {"theme_token": "AccentGreen"}}]));
    assert_eq!(shown[1]["ansi"], json!([{"offset": 0, "code": "\u{1b}[32m"}]));
    assert_eq!(shown[2]["ansi"], json!([{"offset": 0, "code": "\u{1b}["}]), "a broken escape is not lost");
    for line in &shown {
        assert_eq!(line["source"], "tool");
        assert_eq!(line["tool_call_id"], "call-1");
        assert_eq!(line["exit_code"], Value::Null);
    }
    assert_eq!((&exit["source"], &exit["exit_code"]), (&json!("system"), &json!(0)));
}

#[test]
fn the_exit_code_says_how_the_run_ended() {
    let auth = ErrorInfo::new(ErrorKind::Auth, "unauthorized", "no");
    let unanswered = ErrorInfo::new(ErrorKind::Input, "answers_needed", "no");
    let unattended = ErrorInfo::new(ErrorKind::Input, ErrorInfo::INPUT_ENDED, "no");
    for (status, error, code) in [
        (EndStatus::Done, None, 0),
        (EndStatus::Error, None, 1),
        (EndStatus::Error, Some(auth), 41),
        (EndStatus::Cancelled, None, 130),
        (EndStatus::Interrupted, None, 143),
        (EndStatus::Interrupted, Some(unanswered), 42),
        (EndStatus::Interrupted, Some(unattended), 0),
        (EndStatus::MaxTurns, None, 53),
        (EndStatus::MaxToolCalls, None, 55),
        (EndStatus::MaxWallTime, None, 55),
        (EndStatus::MaxTokens, None, 55),
        (EndStatus::Budget, None, 55),
    ] {
        let shown = of_type(&Story::turn().end(status, "", error), "x-qwen-terminal");
        assert_eq!(fields(&shown, "exit_code"), [code], "{status:?}");
    }
}

#[test]
fn a_log_line_is_on_stderr_with_its_level_and_scope() {
    let console = &of_type(&story::everything(), "x-qwen-terminal")[2];
    assert_eq!(
        [
            &console["channel"],
            &console["source"],
            &console["console_level"],
            &console["log_scope"],
            &console["text"]
        ],
        ["stderr", "console", "warn", "tool", "slow disk"]
    );
}

#[test]
fn a_thinking_block_is_one_thought_however_it_is_cut() {
    let story = Story::turn()
        .message_start()
        .thought("**Ana")
        .thought("lyzing** the ")
        .thought("repo")
        .text("So")
        .thought("Second thought")
        .message_end("So", &[])
        .done("So");
    let thoughts = of_type(&story, "x-qwen-thought");
    assert_eq!(fields(&thoughts, "subject"), ["Analyzing", "Second thought"]);
    assert_eq!(fields(&thoughts, "description"), ["the repo", "Second thought"]);
}

#[test]
fn a_sub_agents_records_name_the_call_that_started_it() {
    let story = story::everything();
    let inner: Vec<Value> = ["x-qwen-thought", "x-qwen-tool-display"]
        .into_iter()
        .flat_map(|kind| of_type(&story, kind))
        .filter(|line| line["parent_tool_call_id"] == "call-agent")
        .collect();
    assert_eq!(
        fields(&inner, "status"),
        [&json!(null), &json!("pending"), &json!("executing"), &json!("success")]
    );
}

#[test]
fn a_search_is_told_as_thoughts() {
    let subjects: Vec<String> = of_type(&story::everything(), "x-qwen-thought")
        .iter()
        .map(|line| line["subject"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        subjects[2..],
        [
            "Expanding 3 candidates",
            "Evaluating 2 candidates",
            "Backtracking to depth 0",
            "Planning 2 thoughts",
            "Starting thought n1",
            "Completed thought n1",
            "Failed thought n2",
            "Expanding thought n2"
        ]
    );
}

#[test]
fn session_events_are_spelt_as_the_specification_spells_them() {
    let events = of_type(&story::everything(), "x-qwen-session-event");
    assert_eq!(
        fields(&events, "event"),
        [
            "ChatCompressed",
            "MAX_TOKENS",
            "MaxSessionTurns",
            "USER_CANCELLED",
            "Retry",
            "ModelFallback",
            "LoopDetected",
            "ModeChanged",
            "Finished",
            "Custom"
        ]
    );
    assert_eq!(events[0]["metrics"], json!({"original_tokens": 12000, "compressed_tokens": 8000}));
}

#[test]
fn the_end_of_a_turn_is_announced_once_whether_or_not_the_engine_did() {
    for (status, event, notice) in [
        (EndStatus::Done, "Finished", SessionEvent::Finished),
        (EndStatus::Cancelled, "USER_CANCELLED", SessionEvent::Cancelled),
        (EndStatus::MaxTurns, "MaxSessionTurns", SessionEvent::MaxTurns { limit: 1 }),
    ] {
        for story in [Story::turn(), Story::turn().then(Body::Session(Box::new(notice)))] {
            assert_eq!(
                fields(&of_type(&story.end(status, "", None), "x-qwen-session-event"), "event"),
                [event]
            );
        }
    }
}

#[test]
fn a_permission_question_is_flat_and_shows_what_is_at_stake() {
    let questions = of_type(&story::everything(), "control_request");
    let question = &questions[0];
    assert_eq!(question["request_id"], "req-0");
    assert_eq!(question["subtype"], "can_use_tool");
    assert_eq!(
        question["tool"],
        json!({"name": "edit", "arguments": {"file_path": "/workspace/demo/src/main.py"}})
    );
    assert_eq!(question["metadata"]["reason"], "apply_diff");
    assert_eq!(question["metadata"]["tool_call_id"], "call-edit");
    let kinds: Vec<&Value> =
        questions[..5].iter().map(|line| &line["metadata"]["confirmation"]["type"]).collect();
    assert_eq!(kinds, ["edit", "exec", "mcp", "info", "plan"]);
    assert_eq!(
        (&questions[5]["subtype"], &questions[5]["callback_id"]),
        (&json!("hook_callback"), &json!("hook_0"))
    );
    assert_eq!(
        (&questions[6]["subtype"], &questions[6]["server_name"]),
        (&json!("mcp_message"), &json!("calc"))
    );
}

#[test]
fn an_answer_takes_the_form_of_its_question() {
    let reply = |nested, result| {
        let reply = ControlReply { request_id: "r".into(), nested, result };
        of_type(&Story::new().then(Body::ControlReply(Box::new(reply))), "control_response").remove(0)
    };
    let ok = || Ok(Json::trusted(r#"{"a":1}"#));
    let no = || Err(ErrorInfo::new(ErrorKind::Input, "unknown_subtype", "no such subtype"));
    let stamped = |mut line: Value| {
        assert_eq!(line.as_object_mut().unwrap().remove("session_id"), Some(json!(SESSION)));
        line
    };
    assert_eq!(
        stamped(reply(false, ok())),
        json!({"type": "control_response", "request_id": "r", "response": {"subtype": "success", "result": {"a": 1}}})
    );
    assert_eq!(
        stamped(reply(false, no())),
        json!({"type": "control_response", "request_id": "r", "response": {
            "subtype": "error", "error": {"message": "no such subtype", "retryable": false, "code": "unknown_subtype"},
        }})
    );
    assert_eq!(
        stamped(reply(true, ok())),
        json!({"type": "control_response", "response": {"subtype": "success", "request_id": "r", "response": {"a": 1}}})
    );
    assert_eq!(
        stamped(reply(true, no())),
        json!({"type": "control_response", "response": {
            "subtype": "error", "request_id": "r", "error": "no such subtype",
        }})
    );
}

#[test]
fn a_cancel_request_is_answered_and_on_the_control_channel_too_where_it_has_an_id() {
    let result = |cancelled, request_id: Option<&str>| CancelResult {
        session_id: story::session(),
        prompt_id: None,
        cancelled,
        message: "Nothing is running.".into(),
        reason: "escape".into(),
        request_id: request_id.map(Into::into),
    };
    let noop = Story::new().then(Body::CancelResult(Box::new(result(false, None))));
    assert_eq!(
        of_type(&noop, "result/cancel"),
        [json!({
            "type": "result/cancel", "session_id": SESSION, "status": "noop", "reason": "escape",
            "message": "Nothing is running.",
        })]
    );
    assert!(of_type(&noop, "control_response").is_empty());
    let asked = Story::turn().then(Body::CancelResult(Box::new(result(true, Some("req-1")))));
    assert_eq!(of_type(&asked, "result/cancel")[0]["status"], "ok");
    assert_eq!(of_type(&asked, "result/cancel")[0]["prompt_id"], PROMPT);
    let answer = &of_type(&asked, "control_response")[0];
    assert_eq!((&answer["request_id"], &answer["response"]["subtype"]), (&json!("req-1"), &json!("success")));
}

#[test]
fn what_has_no_line_in_this_dialect_writes_none() {
    let quiet = Story::turn()
        .then(Body::NodeEnter)
        .then(Body::NodeExit { error: None })
        .then(Body::State(Json::empty_object()));
    for format in [Format::StreamJson, Format::StreamChunkJson] {
        assert_eq!(
            quiet.lines(qwen::encoder(&story::info(Dialect::Qwen, format))).len(),
            1,
            "only the handshake"
        );
    }
}
