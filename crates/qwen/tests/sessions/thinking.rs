//! A model that answers what trees and graphs of thoughts ask, as a function of the question.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mock_model::process::Program;
use mock_model::{MockModel, Reply, Request, gate};
use serde_json::Value;

use super::harness::{done, qwen, sessions};

/// Adds a line to `runs.txt`: an effect that can be counted.
const COUNTED: &str = r#"{"command":"echo run >> runs.txt"}"#;

/// An agent and the flags that it runs with.
pub struct Agent {
    pub name: &'static str,
    pub flags: &'static [&'static str],
}

pub const TREE: Agent = Agent {
    name: "tot",
    flags: &[
        "--agent",
        "tot",
        "--tot-proposals",
        "2",
        "--tot-breadth",
        "2",
        "--tot-depth",
        "2",
        "--tot-samples",
        "1",
    ],
};
pub const DEPTH_FIRST: Agent = Agent {
    name: "tot, depth first",
    flags: &[
        "--agent",
        "tot",
        "--tot-search",
        "dfs",
        "--tot-proposals",
        "2",
        "--tot-depth",
        "2",
        "--tot-samples",
        "1",
    ],
};
pub const GRAPH: Agent = Agent { name: "got", flags: &["--agent", "got"] };

/// The server: it answers each question the same way whenever it is asked, and holds the request of a number.
pub struct Server {
    pub mock: MockModel,
    held: Arc<AtomicUsize>,
    held_text: Arc<Mutex<Option<&'static str>>>,
}

impl Server {
    pub fn start() -> Self {
        let mock = MockModel::start();
        let held = Arc::new(AtomicUsize::new(usize::MAX));
        let held_text: Arc<Mutex<Option<&str>>> = Arc::default();
        let (number, hold, hold_text) = (AtomicUsize::new(0), held.clone(), held_text.clone());
        mock.answer_with(move |request: &Request| {
            let number = number.fetch_add(1, Ordering::SeqCst);
            let instruction = section(&request.last_user_text(), "Instruction");
            let holds =
                number == hold.load(Ordering::SeqCst) || *hold_text.lock().unwrap() == Some(&instruction);
            Some(if holds { Reply::new([gate("held")]) } else { reply(request) })
        });
        Self { mock, held, held_text }
    }

    /// Holds the request of this number, counted from 0.
    pub fn hold(&self, number: usize) {
        self.held.store(number, Ordering::SeqCst);
    }

    /// Holds whatever has this instruction.
    pub fn hold_text(&self, instruction: &'static str) {
        *self.held_text.lock().unwrap() = Some(instruction);
    }

    pub fn asked(&self) -> usize {
        self.mock.requests().len()
    }
}

/// A section of a prompt.
pub fn section(prompt: &str, name: &str) -> String {
    let text = prompt.split(&format!("\n## {name}\n")).nth(1).unwrap_or_default();
    text.split("\n\n## ").next().unwrap_or_default().trim().to_owned()
}

/// The answer to a question. The first one of a run uses a tool before it answers.
fn reply(request: &Request) -> Reply {
    let prompt = request.last_user_text();
    let used_a_tool = request.messages().iter().any(|message| message["role"] == "tool");
    let is = |title: &str| prompt.starts_with(title);
    let section = |name: &str| section(&prompt, name);
    if is("Propose next steps.") {
        let path = section("Steps so far");
        if path == "none" && !used_a_tool {
            return Reply::call("call_1", "run_shell_command", COUNTED);
        }
        let name = path.lines().last().and_then(|line| line.split(". ").nth(1)).unwrap_or("s").to_owned();
        return Reply::text(&format!("{name}1\n{name}2"));
    }
    if is("Value the candidates.") {
        // The better-looking branch leads nowhere, so that depth first has to come back.
        let dead_end = section("Steps so far").contains("s1");
        return Reply::text(if dead_end { "1: 1\n2: 0" } else { "1: 9\n2: 8" });
    }
    if is("Plan a graph of thoughts.") {
        return Reply::text(
            r#"{"nodes":[{"id":"a","op":"generate","instruction":"part a"},{"id":"b","op":"generate","instruction":"part b","k":2},
                {"id":"s","op":"score","inputs":["b"]},{"id":"k","op":"keep_best","inputs":["s"]},
                {"id":"m","op":"aggregate","instruction":"merge","inputs":["a","k"]}]}"#,
        );
    }
    if is("Generate a thought.") {
        let instruction = section("Instruction");
        if instruction == "part a" && !used_a_tool {
            return Reply::call("call_1", "run_shell_command", COUNTED);
        }
        return Reply::text(&format!("{instruction} {}", section("Try")));
    }
    if is("Score the thoughts.") {
        return Reply::text("1: 4\n2: 9");
    }
    if is("Aggregate thoughts.") {
        return Reply::text("merged");
    }
    if is("Write the answer.") {
        let found = section("Solution found") + &section("Results");
        return Reply::text(&format!("The answer, out of {found}"));
    }
    Reply::text("?")
}

/// The binary with the agent, in a session called `s`.
pub fn program(server: &Server, agent: &Agent) -> Program {
    qwen(&server.mock).args(["--yolo"]).args(agent.flags)
}

/// What a session came to.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub reply: String,
    /// The thoughts, whatever the order in which they came.
    pub thoughts: Vec<String>,
    /// What the turn says that it asked the model.
    pub calls: u64,
    /// How often the tool ran.
    pub effects: usize,
}

impl Outcome {
    /// That of the session's last turn, as the log tells it.
    pub fn of(program: &Program, id: &str) -> Self {
        let export = |dialect: &str| sessions(program, &["export", id, "--dialect", dialect]).json_lines();
        let loom = export("loom");
        let last = loom.iter().rev().find(|line| line["type"] == "checkpoint").unwrap();
        let mut thoughts: Vec<String> =
            last["state"]["thoughts"].as_array().unwrap().iter().map(thought).collect();
        thoughts.sort();
        let qwen = export("qwen");
        let end = qwen.iter().rev().find(|line| line["metadata"]["turn"].is_object()).unwrap();
        assert_eq!(end["metadata"]["turn"]["status"], "done", "{end}");
        Self {
            reply: loom.last().unwrap()["reply"].as_str().unwrap().to_owned(),
            thoughts,
            calls: end["metadata"]["turn"]["model_calls"].as_u64().unwrap(),
            effects: effects(program.cwd_path()),
        }
    }

    /// That of a run that nobody disturbs.
    pub fn undisturbed(agent: &Agent) -> Self {
        let server = Server::start();
        let program = program(&server, agent);
        done(&program, &["-p", "Solve it", "--session-id", "s"]);
        let outcome = Self::of(&program, "s");
        assert_eq!(outcome.calls, server.asked() as u64, "{}", agent.name);
        outcome
    }
}

fn thought(thought: &Value) -> String {
    match thought["id"].as_str() {
        Some(id) => format!("{id} {} {}", thought["standing"], thought["results"]),
        None => {
            format!("{} {} {} {}", thought["depth"], thought["text"], thought["score"], thought["standing"])
        }
    }
}

fn effects(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("runs.txt")).unwrap_or_default().lines().count()
}
