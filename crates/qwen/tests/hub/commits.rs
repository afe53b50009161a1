//! `--commit-fd` and `--leash`: nothing has an effect before the parent process has committed it, and nothing
//! starts under a parent that is silent.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use mock_model::process::{self, Program, Run};
use mock_model::{MockModel, Reply, gate, sse};
use qwen_events::SessionId;
use qwen_kernel::ipc::CommitReason;
use qwen_kernel::store::{FileLog, SessionLog};
use rustix::fs::{Mode, mkfifoat};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::*;

/// The parent's ends of two pipes, over which a worker asks.
struct Parent {
    answers: File,
    questions: BufReader<File>,
}

/// A worker whose parent is the test.
struct Supervised {
    program: Program,
    fifos: (PathBuf, PathBuf),
}

impl Supervised {
    fn new(mock: &MockModel, flags: &[&str]) -> Self {
        let program = process::qwen("/bin/sh").with_model(mock);
        let fifo = |name: &str| {
            let path = program.home_path().join(name);
            mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
            path
        };
        let fifos = (fifo("answers"), fifo("questions"));
        let program = program
            .args(["-c", "exec 7<\"$1\" 9>\"$2\"; shift 2; exec \"$@\"", "sh"])
            .arg(&fifos.0)
            .arg(&fifos.1)
            .arg(env!("CARGO_BIN_EXE_qwen"))
            .args([
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "--model",
                "mock",
                "--yolo",
            ])
            .args(["--sandbox=false", "--commit-fd", "7,9"])
            .args(flags);
        Self { program, fifos }
    }

    fn start(&self) -> (Run, Parent) {
        let run = self.program.start();
        let answers = File::options().write(true).open(&self.fifos.0).unwrap();
        let questions = BufReader::new(File::open(&self.fifos.1).unwrap());
        (run, Parent { answers, questions })
    }

    fn log(&self) -> PathBuf {
        self.program.qwen_home_path().join("sessions/a.jsonl")
    }
}

impl Parent {
    /// The next question. Reports need no answer.
    fn asked(&mut self) -> Value {
        loop {
            let message = self.message();
            if message["type"] != "report" {
                return message;
            }
        }
    }

    fn message(&mut self) -> Value {
        let mut line = String::new();
        self.questions.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn answer(&mut self, question: &Value, outcome: &str) {
        let line = json!({"type": "committed", "id": question["id"], "outcome": outcome});
        writeln!(self.answers, "{line}").unwrap();
    }
}

fn cat(file: &str) -> Reply {
    Reply::call("c1", "run_shell_command", &json!({"command": format!("cat {file}")}).to_string())
}

/// The whole lines of a log, in bytes.
fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn a_worker_waits_at_each_sync_point_until_its_parent_has_committed() {
    let mock = MockModel::with([cat("permit"), Reply::text("Done.")]);
    let worker = Supervised::new(&mock, &[]);
    let (mut run, mut parent) = worker.start();
    run.json();
    run.write_line(named("a", "p1", "go"));
    let start = parent.asked();
    assert_eq!((&start["type"], &start["reason"]), (&json!("commit"), &json!("start")), "{start}");
    assert_eq!((&start["session_id"], &start["prompt_id"]), (&json!("a"), &json!("p1")), "{start}");
    assert_eq!(start["bytes"], length(&worker.log()), "the log is written up to there: {start}");
    assert!(mock.requests().is_empty(), "no model call before the start is committed");
    parent.answer(&start, "unknown");
    let again = parent.asked();
    assert_eq!((&again["reason"], &again["bytes"]), (&start["reason"], &start["bytes"]), "asked again");
    parent.answer(&again, "ok");
    let effect = parent.asked();
    assert_eq!(effect["reason"], "effect", "{effect}");
    assert_eq!((&effect["tool"], &effect["call"]), (&json!("run_shell_command"), &json!("c1")));
    assert!(effect["bytes"].as_u64() > start["bytes"].as_u64(), "{effect}");
    // A command that ran before the answer would not have found this.
    std::fs::write(worker.program.cwd_path().join("permit"), "permitted").unwrap();
    parent.answer(&effect, "ok");
    let end = parent.asked();
    assert_eq!((&end["reason"], &end["prompt_id"]), (&json!("end"), &json!("p1")), "{end}");
    assert_eq!(end["bytes"], length(&worker.log()), "{end}");
    parent.answer(&end, "ok");
    let lines = run.json_until(is_end);
    assert_eq!(status(lines.last().unwrap()), "done");
    assert!(lines.iter().any(|line| line.to_string().contains("permitted")), "{lines:#?}");
    assert_eq!(run.finish().code, Some(0));
}

/// A worker that was allowed to start a turn, in which the model prints a file that says `it ran`.
fn with_committed_start() -> (MockModel, Supervised, Run, Parent) {
    let mock = MockModel::with([cat("secret")]);
    let worker = Supervised::new(&mock, &[]);
    let (mut run, mut parent) = worker.start();
    std::fs::write(worker.program.cwd_path().join("secret"), "it ran").unwrap();
    run.write_line(named("a", "p1", "go"));
    let start = parent.asked();
    parent.answer(&start, "ok");
    (mock, worker, run, parent)
}

/// Waits for the end of a turn that was interrupted before its tool ran. Returns its terminal record.
fn interrupted_without_the_tool(mut run: Run) -> Value {
    let mut lines = run.json_until(is_end);
    assert!(!lines.iter().any(|line| line.to_string().contains("it ran")), "{lines:#?}");
    let end = lines.pop().unwrap();
    assert_eq!(status(&end), "interrupted", "{end}");
    assert_eq!(run.finish().code, Some(0));
    end
}

#[test]
fn a_fenced_worker_runs_no_tool_and_ends_its_turn_as_interrupted() {
    let (_mock, _worker, run, mut parent) = with_committed_start();
    let effect = parent.asked();
    parent.answer(&effect, "fenced");
    let end = interrupted_without_the_tool(run);
    assert_eq!(end["metadata"]["error"]["code"], "session_taken_over", "{end}");
}

#[test]
fn a_worker_whose_parent_closes_the_descriptor_runs_no_tool() {
    let (_mock, _worker, run, mut parent) = with_committed_start();
    assert_eq!(parent.asked()["reason"], "effect");
    drop(parent);
    interrupted_without_the_tool(run);
}

/// Runs a turn with these replies of the model, under a parent that shows signs of life only when asked.
fn asks_for_a_sign_of_life_before_each_model_call(replies: Vec<Reply>) {
    let calls = replies.len();
    let mock = MockModel::with(replies);
    // So short that the prompt is always too long ago.
    let worker = Supervised::new(&mock, &["--leash", "0.000001"]);
    let (mut run, mut parent) = worker.start();
    run.write_line(named("a", "p1", "go"));
    let start = parent.asked();
    parent.answer(&start, "ok");
    for call in 0..calls {
        assert_eq!(parent.asked(), json!({"type": "alive"}));
        assert_eq!(mock.requests().len(), call, "no model call under a silent parent");
        writeln!(parent.answers, "{}", json!({"type": "alive"})).unwrap();
        mock.wait_for_request(call);
    }
    let end = parent.asked();
    assert_eq!(end["reason"], "end");
    parent.answer(&end, "ok");
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_worker_on_a_leash_asks_for_a_sign_of_life_before_it_calls_the_model() {
    asks_for_a_sign_of_life_before_each_model_call(vec![Reply::text("Done.")]);
}

#[test]
fn a_worker_on_a_leash_asks_for_a_sign_of_life_before_it_tries_a_model_again() {
    let replies = vec![Reply::status(500, "overloaded"), Reply::text("Done.")];
    asks_for_a_sign_of_life_before_each_model_call(replies);
}

#[test]
fn without_a_descriptor_any_line_is_a_sign_of_life_and_the_end_of_input_ends_the_leash() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let mut run = process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .with_model(&mock)
        .args(["--input-format", "stream-json", "--model", "mock", "--leash", "0.000001"])
        .start();
    run.write_line(named("a", "p1", "go"));
    run.json_until(|line| line["object"] == "chat.completion");
    let end = loop {
        run.write_line(json!({"type": "heartbeat_request", "session_id": "a"}));
        let line = run.json();
        if is_end(&line) {
            break line;
        }
    };
    assert_eq!(status(&end), "done");
    run.write_line(named("a", "p2", "go on"));
    run.close_stdin();
    assert_eq!(
        status(&run.json_until(|line| line["prompt_id"] == "p2" && is_end(line)).pop().unwrap()),
        "done"
    );
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn a_descriptor_that_is_none_and_a_leash_of_nothing_are_refused() {
    for flags in [
        ["--commit-fd", "99"],
        ["--commit-fd", "x"],
        ["--commit-fd", "1"],
        ["--leash", "0"],
        ["--leash", "soon"],
    ] {
        let ended = process::qwen(env!("CARGO_BIN_EXE_qwen"))
            .args(["--input-format", "stream-json", "--model", "demo"])
            .args(flags)
            .run();
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(flags[0]), "{flags:?}: {}", ended.stderr);
    }
}

#[test]
fn no_tool_starts_under_a_stopped_hub() {
    let held = Reply::new([
        gate("held"),
        sse::call(0, "c1", "run_shell_command", r#"{"command":"cat permit"}"#),
        sse::finish("tool_calls"),
        sse::done(),
    ]);
    let mock = MockModel::with([held, Reply::text("Done.")]);
    let program = bare().args(["--", "--model", "mock", "--yolo", "--sandbox=false"]).with_model(&mock);
    let mut run = program.start();
    run.write_line(named("a", "p1", "go"));
    mock.reached("held");
    run.signal(Signal::STOP);
    wait_stopped(run.pid());
    mock.open("held");
    let log = program.qwen_home_path().join("sessions/a.jsonl");
    let deadline = std::time::Instant::now() + mock_model::WAIT_LIMIT;
    while !std::fs::read_to_string(&log).unwrap_or_default().contains("tool_start") {
        assert!(std::time::Instant::now() < deadline, "the call never came");
        std::thread::yield_now();
    }
    // A command that ran while the hub was stopped would not have found this.
    std::fs::write(program.cwd_path().join("permit"), "permitted").unwrap();
    run.signal(Signal::CONT);
    let lines = run.json_until(is_end);
    assert_eq!(status(lines.last().unwrap()), "done");
    assert!(lines.iter().any(|line| line.to_string().contains("permitted")), "{lines:#?}");
    assert_eq!(run.finish().code, Some(0));
}

/// A call that waits at a gate, and the answer after it.
fn held_call() -> MockModel {
    let held = Reply::new([
        gate("held"),
        sse::call(0, "c1", "run_shell_command", r#"{"command":"cat secret"}"#),
        sse::finish("tool_calls"),
        sse::done(),
    ]);
    MockModel::with([held, Reply::text("Again.")])
}

#[test]
fn a_session_that_another_owner_takes_has_no_more_effects_here_and_can_be_taken_back() {
    let mock = held_call();
    let program = bare().args(["--", "--model", "mock", "--yolo", "--sandbox=false"]).with_model(&mock);
    std::fs::write(program.cwd_path().join("secret"), "it ran").unwrap();
    let mut run = program.start();
    run.write_line(named("a", "p1", "go"));
    mock.reached("held");
    let sessions = program.qwen_home_path().join("sessions");
    let other = FileLog::open(&sessions).unwrap();
    let taken = other.take(&SessionId::parse("a").unwrap()).unwrap();
    assert_eq!((taken.epoch, taken.last), (2, Some(CommitReason::Start { prompt_id: "p1".to_owned() })));
    mock.open("held");
    let lines = run.json_until(is_end);
    let end = lines.last().unwrap();
    assert_eq!(
        (status(end), &end["metadata"]["error"]["code"]),
        ("interrupted", &json!("session_taken_over")),
        "{end}"
    );
    assert!(!lines.iter().any(|line| line.to_string().contains("it ran")), "{lines:#?}");
    run.write_line(named("a", "p2", "go on"));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    run.write_line(request("r", "hub/status", json!({"session_id": "a"})));
    assert_eq!(answer(&mut run, "r")["epoch"], 3);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn the_hub_owns_the_log_of_a_session_while_it_has_a_worker() {
    let program = bare();
    let mut run = program.clone().args(["--", "--model", "demo"]).start();
    for epoch in 1..=2 {
        run.write_line(request("o", "open", json!({"session_id": "a"})));
        answer(&mut run, "o");
        run.write_line(prompt("a", "Hello"));
        run.json_until(is_end);
        run.write_line(request("r", "hub/status", json!({"session_id": "a"})));
        assert_eq!(answer(&mut run, "r")["epoch"], epoch);
        run.write_line(request("c", "close", json!({"session_id": "a"})));
        assert_eq!(answer(&mut run, "c")["closed"], true);
    }
    assert_eq!(run.finish().code, Some(0));
    let owner = program.qwen_home_path().join("sessions/a.owner");
    let noted: Value = serde_json::from_str(std::fs::read_to_string(&owner).unwrap().trim()).unwrap();
    assert_eq!((&noted["epoch"], &noted["is_owned"]), (&json!(2), &json!(false)), "{noted}");
    assert_eq!(noted["last"]["reason"], "end", "{noted}");
}
