//! Calls of one message take effect in the order the model wrote them, whatever they do and however late the
//! host answers.
//!
//! `QWEN_CONFORM_CASES` sets the number of messages, `QWEN_CONFORM_SEED` chooses others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mock_model::{MockModel, Reply, ReplyEvent, Step};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::harness::{Host, each_format, openai, shell, worker};

/// Files that only the edit tool changes, and files that only commands change.
const EDITED: usize = 2;
const APPENDED: usize = 2;

/// What the first line of a later result begins with.
const NOTE: &str = "Note: earlier in this message, ";

#[derive(Debug, Clone)]
enum Call {
    Read(String),
    /// Replaces one version by another; fails if the file has a different one.
    Edit {
        file: usize,
        from: usize,
        to: usize,
        answer: Answer,
    },
    /// Appends an edited file to another one.
    Append {
        from: usize,
        to: usize,
        fails: bool,
        answer: Answer,
    },
    /// Runs in the read-only sandbox without a question.
    Show(usize),
    Background,
    /// Its arguments do not match the schema.
    Invalid,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Answer {
    Allow,
    Deny,
    /// Allows after the worker had time to run other calls.
    Late,
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![3 => Just(Answer::Allow), 1 => Just(Answer::Deny), 1 => Just(Answer::Late)]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        2 => (0..EDITED).prop_map(|file| Call::Read(format!("edited{file}"))),
        1 => (0..APPENDED).prop_map(|file| Call::Read(format!("appended{file}"))),
        4 => (0..EDITED, 0..3_usize, 1..3_usize, answer())
            .prop_map(|(file, from, step, answer)| Call::Edit { file, from, to: (from + step) % 3, answer }),
        3 => (0..EDITED, 0..APPENDED, any::<bool>(), answer())
            .prop_map(|(from, to, fails, answer)| Call::Append { from, to, fails, answer }),
        1 => (0..APPENDED).prop_map(Call::Show),
        1 => Just(Call::Background),
        1 => Just(Call::Invalid),
    ]
}

impl Call {
    fn step(&self, id: &str) -> Step {
        let (name, arguments) = match self {
            Self::Read(file) => ("read_file", json!({"file_path": file}).to_string()),
            Self::Edit { file, from, to, .. } => {
                let (old, new) = (format!("version {from}"), format!("version {to}"));
                let file = format!("edited{file}");
                ("edit", json!({"file_path": file, "old_string": old, "new_string": new}).to_string())
            }
            Self::Append { from, to, fails, .. } => {
                let end = if *fails { "; exit 3" } else { "" };
                ("run_shell_command", shell(&format!("cat edited{from} >> appended{to}{end}")))
            }
            Self::Show(file) => ("run_shell_command", shell(&format!("cat appended{file}"))),
            Self::Background => {
                ("run_shell_command", json!({"command": "sleep 0", "is_background": true}).to_string())
            }
            Self::Invalid => ("write_file", json!({"file_path": 7}).to_string()),
        };
        ReplyEvent::call(id, name, &arguments).step()
    }
}

/// A sequential run of the same calls.
struct Sequential {
    files: BTreeMap<String, String>,
    /// True once a call of the message failed to take effect.
    misses: bool,
}

/// What a sequential run returns for a call: a text that the result contains, and whether it has the note.
struct Expected {
    contains: String,
    has_note: bool,
}

impl Sequential {
    fn new(folder: &Path) -> Self {
        let edited = (0..EDITED).map(|n| (format!("edited{n}"), "version 0\n".to_owned()));
        let appended = (0..APPENDED).map(|n| (format!("appended{n}"), format!("start of {n}\n")));
        let files: BTreeMap<String, String> = edited.chain(appended).collect();
        for (name, text) in &files {
            fs::write(folder.join(name), text).unwrap();
        }
        Self { files, misses: false }
    }

    fn run(&mut self, call: &Call) -> Expected {
        let has_note = self.misses;
        let contains = match call {
            Call::Read(file) => self.files[file].lines().last().unwrap_or_default().to_owned(),
            Call::Edit { file, from, to, answer } => {
                let text = self.files.get_mut(&format!("edited{file}")).unwrap();
                let (old, new) = (format!("version {from}"), format!("version {to}"));
                if *answer == Answer::Deny || !text.contains(&old) {
                    self.misses = true;
                } else {
                    *text = text.replace(&old, &new);
                }
                String::new()
            }
            Call::Append { from, to, fails, answer } => {
                if *answer == Answer::Deny {
                    self.misses = true;
                } else {
                    let added = self.files[&format!("edited{from}")].clone();
                    self.files.get_mut(&format!("appended{to}")).unwrap().push_str(&added);
                }
                if *fails && *answer != Answer::Deny { "3".to_owned() } else { String::new() }
            }
            Call::Show(file) => self.files[&format!("appended{file}")].clone().trim_end().to_owned(),
            Call::Background => String::new(),
            Call::Invalid => {
                self.misses = true;
                String::new()
            }
        };
        Expected { contains, has_note }
    }
}

/// The answer that a question about one of the calls gets.
fn answer_to(calls: &[Call], question: &Value) -> Answer {
    let id = question["metadata"]["tool_call_id"].as_str().unwrap_or_else(|| panic!("{question}"));
    match &calls[id.rsplit('-').next().unwrap().parse::<usize>().unwrap()] {
        Call::Edit { answer, .. } | Call::Append { answer, .. } => *answer,
        Call::Background => Answer::Allow,
        call => panic!("{call:?} needs no answer: {question}"),
    }
}

/// Answers questions until the turn ends. A question is asked only when all earlier ones are answered.
fn drive(host: &mut Host, calls: &[Call]) {
    loop {
        let line = host.until(|line| {
            line["type"] == "control_request"
                || line["type"] == "control_cancel_request"
                || line["metadata"]["turn"].is_object()
        });
        if line["metadata"]["turn"].is_object() {
            assert_eq!(line["metadata"]["turn"]["status"], "done", "{line}");
            return;
        }
        assert_eq!(line["type"], "control_request", "{line}");
        let answer = answer_to(calls, &line);
        if answer == Answer::Late {
            for _ in 0..3 {
                host.send(json!({"type": "heartbeat_request"}));
                let next = host.until(|line| {
                    line["type"] == "result/heartbeat"
                        || line["type"] == "control_request"
                        || line["status"] == "executing"
                });
                assert_eq!(next["type"], "result/heartbeat", "a later call did not wait: {next}");
            }
        }
        let behavior = if answer == Answer::Deny { "deny" } else { "allow" };
        host.answer(&line, json!({"behavior": behavior}));
    }
}

#[test]
fn any_message_leaves_the_files_that_a_sequential_run_leaves() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let seed = number("QWEN_CONFORM_SEED", 7);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let messages = proptest::collection::vec(call(), 1..=8);
    let mock = MockModel::start();
    let mut host = Host::with(&mock, "stream-json");
    let folder = host.program.cwd_path().to_owned();
    let mut sequential = Sequential::new(&folder);
    for case in 0..number("QWEN_CONFORM_CASES", 40) {
        let calls = messages.new_tree(&mut runner).unwrap().current();
        let steps = calls.iter().enumerate().map(|(n, call)| call.step(&format!("call-{case}-{n}")));
        mock.push(Reply::new(steps));
        mock.push(Reply::text("done"));
        host.send(openai("go"));
        drive(&mut host, &calls);
        sequential.misses = false;
        let expected: Vec<Expected> = calls.iter().map(|call| sequential.run(call)).collect();
        for (name, text) in &sequential.files {
            assert_eq!(
                &fs::read_to_string(folder.join(name)).unwrap(),
                text,
                "{name} after {case}: {calls:#?}"
            );
        }
        let request = mock.requests().pop().unwrap();
        for (n, expected) in expected.iter().enumerate() {
            let id = format!("call-{case}-{n}");
            let result = request.messages().iter().find(|message| message["tool_call_id"] == *id);
            let text = result.and_then(|message| message["content"].as_str()).unwrap();
            assert!(text.contains(&expected.contains), "{case}, call {n}: {text}\n{calls:#?}");
            assert_eq!(text.starts_with(NOTE), expected.has_note, "{case}, call {n}: {text}\n{calls:#?}");
            if let Some(note) = text.lines().next().filter(|_| expected.has_note) {
                assert!(note.ends_with(").") && note.contains("did not happen"), "{note}");
            }
        }
    }
    host.leave();
}

#[test]
fn a_note_names_the_calls_that_did_not_happen_and_a_failed_command_did() {
    each_format(|format| {
        let edit = json!({"file_path": "a.txt", "old_string": "absent", "new_string": "x"}).to_string();
        let mock = MockModel::with([
            Reply::new([
                ReplyEvent::call("c1", "run_shell_command", &shell("echo x > b; exit 4")).step(),
                ReplyEvent::call("c2", "edit", &edit).step(),
                ReplyEvent::call("c3", "run_shell_command", &shell("touch never")).step(),
                ReplyEvent::call("c4", "read_file", r#"{"file_path":"a.txt"}"#).step(),
            ]),
            Reply::text("done"),
        ]);
        let program = worker(&mock, format);
        fs::write(program.cwd_path().join("a.txt"), "here\n").unwrap();
        let mut host = Host::start_in(program, format);
        host.send(openai("go"));
        for _ in 0..3 {
            let line =
                host.until(|line| line["type"] == "control_request" || line["metadata"]["turn"].is_object());
            if line["type"] != "control_request" {
                break;
            }
            let is_refused = line.to_string().contains("touch never");
            host.answer(&line, json!({"behavior": if is_refused { "deny" } else { "allow" }}));
            if is_refused {
                host.turn();
                break;
            }
        }
        let request = mock.requests().pop().unwrap();
        let result = |id: &str| {
            let found = request.messages().iter().find(|message| message["tool_call_id"] == *id);
            found.and_then(|message| message["content"].as_str()).unwrap().to_owned()
        };
        assert!(!result("c2").starts_with(NOTE), "the command ran: {}", result("c2"));
        let failed = "edit `a.txt` did not happen (it failed)";
        assert_eq!(result("c3").lines().next(), Some(&*format!("{NOTE}{failed}.")));
        let both =
            format!("{NOTE}{failed}; run_shell_command `touch never` did not happen (it was refused).");
        assert_eq!(result("c4").lines().next(), Some(&*both));
        assert!(result("c4").contains("here"));
        host.leave();
    });
}

#[test]
fn after_an_interrupt_no_later_call_of_the_message_runs() {
    each_format(|format| {
        let mock = MockModel::with([
            Reply::new([
                ReplyEvent::call("c1", "run_shell_command", &shell("touch first; sleep 1000")).step(),
                ReplyEvent::call("c2", "run_shell_command", &shell("touch second")).step(),
                ReplyEvent::call("c3", "list_directory", r#"{"path":"."}"#).step(),
            ]),
            Reply::text("fine"),
        ]);
        let mut host = Host::start_in(worker(&mock, format).arg("--yolo"), format);
        host.send(openai("go"));
        host.until(|line| line["type"] == "x-qwen-tool-display" && line["status"] == "executing");
        host.send(json!({"type": "control/cancel"}));
        let lines = host.turn();
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "cancelled");
        assert!(!host.program.cwd_path().join("second").exists());
        host.say("and now?");
        let request = mock.requests().pop().unwrap();
        for id in ["c2", "c3"] {
            let result = request.messages().iter().find(|message| message["tool_call_id"] == *id).unwrap();
            assert!(result["content"].as_str().unwrap().starts_with("not run"), "{result}");
        }
        host.leave();
    });
}
