//! A worker serves one session after the other, and nothing of one is left when the next begins.

use std::fs::File;
use std::os::unix::fs::FileExt;

use mock_model::process::{Program, Run};
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::*;

/// A hub with one slot and this configuration of its pool.
fn hub_of_one(mock: &MockModel, pool: &str) -> Program {
    let program = bare();
    let path = config(&program, &format!("worker_pool: {{min_workers: 0, max_workers: 1, {pool}}}\n"));
    program.arg("--config").arg(path).args(["--", "--model", "mock", "--yolo"]).with_model(mock)
}

/// Runs one turn of a session and gives back the pid of the only worker.
fn turn(run: &mut Run, line: Value) -> u32 {
    run.write_line(line);
    let end = run.json_until(is_end).pop().unwrap();
    assert_eq!(status(&end), "done", "{end}");
    let workers = children(run.pid());
    assert_eq!(workers.len(), 1, "{workers:?}");
    workers[0]
}

fn close(run: &mut Run, session: &str) {
    run.write_line(request("c", "close", json!({"session_id": session})));
    assert_eq!(answer(run, "c")["closed"], true);
}

fn machine(run: &mut Run) -> Value {
    run.write_line(request("m", "hub/status", json!({})));
    answer(run, "m")["machines"][0].clone()
}

/// Whether a text is anywhere in the writable memory of a process; none where the system does not let us
/// look.
fn in_memory(pid: u32, text: &str) -> Option<bool> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut is_there = false;
    for map in maps.lines().filter(|map| map.split(' ').nth(1).is_some_and(|flags| flags.starts_with("rw"))) {
        let (from, to) = map.split(' ').next()?.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let mut bytes = vec![0; usize::try_from(to - from).ok()?];
        if memory.read_exact_at(&mut bytes, from).is_ok() {
            is_there |= memchr::memmem::find(&bytes, text.as_bytes()).is_some();
        }
    }
    Some(is_there)
}

/// The files that a process has open, and its environment.
fn descriptors(pid: u32) -> Vec<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|file| Some(std::fs::read_link(file.path()).ok()?.display().to_string())).collect()
}

#[test]
fn nothing_of_a_session_is_left_in_the_worker_that_serves_the_next_one() {
    let secret = format!("zebra-{:016x}", fastrand::u64(..));
    let call =
        json!({"command": format!("echo {secret} > $TMPDIR/kept; export KEPT={secret}; sleep 1000 &")});
    let mock = MockModel::with([
        Reply::call("c1", "run_shell_command", &call.to_string()),
        Reply::text(&secret),
        Reply::text("Nothing."),
    ]);
    let program = hub_of_one(&mock, "max_sessions_per_worker: 2");
    let mut run = program.start();
    let first = turn(&mut run, prompt("a", &format!("remember {secret}")));
    let environment = std::fs::read(format!("/proc/{first}/environ")).ok();
    assert_ne!(in_memory(first, &secret), Some(false), "the search finds what is there");
    assert!(descriptors(first).iter().any(|file| file.contains("a.jsonl")) || descriptors(first).is_empty());
    close(&mut run, "a");
    assert_eq!(machine(&mut run)["workers"]["warm"], 1);
    assert_eq!(children(run.pid()), [first], "the same process waits for the next session");
    assert_ne!(in_memory(first, &secret), Some(true), "memory");
    assert!(children(first).is_empty(), "processes");
    assert!(!descriptors(first).iter().any(|file| file.contains("a.jsonl")), "files");
    assert_eq!(std::fs::read(format!("/proc/{first}/environ")).ok(), environment, "environment");
    let second = turn(&mut run, prompt("b", "what do you know?"));
    assert_eq!(second, first);
    let asked = mock.requests().pop().unwrap().body.to_string();
    assert!(!asked.contains(&secret), "{asked}");
    close(&mut run, "b");
    assert_eq!(machine(&mut run)["restarts"]["sessions"], 1, "it has served as many sessions as it may");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_worker_is_given_to_sessions_of_the_same_tenant_and_options_only() {
    let mock = MockModel::with((0..5).map(|n| Reply::text(&format!("{n}"))));
    let program = hub_of_one(&mock, "queue_timeout: 20");
    let mut run = program.start();
    let of = |session: &str, tenant: &str| {
        let mut line = prompt(session, "go");
        line["tenant"] = json!(tenant);
        line
    };
    let red = turn(&mut run, of("a", "red"));
    close(&mut run, "a");
    assert_eq!(turn(&mut run, of("b", "red")), red);
    close(&mut run, "b");
    let blue = turn(&mut run, of("c", "blue"));
    assert_ne!(blue, red, "another tenant");
    close(&mut run, "c");
    let open = json!({"session_id": "d", "tenant": "blue", "env": {"COLOUR": "green"}});
    run.write_line(request("o", "open", open));
    answer(&mut run, "o");
    let green = turn(&mut run, of("d", "blue"));
    assert_ne!(green, blue, "another environment");
    close(&mut run, "d");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_session_that_waits_gets_the_worker_that_an_idle_one_gives_back() {
    let mock = MockModel::with((0..3).map(|n| Reply::text(&format!("{n}"))));
    let mut run = hub_of_one(&mock, "queue_timeout: 20").start();
    let first = turn(&mut run, prompt("a", "one"));
    assert_eq!(turn(&mut run, prompt("b", "two")), first, "the worker of the idle session");
    assert_eq!(turn(&mut run, prompt("a", "three")), first);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_worker_without_a_session_ends_after_the_idle_timeout() {
    let mock = MockModel::with([Reply::text("one")]);
    let mut run = hub_of_one(&mock, "idle_timeout: 0.3").start();
    run.write_line(prompt("a", "one"));
    run.json_until(is_end);
    close(&mut run, "a");
    let deadline = std::time::Instant::now() + mock_model::WAIT_LIMIT;
    while !children(run.pid()).is_empty() {
        assert!(std::time::Instant::now() < deadline, "the worker did not end");
        std::thread::yield_now();
    }
    assert_eq!(run.finish().code, Some(0));
}
