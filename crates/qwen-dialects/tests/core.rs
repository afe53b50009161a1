//! What the `core` dialect promises.

mod story;

use std::sync::Arc;

use proptest::prelude::*;
use qwen_dialects::core::wire::CoreLine;
use qwen_dialects::{Dialect, Format, core};
use qwen_events::{Body, EndStatus, ErrorInfo, ErrorKind, Finish, ToolStatus, TurnEnd};
use serde_json::{Value, json};
use story::{PROMPT, Story, call, tool_end, turn_end};

fn told(story: &Story) -> Vec<Value> {
    story.told(core::encoder(&story::info(Dialect::Core, Format::StreamJson)))
}

fn values(story: &Story, kind: &str) -> Vec<Value> {
    told(story).into_iter().filter(|line| line["type"] == kind).map(|line| line["value"].clone()).collect()
}

#[test]
fn a_turn_is_content_calls_and_one_finished() {
    let read = call("call-1", "read_file", r#"{"file_path":"a"}"#);
    let story = Story::turn()
        .message_start()
        .thought("**Looking** around")
        .message("Hi", &[&read])
        .run(&read, "text")
        .message("Done", &[])
        .done("Done");
    let types: Vec<String> =
        told(&story).iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        types,
        [
            "thought",
            "content",
            "content",
            "tool_call_request",
            "tool_call_response",
            "content",
            "content",
            "finished"
        ]
    );
    assert_eq!(values(&story, "content"), ["H", "i", "Do", "ne"]);
    assert_eq!(values(&story, "thought"), [json!({"subject": "Looking", "description": "around"})]);
    assert_eq!(
        values(&story, "tool_call_request"),
        [json!({
            "callId": "call-1", "name": "read_file", "args": {"file_path": "a"}, "isClientInitiated": false,
            "prompt_id": PROMPT, "response_id": "msg-1",
        })]
    );
    assert_eq!(
        values(&story, "tool_call_response"),
        [json!({
            "callId": "call-1", "responseParts": [{"text": "text"}], "resultDisplay": "text", "error": null,
            "errorType": null, "outputFile": null, "contentLength": 4,
        })]
    );
    assert_eq!(
        values(&story, "finished"),
        [json!({
            "reason": "STOP", "prompt_id": PROMPT,
            "usageMetadata": {"promptTokenCount": 1600, "candidatesTokenCount": 200, "totalTokenCount": 1800},
        })]
    );
}

#[test]
fn every_turn_ends_in_exactly_one_terminal_record_with_the_usage_and_the_cause() {
    for (status, kind) in [
        (EndStatus::Done, "finished"),
        (EndStatus::Error, "error"),
        (EndStatus::Cancelled, "user_cancelled"),
        (EndStatus::Interrupted, "error"),
        (EndStatus::MaxTurns, "error"),
        (EndStatus::MaxToolCalls, "error"),
        (EndStatus::MaxWallTime, "error"),
        (EndStatus::MaxTokens, "error"),
        (EndStatus::Budget, "error"),
    ] {
        let lines = told(&Story::turn().message("So far", &[]).end(status, "So far", None));
        let terminal: Vec<&Value> = lines
            .iter()
            .filter(|line| matches!(line["type"].as_str(), Some("finished" | "error" | "user_cancelled")))
            .collect();
        assert_eq!(terminal, [lines.last().unwrap()], "{status:?}");
        assert_eq!(terminal[0]["type"], kind, "{status:?}");
        assert_eq!(terminal[0]["value"]["usageMetadata"]["totalTokenCount"], 1800, "{status:?}");
        if kind == "error" {
            assert_eq!(terminal[0]["value"]["error"]["code"], status.name());
        }
    }
}

#[test]
fn a_failed_model_call_gives_its_status() {
    let error = ErrorInfo {
        status: Some(500),
        ..ErrorInfo::new(ErrorKind::Model, "http_error", "The server failed.")
    };
    let story = Story::turn().end(EndStatus::Error, "", Some(error));
    assert_eq!(
        values(&story, "error")[0]["error"],
        json!({"message": "The server failed.", "status": 500, "code": "http_error"})
    );
}

#[test]
fn the_models_reason_to_stop_is_told_in_googles_words() {
    for (finish, word) in
        [(Finish::Length, "MAX_TOKENS"), (Finish::ContentFilter, "SAFETY"), (Finish::Stop, "STOP")]
    {
        let end = TurnEnd { finish, ..turn_end(PROMPT, EndStatus::Done, "") };
        assert_eq!(values(&Story::turn().then(Body::TurnEnd(Box::new(end))), "finished")[0]["reason"], word);
    }
}

#[test]
fn a_confirmation_shows_the_call_and_names_the_question_that_is_answered() {
    let confirmations = values(&story::everything(), "tool_call_confirmation");
    let kinds: Vec<&Value> = confirmations.iter().map(|value| &value["details"]["type"]).collect();
    assert_eq!(kinds, ["edit", "exec", "mcp", "info", "plan"]);
    assert_eq!(confirmations[0]["details"]["onConfirm"], "req-0");
    assert_eq!(confirmations[0]["request"]["callId"], "call-edit");
    let edit = call("call-1", "edit", "{}");
    let unasked = Story::turn().then(Body::Approval {
        call: Arc::clone(&edit),
        confirmation: Box::new(story::confirmations().remove(0)),
        reason: "it writes".into(),
    });
    assert_eq!(values(&unasked, "tool_call_confirmation")[0]["details"]["onConfirm"], "control_response");
}

#[test]
fn a_call_that_did_not_succeed_says_why() {
    let edit = call("call-1", "edit", "{}");
    for status in [ToolStatus::Error, ToolStatus::Denied, ToolStatus::Cancelled] {
        let story = Story::turn().then(Body::ToolEnd(Box::new(tool_end(&edit, status, "no such file"))));
        let value = &values(&story, "tool_call_response")[0];
        assert_eq!(
            (&value["error"], &value["errorType"]),
            (&json!("no such file"), &json!("file_not_found"))
        );
    }
}

#[test]
fn notices_have_types_of_their_own() {
    let lines = told(&story::everything());
    for kind in [
        "chat_compressed",
        "max_session_turns",
        "max_tokens",
        "loop_detected",
        "retry",
        "model_fallback",
        "mode_changed",
    ] {
        assert_eq!(lines.iter().filter(|line| line["type"] == kind).count(), 1, "{kind}");
    }
    assert_eq!(
        values(&story::everything(), "chat_compressed"),
        [json!({"originalTokenCount": 12000, "newTokenCount": 8000})]
    );
}

#[test]
fn a_bad_line_is_an_input_error_and_no_terminal_record() {
    let error = ErrorInfo::new(ErrorKind::Input, "invalid_json", "not JSON").with_param("x");
    let lines = told(&Story::turn().then(Body::Error(Box::new(error))));
    assert_eq!(
        lines,
        [json!({"type": "input_error", "value": {"error": {
            "message": "not JSON", "type": "invalid_request_error", "param": "x", "code": "invalid_json",
        }}})]
    );
}

#[test]
fn refusals_are_listed_in_the_terminal_record() {
    assert_eq!(
        values(&story::everything(), "finished")[0]["permissionDenials"],
        json!([{"callId": "call-edit", "name": "edit", "reason": "nobody was there to ask"}])
    );
}

#[test]
fn the_control_channel_is_flat() {
    let questions: Vec<Value> =
        told(&story::everything()).into_iter().filter(|line| line["type"] == "control_request").collect();
    assert_eq!(questions[0]["subtype"], "can_use_tool");
    assert_eq!(questions[0]["tool"]["name"], "edit");
}

proptest! {
    #[test]
    fn what_is_written_by_hand_is_what_serde_writes(text in any::<String>()) {
        for line in Story::turn().text(&text).lines(core::encoder(&story::info(Dialect::Core, Format::StreamJson))) {
            let content = CoreLine::Content(text.as_str().into());
            prop_assert_eq!(serde_json::to_string(&content).unwrap(), line);
        }
    }
}
