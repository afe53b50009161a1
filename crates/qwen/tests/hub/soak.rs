//! `make soak`: thousands of sessions through one hub, whose descriptors and memory must stay flat.

use std::time::{Duration, Instant};

use mock_model::process::Run;
use serde_json::json;

use crate::harness::*;

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The pipes, the socket and the process descriptor of one worker.
const PER_WORKER: usize = 5;

/// Waits until no worker ends, and counts descriptors without those of the workers that are there, and
/// memory.
fn at_rest(run: &mut Run) -> (usize, u64) {
    loop {
        run.write_line(request("rest", "hub/status", json!({})));
        let workers = answer(run, "rest")["machines"][0]["workers"].clone();
        let there = children(run.pid()).len();
        let (descriptors, memory) = footprint(run.pid());
        let resting = workers["warm"].as_u64().unwrap_or(0);
        if workers["ending"] == 0 && workers["busy"] == 0 && resting == there as u64 {
            return (descriptors - PER_WORKER * there, memory);
        }
    }
}

/// Open descriptors and resident memory in bytes of a process.
fn footprint(pid: u32) -> (usize, u64) {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    let resident: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    (descriptors, resident * 4096)
}

#[test]
#[ignore = "takes minutes: make soak"]
fn descriptors_and_memory_stay_flat_over_many_sessions() {
    let sessions = setting("QWEN_SOAK_SESSIONS", 10_000);
    let limit = Duration::from_secs(setting("QWEN_SOAK_SECONDS", 600));
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 4, max_workers: 20}\n");
    let script = program.home_path().join("s.json");
    std::fs::write(&script, says("ok").to_string()).unwrap();
    let model = format!("script:{}", script.display());
    let mut run = program.arg("--config").arg(path).args(["--", "--model", &model]).start();
    run.json();
    let began = Instant::now();
    let mut start = None;
    let (mut opened, mut closed) = (0_u64, 0_u64);
    while closed < sessions && (opened > closed || began.elapsed() < limit) {
        // The first hundred warm the allocator up; then nothing is open for a moment.
        let warm_up = 100.min(sessions / 2);
        if closed == warm_up && start.is_none() {
            start = Some(at_rest(&mut run));
        }
        let most = if start.is_none() { warm_up } else { sessions };
        while opened < most && opened - closed < 10 && began.elapsed() < limit {
            opened += 1;
            run.write_line(prompt(&format!("s{opened}"), "go"));
        }
        let line = run.json();
        let session = line["session_id"].as_str().unwrap_or_default().to_owned();
        if is_end(&line) {
            assert_eq!(status(&line), "done", "{line}");
            run.write_line(request(&format!("c-{session}"), "close", json!({"session_id": session})));
        } else if line["type"] == "control_response" {
            closed += 1;
            if closed.is_multiple_of(1000) {
                let (descriptors, memory) = footprint(run.pid());
                eprintln!(
                    "{closed} sessions in {:.0?}: {descriptors} descriptors, {} kB",
                    began.elapsed(),
                    memory / 1024
                );
            }
        }
    }
    let (before, after) = (start.unwrap(), at_rest(&mut run));
    eprintln!(
        "{closed} sessions in {:.0?}: descriptors besides workers' {} to {}, memory {} kB to {} kB",
        began.elapsed(),
        before.0,
        after.0,
        before.1 / 1024,
        after.1 / 1024
    );
    assert!(after.0.abs_diff(before.0) <= 5, "descriptors {before:?} {after:?}");
    assert!(after.1 <= before.1 + before.1 / 10 + 2 * 1024 * 1024, "memory {before:?} {after:?}");
    assert_eq!(run.finish().code, Some(0));
}
