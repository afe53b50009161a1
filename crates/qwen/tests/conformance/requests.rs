//! "Real-Time Suggestions, Heartbeats, and Interrupts".

use std::fs;

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, chat, conversation, each_format, echo, ends_turn, worker};

fn hint(host: &mut Host, fields: Value) -> Value {
    let mut line = json!({"type": "command_hint_request", "session_id": "session-123",
        "prompt_id": "session-123########preview", "context": {"cwd": null, "selected_text": ""}});
    let Value::Object(fields) = fields else { panic!("{fields} is no object") };
    for (name, value) in fields {
        line[name] = value;
    }
    host.send(line);
    host.until(|line| line["type"] == "result/command_hint")
}

#[test]
fn the_spec_s_suggestion_request_is_answered_as_printed() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let line = hint(&mut host, json!({"trigger": "slash", "text": "/c", "cursor": 2}));
        assert_eq!(
            (&line["session_id"], &line["prompt_id"]),
            (&json!("session-123"), &json!("session-123########preview"))
        );
        assert_eq!((&line["trigger"], &line["status"]), (&json!("slash"), &json!("ok")));
        let suggestions = line["suggestions"].as_array().unwrap();
        let labels: Vec<&str> = suggestions.iter().map(|s| s["label"].as_str().unwrap()).collect();
        assert_eq!(labels, ["chat", "clear", "compress", "copy"]);
        assert!(suggestions.iter().all(|s| s["value"].is_string() && s["description"].is_string()), "{line}");
        assert_eq!(suggestions[0]["description"], "Manage conversation history.");
        assert_eq!(line["metadata"], json!({"is_perfect_match": false}));
        let line = hint(&mut host, json!({"trigger": "slash", "text": "/clear", "cursor": 6}));
        assert_eq!(line["metadata"]["is_perfect_match"], true);
        host.leave();
    });
}

#[test]
fn the_at_trigger_suggests_files_and_a_place_outside_is_an_error_with_a_message() {
    each_format(|format| {
        let mock = echo();
        let program = worker(&mock, format);
        fs::write(program.cwd_path().join("notes.txt"), "x").unwrap();
        let mut host = Host::start(program);
        let line = hint(&mut host, json!({"trigger": "at", "text": "look at @no", "cursor": 11}));
        assert_eq!(
            (&line["status"], &line["suggestions"][0]["value"]),
            (&json!("ok"), &json!("notes.txt")),
            "{line}"
        );
        let outside = json!({"trigger": "at", "text": "@x", "cursor": 2, "context": {"cwd": "/proc"}});
        let line = hint(&mut host, outside);
        assert_eq!(line["status"], "error", "{line}");
        assert!(line["message"].is_string() && line["suggestions"] == json!([]), "{line}");
        host.leave();
    });
}

#[test]
fn suggestions_of_files_keep_nobody_waiting_and_are_given_before_the_worker_ends() {
    each_format(|format| {
        let mock = echo();
        let program = worker(&mock, format);
        for n in 0..200 {
            fs::write(program.cwd_path().join(format!("file{n}.txt")), "x").unwrap();
        }
        let mut host = Host::start(program);
        for n in 0..20 {
            host.send(json!({"type": "command_hint_request", "prompt_id": format!("h{n}"), "text": "@fi"}));
        }
        host.send(json!({"type": "command_hint_cancel", "prompt_id": "never-asked"}));
        let lines = host.leave();
        let answered: Vec<&Value> = lines
            .iter()
            .filter(|line| line["type"] == "result/command_hint")
            .map(|line| &line["status"])
            .collect();
        assert_eq!(answered, ["ok"; 20]);
    });
}

#[test]
fn suggestions_may_be_asked_for_again_and_taken_back() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    for (text, cursor) in [("/c", 2), ("/cl", 3), ("/cle", 4)] {
        let line = hint(&mut host, json!({"trigger": "slash", "text": text, "cursor": cursor}));
        assert_eq!(line["status"], "ok");
    }
    host.send(json!({"type": "command_hint_cancel", "session_id": "session-123", "prompt_id": "session-123########preview"}));
    host.is_well();
    let lines = host.leave();
    assert_eq!(lines.iter().filter(|line| line["type"] == "result/command_hint").count(), 3);
}

#[test]
fn the_spec_s_heartbeat_is_answered_as_printed() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(r#"{"type":"heartbeat_request","session_id":"session-123"}"#);
        let line = host.run.json();
        assert_eq!((&line["type"], &line["session_id"]), (&json!("result/heartbeat"), &json!("session-123")));
        assert_eq!(line["status"], "ok");
        assert!(line["ts"].as_u64().unwrap() > 1_700_000_000, "{line}");
        let lines = host.leave();
        assert_eq!(lines.len(), 2, "never unasked: {lines:#?}");
    });
}

#[test]
fn a_cancel_ends_the_turn_with_result_response_and_terminal_record() {
    each_format(|format| {
        let mock = echo();
        mock.push(Reply::new([sse::text("half"), gate("never")]));
        let mut host = Host::with(&mock, format);
        host.send(chat("s########8", "work"));
        mock.reached("never");
        host.send(json!({"type": "control/cancel", "session_id": "s", "prompt_id": "s########8",
            "reason": "escape", "request_id": "r1"}));
        let lines = host.turn();
        let result = lines.iter().find(|line| line["type"] == "result/cancel").unwrap();
        assert_eq!((&result["status"], &result["reason"]), (&json!("ok"), &json!("escape")));
        assert_eq!((&result["session_id"], &result["prompt_id"]), (&json!("s"), &json!("s########8")));
        let response = lines.iter().find(|line| line["type"] == "control_response").unwrap();
        assert_eq!(
            (&response["request_id"], &response["response"]["subtype"]),
            (&json!("r1"), &json!("success"))
        );
        let end = lines.last().unwrap();
        assert_eq!(
            (&end["metadata"]["turn"]["status"], &end["choices"][0]["finish_reason"]),
            (&json!("cancelled"), &json!("stop"))
        );
        assert!(lines.iter().any(|line| line["event"] == "USER_CANCELLED"), "{lines:#?}");
        mock.client_gone(0);
        host.is_well();
        host.leave();
    });
}

#[test]
fn nothing_to_cancel_is_a_noop_with_an_explanation() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let noop = |host: &mut Host, line: Value| {
            host.send(line);
            let line = host.until(|line| line["type"] == "result/cancel");
            assert_eq!(line["status"], "noop", "{line}");
            assert!(!line["message"].as_str().unwrap().is_empty(), "{line}");
            line
        };
        noop(&mut host, json!({"type": "control/cancel", "session_id": "s", "reason": "escape"}));
        mock.push(Reply::new([sse::text("on"), gate("hold"), sse::finish("stop"), sse::done()]));
        host.send(chat("p1", "work"));
        mock.reached("hold");
        noop(&mut host, json!({"type": "control/cancel", "session_id": "s", "prompt_id": "p9"}));
        let elsewhere = noop(&mut host, json!({"type": "control/cancel", "session_id": "another"}));
        assert_eq!((&elsewhere["session_id"], &elsewhere["prompt_id"]), (&json!("another"), &Value::Null));
        mock.open("hold");
        assert_eq!(host.turn().pop().unwrap()["metadata"]["turn"]["status"], "done", "the turn went on");
        host.leave();
    });
}

#[test]
fn a_queued_prompt_is_withdrawn_by_its_name_ends_at_once_and_is_never_said() {
    each_format(|format| {
        let mock = echo();
        mock.push(Reply::new([sse::text("on"), gate("hold"), sse::finish("stop"), sse::done()]));
        let mut host = Host::with(&mock, format);
        for id in ["p1", "p2", "p3"] {
            host.send(chat(id, id));
        }
        mock.reached("hold");
        host.send(json!({"type": "control/cancel", "session_id": "s", "prompt_id": "p2"}));
        assert_eq!(host.until(|line| line["type"] == "result/cancel")["status"], "ok");
        let withdrawn = host.turn().pop().unwrap();
        mock.open("hold");
        let ends: Vec<(Value, Value)> = std::iter::once(withdrawn)
            .chain((0..2).map(|_| host.turn().pop().unwrap()))
            .map(|end| (end["prompt_id"].clone(), end["metadata"]["turn"]["status"].clone()))
            .collect();
        let expected = [("p2", "cancelled"), ("p1", "done"), ("p3", "done")];
        assert_eq!(ends, expected.map(|(id, status)| (json!(id), json!(status))));
        let told = conversation(&mock.wait_for_request(1));
        assert!(told.contains("p3") && !told.contains("p2"), "{told}");
        host.leave();
    });
}

#[test]
fn a_cancelled_tool_is_finalised_in_the_history() {
    each_format(|format| {
        let mock = MockModel::with([Reply::call("c1", "run_shell_command", r#"{"command":"cat block"}"#)]);
        mock.answer_with(|_: &mock_model::Request| Some(Reply::text("fine")));
        let program = worker(&mock, format).arg("--yolo");
        crate::endings::fifo(&program, "block");
        let mut host = Host::start(program);
        host.send(chat("p1", "run"));
        host.until(|line| line["type"] == "x-qwen-tool-display" && line["status"] == "executing");
        host.send(json!({"type": "control/cancel"}));
        let lines = host.turn();
        assert!(lines.iter().any(|line| line["status"] == "canceled"), "{lines:#?}");
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "cancelled");
        host.say("next");
        let request = mock.wait_for_request(1);
        let roles: Vec<&Value> = request.messages().iter().map(|message| &message["role"]).collect();
        assert_eq!(
            roles,
            ["system", "user", "assistant", "tool", "user"],
            "every call has its result: {:#?}",
            request.messages()
        );
        let lines = host.leave();
        assert_eq!(lines.iter().filter(|line| ends_turn(line)).count(), 2);
    });
}

#[test]
fn an_end_that_is_told_amidst_a_turn_lets_no_secret_of_that_turn_through() {
    each_format(|format| {
        let mock = MockModel::with([Reply::new([
            sse::text("the value is hunter2-"),
            gate("hold"),
            sse::text("hunter2-hunter2"),
            sse::finish("stop"),
            sse::done(),
        ])]);
        let program = worker(&mock, format).env("DB_PASSWORD", "hunter2-hunter2-hunter2");
        let mut host = Host::start(program);
        host.send(chat("p1", "go"));
        host.send(chat("p2", "wait"));
        mock.reached("hold");
        host.send(json!({"type": "control/cancel", "session_id": "s", "prompt_id": "p2"}));
        assert_eq!(host.turn().pop().unwrap()["prompt_id"], "p2");
        mock.open("hold");
        host.turn();
        let lines = host.leave();
        let told = serde_json::to_string(&lines).unwrap();
        assert!(!told.contains("hunter2"), "{told}");
    });
}
