//! Random kills under load: every turn has its end, every session goes on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::*;

/// How long workers are killed: a moment in the suite, a minute or more with `QWEN_CHAOS_SECONDS`.
fn seconds() -> u64 {
    std::env::var("QWEN_CHAOS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

#[test]
fn every_turn_ends_once_while_workers_are_killed_at_random() {
    let sessions = if seconds() > 10 { 200 } else { 24 };
    let program = bare();
    let script = program.home_path().join("s.json");
    let look = json!({"name": "list_directory", "arguments": {"path": "."}});
    let call = json!([{"text": "one two three", "split": "word"}, {"delay_ms": 10}, {"tool_call": look}]);
    let last = json!([{"text": "four", "split": "word"}, {"delay_ms": 20}, {"text": " five"}]);
    let calls = std::iter::repeat_n([call, last], 1000).flatten().collect();
    std::fs::write(&script, Value::Array(calls).to_string()).unwrap();
    let path = config(
        &program,
        "worker_pool: {min_workers: 0, max_workers: 20, max_queue: 10000, max_queue_per_tenant: 10000, queue_timeout: 600}\n",
    );
    let model = format!("script:{}", script.display());
    let flags = ["--output-format", "stream-chunk-json", "--", "--model", &model];
    let mut run = program.arg("--config").arg(path).args(flags).start();
    let handshake = run.json();
    let hub = run.pid();
    let until = Instant::now() + Duration::from_secs(seconds());
    let killer = std::thread::spawn(move || {
        let mut kills = 0;
        while Instant::now() < until {
            let workers = children(hub);
            if let Some(pid) = (!workers.is_empty()).then(|| workers[fastrand::usize(..workers.len())]) {
                let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                kills += u32::from(kill_process(pid, Signal::KILL).is_ok());
            }
            std::thread::park_timeout(Duration::from_millis(if seconds() > 10 { 1000 } else { 100 }));
        }
        kills
    });
    let mut asked: BTreeMap<String, u64> = BTreeMap::new();
    let mut streams: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut next = |run: &mut mock_model::process::Run, session: &str| {
        let count = asked.entry(session.to_owned()).or_default();
        *count += 1;
        run.write_line(named(session, &format!("{session}-{count}"), "go"));
    };
    for n in 0..sessions {
        next(&mut run, &format!("s{n}"));
    }
    let mut open = sessions;
    let (mut done, mut interrupted) = (0, 0);
    while open > 0 {
        let line = run.json();
        let session = line["session_id"].as_str().unwrap_or_default().to_owned();
        streams.entry(session.clone()).or_default().push(line.clone());
        if !is_end(&line) {
            continue;
        }
        match status(&line) {
            "done" => done += 1,
            "interrupted" => interrupted += 1,
            other => assert_eq!(line["metadata"]["error"]["retryable"], true, "{other}: {line}"),
        }
        if Instant::now() < until {
            next(&mut run, &session);
        } else if status(&line) == "done" {
            open -= 1;
        } else {
            // Every session can go on: one more turn must succeed.
            next(&mut run, &session);
        }
    }
    let kills = killer.join().unwrap();
    assert_eq!(run.finish().code, Some(0));
    for (session, lines) in &streams {
        let ends: Vec<&str> =
            lines.iter().filter(|line| is_end(line)).filter_map(|line| line["prompt_id"].as_str()).collect();
        let mut unique = ends.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ends.len(), "{session}: one end a prompt");
        assert_eq!(ends.len() as u64, asked.get(session).copied().unwrap_or(0), "{session}");
        // As the client of this session alone would have seen it.
        let mut stream = vec![handshake.clone()];
        stream[0]["session_id"] = json!(session);
        stream[0]["metadata"]["session_id"] = json!(session);
        stream[0]["id"] = json!(format!("chatcmpl-{session}"));
        stream.extend(lines.iter().cloned());
        passes_check(&stream);
    }
    assert!(kills > 0 && done > 0);
    eprintln!("{kills} kills, {done} turns done, {interrupted} interrupted, {sessions} sessions");
}
