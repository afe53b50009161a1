//! A process that is killed at any point of a turn leaves a session that can be gone on with.

use mock_model::process::{Program, Run, Signal};
use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use super::harness::{DIALECTS, conversation, done, exports_well, log, qwen, speaks_well};

const COMMAND: &str = r#"{"command":"echo run >> runs.txt; test -e done || cat block; echo finished"}"#;

/// A turn under way, in a session called `s`.
fn start(program: &Program) -> Run {
    let flags = ["-p", "Go", "--session-id", "s", "--yolo", "--output-format", "stream-chunk-json"];
    let mut run = program.clone().args(flags).start();
    run.close_stdin();
    run
}

fn kill(run: Run) {
    run.signal(Signal::KILL);
    assert_eq!(run.wait().signal, Some(9));
}

fn runs(program: &Program) -> usize {
    std::fs::read_to_string(program.cwd_path().join("runs.txt")).unwrap_or_default().lines().count()
}

/// A FIFO that the command reads from and nobody writes to, so that it runs until it is killed.
fn block(program: &Program) {
    let path = program.cwd_path().join("block");
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

#[test]
fn the_next_session_clears_away_what_a_killed_one_left_among_the_temporary_files() {
    // More than is shown, so that it is kept in a file.
    let long = || Reply::call("call_1", "run_shell_command", r#"{"command":"seq 1 200000"}"#);
    let mock = MockModel::with([long(), Reply::new([gate("held")])]);
    let program = qwen(&mock);
    let temporary = program.home_path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let program = program.env("TMPDIR", &temporary);
    let run = start(&program);
    mock.reached("held");
    kill(run);
    let user = std::fs::read_dir(&temporary).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_dir(&user).unwrap().count(), 1, "nobody could clear it away");
    mock.push(long());
    mock.push(Reply::text("done"));
    let flags = ["-p", "Go", "--session-id", "t", "--yolo"];
    assert_eq!(program.clone().args(flags).run().code, Some(0));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

/// The ways to be killed: what the model does, and what has happened when the kill comes.
struct Case {
    name: &'static str,
    replies: fn() -> Vec<Reply>,
    /// Waits for the moment.
    until: fn(&MockModel, &mut Run),
    /// What the model is told of the turn, when it is asked again.
    said: &'static [&'static str],
}

fn executing(line: &Value) -> bool {
    line["type"] == "x-qwen-tool-display" && line["status"] == "executing"
}

const CASES: [Case; 4] = [
    Case {
        name: "before the first token",
        replies: || vec![Reply::new([gate("held")])],
        until: |mock, _| mock.reached("held"),
        said: &["user: Go"],
    },
    Case {
        name: "in the middle of a text",
        replies: || vec![Reply::new([sse::text("Half a "), gate("held")])],
        until: |_, run| {
            run.json_until(|line| line["choices"][0]["delta"]["content"] == "Half a ");
        },
        said: &["user: Go"],
    },
    Case {
        name: "while a tool runs",
        replies: || vec![Reply::call("call_1", "run_shell_command", COMMAND)],
        until: |_, run| {
            run.json_until(executing);
        },
        said: &["user: Go", "assistant: [call_1]", "tool call_1: interrupted"],
    },
    Case {
        name: "after a tool",
        replies: || {
            vec![Reply::call("call_1", "list_directory", r#"{"path":"."}"#), Reply::new([gate("held")])]
        },
        until: |mock, _| mock.reached("held"),
        said: &["user: Go", "assistant: [call_1]", "tool call_1: .:"],
    },
];

#[track_caller]
fn begins_with(said: &[String], expected: &[&str], name: &str) {
    assert!(said.len() >= expected.len(), "{name}: {said:?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{name}: {said:?} and not {expected:?}");
    }
}

/// A worker that was killed at the point of `case`.
fn killed(case: &Case) -> (MockModel, Program) {
    let mock = MockModel::with((case.replies)());
    let program = qwen(&mock);
    block(&program);
    let mut run = start(&program);
    (case.until)(&mock, &mut run);
    kill(run);
    (mock, program)
}

#[test]
fn a_new_prompt_closes_the_turn_that_was_killed() {
    for case in &CASES {
        let (mock, program) = killed(case);
        exports_well(&program, "s");
        let asked = mock.requests().len();
        mock.push(Reply::text("Fine."));
        done(&program, &["-p", "What now?", "--resume", "s"]);
        let said = conversation(&mock.requests()[asked]);
        begins_with(&said, case.said, case.name);
        assert_eq!(said.last().unwrap(), "user: What now?", "{}", case.name);
        let kept = std::fs::read_to_string(log(&program, "s")).unwrap();
        assert!(kept.contains(r#""status":"interrupted""#), "{}: {kept}", case.name);
        exports_well(&program, "s");
    }
}

#[test]
fn without_a_prompt_the_turn_that_was_killed_goes_on() {
    for case in &CASES {
        let (mock, program) = killed(case);
        let before = runs(&program);
        std::fs::write(program.cwd_path().join("done"), "").unwrap();
        let asked = mock.requests().len();
        mock.push(Reply::text("Fine."));
        let ended = done(&program, &["--resume", "s", "--yolo", "--output-format", "json"]);
        let end = &ended.json_lines()[0];
        assert_eq!(end["metadata"]["turn"]["status"], "done", "{}: {end}", case.name);
        assert_eq!(end["prompt_id"], "s########1", "{}", case.name);
        assert_eq!(end["choices"][0]["message"]["content"], "Fine.", "{}", case.name);
        let said = conversation(&mock.requests()[asked]);
        begins_with(&said, case.said, case.name);
        assert_eq!(said.len(), case.said.len(), "{}: {said:?}", case.name);
        assert_eq!(runs(&program), before, "{}: what was started is not started again", case.name);
        exports_well(&program, "s");
        let again = program.clone().args(["--resume", "s"]).run();
        assert_eq!(again.code, Some(42), "{}: there is nothing left to go on with", case.name);
    }
}

#[test]
fn a_call_that_was_never_started_is_started_when_the_turn_goes_on() {
    let mock =
        MockModel::with([Reply::call("call_1", "run_shell_command", COMMAND), Reply::text("Never said.")]);
    let program = qwen(&mock);
    std::fs::write(program.cwd_path().join("done"), "").unwrap();
    done(&program, &["-p", "Go", "--session-id", "s", "--yolo"]);
    // What a process leaves that dies between the model's message and the call.
    let kept = std::fs::read_to_string(log(&program, "s")).unwrap();
    let after_think = kept.find(r#""type":"node_exit""#).unwrap();
    let end = after_think + kept[after_think..].find('\n').unwrap() + 1;
    std::fs::write(log(&program, "s"), &kept[..end]).unwrap();
    mock.push(Reply::text("Fine."));
    done(&program, &["--resume", "s", "--yolo"]);
    assert_eq!(runs(&program), 2);
    let said = conversation(&mock.requests()[2]);
    assert!(said[2].starts_with("tool call_1: ") && said[2].contains("finished"), "{said:?}");
    exports_well(&program, "s");
}

#[test]
fn an_answer_whose_end_was_not_told_is_not_asked_for_again() {
    let mock = MockModel::with([Reply::text("The answer.")]);
    let program = qwen(&mock);
    done(&program, &["-p", "Go", "--session-id", "s"]);
    let kept = std::fs::read_to_string(log(&program, "s")).unwrap();
    let end = kept.find(r#"{"at":"#).unwrap();
    let lines: Vec<&str> =
        kept[end..].lines().filter(|line| !line.contains(r#""type":"turn_end""#)).collect();
    std::fs::write(log(&program, "s"), format!("{}{}\n", &kept[..end], lines.join("\n"))).unwrap();
    let ended = done(&program, &["--resume", "s", "--output-format", "json"]);
    assert_eq!(ended.json_lines()[0]["choices"][0]["message"]["content"], "The answer.");
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn a_host_can_have_the_turn_that_was_killed_go_on() {
    let mock = MockModel::with([Reply::new([gate("held")])]);
    let program = qwen(&mock);
    let run = start(&program);
    mock.reached("held");
    kill(run);
    mock.push(Reply::text("Fine."));
    let flags = ["--resume", "s", "--input-format", "stream-json", "--output-format", "stream-json"];
    let mut worker = program.clone().args(flags).start();
    let ask =
        json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "continue_last_turn"}});
    worker.write_line(&ask);
    let answer = worker.json_until(|line| line["type"] == "control_response");
    let answer = &answer.last().unwrap()["response"]["response"];
    assert_eq!((&answer["accepted"], &answer["interruption"]), (&json!(true), &json!("interrupted_prompt")));
    let end = worker.json_until(|line| line["metadata"]["turn"].is_object());
    assert_eq!(end.last().unwrap()["prompt_id"], "s########1");
    assert_eq!(end.last().unwrap()["choices"][0]["message"]["content"], "Fine.");
    worker.write_line(&ask);
    let answer = worker.json_until(|line| line["type"] == "control_response");
    assert_eq!(answer.last().unwrap()["response"]["response"]["accepted"], false);
    // A name that an earlier process used is used.
    worker
        .write_line(json!({"prompt_id": "s########1", "input": {"parts": [{"type": "text", "text": "x"}]}}));
    let refused = worker.json_until(|line| line["metadata"]["error"].is_object());
    assert_eq!(refused.last().unwrap()["metadata"]["error"]["code"], "duplicate_prompt_id");
    assert_eq!(worker.finish().code, Some(0));
}

#[test]
fn a_resumed_turn_reports_its_open_calls_again() {
    for dialect in DIALECTS {
        let mock = MockModel::with([Reply::call("call_1", "run_shell_command", COMMAND)]);
        let program = qwen(&mock);
        block(&program);
        let mut run = start(&program);
        run.json_until(executing);
        kill(run);
        mock.push(Reply::text("Fine."));
        speaks_well(&program, &["--resume", "s", "--yolo"], dialect);
        mock.push(Reply::text("Again."));
        std::fs::write(program.cwd_path().join("done"), "").unwrap();
        speaks_well(&program, &["--resume", "s", "--yolo", "--at", "s-1-1"], dialect);
        exports_well(&program, "s");
    }
}
