//! The fault matrix: every fault at every moment, each cell a test with real processes. After each fault the
//! prompt has exactly one terminal record, the session goes on in the same slot, numbers have no gap, and
//! nothing is left behind.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mock_model::process::{Program, Run, wait_marked_gone};
use mock_model::{MockModel, Reply, gate, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fault_worker;
use crate::harness::*;

const LIMITS: &str = "worker_pool:\n  min_workers: 0\n  max_workers: 1\n  heartbeat_interval: 0.2\n  heartbeat_timeout: 1.5\n  \
                      health_check_interval: 0.2\n  kill_after: 1\n  queue_timeout: 20\n";

struct Cell {
    program: Program,
    mark: String,
    once: PathBuf,
}

impl Cell {
    fn new(moment: &str, fault: &str) -> Self {
        let mark = format!("FAULT_MARK={:016x}", fastrand::u64(..));
        let program = bare();
        let worker = fault_worker::script(&program, moment, fault);
        let config = config(&program, &format!("{LIMITS}binary_path: {}\n", worker.display()));
        let once = program.home_path().join("failed");
        let (name, value) = mark.split_once('=').unwrap();
        let program = program.env(name, value).arg("--config").arg(config);
        Self { program, mark, once }
    }

    /// A hub whose lines are numbered.
    fn start(&self) -> Run {
        let mut run = self.program.start();
        run.write_line(request("seq", "initialize", json!({"sequence": true})));
        assert_eq!(answer(&mut run, "seq")["sequence"], true);
        run
    }
}

/// Waits until a worker has left this file as a sign.
fn wait_for(path: &Path) {
    let deadline = std::time::Instant::now() + mock_model::WAIT_LIMIT;
    while !path.exists() {
        assert!(std::time::Instant::now() < deadline, "the moment never came");
        std::thread::yield_now();
    }
}

/// Every number of the session once, in order, from `first` on; gives back the last.
#[track_caller]
fn contiguous(lines: &[Value], first: u64) -> u64 {
    let numbers: Vec<u64> = lines
        .iter()
        .filter(|line| line["session_id"] == "s")
        .filter_map(|line| line["seq"].as_u64())
        .collect();
    let expected: Vec<u64> = (first..first + numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "{lines:#?}");
    first + numbers.len() as u64 - 1
}

fn ends_of<'a>(lines: &'a [Value], prompt: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| is_end(line) && line["prompt_id"] == prompt).collect()
}

/// A fault of the worker.
fn worker_fails(moment: &str, fault: &str) {
    let cell = Cell::new(moment, fault);
    let mut run = cell.start();
    run.write_line(named("s", "p1", "go"));
    let mut lines = Vec::new();
    let harmless = ["garbage_line", "long_line", "stderr_flood"].contains(&fault);
    if moment == "awaiting_control" && harmless {
        lines.extend(run.json_until(|line| line["type"] == "control_request"));
        let id = &lines.last().unwrap()["request_id"];
        run.write_line(json!({"type": "control_response", "request_id": id, "session_id": "s", "response": {"subtype": "success", "result": {}}}));
    }
    lines.extend(run.json_until(is_end));
    let in_turn = ["mid_token", "mid_tool", "awaiting_control", "writing_result"].contains(&moment);
    let expected = if in_turn && !harmless { "interrupted" } else { "done" };
    let end = lines.last().unwrap();
    assert_eq!((status(end), &end["prompt_id"]), (expected, &json!("p1")), "{end}");
    if expected == "interrupted" {
        assert_eq!(end["metadata"]["error"]["code"], "worker_lost", "{end}");
    }
    if moment != "draining" {
        run.write_line(named("s", "p2", "again"));
        lines.extend(run.json_until(is_end));
        let end = lines.last().unwrap();
        assert_eq!((status(end), &end["prompt_id"]), ("done", &json!("p2")), "{end}");
    }
    let before = lines.len();
    run.close_stdin();
    let ended = run.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let all: Vec<Value> = ended.json_lines();
    assert!(all.len() >= before);
    assert_eq!(ends_of(&all, "p1").len(), 1, "{}", ended.stdout);
    assert_eq!(ends_of(&all, "p2").len(), usize::from(moment != "draining"));
    contiguous(&all, 1);
    let open = |kind: &str| all.iter().filter(|line| line["type"] == kind).count();
    if moment == "awaiting_control" && !harmless {
        assert_eq!((open("control_request"), open("control_cancel_request")), (1, 1));
    }
    assert!(cell.once.exists(), "the fault never happened");
    wait_marked_gone(&cell.mark);
}

/// The hub is killed: its successor tells the end.
fn hub_is_killed(moment: &str) {
    let cell = Cell::new(moment, "hub_kill");
    let mut run = cell.start();
    run.write_line(named("s", "p1", "go"));
    let mut seen: Vec<Value> = Vec::new();
    if ["between_turns", "draining"].contains(&moment) {
        seen.extend(run.json_until(is_end));
    } else if moment == "awaiting_control" {
        seen.extend(run.json_until(|line| line["type"] == "control_request"));
    } else if ["mid_tool", "writing_result"].contains(&moment) {
        seen.extend(run.json_until(|line| line["type"] == "x-qwen-tool-display"));
    } else if moment == "mid_token" {
        seen.extend(run.json_until(|line| line["prompt_id"] == "p1"));
    }
    if moment == "draining" {
        run.close_stdin();
    }
    wait_for(&cell.once.with_extension("reached"));
    run.signal(Signal::KILL);
    while let Some(line) = run.line() {
        seen.push(serde_json::from_str(&line).unwrap());
    }
    wait_marked_gone(&cell.mark);
    let last = contiguous(&seen, 1);
    let mut next = cell.start();
    next.write_line(request("at", "attach", json!({"session_id": "s", "after": last})));
    let mut rest = next.json_until(|line| line["type"] == "control_response");
    next.write_line(named("s", "p2", "again"));
    rest.extend(next.json_until(is_end));
    while rest.last().unwrap()["prompt_id"] != "p2" {
        rest.extend(next.json_until(is_end));
    }
    contiguous(&rest, last + 1);
    seen.extend(rest);
    let told = ends_of(&seen, "p1").len();
    let never_started = ["spawn", "handshake"].contains(&moment);
    // A prompt that never started is still the client's.
    assert_eq!(told, usize::from(!never_started), "{seen:#?}");
    assert_eq!(ends_of(&seen, "p2").len(), 1);
    assert_eq!(next.finish().code, Some(0));
    wait_marked_gone(&cell.mark);
}

/// How long the hub is stopped: longer than the heartbeat of a worker may be absent.
const STOPPED_FOR: Duration = Duration::from_secs(5);

/// The hub is stopped for a while: nobody is taken for dead.
fn hub_is_stopped(moment: &str) {
    let cell = Cell::new(moment, "hub_stop");
    let mut run = cell.start();
    run.write_line(named("s", "p1", "go"));
    let mut seen: Vec<Value> = Vec::new();
    if moment == "draining" {
        seen.extend(run.json_until(is_end));
        run.close_stdin();
    }
    wait_for(&cell.once.with_extension("reached"));
    run.signal(Signal::STOP);
    wait_stopped(run.pid());
    std::fs::write(cell.once.with_extension("resumed"), "").unwrap();
    // The length of the stop is the fault itself; it stands for no event.
    std::thread::sleep(STOPPED_FOR);
    run.signal(Signal::CONT);
    if moment != "draining" {
        seen.extend(run.json_until(is_end));
        run.close_stdin();
    }
    assert_eq!(status(seen.last().unwrap()), "done", "{seen:#?}");
    let ended = run.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let all = ended.json_lines();
    assert_eq!(ends_of(&all, "p1").len(), 1);
    contiguous(&all, 1);
    wait_marked_gone(&cell.mark);
}

/// `retry: "safe"` runs a turn again only if it had started no tool.
#[test]
fn a_safe_turn_is_run_again_unless_a_tool_started() {
    for (moment, expected) in [("mid_token", "done"), ("mid_tool", "interrupted")] {
        let cell = Cell::new(moment, "kill");
        let mut run = cell.start();
        let mut line = named("s", "p1", "go");
        line["retry"] = json!("safe");
        run.write_line(line);
        let lines = run.json_until(is_end);
        assert_eq!(status(lines.last().unwrap()), expected, "{moment}: {lines:#?}");
        run.close_stdin();
        let all = run.wait().json_lines();
        assert_eq!(ends_of(&all, "p1").len(), 1, "{moment}: {all:#?}");
        contiguous(&all, 1);
        assert!(cell.once.exists());
        wait_marked_gone(&cell.mark);
    }
}

#[test]
fn a_real_worker_takes_a_safe_turn_up_again_unless_a_tool_started() {
    let call = Reply::call("c1", "run_shell_command", r#"{"command":"sleep 1000"}"#);
    let half = Reply::new([sse::text("Half"), gate("held")]);
    for (first, expected, requests) in [(half, "done", 2), (call, "interrupted", 1)] {
        let mock = MockModel::with([first, Reply::text("Whole.")]);
        let mut run =
            bare().args(["--min-workers", "0", "--", "--model", "mock", "--yolo"]).with_model(&mock).start();
        let mut line = named("s", "p1", "go");
        line["retry"] = json!("safe");
        run.write_line(line);
        if expected == "done" {
            mock.reached("held");
        } else {
            run.json_until(|line| line["status"] == "executing");
        }
        kill_worker(&run);
        let end = run.json_until(is_end).pop().unwrap();
        assert_eq!((status(&end), &end["prompt_id"]), (expected, &json!("p1")), "{end}");
        assert_eq!(mock.requests().len(), requests);
        assert_eq!(run.finish().code, Some(0));
    }
}

macro_rules! cells {
    ($moment:ident: $($fault:ident)*) => {
        mod $moment {
            $(#[test]
            fn $fault() {
                super::worker_fails(stringify!($moment), stringify!($fault));
            })*

            #[test]
            fn hub_kill() {
                super::hub_is_killed(stringify!($moment));
            }

            #[test]
            fn hub_stop() {
                super::hub_is_stopped(stringify!($moment));
            }
        }
    };
}

macro_rules! matrix {
    ($($moment:ident)*) => {
        $(cells!($moment: exit_0 exit_1 segv kill stop stdout_closed partial_line garbage_line long_line stderr_flood disk_full emfile enomem);)*

        #[test]
        fn every_moment_is_in_the_matrix() {
            assert_eq!([$(stringify!($moment)),*], fault_worker::MOMENTS);
        }
    };
}

matrix!(spawn handshake mid_token mid_tool awaiting_control writing_result between_turns draining);
