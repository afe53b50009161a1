//! Two hubs on one machine: the second one follows a session that the first one drives, and takes it over only when asked
//! to or when the first one is dead.

use mock_model::process::{Program, Run};
use mock_model::{MockModel, Reply, gate, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::*;

fn hub_of(mock: &MockModel) -> Program {
    bare().args(["--min-workers", "0", "--", "--model", "mock", "--yolo"]).with_model(mock)
}

fn numbered(program: &Program) -> Run {
    let mut run = program.start();
    run.write_line(request("seq", "initialize", json!({"sequence": true})));
    assert_eq!(answer(&mut run, "seq")["sequence"], true);
    run
}

/// Attaches, and returns the lines up to and including the answer.
fn attach(run: &mut Run, after: u64) -> Value {
    run.write_line(request("at", "attach", json!({"session_id": "s", "after": after})));
    answer(run, "at")
}

fn is_end_of(prompt_id: &str) -> impl Fn(&Value) -> bool {
    move |line| is_end(line) && line["prompt_id"] == prompt_id
}

/// Reads up to the end of a turn.
fn read_turn(run: &mut Run, prompt_id: &str) -> Vec<Value> {
    run.json_until(is_end_of(prompt_id))
}

fn says_twice() -> MockModel {
    let halves =
        |gate_name| Reply::new([gate(gate_name), sse::text("Hello."), sse::finish("stop"), sse::done()]);
    MockModel::with([halves("first"), halves("second")])
}

#[test]
fn a_client_of_another_hub_follows_a_session_without_disturbing_it() {
    let mock = says_twice();
    let program = hub_of(&mock);
    let mut driver = numbered(&program);
    let mut follower = numbered(&program);
    driver.write_line(named("s", "p1", "go"));
    mock.reached("first");
    attach(&mut follower, 0);
    mock.open("first");
    let seen = read_turn(&mut driver, "p1");
    assert_eq!(read_turn(&mut follower, "p1"), seen);
    // Later turns are followed too, with the same lines.
    driver.write_line(named("s", "p2", "again"));
    mock.reached("second");
    mock.open("second");
    let seen = read_turn(&mut driver, "p2");
    assert!(seen.iter().all(|line| line["metadata"]["error"].is_null()), "{seen:#?}");
    assert_eq!(read_turn(&mut follower, "p2"), seen);
    for run in [follower, driver] {
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn a_resting_session_of_a_live_hub_is_followed_and_a_closed_one_is_free() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let program = hub_of(&mock);
    let mut driver = numbered(&program);
    driver.write_line(named("s", "p1", "go"));
    let last = read_turn(&mut driver, "p1").pop().unwrap()["seq"].as_u64().unwrap();
    let mut follower = numbered(&program);
    assert_eq!(attach(&mut follower, last)["last"], last);
    driver.write_line(named("s", "p2", "more"));
    assert_eq!(read_turn(&mut follower, "p2"), read_turn(&mut driver, "p2"));
    driver.write_line(request("end", "close", json!({"session_id": "s"})));
    answer(&mut driver, "end");
    // Now no one has it, so that the follower's prompt runs, under the next number.
    follower.write_line(named("s", "p3", "mine"));
    let own = read_turn(&mut follower, "p3");
    let end = own.last().unwrap();
    assert_eq!(status(end), "done", "{end}");
    let numbers: Vec<u64> = own.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{own:#?}");
    assert!(numbers[0] > last, "{own:#?}");
    for run in [follower, driver] {
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn a_follower_gets_the_end_of_a_turn_whose_hub_dies() {
    let mock = says_twice();
    let program = hub_of(&mock);
    let mut driver = numbered(&program);
    driver.write_line(named("s", "p1", "go"));
    mock.reached("first");
    let mut follower = numbered(&program);
    attach(&mut follower, 0);
    driver.signal(Signal::KILL);
    let seen = read_turn(&mut follower, "p1");
    assert_eq!(status(seen.last().unwrap()), "interrupted", "{seen:#?}");
    let numbers: Vec<u64> = seen.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    follower.write_line(named("s", "p2", "continue"));
    mock.reached("second");
    mock.open("second");
    assert_eq!(status(read_turn(&mut follower, "p2").last().unwrap()), "done");
    assert_eq!(follower.finish().code, Some(0));
}

#[test]
fn a_prompt_of_a_follower_is_refused_while_the_driver_has_the_session() {
    let mock = says_twice();
    let program = hub_of(&mock);
    let mut driver = numbered(&program);
    driver.write_line(named("s", "p1", "go"));
    mock.reached("first");
    let mut follower = numbered(&program);
    attach(&mut follower, 0);
    follower.write_line(named("s", "p2", "me too"));
    let refused = read_turn(&mut follower, "p2").pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "session_in_use", "{refused}");
    assert!(refused["seq"].is_null(), "{refused}");
    mock.open("first");
    let seen = read_turn(&mut driver, "p1");
    assert_eq!(read_turn(&mut follower, "p1").last(), seen.last());
    for run in [follower, driver] {
        assert_eq!(run.finish().code, Some(0));
    }
}
