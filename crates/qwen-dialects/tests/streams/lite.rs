//! The `claude-lite` dialect.

use qwen_dialects::Dialect;
use qwen_events::{Body, EndStatus, ErrorInfo, ErrorKind, Event, Finish, TurnEnd};
use serde_json::{Value, json};

use crate::script::{Script, info, turn_end, whole_turn};

fn lines(events: &[Event]) -> Vec<Value> {
    crate::script::lines(&info(Dialect::ClaudeLite), events)
}

#[test]
fn a_turn_is_one_message() {
    assert_eq!(
        json!(lines(&whole_turn())),
        json!([
            {"type": "message_start", "message": {"id": "sess-001########1", "model": "qwen-coder"},
             "session_id": "sess-001"},
            {"type": "thinking_delta", "text": "**Plan** look "},
            {"type": "thinking_delta", "text": "first"},
            {"type": "content_block_delta", "text": "I "},
            {"type": "content_block_delta", "text": "look."},
            {"type": "tool_call", "id": "call_1", "name": "read_file", "arguments": {"file_path": "a"}},
            {"type": "tool_call", "id": "call_2", "name": "write_file", "arguments": {}},
            {"type": "tool_result", "id": "call_1", "name": "read_file", "is_error": false, "content": "the file"},
            {"type": "tool_result", "id": "call_2", "name": "write_file", "is_error": true,
             "content": "This call was declined."},
            {"type": "content_block_delta", "text": "Done"},
            {"type": "content_block_delta", "text": "."},
            {"type": "message_stop", "stop_reason": "stop_turn", "reason": "stop_turn",
             "usage": {"input_tokens": 100, "output_tokens": 62}},
        ])
    );
}

#[test]
fn the_stop_says_why_and_an_error_comes_before_it() {
    let error = || Some(ErrorInfo::new(ErrorKind::Model, "model_error", "it broke"));
    for (status, finish, error, reason) in [
        (EndStatus::Done, Finish::Stop, None, "stop_turn"),
        (EndStatus::Done, Finish::Length, None, "max_tokens"),
        (EndStatus::Done, Finish::ContentFilter, None, "content_filter"),
        (EndStatus::Error, Finish::Stop, error(), "error"),
        (EndStatus::Cancelled, Finish::Stop, None, "cancelled"),
        (EndStatus::Interrupted, Finish::Stop, None, "interrupted"),
        (EndStatus::MaxTurns, Finish::ToolCalls, error(), "max_turns"),
        (EndStatus::MaxWallTime, Finish::Stop, None, "max_wall_time"),
    ] {
        let failed = error.is_some();
        let mut script = Script::turn();
        script.push(Body::TurnEnd(Box::new(TurnEnd { status, finish, error, ..turn_end() })));
        let lines = lines(&script.events);
        let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        let expected: &[_] = if failed {
            &["message_start", "error", "message_stop"]
        } else {
            &["message_start", "message_stop"]
        };
        assert_eq!(types, expected);
        let stop = lines.last().unwrap();
        assert_eq!((&stop["stop_reason"], &stop["reason"]), (&json!(reason), &json!(reason)));
        if failed {
            assert_eq!(lines[1]["error"]["type"], "api_error");
            assert_eq!(lines[1]["error"]["message"], "it broke");
        }
    }
}

#[test]
fn a_bad_line_is_an_error_line_and_a_fatal_error_still_stops_a_message() {
    let bad = || Body::Error(Box::new(ErrorInfo::new(ErrorKind::Input, "invalid_json", "not JSON")));
    let fatal = || Body::Fatal(Box::new(ErrorInfo::new(ErrorKind::Internal, "internal", "our fault")));
    let types = |script: &Script| -> Vec<String> {
        lines(&script.events).iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect()
    };
    let mut outside = Script::default();
    outside.push(bad()).push(fatal());
    assert_eq!(types(&outside), ["error", "message_start", "error", "message_stop"]);
    let mut inside = Script::turn();
    inside.push(bad()).push(fatal());
    assert_eq!(types(&inside), ["message_start", "error", "error", "message_stop"]);
}

#[test]
fn a_sub_agents_words_are_not_shown() {
    let mut script = Script::turn();
    script.inside(Some("task_1")).message().text("secret").thought("hidden").call("c", "x", "{}").end();
    assert_eq!(lines(&script.inside(None).done("")).len(), 2);
}

#[test]
fn a_command_is_a_message_of_its_own() {
    let mut script = Script::default();
    script.help_command("");
    let lines = lines(&script.events);
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["message_start", "content_block_delta", "message_stop"]);
    assert_eq!(lines[1]["text"], "Ask me.");
}
