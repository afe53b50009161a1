//! The ways a turn ends.

use qwen_dialects::StreamInfo;
use qwen_events::{
    Body, CallId, Denial, EndStatus, ErrorInfo, ErrorKind, Json, Timeout, ToolStatus, TurnEnd, Usage,
};
use serde_json::{Value, json};

use super::{claude, kind, kinds, partial, qwen_sdk};
use crate::script::{Script, lines, turn_end};

fn last_result(lines: &[Value]) -> &Value {
    lines.iter().rfind(|line| line["type"] == "result").expect("a result")
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
fn tokens_never_go_below_zero() {
    let odd = Usage { prompt_tokens: 5, cached_tokens: 30, ..Usage::default() };
    let mut script = Script::turn();
    script.push(Body::TurnEnd(Box::new(TurnEnd { usage: odd, ..turn_end() })));
    assert_eq!(last_result(&lines(&claude(), &script.events))["usage"]["input_tokens"], 0);
}

#[test]
fn a_refusal_that_stops_the_turn_is_an_interruption_for_tool_use() {
    let interruption = |script: &mut Script| {
        let lines = lines(&claude(), &script.finish(EndStatus::Cancelled, "", None));
        let line = lines.iter().rfind(|line| kind(line) == "user:text").unwrap();
        line["message"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let mut script = Script::turn();
    script.message().call("call_1", "write_file", "{}").end();
    script.tool_end("call_1", "write_file", ToolStatus::Denied, "declined");
    assert_eq!(interruption(&mut script), "[Request interrupted by user for tool use]");
    let mut script = Script::turn();
    script.message().call("call_1", "write_file", "{}").end();
    script.tool_end("call_1", "write_file", ToolStatus::Denied, "declined").message().text("So").aborted();
    assert_eq!(interruption(&mut script), "[Request interrupted by user]");
}
