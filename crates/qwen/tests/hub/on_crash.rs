//! `on_crash`: every moment of a turn × every policy × both wires, each cell a turn of a real worker that is
//! killed. No tool runs twice in any cell, and every prompt has exactly one terminal record.

use std::path::PathBuf;

use mock_model::process::{Program, Run};
use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::*;

const POLICIES: [&str; 4] = ["error", "resume", "retry", "fork"];

/// A wire of the hub.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Qwen,
    Claude,
}

/// The notices that another worker takes a turn up.
fn restart_notices(lines: &[Value]) -> Vec<&Value> {
    let is_notice = |line: &&Value| line["value"]["kind"] == "worker_restarted";
    lines.iter().filter(is_notice).map(|line| &line["value"]).collect()
}

impl Wire {
    fn name(self) -> &'static str {
        match self {
            Self::Qwen => "qwen",
            Self::Claude => "claude",
        }
    }

    fn prompt(self, session: &str, text: &str) -> Value {
        match self {
            Self::Qwen => named(session, &format!("p-{text}"), text),
            Self::Claude => {
                json!({"type": "user", "session_id": session, "message": {"role": "user", "content": text}})
            }
        }
    }

    fn is_end(self, line: &Value) -> bool {
        match self {
            Self::Qwen => is_end(line),
            Self::Claude => line["type"] == "result",
        }
    }

    fn is_done(self, end: &Value) -> bool {
        match self {
            Self::Qwen => status(end) == "done",
            Self::Claude => end["subtype"] == "success" && end["is_error"] == false,
        }
    }

    /// The exit of the worker in the end of a turn.
    fn lost_worker(self, end: &Value) -> (&Value, &Value) {
        match self {
            Self::Qwen => (&end["metadata"]["error"]["code"], &end["metadata"]["error"]["worker"]),
            Self::Claude => (&end["error_code"], &end["worker"]),
        }
    }

    fn approval(self, question: &Value) -> Value {
        let id = &question["request_id"];
        let is_hook = |body: &Value| body["subtype"] == "hook_callback";
        match self {
            Self::Qwen => {
                let result = if is_hook(question) { json!({}) } else { json!({"behavior": "allow"}) };
                json!({"type": "control_response", "request_id": id, "session_id": question["session_id"],
                    "response": {"subtype": "success", "result": result}})
            }
            Self::Claude => {
                let body = &question["request"];
                let result = if is_hook(body) {
                    json!({})
                } else {
                    json!({"behavior": "allow", "updatedInput": body["input"]})
                };
                json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": result}})
            }
        }
    }
}

/// A moment of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    BeforeFirstToken,
    MidToken,
    BeforeTool,
    MidTool,
    AwaitingAnswer,
    BetweenTurns,
}

struct Cell {
    wire: Wire,
    moment: Moment,
    mock: MockModel,
    program: Program,
}

impl Cell {
    fn new(wire: Wire, moment: Moment) -> Self {
        let call = |command: &str| {
            let arguments = json!({"command": command}).to_string();
            Reply::call("c1", "run_shell_command", &arguments)
        };
        let first = match moment {
            Moment::BeforeFirstToken => Reply::new([gate("held")]),
            Moment::MidToken => Reply::new([sse::text("Half"), gate("held")]),
            Moment::BeforeTool | Moment::AwaitingAnswer => call("echo ran >> ran"),
            Moment::MidTool => call("echo ran >> ran; sleep 1000"),
            Moment::BetweenTurns => Reply::text("First."),
        };
        let mock = MockModel::with([first, Reply::text("Whole."), Reply::text("Next.")]);
        let program = bare().args(["--min-workers", "0", "--dialect", wire.name()]);
        let program = program.args(["--", "--model", "mock"]).with_model(&mock);
        let program = match moment {
            Moment::AwaitingAnswer if wire == Wire::Claude => {
                program.args(["--permission-prompt-tool", "stdio"])
            }
            Moment::AwaitingAnswer => program,
            _ => program.arg("--yolo"),
        };
        Self { wire, moment, mock, program }
    }

    fn start(&self, policy: &str) -> Run {
        let mut run = self.program.start();
        let options = json!({"session_id": "s", "on_crash": policy, "sequence": true});
        run.write_line(request("o", "open", options));
        run.json_until(|line| line["type"] == "control_response");
        if self.moment == Moment::BeforeTool {
            let hooks = json!({"PreToolUse": [{"matcher": null, "hookCallbackIds": ["h"]}]});
            let body = json!({"subtype": "initialize", "hooks": hooks});
            let line = match self.wire {
                Wire::Qwen => request("i", "initialize", json!({"session_id": "s", "hooks": hooks})),
                Wire::Claude => {
                    json!({"type": "control_request", "request_id": "i", "session_id": "s", "request": body})
                }
            };
            run.write_line(line);
            run.json_until(|line| line["type"] == "control_response");
        }
        run
    }

    /// Waits until the turn is at the moment, and returns the lines up to there.
    fn reach(&self, run: &mut Run) -> Vec<Value> {
        match self.moment {
            Moment::BeforeFirstToken | Moment::MidToken => {
                self.mock.reached("held");
                Vec::new()
            }
            Moment::BeforeTool | Moment::AwaitingAnswer => {
                run.json_until(|line| line["type"] == "control_request")
            }
            Moment::MidTool => {
                let deadline = std::time::Instant::now() + mock_model::WAIT_LIMIT;
                while self.runs() == 0 {
                    assert!(std::time::Instant::now() < deadline, "the tool did not start");
                    std::thread::yield_now();
                }
                Vec::new()
            }
            Moment::BetweenTurns => run.json_until(|line| self.wire.is_end(line)),
        }
    }

    /// Reads up to the end of a turn and approves every question.
    fn finish(&self, run: &mut Run) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = run.json();
            if line["type"] == "control_request" {
                run.write_line(self.wire.approval(&line));
            }
            let ended = self.wire.is_end(&line);
            lines.push(line);
            if ended {
                return lines;
            }
        }
    }

    /// How often the tool ran.
    fn runs(&self) -> usize {
        let text = std::fs::read_to_string(self.program.cwd_path().join("ran")).unwrap_or_default();
        text.lines().count()
    }

    fn log(&self) -> PathBuf {
        self.program.qwen_home_path().join("sessions/s.jsonl")
    }
}

/// Whether the policy brings a turn that is lost at the moment to its end.
fn recovers(policy: &str, moment: Moment) -> bool {
    match policy {
        "error" => false,
        "retry" => moment != Moment::MidTool,
        _ => true,
    }
}

fn check(wire: Wire, moment: Moment, policy: &str) {
    let cell = Cell::new(wire, moment);
    let mut run = cell.start(policy);
    run.write_line(wire.prompt("s", "go"));
    let mut lines = cell.reach(&mut run);
    kill_worker(&run);
    if moment == Moment::BetweenTurns {
        run.write_line(wire.prompt("s", "again"));
        lines.extend(cell.finish(&mut run));
        assert!(wire.is_done(lines.last().unwrap()), "{lines:#?}");
        assert!(restart_notices(&lines).is_empty(), "nothing was lost: {lines:#?}");
    } else {
        let logged = std::fs::read(cell.log()).unwrap();
        lines.extend(cell.finish(&mut run));
        let end = lines.last().unwrap().clone();
        let recovers = recovers(policy, moment);
        assert_eq!(wire.is_done(&end), recovers, "{lines:#?}");
        let notices = restart_notices(&lines);
        assert_eq!(notices.len(), usize::from(recovers), "{lines:#?}");
        let mut session = "s".to_owned();
        if let Some(notice) = notices.first() {
            assert_eq!((&notice["on_crash"], &notice["attempt"]), (&json!(policy), &json!(1)), "{notice}");
            assert_eq!(
                (&notice["worker"]["signal"], &notice["worker"]["reason"]),
                (&json!(9), &json!("killed"))
            );
            notice["session_id"].as_str().unwrap().clone_into(&mut session);
            assert_eq!(notice["forked_from"] == "s", policy == "fork", "{notice}");
        } else {
            let (code, worker) = wire.lost_worker(&end);
            assert_eq!((code, &worker["signal"]), (&json!("worker_lost"), &json!(9)), "{end}");
        }
        assert_eq!(session == "s", policy != "fork");
        assert_eq!(end["session_id"], session.as_str());
        if policy == "fork" {
            assert_eq!(std::fs::read(cell.log()).unwrap(), logged, "the original stays as it was");
        }
        // The old id still reaches the session, so that a prompt sent meanwhile is not lost.
        run.write_line(wire.prompt("s", "again"));
        lines.extend(cell.finish(&mut run));
        let end = lines.last().unwrap();
        assert!(wire.is_done(end), "{lines:#?}");
        assert_eq!(end["session_id"], session.as_str());
    }
    let has_tool = matches!(moment, Moment::BeforeTool | Moment::MidTool | Moment::AwaitingAnswer);
    let expected = usize::from(has_tool && (moment == Moment::MidTool || recovers(policy, moment)));
    assert_eq!(cell.runs(), expected, "{lines:#?}");
    let ended = run.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let all = ended.json_lines();
    assert_eq!(all.iter().filter(|line| wire.is_end(line)).count(), 2, "{all:#?}");
    check_streams(wire, &all);
}

/// Lines are numbered without a gap, from 1 in each session, and are a stream that the checker accepts.
fn check_streams(wire: Wire, all: &[Value]) {
    let numbers: Vec<u64> = all.iter().filter_map(|line| line["seq"].as_u64()).collect();
    let forks = restart_notices(all).iter().filter(|notice| notice["forked_from"].is_string()).count();
    let streams: Vec<&[u64]> = numbers.chunk_by(|_, next| *next != 1).collect();
    assert_eq!(streams.len(), 1 + forks, "{all:#?}");
    for stream in streams {
        assert_eq!(stream, (1..=stream.len() as u64).collect::<Vec<_>>(), "{all:#?}");
    }
    passes_check_of(wire.name(), all);
}

macro_rules! cells {
    ($($name:ident: $moment:ident,)*) => {
        mod qwen {
            $(#[test]
            fn $name() {
                for policy in super::POLICIES {
                    super::check(super::Wire::Qwen, super::Moment::$moment, policy);
                }
            })*
        }
        mod claude {
            $(#[test]
            fn $name() {
                for policy in super::POLICIES {
                    super::check(super::Wire::Claude, super::Moment::$moment, policy);
                }
            })*
        }
    };
}

cells! {
    before_the_first_token: BeforeFirstToken,
    mid_token: MidToken,
    before_a_tool: BeforeTool,
    mid_tool: MidTool,
    awaiting_an_answer: AwaitingAnswer,
    between_turns: BetweenTurns,
}

#[test]
fn a_policy_that_does_not_exist_or_cannot_be_kept_is_refused() {
    let mut run = hub(&says("x")).start();
    for (policy, args) in [
        (json!("pray"), json!([])),
        (json!(""), json!([])),
        (json!("Resume"), json!([])),
        (json!(3), json!([])),
        (json!({"policy": "resume"}), json!([])),
        (json!("resume"), json!(["--no-session-persistence"])),
        (json!("fork"), json!(["--no-chat-recording"])),
        (json!("retry"), json!(["--chat-recording=false"])),
    ] {
        let options = json!({"session_id": "s", "on_crash": policy, "args": args});
        run.write_line(request("o", "open", options));
        let error = answer(&mut run, "o");
        assert_eq!(error["code"], "invalid_on_crash", "{error}");
    }
    run.write_line(request("o", "open", json!({"session_id": "s", "on_crash": null})));
    assert_eq!(answer(&mut run, "o")["session_id"], "s");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_turn_is_taken_up_until_the_third_worker_in_a_row_has_died() {
    let held = || Reply::new([sse::text("Half"), gate("held")]);
    let mock = MockModel::with([held(), held(), held()]);
    let program = bare().args(["--min-workers", "0", "--", "--model", "mock"]).with_model(&mock);
    let mut run = program.start();
    run.write_line(request("o", "open", json!({"session_id": "s", "on_crash": "fork"})));
    answer(&mut run, "o");
    run.write_line(named("s", "p", "go"));
    let mut lines = Vec::new();
    for request in 0..3 {
        mock.wait_for_request(request);
        kill_worker(&run);
        lines.extend(run.json_until(|line| line["value"]["kind"] == "worker_restarted" || is_end(line)));
    }
    let notices: Vec<&Value> = restart_notices(&lines);
    assert_eq!(notices.len(), 2, "{lines:#?}");
    assert_eq!(notices[0]["session_id"], notices[1]["session_id"], "one fork for one turn");
    let end = lines.last().unwrap();
    assert_eq!(
        (status(end), &end["metadata"]["error"]["code"]),
        ("interrupted", &json!("worker_lost")),
        "{end}"
    );
    run.write_line(named("s", "p2", "go"));
    let end = run.json_until(is_end).pop().unwrap();
    assert_eq!(end["metadata"]["error"]["code"], "session_quarantined", "{end}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn prompts_after_the_lost_turn_and_lines_with_the_old_id_reach_the_fork_until_the_original_is_opened() {
    let mock = MockModel::with([Reply::new([gate("held")]), Reply::text("One."), Reply::text("Two.")]);
    let program = bare().args(["--min-workers", "0", "--", "--model", "mock"]).with_model(&mock);
    let mut run = program.start();
    run.write_line(request("o", "open", json!({"session_id": "s", "on_crash": "fork"})));
    answer(&mut run, "o");
    run.write_line(named("s", "p1", "one"));
    mock.reached("held");
    run.write_line(named("s", "p2", "two"));
    kill_worker(&run);
    let first = run.json_until(is_end).pop().unwrap();
    let second = run.json_until(is_end).pop().unwrap();
    assert_eq!((&first["prompt_id"], &second["prompt_id"]), (&json!("p1"), &json!("p2")));
    assert_eq!(first["session_id"], second["session_id"]);
    assert_ne!(first["session_id"], "s");
    run.write_line(request("t", "hub/status", json!({"session_id": "s"})));
    assert_eq!(answer(&mut run, "t")["session_id"], first["session_id"]);
    run.write_line(request("o2", "open", json!({"session_id": "s"})));
    assert_eq!(answer(&mut run, "o2")["session_id"], "s");
    mock.push(Reply::text("Three."));
    run.write_line(named("s", "p3", "three"));
    let third = run.json_until(is_end).pop().unwrap();
    assert_eq!((status(&third), &third["session_id"]), ("done", &json!("s")), "{third}");
    let said = mock.requests().last().unwrap().messages().to_vec();
    assert!(!said.iter().any(|message| message.to_string().contains("Two.")), "{said:?}");
    run.write_line(request("c", "close", json!({"session_id": first["session_id"]})));
    assert_eq!(answer(&mut run, "c")["closed"], true);
    assert_eq!(run.finish().code, Some(0));
}
