//! What an operator sees: metrics, state, logs and records.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::stage::*;

fn get(socket: &std::path::Path, path: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn metrics_and_state_are_offered_on_request() {
    let program = bare();
    let socket = program.home_path().join("hub.sock");
    let address = format!("unix:{}", socket.display());
    let mut run = hub_with(&["--metrics", &address], &says("Hi.")).start();
    run.write_line(prompt("a", "x"));
    run.json_until(is_end);
    let metrics = get(&socket, "/metrics");
    for line in [
        "qwen_hub_turns_total 1",
        "qwen_hub_sessions_total 1",
        "qwen_hub_workers{state=\"idle\"} 1",
        "qwen_hub_turn_seconds_count 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let state = get(&socket, "/status");
    let state: Value = serde_json::from_str(state.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(state["sessions"], 1);
    let shown = bare().args(["--status", "--metrics", &address]).run();
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("1 idle") && shown.stdout.contains("1 sessions"), "{}", shown.stdout);
    assert_eq!(run.finish().code, Some(0));
    let refused = bare().args(["--metrics", "192.0.2.1:9"]).run();
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("loopback"), "{}", refused.stderr);
}

#[test]
fn every_message_is_recorded_where_that_is_asked_for() {
    let program = bare();
    let directory = program.home_path().join("records");
    let mut run = hub_with(&["--record-dir", directory.to_str().unwrap()], &says("Hi.")).start();
    run.write_line(named("a", "p1", "x"));
    let lines = run.json_until(is_end);
    assert_eq!(run.finish().code, Some(0));
    let read = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(directory.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(read("a.in.jsonl"), [named("a", "p1", "x")]);
    assert_eq!(read("a.out.jsonl"), lines[1..]);
}

#[test]
fn logs_name_workers_and_the_reason_of_every_exit() {
    let mut run = hub_with(&["--log-format", "json"], &says("Hi.")).start();
    run.write_line(prompt("a", "x"));
    run.json_until(is_end);
    let ended = run.finish();
    let records: Vec<Value> = ended.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| records.iter().filter(|record| record["event"] == event).collect::<Vec<_>>();
    assert!(!of("worker_start").is_empty(), "{}", ended.stderr);
    assert!(
        of("worker_exit").iter().any(|record| record["reason"] == "exit_0" && record["session_id"] == "a"),
        "{}",
        ended.stderr
    );
    let turns = of("turn_end");
    assert_eq!(turns.len(), 1, "{}", ended.stderr);
    assert_eq!((&turns[0]["session_id"], &turns[0]["status"]), (&json!("a"), &json!("done")));
    assert!(turns[0]["duration_ms"].is_u64() && turns[0]["prompt_id"].is_string());
}
