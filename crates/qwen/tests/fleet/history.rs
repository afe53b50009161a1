//! `qwen check --history`: every violation that is planted in a correct history is found.

use std::path::Path;

use mock_model::process::Ended;
use serde_json::{Value, json};

use crate::harness::*;

/// A history of two prompts: a hub records, a node records, and the streams are exported. In the first turn a tool runs.
struct History {
    sent: Vec<Value>,
    received: Vec<Value>,
    /// What another client received.
    followed: Vec<Value>,
    store: Vec<Value>,
    streams: Vec<Value>,
    tools: Vec<Value>,
}

fn message(prompt: &str, text: &str) -> Value {
    json!({"object": "chat.completion", "session_id": "s", "prompt_id": prompt,
        "choices": [{"message": {"content": text}}]})
}

fn end(prompt: &str) -> Value {
    let mut end = message(prompt, "Done.");
    end["metadata"] = json!({"turn": {"status": "done"}});
    end
}

fn numbered(number: usize, line: &Value) -> Value {
    let mut whole = json!({"seq": number});
    for (key, value) in line.as_object().unwrap() {
        whole[key] = value.clone();
    }
    whole
}

fn take(kind: &str, epoch: u64, process: &str) -> Value {
    json!({"action": "take", "kind": kind, "epoch": epoch, "process": process})
}

fn lines(epoch: u64, first: usize, stored: &[Value], open: Option<&str>) -> Value {
    let data: Vec<String> = stored.iter().map(Value::to_string).collect();
    json!({"stream": "QEV-0", "sequence": first + 100 * usize::try_from(epoch).unwrap(), "session_id": "s",
        "kind": "lines", "epoch": epoch, "owner": format!("n{epoch}/1"), "first": first, "count": stored.len(),
        "open": open, "data": data.join("\n")})
}

fn acknowledged(epoch: u64, first: usize, count: usize) -> Value {
    json!({"action": "append", "kind": "lines", "process": format!("n{epoch}/1"), "epoch": epoch, "first": first,
        "count": count, "outcome": "ok"})
}

impl History {
    /// Node n1 runs the first prompt and node n2 the second one.
    fn correct() -> Self {
        let said = [message("p1", "a"), message("p1", "b"), end("p1"), message("p2", "c"), end("p2")];
        let received: Vec<Value> = (1..).zip(&said).map(|(number, line)| numbered(number, line)).collect();
        let log = |sequence: u64, epoch: u64, offset: u64, rest: Value| {
            let mut entry = json!({"stream": "QLOG-0", "sequence": sequence, "session_id": "s", "kind": "log",
                "epoch": epoch, "owner": format!("n{epoch}/1"), "offset": offset, "data": "{}\n"});
            for (key, value) in rest.as_object().unwrap() {
                entry[key] = value.clone();
            }
            entry
        };
        let streams = vec![
            log(1, 1, 0, json!({"reason": "start", "prompt_id": "p1"})),
            log(2, 1, 3, json!({"reason": "effect", "tool": "run_shell_command", "call": "c1"})),
            log(3, 1, 6, json!({"reason": "end", "prompt_id": "p1"})),
            log(4, 2, 9, json!({"reason": "start", "prompt_id": "p2"})),
            log(5, 2, 12, json!({"reason": "end", "prompt_id": "p2"})),
            lines(1, 1, &said[..2], Some("p1")),
            lines(1, 3, &said[2..3], None),
            lines(2, 4, &said[3..4], Some("p2")),
            lines(2, 5, &said[4..], None),
        ];
        let mut store = vec![take("log", 1, "n1/1"), take("lines", 1, "n1/1"), acknowledged(1, 1, 2)];
        store.extend([acknowledged(1, 3, 1), take("log", 2, "n2/1"), take("lines", 2, "n2/1")]);
        store.extend([acknowledged(2, 4, 1), acknowledged(2, 5, 1)]);
        let attached = json!({"type": "control_response", "request_id": "at", "session_id": "s",
            "response": {"subtype": "success", "result": {"session_id": "s", "after": 1, "last": 5}}});
        let mut followed = vec![attached];
        followed.extend_from_slice(&received[1..]);
        Self {
            sent: vec![named("s", "p1", "go"), named("s", "p2", "go on")],
            received,
            followed,
            store,
            streams,
            tools: vec![json!({"session_id": "s", "call": "c1"})],
        }
    }

    fn write(&self, directory: &Path) {
        for (name, entries) in [
            ("hub/s.in.jsonl", &self.sent),
            ("hub/s.out.jsonl", &self.received),
            ("client/s.out.jsonl", &self.followed),
            ("node/s.store.jsonl", &self.store),
            ("streams.jsonl", &self.streams),
            ("tools.jsonl", &self.tools),
        ] {
            let path = directory.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
            std::fs::write(path, text).unwrap();
        }
    }

    fn check(&self) -> Ended {
        let program = qwen();
        let directory = program.cwd_path().join("history");
        self.write(&directory);
        program.args(["check", "--history"]).arg(&directory).run()
    }
}

/// Fails unless the checker finds this violation, and no other, after a change of a correct history.
#[track_caller]
fn finds(rule: &str, plant: impl FnOnce(&mut History)) {
    let mut history = History::correct();
    plant(&mut history);
    let ended = history.check();
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let mark = format!("error[{rule}]");
    assert!(
        !ended.stdout.is_empty() && ended.stdout.lines().all(|line| line.contains(&mark)),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_correct_history_has_no_violation() {
    let ended = History::correct().check();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("1 sessions, 2 recordings, 5 numbered lines, 0 errors"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_lost_line_is_found() {
    finds("lost_line", |history| drop(history.received.remove(1)));
    finds("lost_line", |history| drop(history.followed.remove(1)));
    finds("lost_line", |history| drop(history.streams.remove(7)));
}

#[test]
fn a_doubled_line_is_found() {
    finds("doubled_line", |history| history.received.insert(1, history.received[1].clone()));
    finds("doubled_line", |history| history.followed.push(history.received[2].clone()));
}

#[test]
fn a_swapped_line_is_found() {
    finds("swapped_line", |history| history.received.swap(0, 1));
    finds("swapped_line", |history| history.followed.swap(3, 4));
}

#[test]
fn different_bytes_under_one_number_are_found() {
    finds("different_bytes", |history| history.received[0]["choices"] = json!([]));
    finds("different_bytes", |history| history.followed[1]["choices"] = json!([]));
}

#[test]
fn two_ends_are_found() {
    finds("two_ends", |history| history.received.push(end("p2")));
    finds("two_ends", |history| history.received.push(numbered(6, &end("p2"))));
}

#[test]
fn a_missing_end_is_found() {
    finds("no_end", |history| drop(history.received.pop()));
    finds("no_end", |history| history.sent.push(named("s", "p3", "and on")));
    finds("no_end", |history| {
        let open = json!({"sequence": 900, "session_id": "s", "kind": "lines", "epoch": 2, "owner": "n2/1",
            "first": 6, "count": 0, "open": "p3"});
        history.streams.push(open);
    });
}

#[test]
fn a_line_after_the_end_is_found() {
    finds("line_after_end", |history| history.received.push(numbered(6, &message("p1", "late"))));
}

#[test]
fn two_owners_of_an_epoch_are_found() {
    finds("two_owners", |history| history.store.push(take("lines", 2, "n3/1")));
    finds("two_owners", |history| history.streams[4]["owner"] = json!("n3/1"));
}

#[test]
fn a_stale_append_is_found() {
    finds("stale_append", |history| {
        let mut late = history.streams[2].clone();
        late["sequence"] = json!(6);
        late["offset"] = json!(15);
        history.streams.push(late);
    });
    finds("stale_append", |history| history.store.push(acknowledged(1, 4, 1)));
}

#[test]
fn a_tool_that_ran_twice_is_found() {
    finds("tool_twice", |history| history.tools.push(history.tools[0].clone()));
}

#[test]
fn a_tool_that_ran_without_a_stored_start_is_found() {
    finds("tool_without_commit", |history| history.tools[0]["call"] = json!("c2"));
    finds("tool_without_commit", |history| history.streams[1]["reason"] = json!(""));
}

#[test]
fn a_directory_without_a_recording_is_refused_and_the_rules_are_explained() {
    let program = qwen();
    let ended = program.clone().args(["check", "--history", "."]).run();
    assert_eq!(ended.code, Some(42), "{}", ended.stderr);
    assert!(ended.stderr.contains("--record-dir"), "{}", ended.stderr);
    let ended = program.clone().args(["check", "--history", "missing"]).run();
    assert_eq!(ended.code, Some(42), "{}", ended.stderr);
    let ended = program.args(["check", "--explain", "tool_without_commit"]).run();
    assert!(ended.code == Some(0) && ended.stdout.contains("start was stored"), "{}", ended.stdout);
}
