//! Signs of life: answered at once, by themselves only when that was asked for, and telling what is being
//! done.

use mock_model::process::Run;
use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::{judged, qwen};
use crate::wire::{self, CLAUDE, QWEN, STREAMS, Wire};

fn start(mock: &MockModel, wire: Wire) -> Run {
    qwen().with_model(mock).args(["--input-format", "stream-json", "--yolo"]).args(wire.flags()).start()
}

fn prompt(text: &str) -> String {
    json!({"messages": [{"role": "user", "content": text}]}).to_string()
}

fn beat(run: &mut Run, request: &Value) -> Value {
    run.write_line(request.to_string());
    run.json_until(|line| line["type"] == "result/heartbeat").pop().unwrap()
}

#[test]
fn an_answer_names_the_session_that_was_asked_about() {
    wire::each(&STREAMS, |wire| {
        let mock = MockModel::with([]);
        let mut run = start(&mock, wire);
        let answer = beat(&mut run, &json!({"type": "heartbeat_request", "session_id": "session-9"}));
        assert_eq!(
            (&answer["session_id"], &answer["status"]),
            (&json!("session-9"), &json!("ok")),
            "{answer}"
        );
        assert!(answer["ts"].is_u64() && answer.get("activity").is_none(), "{answer}");
        let hint = json!({"type": "command_hint_request", "session_id": "session-9", "prompt_id": "p",
                          "trigger": "slash", "text": "/c", "cursor": 2});
        run.write_line(hint.to_string());
        let hint = run.json_until(|line| line["type"] == "result/command_hint").pop().unwrap();
        assert_eq!(hint["session_id"], "session-9", "{hint}");
        assert_eq!(run.finish().code, Some(0));
    });
}

#[test]
fn an_answer_tells_what_the_turn_is_doing() {
    let mock = MockModel::with([Reply::new([
        sse::text("hm"),
        gate("thinking"),
        sse::call(0, "c1", "run_shell_command", r#"{"command":"echo begun; sleep 60"}"#),
        sse::finish("tool_calls"),
        sse::done(),
    ])]);
    let mut run = start(&mock, QWEN);
    run.write_line(prompt("Sleep"));
    mock.reached("thinking");
    let request = json!({"type": "heartbeat_request"});
    assert_eq!(beat(&mut run, &request)["activity"], "thinking");
    mock.open("thinking");
    run.json_until(|line| line["text"].as_str().is_some_and(|text| text.contains("begun")));
    let answer = beat(&mut run, &request);
    assert_eq!((&answer["activity"], &answer["tool"]), (&json!("tool"), &json!("run_shell_command")));
    assert!(answer["prompt_id"].is_string(), "{answer}");
    run.write_line(json!({"type": "control/cancel"}).to_string());
    run.json_until(|line| line["metadata"]["turn"].is_object());
    assert!(beat(&mut run, &request).get("activity").is_none());
    judged(QWEN, &run.finish());
}

#[test]
fn they_come_by_themselves_only_when_asked_for_and_until_told_otherwise() {
    let initialize = json!({"type": "control_request", "request_id": "r",
                            "request": {"subtype": "initialize", "heartbeat_ms": 1}});
    let request = json!({"type": "heartbeat_request", "interval_ms": 1});
    for (wire, line, answered) in [(QWEN, request, true), (CLAUDE, initialize, false)] {
        let mock = MockModel::with([]);
        let mut run = start(&mock, wire);
        run.write_line(line.to_string());
        for _ in 0..if answered { 4 } else { 3 } {
            run.json_until(|line| line["type"] == "result/heartbeat");
        }
        beat(&mut run, &json!({"type": "heartbeat_request", "session_id": "last", "interval_ms": 0}));
        // What comes after the answer that ends them, up to the end of the stream, holds none.
        let ended = run.finish();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let after = ended.stdout.rsplit("\"last\"").next().unwrap();
        assert!(!after.contains("result/heartbeat"), "{}", ended.stdout);
        judged(wire, &ended);
    }
}

#[test]
fn the_end_of_input_ends_them() {
    let mock = MockModel::with([]);
    let mut run = start(&mock, QWEN);
    beat(&mut run, &json!({"type": "heartbeat_request", "interval_ms": 100}));
    assert_eq!(run.finish().code, Some(0));
}
