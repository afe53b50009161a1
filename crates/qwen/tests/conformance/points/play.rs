//! A host that plays the story with a worker, and ends it where it is told to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mock_model::process::{Ended, ProcessHandle, Signal, wait_marked_gone};
use serde_json::{Map, Value, json};

use super::story::{BEGIN, HOOKS, Story};
use super::wire::{Wire, mark};

/// A point of the story.
#[derive(Debug, Clone)]
pub enum Point {
    /// So many lines were read.
    Line(usize),
    /// The model or a tool is held here.
    Held(String),
    /// This question of the worker, from 1, is not answered.
    Unanswered(usize),
}

/// How a worker is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Eof,
    Term,
    Int,
    Kill,
    /// The end of input, and a signal right behind it.
    EofTerm,
}

impl Ending {
    fn closes_input(self) -> bool {
        matches!(self, Self::Eof | Self::EofTerm)
    }

    fn done_to(self, handle: &ProcessHandle) {
        match self {
            Self::Eof => handle.close_stdin(),
            Self::Term => handle.signal(Signal::TERM),
            Self::Int => handle.signal(Signal::INT),
            Self::Kill => handle.signal(Signal::KILL),
            Self::EofTerm => {
                handle.close_stdin();
                handle.signal(Signal::TERM);
            }
        }
    }
}

/// How it was told to the end.
pub struct Played {
    pub ended: Ended,
    pub lines: Vec<Value>,
    pub questions: usize,
    /// The prompts that the worker was told, and whether it was heard to have read them, before it was ended.
    pub told: bool,
    pub heard: bool,
    /// The questions that were answered.
    pub answered: BTreeSet<String>,
    pub story: Story,
}

fn with(mut line: Value, key: &str, value: Value) -> Value {
    line[key] = value;
    line
}

/// Plays the story in a wire; without an end it ends well.
pub fn play(wire: Wire, end: Option<(&Point, Ending)>) -> Played {
    let held = match end {
        Some((Point::Held(place), _)) => Some(place.as_str()),
        _ => None,
    };
    let mark = mark();
    let story = Story::new(|mock| wire.worker(mock).env("CONFORM_MARK", &mark), held);
    let mut run = story.program.start();
    let handle = run.handle();
    let over = AtomicBool::new(false);
    let act = || {
        if let Some((_, ending)) = end
            && !over.swap(true, Ordering::SeqCst)
        {
            ending.done_to(&handle);
        }
    };
    let (mut count, mut questions, mut ends, mut answers) = (0, 0, 0, 0);
    let (mut told, mut heard, mut answered) = (false, false, BTreeSet::new());
    thread::scope(|scope| {
        if let Some(place) = held {
            let (story, act) = (&story, &act);
            scope.spawn(move || {
                story.reached(place);
                act();
                story.release(place);
            });
        }
        let hook = |event: &str| (event.to_owned(), json!([{"hookCallbackIds": ["h"]}]));
        let hooks: Map<String, Value> = HOOKS.into_iter().map(hook).collect();
        let initialize = json!({"type": "control_request", "request_id": "init", "subtype": "initialize"});
        run.write_line(with(initialize, "hooks", hooks.into()));
        while let Some(line) = run.line() {
            let line: Value = serde_json::from_str(&line).unwrap();
            count += 1;
            if matches!(end, Some((Point::Line(at), _)) if *at == count) {
                act();
            }
            let acted = over.load(Ordering::SeqCst);
            match line["type"].as_str() {
                Some("control_response") if !acted => {
                    told = true;
                    for prompt in ["p1", "p2"] {
                        run.write_line(wire.prompt(prompt));
                    }
                    run.write_line(json!({"type": "heartbeat_request"}));
                    run.write_line(json!({"type": "command_hint_request", "trigger": "slash", "text": "/c"}));
                }
                Some("result/heartbeat" | "result/command_hint") => {
                    answers += 1;
                    if answers == 2 {
                        heard = !acted;
                        story.release(BEGIN);
                    }
                }
                Some("control_request") => {
                    questions += 1;
                    if matches!(end, Some((Point::Unanswered(at), _)) if *at == questions) {
                        act();
                    } else {
                        run.write_line(json!({"type": "heartbeat_request"}));
                        run.write_line(wire.answer(&line));
                        if !acted || !end.is_some_and(|(_, ending)| ending.closes_input()) {
                            answered.insert(line["request_id"].to_string());
                        }
                    }
                }
                _ => {}
            }
            if wire.ends_turn(&line) {
                ends += 1;
                if ends == 2 {
                    act();
                    if end.is_none() {
                        handle.close_stdin();
                    }
                }
            }
        }
    });
    let ended = run.wait();
    wait_marked_gone(&mark);
    let lines = ended.json_lines();
    Played { ended, lines, questions, told, heard, answered, story }
}
