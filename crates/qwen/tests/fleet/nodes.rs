//! Hubs without workers and nodes: sessions outlive hubs and nodes, and every prompt ends once.

use mock_model::bus::BusServers;
use mock_model::process::{Program, Run, Signal};
use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::*;

/// A node on a separate machine: it shares nothing but the bus.
fn node(servers: &BusServers, mock: &MockModel, name: &str, further: &[&str]) -> Program {
    let url = servers.url();
    let args = ["node", "--bus", &url, "--name", name, "--min-workers", "0"];
    qwen().args(args).args(further).args(["--", "--model", "mock", "--yolo"]).with_model(mock)
}

#[track_caller]
fn started(program: &Program) -> Run {
    let run = program.start();
    run.wait_for_stderr("is on the bus");
    run
}

/// A hub without workers.
fn front(servers: &BusServers) -> Program {
    qwen().args(["hub", "--bus", &servers.url()])
}

/// A model that stops in the middle of its first answer.
fn halting() -> MockModel {
    MockModel::with([
        Reply::new([sse::text("Half"), gate("held"), sse::finish("stop"), sse::done()]),
        Reply::text("Whole."),
        Reply::text("More."),
    ])
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_hub_without_workers_serves_sessions_on_nodes() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let program = node(&servers, &mock, "a", &[]);
    let node = started(&program);
    let mut run = front(&servers).start();
    run.write_line(request("o", "open", json!({"session_id": "s"})));
    run.json_until(|line| line["type"] == "control_response" && line["request_id"] == "o");
    run.write_line(named("s", "p1", "go"));
    let mut lines = run.json_until(ends("p1"));
    run.write_line(json!({"session_id": "s", "input": {"parts": [{"type": "text", "text": "go on"}]}}));
    lines.extend(run.json_until(is_end));
    assert_eq!(ends_of(&lines).iter().map(|(_, status)| *status).collect::<Vec<_>>(), ["done", "done"]);
    follow_from(1, &lines);
    run.write_line(request("st", "hub/status", json!({})));
    let status = run.json_until(|line| line["request_id"] == "st").pop().unwrap();
    assert_eq!(status["response"]["result"]["machines"][0]["name"], "a", "{status}");
    assert_eq!(run.finish().code, Some(0));
    node.signal(Signal::TERM);
    assert_eq!(node.wait().code, Some(143));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_turn_continues_while_its_hub_dies_and_its_client_misses_nothing() {
    let servers = bus(1);
    let mock = halting();
    let program = node(&servers, &mock, "a", &[]);
    let _node = started(&program);
    let mut first = front(&servers).start();
    first.write_line(named("s", "p1", "go"));
    mock.reached("held");
    first.signal(Signal::KILL);
    let seen: Vec<Value> = std::iter::from_fn(|| first.line())
        .map(|line| serde_json::from_str(&line).unwrap())
        .filter(|line: &Value| line["seq"].is_u64())
        .collect();
    let mut second = front(&servers).start();
    let after = seen.last().map_or(0, |line| line["seq"].as_u64().unwrap());
    second.write_line(request("at", "attach", json!({"session_id": "s", "after": after})));
    second.json_until(|line| line["request_id"] == "at");
    mock.open("held");
    let lines = second.json_until(is_end);
    assert_eq!(ends_of(&lines), [("p1", "done")]);
    follow_from(after + 1, &lines);
    second.write_line(named("s", "p2", "go on"));
    assert_eq!(ends_of(&second.json_until(ends("p2"))), [("p2", "done")]);
    assert_eq!(second.finish().code, Some(0));
}

fn check_lost_node(signal: Signal) {
    let servers = bus(1);
    let mock = halting();
    let shared = ["--shared-workspace", "w"];
    let lost = node(&servers, &mock, "a", &shared);
    let lost = started(&lost);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    mock.reached("held");
    let other = node(&servers, &mock, "b", &shared);
    let other = started(&other);
    lost.signal(signal);
    let mut lines = run.json_until(ends("p1"));
    let end = lines.last().unwrap();
    assert_eq!(end["metadata"]["error"]["code"], "machine_lost", "{end}");
    run.write_line(named("s", "p2", "go on"));
    lines.extend(run.json_until(ends("p2")));
    assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")]);
    follow_from(1, &lines);
    if signal == Signal::STOP {
        // The former owner continues, is refused, and adds nothing.
        lost.signal(Signal::CONT);
        mock.open("held");
        run.write_line(named("s", "p3", "go on"));
        let more = run.json_until(ends("p3"));
        assert_eq!(ends_of(&more), [("p3", "done")], "{more:#?}");
        lost.signal(Signal::KILL);
    }
    assert_eq!(run.finish().code, Some(0));
    drop(other);
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn the_turn_of_a_killed_node_ends_once_and_the_session_continues_on_another() {
    check_lost_node(Signal::KILL);
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn the_turn_of_a_stopped_node_ends_once_and_what_it_adds_later_is_refused() {
    check_lost_node(Signal::STOP);
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_session_whose_files_are_on_a_lost_machine_is_stranded_until_it_returns() {
    let servers = bus(1);
    let mock = halting();
    let lost = node(&servers, &mock, "a", &[]);
    let first = started(&lost);
    let other = node(&servers, &mock, "b", &[]);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    mock.reached("held");
    let _other = started(&other);
    first.signal(Signal::KILL);
    assert_eq!(ends_of(&run.json_until(ends("p1"))), [("p1", "interrupted")]);
    run.write_line(named("s", "p2", "go on"));
    let end = run.json_until(ends("p2")).pop().unwrap();
    assert_eq!(end["metadata"]["error"]["code"], "stranded", "{end}");
    let _returned = started(&lost);
    run.write_line(named("s", "p3", "go on"));
    assert_eq!(ends_of(&run.json_until(ends("p3"))), [("p3", "done")]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_killed_worker_of_a_node_costs_its_turn_and_the_session_continues() {
    let servers = bus(1);
    let mock = halting();
    let program = node(&servers, &mock, "a", &[]);
    let node = started(&program);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    mock.reached("held");
    kill_worker(node.pid());
    let mut lines = run.json_until(ends("p1"));
    run.write_line(named("s", "p2", "go on"));
    lines.extend(run.json_until(ends("p2")));
    assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")]);
    follow_from(1, &lines);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn no_turn_of_a_node_ends_when_the_leading_bus_server_is_killed() {
    let mut servers = bus(3);
    let mock = halting();
    let program = node(&servers, &mock, "a", &[]);
    let _node = started(&program);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    mock.reached("held");
    let status = qwen().args(["bus", "status", "--json", "--bus", &servers.url()]).run();
    let report: Value = serde_json::from_str(&status.stdout).unwrap();
    let leader = report["streams"][0]["leader"].as_str().unwrap().to_owned();
    servers.kill(servers.index_of(&leader));
    mock.open("held");
    let mut lines = run.json_until(ends("p1"));
    run.write_line(named("s", "p2", "go on"));
    lines.extend(run.json_until(ends("p2")));
    assert_eq!(ends_of(&lines), [("p1", "done"), ("p2", "done")]);
    follow_from(1, &lines);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_node_that_drains_finishes_its_turn_and_takes_no_session() {
    let servers = bus(1);
    let mock = halting();
    let program = node(&servers, &mock, "a", &["--shared-workspace", "w"]);
    let first = started(&program);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    mock.reached("held");
    let other = node(&servers, &mock, "b", &["--shared-workspace", "w"]);
    let _other = started(&other);
    first.signal(Signal::TERM);
    run.write_line(named("t", "p2", "go"));
    let mut lines = run.json_until(ends("p2"));
    mock.open("held");
    lines.extend(run.json_until(ends("p1")));
    assert_eq!(first.wait().code, Some(143));
    run.write_line(named("s", "p3", "go on"));
    lines.extend(run.json_until(ends("p3")));
    assert_eq!(ends_of(&lines), [("p2", "done"), ("p1", "done"), ("p3", "done")]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_question_of_a_node_is_answered_by_the_client_of_the_hub() {
    let servers = bus(1);
    let call = json!({"command": "touch ran"}).to_string();
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", &call), Reply::text("Done.")]);
    let url = servers.url();
    let args = ["node", "--bus", &url, "--name", "a", "--min-workers", "0", "--", "--model", "mock"];
    let program = qwen().args(args).with_model(&mock);
    let _node = started(&program);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    let asked = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    let answer = json!({"type": "control_response", "request_id": asked["request_id"], "session_id": "s",
        "response": {"subtype": "success", "result": {"behavior": "allow"}}});
    run.write_line(answer);
    assert_eq!(ends_of(&run.json_until(ends("p1"))), [("p1", "done")]);
    assert!(program.cwd_path().join("ran").exists(), "the call ran on the node");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_hub_without_nodes_and_a_second_node_of_a_name_are_refused() {
    let servers = bus(1);
    let mock = halting();
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    let end = run.json_until(is_end).pop().unwrap();
    assert_eq!(end["metadata"]["error"]["code"], "no_nodes", "{end}");
    assert_eq!(run.finish().code, Some(0));
    let program = node(&servers, &mock, "a", &[]);
    let _node = started(&program);
    let second = node(&servers, &mock, "a", &[]).run();
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("Another node on this bus has the name 'a'"), "{}", second.stderr);
    for name in ["a.b", "a>", ""] {
        let refused = node(&servers, &mock, name, &[]).run();
        assert_eq!(refused.code, Some(2), "{name}: {}", refused.stderr);
        assert!(refused.stderr.contains("is not a name on a bus"), "{}", refused.stderr);
    }
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_prompt_that_waits_on_a_node_that_is_killed_runs_on_another_once() {
    let servers = bus(1);
    let mock = halting();
    let shared = ["--shared-workspace", "w"];
    let lost = node(&servers, &mock, "a", &shared);
    let lost = started(&lost);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    run.write_line(named("s", "p2", "and then this"));
    mock.reached("held");
    // The answer comes after the node has both prompts.
    run.write_line(request("st", "hub/status", json!({"session_id": "none"})));
    let other = node(&servers, &mock, "b", &shared);
    let _other = started(&other);
    lost.signal(Signal::KILL);
    let lines = run.json_until(ends("p2"));
    assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")]);
    follow_from(1, &lines);
    assert_eq!(mock.requests().len(), 2, "p2 ran once");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_tool_of_a_killed_node_is_named_and_never_run_again() {
    let servers = bus(1);
    let call = json!({"command": "echo ran >> runs; sleep 1000"}).to_string();
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", &call), Reply::text("Whole.")]);
    let shared = ["--shared-workspace", "w"];
    let lost = node(&servers, &mock, "a", &shared);
    let other = node(&servers, &mock, "b", &shared);
    let run_a = started(&lost);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    let runs = lost.cwd_path().join("runs");
    let deadline = std::time::Instant::now() + mock_model::WAIT_LIMIT;
    while !runs.exists() {
        assert!(std::time::Instant::now() < deadline, "the tool did not start");
        std::thread::yield_now();
    }
    let _other = started(&other);
    run_a.signal(Signal::KILL);
    let mut lines = run.json_until(ends("p1"));
    let message = lines.last().unwrap()["metadata"]["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("run_shell_command (c1)"), "{message}");
    run.write_line(named("s", "p2", "go on"));
    lines.extend(run.json_until(ends("p2")));
    assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")]);
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "ran\n");
    assert!(!other.cwd_path().join("runs").exists(), "the tool ran again");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_follower_gets_the_end_of_a_turn_whose_hub_and_node_both_died() {
    let servers = bus(1);
    let mock = halting();
    let program = node(&servers, &mock, "a", &[]);
    let lost = started(&program);
    let mut driver = front(&servers).start();
    driver.write_line(named("s", "p1", "go"));
    mock.reached("held");
    let mut follower = front(&servers).start();
    follower.write_line(request("at", "attach", json!({"session_id": "s", "after": 0})));
    follower.json_until(|line| line["request_id"] == "at");
    driver.signal(Signal::KILL);
    lost.signal(Signal::KILL);
    let lines = follower.json_until(is_end);
    assert_eq!(ends_of(&lines), [("p1", "interrupted")]);
    follow_from(1, &lines);
    assert_eq!(follower.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn two_hubs_use_one_session_and_both_see_every_line_with_the_same_number() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let program = node(&servers, &mock, "a", &[]);
    let _node = started(&program);
    let mut first = front(&servers).start();
    let mut second = front(&servers).start();
    first.write_line(named("s", "p1", "go"));
    let mut one = first.json_until(ends("p1"));
    second.write_line(request("at", "attach", json!({"session_id": "s", "after": 0})));
    second.write_line(named("s", "p2", "go on"));
    let numbered =
        |lines: Vec<Value>| -> Vec<Value> { lines.into_iter().filter(|line| line["seq"].is_u64()).collect() };
    let other = numbered(second.json_until(ends("p2")));
    one.extend(first.json_until(ends("p2")));
    assert_eq!(numbered(one), other);
    follow_from(1, &other);
    for run in [first, second] {
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_prompt_of_several_megabytes_reaches_a_node_in_parts() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("Long.")]);
    let program = node(&servers, &mock, "a", &[]);
    let _node = started(&program);
    let mut run = front(&servers).start();
    let text = format!("{} the end", "word ".repeat(600_000));
    run.write_line(named("s", "p1", &text));
    assert_eq!(ends_of(&run.json_until(ends("p1"))), [("p1", "done")]);
    assert!(mock.requests()[0].body.to_string().contains("the end"), "it arrived whole");
    assert_eq!(run.finish().code, Some(0));
}

/// All files below a directory that contain a text.
fn files_with(directory: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                return files_with(&path, text);
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            let is_found = bytes.windows(text.len()).any(|part| part == text.as_bytes());
            if is_found { vec![path] } else { Vec::new() }
        })
        .collect()
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_key_of_a_session_is_in_no_file_of_the_bus() {
    let servers = bus(1);
    let call = json!({"command": "echo $PLANTED_API_KEY marker-of-the-tool"}).to_string();
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", &call), Reply::text("Done.")]);
    let program = node(&servers, &mock, "a", &[]);
    let _node = started(&program);
    let mut run = front(&servers).start();
    let key = "planted-0123456789-abcdefghij";
    let env = json!({"session_id": "s", "env": {"PLANTED_API_KEY": key}});
    run.write_line(request("o", "open", env));
    run.json_until(|line| line["request_id"] == "o");
    run.write_line(named("s", "p1", "go"));
    assert_eq!(ends_of(&run.json_until(ends("p1"))), [("p1", "done")]);
    assert!(!files_with(servers.directory(), "marker-of-the-tool").is_empty(), "the files are searched");
    assert_eq!(files_with(servers.directory(), key), Vec::<std::path::PathBuf>::new());
    assert_eq!(run.finish().code, Some(0));
}
