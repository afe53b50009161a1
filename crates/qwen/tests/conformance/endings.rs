//! The end of input and signals at every point of a turn: each prompt has its terminal record, the log can be
//! read, no child is left, and the exit code tells which it was.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use mock_model::process::{Program, Signal};
use mock_model::{MockModel, Reply, Request, Step, WAIT_LIMIT, gate, sse};
use serde_json::{Value, json};

use crate::harness::{
    CLAUDE, Host, chat, conversation, each_format, echo, ends_turn, in_host_hook, is_error, passes_check,
    shell, worker,
};

/// A FIFO in the working directory of `program`.
pub fn fifo(program: &Program, name: &str) -> PathBuf {
    let path = program.cwd_path().join(name);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    path
}

/// Waits until something was written into a FIFO.
#[track_caller]
fn hear(path: PathBuf) {
    let (heard, wait) = mpsc::channel();
    thread::spawn(move || heard.send(fs::read(path).unwrap()));
    wait.recv_timeout(WAIT_LIMIT).unwrap();
}

/// A moment of a worker's life: how it comes to it, and what lets it go on.
struct Moment {
    name: &'static str,
    prompts: usize,
    arrange: fn(&str) -> (MockModel, Host),
    release: fn(&MockModel, &Host),
}

fn nothing(_: &MockModel, _: &Host) {}

/// A worker that works on a prompt with this model, until `reached`.
fn at(
    mock: MockModel,
    program: Program,
    format: &str,
    reached: impl Fn(&MockModel, &mut Host),
) -> (MockModel, Host) {
    mock.answer_with(|_: &Request| Some(Reply::text("fine")));
    let mut host = Host::start_in(program, format);
    host.send(chat("p1", "go"));
    reached(&mock, &mut host);
    (mock, host)
}

/// A worker without further flags, until the host has seen something.
fn at_host(mock: MockModel, format: &str, seen: impl Fn(&mut Host)) -> (MockModel, Host) {
    let program = worker(&mock, format);
    at(mock, program, format, |_, host| seen(host))
}

fn held(steps: [Step; 2], format: &str) -> (MockModel, Host) {
    let mock = MockModel::with([Reply::new(steps.into_iter().chain([
        sse::text("."),
        sse::finish("stop"),
        sse::done(),
    ]))]);
    let program = worker(&mock, format);
    at(mock, program, format, |mock, _| mock.reached("held"))
}

fn moments() -> Vec<Moment> {
    vec![
        Moment {
            name: "before any prompt",
            prompts: 0,
            arrange: |format| {
                let mock = echo();
                let host = Host::with(&mock, format);
                (mock, host)
            },
            release: nothing,
        },
        Moment {
            name: "between turns",
            prompts: 1,
            arrange: |format| {
                let mock = echo();
                at_host(mock, format, |host| _ = host.turn())
            },
            release: nothing,
        },
        Moment {
            name: "while the model is waited for",
            prompts: 1,
            arrange: |format| held([Step::Head, gate("held")], format),
            release: |mock, _| mock.open("held"),
        },
        Moment {
            name: "in the middle of the stream",
            prompts: 1,
            arrange: |format| held([sse::text("half"), gate("held")], format),
            release: |mock, _| mock.open("held"),
        },
        Moment {
            name: "while a tool runs",
            prompts: 1,
            arrange: |format| {
                let call = Reply::call("c1", "run_shell_command", &shell("echo up > up; cat block"));
                let mock = MockModel::with([call]);
                let program = worker(&mock, format).arg("--yolo");
                fifo(&program, "block");
                let up = fifo(&program, "up");
                at(mock, program, format, |_, _| hear(up.clone()))
            },
            release: |_, host| fs::write(host.program.cwd_path().join("block"), "").unwrap(),
        },
        Moment {
            name: "while a permission question is open",
            prompts: 1,
            arrange: |format| {
                let call = Reply::call("c1", "write_file", r#"{"file_path":"a","content":"x"}"#);
                let mock = MockModel::with([call]);
                at_host(mock, format, |host| _ = host.question())
            },
            release: nothing,
        },
        Moment {
            name: "while a hook of the host is called",
            prompts: 1,
            arrange: in_host_hook,
            release: nothing,
        },
        Moment {
            name: "while a message to a server in the host is open",
            prompts: 1,
            arrange: |format| {
                let mock = echo();
                let mut host = Host::with(&mock, format);
                host.ask("initialize", json!({"sdkMcpServers": ["calc"]}));
                host.send(chat("p1", "go"));
                assert!(host.question().to_string().contains("mcp_message"));
                (mock, host)
            },
            release: nothing,
        },
        Moment {
            name: "with prompts that wait",
            prompts: 4,
            arrange: |format| {
                let (mock, mut host) = held([sse::text("half"), gate("held")], format);
                for id in ["p2", "p3", "p4"] {
                    host.send(chat(id, id));
                }
                host.send(json!({"type": "heartbeat_request"}));
                host.until(|line| line["type"] == "result/heartbeat");
                (mock, host)
            },
            release: |mock, _| mock.open("held"),
        },
    ]
}

#[track_caller]
fn ends(lines: &[Value]) -> Vec<(String, String)> {
    let ends = lines.iter().filter(|line| ends_turn(line));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    ends.map(|end| (text(&end["prompt_id"]), text(&end["metadata"]["turn"]["status"]))).collect()
}

#[track_caller]
fn each_prompt_ended(moment: &Moment, lines: &[Value], status: &str, from: usize) {
    let expected: Vec<(String, String)> = (1..=moment.prompts)
        .map(|n| (format!("p{n}"), if n <= from { "done" } else { status }.to_owned()))
        .collect();
    assert_eq!(ends(lines), expected, "{}", moment.name);
}

#[test]
fn the_end_of_input_lets_every_prompt_come_to_its_end() {
    each_format(|format| {
        for moment in moments() {
            let (mock, mut host) = (moment.arrange)(format);
            host.run.close_stdin();
            (moment.release)(&mock, &host);
            each_prompt_ended(&moment, &host.leave(), "done", 0);
        }
    });
}

#[test]
fn sigterm_ends_every_prompt_as_interrupted() {
    each_format(|format| {
        for moment in moments() {
            let (_mock, host) = (moment.arrange)(format);
            let done = usize::from(moment.name == "between turns");
            each_prompt_ended(&moment, &host.signalled(Signal::TERM, 143), "interrupted", done);
        }
    });
}

#[test]
fn ctrl_c_ends_every_prompt_as_cancelled() {
    for moment in moments() {
        let (_mock, host) = (moment.arrange)("stream-json");
        let done = usize::from(moment.name == "between turns");
        each_prompt_ended(&moment, &host.signalled(Signal::INT, 130), "cancelled", done);
    }
}

#[test]
fn in_the_claude_dialect_too_every_prompt_has_its_result() {
    for moment in moments() {
        for ending in [None, Some((Signal::TERM, 143)), Some((Signal::INT, 130))] {
            let (mock, mut host) = (moment.arrange)(CLAUDE);
            let lines = match ending {
                Some((signal, code)) => host.signalled(signal, code),
                None => {
                    host.run.close_stdin();
                    (moment.release)(&mock, &host);
                    host.leave()
                }
            };
            let results = lines.iter().filter(|line| ends_turn(line)).count();
            assert_eq!(results, moment.prompts, "{}: {ending:?}", moment.name);
        }
    }
}

#[test]
fn sigterm_behind_the_end_of_input_still_ends_every_prompt() {
    let (_mock, mut host) = (moments().pop().unwrap().arrange)("stream-json");
    host.run.close_stdin();
    let lines = host.signalled(Signal::TERM, 143);
    assert_eq!(ends(&lines).len(), 4, "{lines:#?}");
}

#[test]
fn a_withdrawn_prompt_stays_cancelled_when_a_signal_comes() {
    let (_mock, mut host) = (moments().pop().unwrap().arrange)("stream-json");
    host.send(json!({"type": "control/cancel", "prompt_id": "p3"}));
    host.until(|line| line["type"] == "result/cancel");
    let lines = host.signalled(Signal::TERM, 143);
    let statuses: Vec<String> = ends(&lines).into_iter().map(|(_, status)| status).collect();
    assert_eq!(statuses, ["cancelled", "interrupted", "interrupted", "interrupted"]);
}

#[test]
fn prompts_that_a_signal_kept_from_their_turn_are_not_in_the_conversation_afterwards() {
    let (mock, host) = (moments().pop().unwrap().arrange)("stream-json");
    let program = host.program.clone();
    host.signalled(Signal::TERM, 143);
    let mut host = Host::start(program);
    host.send(chat("p5", "after"));
    host.turn();
    let told = conversation(&mock.wait_for_request(1));
    assert!(told.contains("go") && told.contains("after"), "{told}");
    assert!(["p2", "p3", "p4"].iter().all(|waited| !told.contains(waited)), "{told}");
    host.leave();
}

#[test]
fn before_the_greeting_a_worker_can_be_ended_too() {
    let mock = echo();
    let mut run = worker(&mock, "stream-json").start();
    run.close_stdin();
    let ended = run.wait();
    assert_eq!((ended.code, ended.json_lines().len()), (Some(0), 1), "{ended:?}");
    let run = worker(&mock, "stream-json").start();
    run.signal(Signal::TERM);
    let ended = run.wait();
    assert!(ended.code == Some(143) || ended.signal == Some(15), "{ended:?}");
    if !ended.stdout.is_empty() {
        passes_check(&ended.stdout);
    }
}

#[test]
fn no_grandchild_outlives_a_worker_that_is_told_to_end() {
    let command = "setsid sh -c 'echo up; cat block' & (cat block &) ; cat block";
    for signal in [Signal::TERM, Signal::INT] {
        let mock = MockModel::with([Reply::call("c1", "run_shell_command", &shell(command))]);
        let program = worker(&mock, "stream-json").arg("--yolo");
        fifo(&program, "block");
        let (_mock, host) = at(mock, program, "stream-json", |_, host| {
            host.until(|line| line["type"] == "x-qwen-terminal" && line["text"] == "up\n");
        });
        // Children are looked for by their mark.
        let code = if signal == Signal::TERM { 143 } else { 130 };
        let lines = host.signalled(signal, code);
        assert!(
            lines.iter().any(|line| line["tool_call_id"] == "c1" && line["status"] == "canceled"),
            "{lines:#?}"
        );
    }
}

#[test]
fn half_a_line_at_the_end_of_input_is_one_error_and_a_whole_one_is_a_prompt() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.run.write(b"{\"messages\":[{\"role\":\"user\"");
        let lines = host.leave();
        assert_eq!(lines.iter().filter(|line| is_error(line)).count(), 1, "{lines:#?}");
        let mut host = Host::with(&mock, format);
        host.run.write(chat("p1", "no newline").to_string().as_bytes());
        assert_eq!(ends(&host.leave()), [("p1".to_owned(), "done".to_owned())]);
    });
}

#[test]
fn a_session_that_a_signal_ended_goes_on_with_a_valid_history() {
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", &shell("echo up; cat block"))]);
    let program = worker(&mock, "stream-json").arg("--yolo");
    fifo(&program, "block");
    let (mock, host) = at(mock, program.clone(), "stream-json", |_, host| {
        host.until(|line| line["type"] == "x-qwen-terminal" && line["text"] == "up\n");
    });
    host.signalled(Signal::TERM, 143);
    let mut host = Host::start(program);
    host.send(chat("p2", "and now?"));
    host.turn();
    let roles: Vec<Value> =
        mock.wait_for_request(1).messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    host.leave();
}
