//! Turns that end before their time still have their spans.

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, ReplyEvent, gate};
use serde_json::{Value, json};

use crate::collector::{Collector, said};
use crate::harness::{assert_below, ends_turn, prompt, worker};

fn status(span: &Value) -> (Value, Value) {
    (said(span, "error.type"), span["status"]["code"].clone())
}

/// A model that has begun to speak and does not go on.
fn stuck() -> MockModel {
    MockModel::with([Reply::new([
        ReplyEvent::Text("Half".into()).step(),
        gate("never"),
        ReplyEvent::Text(" done".into()).step(),
    ])])
}

#[test]
fn a_cancelled_turn_ends_with_its_status() {
    let (mock, collector) = (stuck(), Collector::new());
    let mut run = worker(&mock, &collector).start();
    run.write_line(prompt("Hello"));
    mock.reached("never");
    run.write_line(json!({"type": "control/cancel", "reason": "enough"}));
    run.json_until(ends_turn);
    run.finish();
    let spans = collector.spans();
    let (turn, call) = (spans.one("invoke_agent react"), spans.one("chat mock"));
    assert_eq!(status(turn), (json!("cancelled"), json!(2)));
    assert_eq!(status(call), (json!("cancelled"), json!(2)));
    assert_below(call, turn);
}

#[test]
fn sigterm_sends_what_there_is() {
    let (mock, collector) = (stuck(), Collector::new());
    let mut run = worker(&mock, &collector).start();
    run.write_line(prompt("Hello"));
    mock.reached("never");
    run.signal(Signal::TERM);
    let ended = run.wait();
    assert_eq!(ended.code, Some(143), "{ended:?}");
    let spans = collector.spans();
    assert_eq!(status(spans.one("invoke_agent react")), (json!("interrupted"), json!(2)));
    assert_eq!(status(spans.one("chat mock")), (json!("cancelled"), json!(2)));
}

#[test]
fn a_command_that_a_cancel_ends_has_its_span() {
    let sleep = json!({"command": "echo up; sleep 1000"}).to_string();
    let (mock, collector) =
        (MockModel::with([Reply::call("c1", "run_shell_command", &sleep)]), Collector::new());
    let mut run = worker(&mock, &collector).arg("--yolo").start();
    run.write_line(prompt("Sleep"));
    run.json_until(|line| line["type"] == "x-qwen-terminal" || line.to_string().contains("\"up"));
    run.write_line(json!({"type": "control/cancel", "reason": "enough"}));
    run.json_until(ends_turn);
    run.finish();
    let spans = collector.spans();
    assert_eq!(status(spans.one("execute_tool run_shell_command")), (json!("cancelled"), json!(2)));
    assert_eq!(status(spans.one("invoke_agent react")).0, "cancelled");
}

#[test]
fn a_limit_is_the_cause_of_its_end() {
    let (mock, collector) = (
        MockModel::with([Reply::call("c1", "list_directory", &json!({"path": "."}).to_string())]),
        Collector::new(),
    );
    let ended = crate::harness::asked(&mock, &collector).args(["--max-session-turns", "1"]).run();
    assert_eq!(ended.code, Some(53), "{ended:?}");
    let spans = collector.spans();
    assert_eq!(status(spans.one("invoke_agent react")), (json!("max_turns"), json!(2)));
}
