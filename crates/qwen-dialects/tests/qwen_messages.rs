//! What `stream-json` of the `qwen` dialect promises.

mod story;

use qwen_dialects::{Dialect, Format, qwen};
use qwen_events::{Body, EndStatus, ErrorInfo, ErrorKind, Finish, ModelUsage, TurnEnd};
use serde_json::{Value, json};
use story::{PROMPT, SESSION, Story, call, message_end, turn_end, turn_start, usage};

fn told(story: &Story) -> Vec<Value> {
    story.told(qwen::encoder(&story::info(Dialect::Qwen, Format::StreamJson)))
}

/// The `chat.completion` lines after the handshake: content, finish reason, whether it is the terminal
/// record.
fn messages(lines: &[Value]) -> Vec<(Option<&str>, &str, bool)> {
    lines
        .iter()
        .filter(|line| line["object"] == "chat.completion" && line["choices"][0].is_object())
        .map(|line| {
            let choice = &line["choices"][0];
            let terminal = line["metadata"]["turn"].is_object();
            (
                choice["message"]["content"].as_str(),
                choice["finish_reason"].as_str().unwrap_or_default(),
                terminal,
            )
        })
        .collect()
}

#[test]
fn the_handshake_is_the_first_line_at_ready_and_once() {
    let lines =
        told(&Story::new().then(Body::Ready).then(Body::TurnStart(Box::new(turn_start(PROMPT)))).done(""));
    let first = &lines[0];
    assert_eq!(first["object"], "chat.completion");
    assert_eq!(first["choices"], json!([]));
    assert_eq!(first["metadata"]["protocol_version"], "1.0");
    assert_eq!(first["metadata"]["input_format"], "stream-json");
    assert_eq!(first["metadata"]["output_format"], "stream-json");
    assert_eq!(first["metadata"]["session_id"], SESSION);
    assert!(first["metadata"]["capabilities"].as_array().unwrap().contains(&json!("can_use_tool")));
    assert!(first.get("usage").is_none());
    assert_eq!(lines.iter().filter(|line| line["metadata"]["protocol_version"].is_string()).count(), 1);
}

#[test]
fn without_ready_the_handshake_comes_with_the_first_turn() {
    let lines = told(&Story::turn().done(""));
    assert_eq!(lines[0]["metadata"]["protocol_version"], "1.0");
}

#[test]
fn a_message_with_calls_is_written_at_once_and_the_last_one_is_the_terminal_record() {
    let edit = call("tool-1", "edit", r#"{"path":"main.py"}"#);
    let lines = told(
        &Story::turn().message("Analyzing...", &[&edit]).run(&edit, "ok").message("Done.", &[]).done("Done."),
    );
    assert_eq!(
        messages(&lines),
        [(Some("Analyzing..."), "tool_calls", false), (Some("Done."), "stop", true)]
    );
    let with_calls =
        lines.iter().find(|line| line["choices"][0]["message"]["tool_calls"].is_array()).unwrap();
    assert_eq!(
        with_calls["choices"][0]["message"]["tool_calls"],
        json!([{"id": "tool-1", "type": "function", "function": {"name": "edit", "arguments": r#"{"path":"main.py"}"#}}])
    );
    assert_eq!(
        with_calls["usage"],
        json!({"prompt_tokens": 1200, "completion_tokens": 80, "total_tokens": 1280})
    );
    assert!(with_calls.get("metadata").is_none());
    assert_eq!(lines.last().unwrap()["usage"]["total_tokens"], 1800, "the usage of the whole turn");
}

#[test]
fn a_message_without_words_has_no_content() {
    let edit = call("tool-1", "edit", "{}");
    let lines =
        told(&Story::turn().message("", &[&edit]).run(&edit, "ok").message("Done.", &[]).done("Done."));
    assert_eq!(messages(&lines)[0], (None, "tool_calls", false));
}

#[test]
fn a_message_that_is_followed_by_another_is_written_before_it() {
    let lines = told(&Story::turn().message("First.", &[]).message("Second.", &[]).done("Second."));
    assert_eq!(messages(&lines), [(Some("First."), "stop", false), (Some("Second."), "stop", true)]);
}

#[test]
fn an_answer_that_is_not_the_last_message_is_the_terminal_record_all_the_same() {
    let lines = told(&Story::turn().message("Score: 3", &[]).done("The best one."));
    assert_eq!(messages(&lines), [(Some("Score: 3"), "stop", false), (Some("The best one."), "stop", true)]);
}

#[test]
fn the_terminal_record_is_empty_when_the_last_message_had_calls_or_there_was_none() {
    let edit = call("tool-1", "edit", "{}");
    let cut =
        Story::turn().message("Let me look.", &[&edit]).end(EndStatus::MaxToolCalls, "Let me look.", None);
    assert_eq!(messages(&told(&cut))[1], (Some(""), "stop", true));
    let broken =
        Story::turn().end(EndStatus::Error, "", Some(ErrorInfo::new(ErrorKind::Model, "http_500", "no")));
    assert_eq!(messages(&told(&broken)), [(Some(""), "stop", true)]);
}

#[test]
fn every_turn_ends_in_exactly_one_terminal_record_and_it_is_last() {
    for status in EndStatus::ALL {
        let lines = told(&Story::turn().message("So far", &[]).end(status, "So far", None));
        let terminal: Vec<&Value> =
            lines.iter().filter(|line| line["metadata"]["turn"].is_object()).collect();
        assert_eq!(terminal.len(), 1, "{status:?}");
        assert_eq!(terminal[0], lines.last().unwrap(), "{status:?}");
        assert_eq!(terminal[0]["metadata"]["turn"]["status"], status.name());
        assert_eq!(terminal[0]["choices"][0]["finish_reason"], "stop");
        let error = &terminal[0]["metadata"]["error"];
        assert_eq!(error.is_null(), status == EndStatus::Done, "{status:?}: {error}");
        if status != EndStatus::Done {
            assert_eq!(error["code"], status.name(), "{status:?}");
            assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()));
        }
    }
}

#[test]
fn the_summary_of_a_turn_says_what_it_cost() {
    let end = TurnEnd {
        usage_by_model: vec![
            ModelUsage { model: "b".into(), calls: 1, usage: usage(10, 1), cost_usd: 0.0 },
            ModelUsage { model: "a".into(), calls: 2, usage: usage(20, 2), cost_usd: 0.5 },
        ],
        ..turn_end(PROMPT, EndStatus::Done, "")
    };
    let lines = told(&Story::turn().then(Body::TurnEnd(Box::new(end))));
    assert_eq!(
        lines.last().unwrap()["metadata"]["turn"],
        json!({
            "status": "done", "duration_ms": 1234, "model_calls": 2, "tool_calls": 1, "permission_denials": [],
            "usage_by_model": {
                "a": {"calls": 2, "prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22, "cost_usd": 0.5},
                "b": {"calls": 1, "prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
            },
        })
    );
}

#[test]
fn the_models_own_reasons_to_stop_are_kept() {
    for (finish, word) in [(Finish::Length, "length"), (Finish::ContentFilter, "content_filter")] {
        let end = TurnEnd { finish, ..turn_end(PROMPT, EndStatus::Done, "Half an") };
        let story = Story::turn()
            .message_start()
            .then(Body::MessageEnd(Box::new(message_end("Half an", &[], finish))))
            .then(Body::TurnEnd(Box::new(end)));
        assert_eq!(messages(&told(&story)), [(Some("Half an"), word, true)]);
    }
}

#[test]
fn an_error_names_the_field_and_is_no_terminal_record() {
    let error = ErrorInfo::new(ErrorKind::Input, "wrong_type", "`input` is a number").with_param("input");
    let lines = told(&Story::new().then(Body::Ready).then(Body::Error(Box::new(error))));
    let line = &lines[1];
    assert_eq!(line["object"], "chat.completion");
    assert_eq!(line["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        line["metadata"],
        json!({"error": {
            "message": "`input` is a number", "type": "invalid_request_error", "param": "input", "code": "wrong_type",
        }})
    );
    assert_eq!(line["session_id"], SESSION);
    assert!(line.get("prompt_id").is_none());
}

#[test]
fn a_fatal_error_is_the_bare_object() {
    let error = ErrorInfo::new(ErrorKind::Settings, "bad_settings", "no");
    let lines = told(&Story::new().then(Body::Fatal(Box::new(error))));
    assert_eq!(
        lines,
        [
            json!({"error": {"message": "no", "type": "settings_error", "param": null, "code": "bad_settings"}})
        ]
    );
}

#[test]
fn an_unsupported_protocol_is_told_in_a_message_that_finishes_with_error() {
    let error = ErrorInfo::new(ErrorKind::UnsupportedProtocol, "version", "2.0 is not spoken");
    let lines = told(&Story::new().then(Body::Ready).then(Body::Fatal(Box::new(error))));
    assert_eq!(lines[1]["choices"][0]["finish_reason"], "error");
    assert_eq!(lines[1]["metadata"]["error"]["code"], "unsupported_protocol");
}

#[test]
fn every_line_of_a_turn_carries_its_session_and_prompt() {
    let mut inside = false;
    for line in told(&story::everything()) {
        if line["choices"][0].is_object() && line["metadata"]["turn"].is_object() {
            inside = false;
            assert_eq!(line["prompt_id"], PROMPT);
        }
        // The turn's first line is the display or thought that follows its start.
        inside |= line["type"] == "x-qwen-thought";
        if inside {
            assert_eq!(line["session_id"], SESSION, "{line}");
            assert_eq!(line["prompt_id"], PROMPT, "{line}");
        }
        if line["object"].is_string() {
            assert_eq!(line["id"], format!("chatcmpl-{SESSION}"), "{line}");
        }
    }
}

#[test]
fn a_withdrawn_prompt_gets_its_own_terminal_record_and_the_running_turn_goes_on() {
    let withdrawn = turn_end("session-123########2", EndStatus::Cancelled, "");
    let story =
        Story::turn().message("Held back", &[]).then(Body::TurnEnd(Box::new(withdrawn))).done("Held back");
    let lines = told(&story);
    let ends: Vec<(&str, &str, &str)> = lines
        .iter()
        .filter(|line| line["metadata"]["turn"].is_object())
        .map(|line| {
            let status = line["metadata"]["turn"]["status"].as_str().unwrap();
            let content = line["choices"][0]["message"]["content"].as_str().unwrap();
            (line["prompt_id"].as_str().unwrap(), status, content)
        })
        .collect();
    assert_eq!(ends, [("session-123########2", "cancelled", ""), (PROMPT, "done", "Held back")]);
}

#[test]
fn a_sub_agents_messages_are_not_the_turns() {
    let inner = call("call-inner", "read_file", "{}");
    let story = Story::turn()
        .inside(Some("call-agent"))
        .message("Inner words", &[&inner])
        .run(&inner, "x")
        .message("Inner answer", &[])
        .inside(None)
        .message("Answer", &[])
        .done("Answer");
    assert_eq!(messages(&told(&story)), [(Some("Answer"), "stop", true)]);
}
