//! Random lines, good and bad, against a small model of the protocol: which prompts run, wait and have ended,
//! and what each line must come to.
//!
//! `QWEN_CONFORM_CASES` asks for more cases, `QWEN_CONFORM_SEED` for others.

use std::collections::{HashSet, VecDeque};

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, ReplyEvent, Request, gate};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::harness::{FORMATS, Host, ends_turn, is_error};

/// Something that a host does.
#[derive(Debug, Clone)]
enum Action {
    /// Sends a prompt under one of a few names, so that names are used twice.
    Prompt(u8),
    /// Sends a prompt without a name; the agent may come to need a permission.
    Unnamed {
        asks: bool,
    },
    /// Answers the question that is open, if one is.
    Permit(usize),
    /// Sends context for the next turn.
    Context,
    /// Runs a command that needs no conversation.
    Command,
    /// Lets the model answer.
    Release,
    /// Cancels what runs, or the prompt of a name.
    Cancel(Option<u8>),
    /// Asks on the control channel: well, badly, in either form.
    Control {
        good: bool,
        nested: bool,
    },
    /// Answers what nobody asked.
    Answer,
    /// Sends a bad line.
    Bad(usize),
    /// Asks for a heartbeat or for suggestions.
    Heartbeat,
    Hint,
}

const BAD: [&str; 8] = [
    "garbage",
    "{",
    "[]",
    "{\"type\":\"martian\"}",
    "{\"input\":{\"origin\":\"martian\",\"parts\":[\"x\"]}}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud800\"}]}",
    "{\"session_id\":\"nowhere-at-all\",\"input\":{\"parts\":[\"x\"]}}",
    "{\"type\":\"control_request\",\"subtype\":\"interrupt\"}",
];

/// The answers to a question: yes, no, nonsense, and that the host failed.
const PERMITS: usize = 4;

fn permit(which: usize) -> Value {
    match which {
        0 => json!({"subtype": "success", "result": {"behavior": "allow"}}),
        1 => json!({"subtype": "success", "result": {"behavior": "deny"}}),
        2 => json!({"subtype": "success", "result": {"behavior": 7}}),
        _ => json!({"subtype": "error", "error": {"message": "down", "retryable": false}}),
    }
}

/// Whether a bad line is found out only when its turn comes: the others are answered at once.
const LATE: usize = 6;

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        5 => (0..6_u8).prop_map(Action::Prompt),
        3 => any::<bool>().prop_map(|asks| Action::Unnamed { asks }),
        3 => (0..PERMITS).prop_map(Action::Permit),
        1 => Just(Action::Context),
        1 => Just(Action::Command),
        4 => Just(Action::Release),
        3 => proptest::option::of(0..6_u8).prop_map(Action::Cancel),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(good, nested)| Action::Control { good, nested }),
        1 => Just(Action::Answer),
        2 => (0..BAD.len()).prop_map(Action::Bad),
        1 => Just(Action::Heartbeat),
        1 => Just(Action::Hint),
    ]
}

/// How a case ends.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Input,
    Signal,
}

/// What waits for its turn.
enum Waiting {
    Prompt { name: Option<String>, asks: bool },
    Refused,
    Context,
}

/// The protocol as a host understands it, and the worker that must keep to it.
struct Bout<'a> {
    host: Host,
    mock: &'a MockModel,
    used: HashSet<String>,
    running: Option<String>,
    /// The turn that runs will ask for a permission.
    asks: bool,
    /// What it asks, once it does.
    question: Option<Value>,
    /// Questions asked, and those of them that were answered.
    questions: usize,
    permits: usize,
    queue: VecDeque<Waiting>,
    /// Turns begun so far.
    turns: usize,
    /// Requests that the model got so far.
    asked: usize,
    fences: usize,
    /// Terminal records seen so far.
    seen: usize,
    ended: Vec<(String, &'static str)>,
    errors: usize,
    controls: Vec<(String, bool, bool)>,
    cancels: Vec<&'static str>,
    commands: usize,
    beats: usize,
    hints: usize,
}

impl<'a> Bout<'a> {
    fn start(mock: &'a MockModel, format: &str) -> Self {
        Self {
            host: Host::with(mock, format),
            mock,
            used: HashSet::new(),
            running: None,
            asks: false,
            question: None,
            questions: 0,
            permits: 0,
            queue: VecDeque::new(),
            turns: 0,
            asked: 0,
            fences: 0,
            seen: 0,
            ended: Vec::new(),
            errors: 0,
            controls: Vec::new(),
            cancels: Vec::new(),
            commands: 0,
            beats: 0,
            hints: 0,
        }
    }

    /// Waits until the worker has heard all that was said, and has ended all turns that have ended.
    fn settle(&mut self) {
        self.fences += 1;
        let id = format!("fence-{}", self.fences);
        self.host
            .send(json!({"type": "control_request", "request_id": id, "subtype": "get_available_models"}));
        let mut answered = false;
        while !answered || self.seen < self.ended.len() {
            let line = self.line();
            answered |= line["type"] == "control_response" && line["request_id"] == *id;
        }
    }

    fn line(&mut self) -> Value {
        let line = self.host.run.json();
        self.seen += usize::from(ends_turn(&line));
        line
    }

    /// Lets the model answer; a turn that asks for a permission then does so, and any other is done.
    fn release(&mut self) {
        if self.running.is_none() || self.question.is_some() {
            return;
        }
        self.mock.open(&format!("g{}", self.asked - 1));
        if std::mem::take(&mut self.asks) {
            let question = loop {
                let line = self.line();
                if line["type"] == "control_request" {
                    break line;
                }
            };
            self.questions += 1;
            self.question = Some(question);
        } else {
            self.end("done");
        }
    }

    /// Answers the question, and the model is asked again.
    fn permit(&mut self, which: usize) {
        let Some(question) = self.question.take() else { return };
        let id = question["request_id"].clone();
        self.host.send(json!({"type": "control_response", "request_id": id, "response": permit(which)}));
        self.permits += 1;
        self.mock.wait_for_request(self.asked);
        self.asked += 1;
    }

    /// Starts what waits, as far as nothing runs.
    fn advance(&mut self) {
        while self.running.is_none() {
            match self.queue.pop_front() {
                None => return,
                Some(Waiting::Context) => {}
                Some(Waiting::Refused) => self.errors += 1,
                Some(Waiting::Prompt { name, asks }) => {
                    let name = self.begin(name);
                    self.running = Some(name);
                    self.asks = asks;
                    self.mock.wait_for_request(self.asked);
                    self.asked += 1;
                }
            }
        }
    }

    fn begin(&mut self, name: Option<String>) -> String {
        self.turns += 1;
        name.unwrap_or_else(|| format!("s########{}", self.turns))
    }

    fn end(&mut self, status: &'static str) {
        if let Some(name) = self.running.take() {
            self.ended.push((name, status));
            self.question = None;
            self.advance();
        }
    }

    fn prompt(&mut self, name: Option<String>, asks: bool) {
        let text = if asks { "ask" } else { "go" };
        let mut line = json!({"session_id": "s", "input": {"parts": [{"text": text}]}});
        if let Some(name) = &name {
            line["prompt_id"] = name.as_str().into();
        }
        self.host.send(line);
        if name.as_ref().is_some_and(|name| !self.used.insert(name.clone())) {
            self.errors += 1;
            return;
        }
        self.queue.push_back(Waiting::Prompt { name, asks });
        self.advance();
    }

    fn cancel(&mut self, wanted: Option<&str>) {
        let mut line = json!({"type": "control/cancel", "session_id": "s"});
        if let Some(name) = wanted {
            line["prompt_id"] = name.into();
        }
        self.host.send(line);
        if self.running.is_some() && (wanted.is_none() || wanted == self.running.as_deref()) {
            self.cancels.push("ok");
            self.end("cancelled");
            return;
        }
        let queued = self.queue.iter().position(|waiting| match waiting {
            Waiting::Prompt { name, .. } => name.is_some() && name.as_deref() == wanted,
            _ => false,
        });
        self.cancels.push(if queued.is_some() { "ok" } else { "noop" });
        if let Some(Waiting::Prompt { name: Some(name), .. }) = queued.and_then(|at| self.queue.remove(at)) {
            self.ended.push((name, "cancelled"));
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Prompt(n) => self.prompt(Some(format!("p{n}")), false),
            Action::Unnamed { asks } => self.prompt(None, *asks),
            Action::Permit(which) => self.permit(*which),
            Action::Context => {
                self.host
                    .send(json!({"session_id": "s", "input": {"origin": "system", "parts": ["by the way"]}}));
                self.queue.push_back(Waiting::Context);
                self.advance();
            }
            Action::Command => {
                self.host.send(json!({"input": {"parts": ["/help"]}}));
                self.commands += 1;
            }
            Action::Release => self.release(),
            Action::Cancel(n) => self.cancel(n.map(|n| format!("p{n}")).as_deref()),
            Action::Control { good, nested } => {
                let id = format!("c-{}", self.controls.len());
                let subtype = if *good { "supported_commands" } else { "set_permission_mode" };
                let line = if *nested {
                    json!({"type": "control_request", "request_id": id, "request": {"subtype": subtype}})
                } else {
                    json!({"type": "control_request", "request_id": id, "subtype": subtype})
                };
                self.host.send(line);
                self.controls.push((id, *good, *nested));
            }
            Action::Answer => {
                self.host.answer(&json!({"request_id": "nobody"}), json!({"behavior": "allow"}));
                self.errors += 1;
            }
            Action::Bad(which) => {
                self.host.send(BAD[*which]);
                if *which == LATE {
                    self.queue.push_back(Waiting::Refused);
                    self.advance();
                } else {
                    self.errors += 1;
                }
            }
            Action::Heartbeat => {
                self.host.send(json!({"type": "heartbeat_request"}));
                self.beats += 1;
            }
            Action::Hint => {
                self.host.send(json!({"type": "command_hint_request", "text": "/c"}));
                self.hints += 1;
            }
        }
        self.settle();
    }

    /// Ends the worker and compares all that it said with what it had to say.
    fn judge(mut self, ending: Ending) {
        let lines = match ending {
            Ending::Input => {
                while self.running.is_some() {
                    self.act(&Action::Permit(1));
                    self.act(&Action::Release);
                }
                self.host.leave()
            }
            Ending::Signal => {
                if let Some(name) = self.running.take() {
                    self.ended.push((name, "interrupted"));
                }
                while let Some(waiting) = self.queue.pop_front() {
                    match waiting {
                        Waiting::Prompt { name, .. } => {
                            let name = self.begin(name);
                            self.ended.push((name, "interrupted"));
                        }
                        Waiting::Refused => self.errors += 1,
                        Waiting::Context => {}
                    }
                }
                self.host.signalled(Signal::TERM, 143)
            }
        };
        let ended: Vec<(&str, &str)> = lines
            .iter()
            .filter(|line| ends_turn(line))
            .map(|line| {
                (line["prompt_id"].as_str().unwrap(), line["metadata"]["turn"]["status"].as_str().unwrap())
            })
            .collect();
        let expected: Vec<(&str, &str)> =
            self.ended.iter().map(|(name, status)| (name.as_str(), *status)).collect();
        assert_eq!(ended, expected, "every prompt ends once, in order");
        assert_eq!(lines.iter().filter(|line| is_error(line)).count(), self.errors, "one error a bad line");
        let count = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
        assert_eq!(count("result/command"), self.commands);
        assert_eq!(count("result/heartbeat"), self.beats);
        assert_eq!(count("result/command_hint"), self.hints);
        assert_eq!(count("control_request"), self.questions);
        assert_eq!(
            count("control_cancel_request"),
            self.questions - self.permits,
            "what is not answered is taken back"
        );
        let cancels: Vec<&Value> =
            lines.iter().filter(|line| line["type"] == "result/cancel").map(|line| &line["status"]).collect();
        assert_eq!(cancels, self.cancels);
        for (id, good, nested) in &self.controls {
            let place = if *nested { "/response/request_id" } else { "/request_id" };
            let answers: Vec<&Value> =
                lines.iter().filter(|line| line.pointer(place).is_some_and(|told| told == id)).collect();
            let [answer] = answers[..] else { panic!("{id}: {answers:?}") };
            let outcome = if *good { "success" } else { "error" };
            assert_eq!(answer["response"]["subtype"], outcome, "{answer}");
        }
    }
}

/// A model that waits at a gate of its own for every request, and wants to write a file where the prompt says
/// so.
fn held_model() -> MockModel {
    let mock = MockModel::start();
    let mut number = 0;
    mock.answer_with(move |request: &Request| {
        let last = request.messages().last();
        let asks = last.is_some_and(|last| last["role"] == "user") && request.last_user_text() == "ask";
        let said = if asks {
            let arguments = json!({"file_path": format!("f{number}"), "content": "x"}).to_string();
            ReplyEvent::call(&format!("c{number}"), "write_file", &arguments)
        } else {
            ReplyEvent::Text("done".into())
        };
        let reply = Reply::new([gate(&format!("g{number}")), said.step()]);
        number += 1;
        Some(reply)
    });
    mock
}

fn setting(name: &str, otherwise: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn any_sequence_of_lines_keeps_the_protocol() {
    let config = Config {
        cases: setting("QWEN_CONFORM_CASES", 24),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&setting("QWEN_CONFORM_SEED", 1).to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let ending = prop_oneof![Just(Ending::Input), Just(Ending::Signal)];
    let cases = (proptest::collection::vec(action(), 1..40), ending, 0..FORMATS.len());
    let judged = runner.run(&cases, |(actions, ending, format)| {
        let mock = held_model();
        let mut bout = Bout::start(&mock, FORMATS[format]);
        // The session is named before anything else, so that a name which nobody knows is one.
        bout.act(&Action::Unnamed { asks: false });
        for action in &actions {
            bout.act(action);
        }
        bout.judge(ending);
        Ok(())
    });
    if let Err(error) = judged {
        panic!("{error}");
    }
}
