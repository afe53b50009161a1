//! Which session a line belongs to, and what the hub keeps of it.

use mock_model::{MockModel, Reply, Request, gate, sse};
use serde_json::{Value, json};

use crate::harness::*;

/// A hub whose model repeats the prompt.
fn echoing() -> (MockModel, mock_model::process::Run) {
    let mock = MockModel::start();
    mock.answer_with(|request: &Request| Some(Reply::text(&format!("<{}>", request.last_user_text()))));
    let run = bare().args(["--min-workers", "0", "--", "--model", "mock"]).with_model(&mock).start();
    (mock, run)
}

/// A prompt that names no session.
fn unaddressed(text: &str) -> Value {
    json!({"input": {"parts": [{"type": "text", "text": text}]}})
}

fn error_code(line: &Value) -> &Value {
    &line["metadata"]["error"]["code"]
}

fn is_error(line: &Value) -> bool {
    line["metadata"]["error"].is_object() && !is_end(line)
}

#[test]
fn a_line_that_names_no_session_belongs_to_the_only_one_that_is_open() {
    let (_mock, mut run) = echoing();
    run.write_line(prompt("a", "one"));
    run.json_until(ends("a"));
    run.write_line(unaddressed("two"));
    assert_eq!(run.json_until(is_end).pop().unwrap()["session_id"], "a");
    run.write_line(request("m", "set_model", json!({"model": "other"})));
    answer(&mut run, "m");
    run.write_line(request("s", "hub/status", json!({})));
    assert_eq!(answer(&mut run, "s")["sessions"], 1);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn with_several_sessions_a_request_that_names_none_is_refused_and_a_prompt_is_the_handshakes() {
    let (_mock, mut run) = echoing();
    let hello = run.json();
    for session in ["a", "b"] {
        run.write_line(prompt(session, "one"));
        run.json_until(ends(session));
    }
    run.write_line(request("i", "interrupt", json!({})));
    assert_eq!(answer(&mut run, "i")["code"], "ambiguous_session");
    run.write_line(json!({"type": "control/cancel"}));
    assert_eq!(error_code(&run.json_until(is_error).pop().unwrap()), "ambiguous_session");
    run.write_line(unaddressed("two"));
    assert_eq!(run.json_until(is_end).pop().unwrap()["session_id"], hello["session_id"]);
    run.write_line(request("i2", "interrupt", json!({})));
    assert_eq!(answer(&mut run, "i2").get("code"), None, "the handshake's session is driven now");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn an_answer_that_names_no_session_reaches_the_one_that_asked_and_null_is_a_denial() {
    let call = Reply::call("c1", "write_file", r#"{"file_path":"a.txt","content":"x"}"#);
    let mock = MockModel::with([call, Reply::text("I see.")]);
    let mut run = bare().args(["--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(prompt("a", "write"));
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    run.write_line(
        json!({"type": "control_response", "request_id": question["request_id"], "response": null}),
    );
    let end = run.json_until(is_end).pop().unwrap();
    let turn = &end["metadata"]["turn"];
    assert_eq!(turn["permission_denials"].as_array().map(Vec::len), Some(1), "{end}");
    assert_eq!(turn["control_errors"].as_array().map(Vec::len), Some(1), "{end}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn what_is_initialized_without_a_session_holds_for_every_session() {
    let (_mock, mut run) = echoing();
    let hooks = json!({"UserPromptSubmit": [{"hookCallbackIds": ["h"]}]});
    run.write_line(request("i", "initialize", json!({"hooks": hooks})));
    assert!(answer(&mut run, "i").is_object());
    for session in ["a", "b"] {
        run.write_line(prompt(session, "go"));
        let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
        assert_eq!(
            (&question["subtype"], &question["session_id"]),
            (&json!("hook_callback"), &json!(session))
        );
        let response = json!({"subtype": "success", "result": {}});
        let id = question["request_id"].clone();
        run.write_line(json!({"type": "control_response", "request_id": id, "response": response}));
        assert_eq!(status(&run.json_until(ends(session)).pop().unwrap()), "done");
    }
    run.write_line(request("s", "hub/status", json!({})));
    let state = answer(&mut run, "s");
    assert_eq!(state["sessions"], 2, "the first session took over what was initialized: {state}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_line_that_no_worker_would_take_starts_none() {
    let (_mock, mut run) = echoing();
    let cases = [
        ("{}", "missing_field"),
        (r#"{"type":"bogus"}"#, "unknown_type"),
        (r#"{"type":"control_request","subtype":"hub/status"}"#, "missing_field"),
        (r#"{"type":"heartbeat_request","x":"\ud800"}"#, "lone_surrogate"),
        (r#"{"type":"heartbeat_request","\udc00":1}"#, "lone_surrogate"),
        (r#"{"type":"heartbeat_request","x":{"y":1,"y":2}}"#, "duplicate_key"),
        (r#"{"session_id":"","input":{"parts":[{"text":"x"}]}}"#, "empty_session_id"),
    ];
    for (line, code) in cases {
        run.write_line(line);
        assert_eq!(error_code(&run.json_until(is_error).pop().unwrap()), code, "{line}");
    }
    run.write_line(request("s", "hub/status", json!({})));
    let state = answer(&mut run, "s");
    let workers = &state["machines"][0]["workers"];
    assert_eq!((&state["sessions"], &workers["idle"], &workers["busy"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn an_unsupported_version_ends_every_turn_and_then_the_hub() {
    let mock = MockModel::with([Reply::new([sse::text("Half"), gate("held")])]);
    let mut run = bare().args(["--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(named("a", "p1", "go"));
    mock.reached("held");
    run.write_line(named("a", "p2", "later"));
    run.write_line(json!({"type": "heartbeat_request", "protocol_version": "9"}));
    let ended = run.wait();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let lines = ended.json_lines();
    let ends: Vec<&Value> = lines.iter().filter(|line| is_end(line)).map(|line| &line["prompt_id"]).collect();
    assert_eq!(ends, ["p1", "p2"]);
    assert_eq!(error_code(lines.last().unwrap()), "unsupported_protocol");
    assert!(ended.stderr.contains("not supported"), "{}", ended.stderr);
}

#[test]
fn a_prompt_id_of_any_size_does_no_harm() {
    let (_mock, mut run) = echoing();
    let long = "x".repeat(256 * 1024);
    for id in [long.as_str(), "short"] {
        run.write_line(named("a", id, "go"));
        let end = run.json_until(is_end).pop().unwrap();
        assert!(end["prompt_id"] == id && status(&end) == "done");
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_prompt_that_joined_a_turn_is_not_pending_any_more() {
    let mock = MockModel::start();
    mock.push(Reply::new([sse::text("one"), gate("held"), sse::finish("stop"), sse::done()]));
    mock.answer_with(|_: &Request| Some(Reply::text("two")));
    let mut run = bare().args(["--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(named("a", "p1", "go"));
    mock.reached("held");
    let mut steers = named("a", "p2", "and this");
    steers["delivery"] = json!("steer");
    run.write_line(steers);
    run.write_line(json!({"type": "heartbeat_request", "session_id": "a"}));
    run.json_until(|line| line["type"] == "result/heartbeat");
    mock.open("held");
    let end = run.json_until(is_end).pop().unwrap();
    assert_eq!((status(&end), &end["prompt_id"]), ("done", &json!("p1")));
    run.write_line(request("s", "hub/status", json!({})));
    let workers = answer(&mut run, "s")["machines"][0]["workers"].clone();
    assert_eq!((&workers["busy"], &workers["idle"]), (&json!(0), &json!(1)), "{workers}");
    let rest = run.finish();
    assert_eq!((rest.code, rest.json_lines().iter().filter(|line| is_end(line)).count()), (Some(0), 1));
}

#[test]
fn a_request_in_the_nested_form_is_answered_once() {
    let (_mock, mut run) = echoing();
    run.write_line(prompt("a", "go"));
    run.json_until(is_end);
    run.write_line(json!({"type": "control_request", "request_id": "n", "request": {"subtype": "get_available_models", "session_id": "a"}}));
    let is_answer = |line: &Value| line["response"]["request_id"] == "n";
    run.json_until(is_answer);
    let ended = run.finish();
    assert_eq!(ended.json_lines().iter().filter(|line| is_answer(line)).count(), 1, "{}", ended.stdout);
}
