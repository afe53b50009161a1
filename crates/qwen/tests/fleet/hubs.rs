//! Hubs with workers that share sessions over a bus: one terminal record for every prompt, whichever hub dies.

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::*;

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_session_continues_on_another_machine_with_its_log_byte_for_byte() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let first = hub(&servers, &mock);
    let mut run = first.start();
    run.write_line(named("s.1", "p1", "remember the word apricot"));
    let next = follow_from(1, &run.json_until(ends("p1")));
    assert_eq!(run.finish().code, Some(0));
    let second = hub(&servers, &mock);
    let mut run = second.start();
    run.write_line(named("s.1", "p2", "go on"));
    let lines = run.json_until(ends("p2"));
    assert_eq!(ends_of(&lines), [("p2", "done")]);
    follow_from(next, &lines);
    let asked = mock.requests().pop().unwrap().body.to_string();
    assert!(asked.contains("apricot") && asked.contains("One."), "{asked}");
    assert_eq!(run.finish().code, Some(0));
    let log = |program: &mock_model::process::Program| {
        std::fs::read(program.home_path().join(".qwen/sessions/s.1.jsonl")).unwrap()
    };
    let (one, other) = (log(&first), log(&second));
    assert!(other.starts_with(&one) && other.len() > one.len());
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_turn_of_a_killed_hub_is_ended_once_by_whoever_attaches() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::new([sse::text("Half"), gate("held")]), Reply::text("Whole.")]);
    let mut first = hub(&servers, &mock).start();
    first.write_line(named("s", "p1", "go"));
    mock.reached("held");
    first.signal(Signal::KILL);
    let seen: Vec<Value> =
        std::iter::from_fn(|| first.line()).map(|line| serde_json::from_str(&line).unwrap()).collect();
    let seen: Vec<Value> = seen.into_iter().filter(|line| line["seq"].is_u64()).collect();
    let program = hub(&servers, &mock);
    let mut second = program.start();
    second.write_line(request("at", "attach", json!({"session_id": "s", "after": 0})));
    let lines = second.json_until(is_end);
    assert_eq!(ends_of(&lines), [("p1", "interrupted")]);
    follow_from(1, &lines);
    let numbered: Vec<&Value> = lines.iter().filter(|line| line["seq"].is_u64()).collect();
    assert!(seen.iter().eq(numbered.iter().take(seen.len()).copied()), "the same bytes for everyone");
    let last = numbered.len() as u64;
    let mut again = named("s", "p1", "go");
    again["resend"] = json!(true);
    second.write_line(again);
    second.write_line(named("s", "p2", "go on"));
    let more = second.json_until(ends("p2"));
    let ended: Vec<_> = ends_of(&more);
    assert_eq!(ended.last(), Some(&("p2", "done")));
    assert_eq!(mock.requests().len(), 2, "p1 did not run again");
    let new: Vec<Value> =
        more.into_iter().filter(|line| line["seq"].as_u64().is_some_and(|n| n > last)).collect();
    follow_from(last + 1, &new);
    assert_eq!(second.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_session_that_a_live_hub_has_is_refused_unless_it_is_taken_over() {
    let servers = bus(1);
    let mock =
        MockModel::with([Reply::new([gate("held"), sse::text("Hello."), sse::finish("stop"), sse::done()])]);
    let mut first = hub(&servers, &mock).start();
    first.write_line(named("s", "p1", "go"));
    mock.reached("held");
    let mut second = hub(&servers, &mock).start();
    second.write_line(named("s", "p2", "me too"));
    let refused = second.json_until(is_end).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "session_in_use", "{refused}");
    assert_eq!((&refused["prompt_id"], &refused["seq"]), (&json!("p2"), &Value::Null), "{refused}");
    second.write_line(request("at", "attach", json!({"session_id": "s", "after": 0, "takeover": true})));
    assert_eq!(ends_of(&second.json_until(is_end)), [("p1", "interrupted")]);
    mock.open("held");
    let ended = first.json_until(is_end).pop().unwrap();
    assert_eq!(ended["metadata"]["error"]["code"], "session_taken_over", "{ended}");
    for run in [first, second] {
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_killed_worker_costs_its_turn_and_the_session_continues() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::new([sse::text("Half"), gate("held")]), Reply::text("Whole.")]);
    let mut run = hub(&servers, &mock).start();
    run.write_line(named("s", "p1", "go"));
    mock.reached("held");
    kill_worker(run.pid());
    let mut lines = run.json_until(ends("p1"));
    run.write_line(named("s", "p2", "go on"));
    lines.extend(run.json_until(ends("p2")));
    assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")]);
    follow_from(1, &lines);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn no_line_is_lost_when_the_leading_bus_server_is_killed_in_a_turn() {
    let mut servers = bus(3);
    let mock = MockModel::with([
        Reply::new([sse::text("Half"), gate("held"), sse::text(" whole."), sse::finish("stop"), sse::done()]),
        Reply::text("Two."),
    ]);
    let mut run = hub(&servers, &mock).start();
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
fn a_turn_ends_once_for_its_client_when_the_bus_stays_away() {
    let mut servers = bus(1);
    let call = json!({"command": "touch ran"}).to_string();
    let mock = MockModel::with([Reply::new([
        gate("held"),
        sse::call(0, "c1", "run_shell_command", &call),
        sse::finish("tool_calls"),
        sse::done(),
    ])]);
    let url = servers.url();
    let args = [
        "hub",
        "--local",
        "--bus",
        &url,
        "--bus-commit-timeout",
        "1",
        "--min-workers",
        "0",
        "--",
        "--model",
        "mock",
        "--yolo",
    ];
    let program = qwen().args(args).with_model(&mock);
    let mut run = program.start();
    run.write_line(named("s", "p1", "go"));
    mock.reached("held");
    servers.kill(0);
    mock.open("held");
    let end = run.json_until(is_end).pop().unwrap();
    assert_eq!((status(&end), &end["seq"]), ("interrupted", &Value::Null), "{end}");
    assert_eq!(end["metadata"]["error"]["code"], "bus_unavailable", "{end}");
    assert!(!program.cwd_path().join("ran").exists(), "a tool ran whose start was not committed");
    servers.restart(0);
    let mut second = hub(&servers, &mock).start();
    second.write_line(request("at", "attach", json!({"session_id": "s", "after": 0, "takeover": true})));
    let lines = second.json_until(is_end);
    assert_eq!(ends_of(&lines), [("p1", "interrupted")], "the stream has one end too");
    assert_eq!(run.finish().code, Some(0));
    assert_eq!(second.finish().code, Some(0));
}
