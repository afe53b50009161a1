//! The binary in a dialect, the models behind it, and the one place where what it wrote is judged.

use std::path::PathBuf;

use mock_model::process::{self, Ended, Program, Run};
use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

/// The dialects that specs 2, 3 and 4 describe.
pub const DIALECTS: [&str; 5] = ["loom", "loom-export", "core", "claude-lite", "claude"];

/// The binary in a clean place.
pub fn qwen() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen"))
}

/// The binary with a model behind it, speaking `dialect` line by line.
pub fn speaking(mock: &MockModel, dialect: &str) -> Program {
    qwen().with_model(mock).args(["--model", "mock", "--dialect", dialect, "--output-format", "stream-json"])
}

/// The same with a prompt.
pub fn asked(mock: &MockModel, dialect: &str) -> Program {
    speaking(mock, dialect).args(["-p", "Hello"])
}

/// The same as a worker.
pub fn worker(mock: &MockModel, dialect: &str) -> Program {
    speaking(mock, dialect).args(["--input-format", "stream-json"])
}

/// A thinker on an oracle instead of a model.
pub fn thinker(dialect: &str, oracle: &str, flags: &[&str], prompt: &str) -> Program {
    let program = qwen().args(["--model", oracle, "--dialect", dialect, "--output-format", "stream-json"]);
    program.args(flags).args(["-p", prompt])
}

/// A search that finds the answer after going back.
pub fn searching(dialect: &str) -> Program {
    let flags = ["--agent", "tot", "--tot-search", "dfs", "--tot-proposals", "3"];
    thinker(dialect, "oracle:game24?q=0.3&p=0.7&seed=2", &flags, "4 9 10 13")
}

/// A graph whose thoughts become graphs.
pub fn nesting(dialect: &str) -> Program {
    let flags = ["--agent", "got", "--adaptive", "--got-depth", "2"];
    thinker(dialect, "oracle:capacity?cap=8", &flags, "Solve a task of size 24")
}

/// A tool call of the model.
pub fn call(id: &str, name: &str, arguments: &Value) -> mock_model::Step {
    ReplyEvent::call(id, name, &arguments.to_string()).step()
}

/// A shell command as a call.
pub fn shell(id: &str, command: &str) -> mock_model::Step {
    call(id, "run_shell_command", &json!({ "command": command }))
}

/// A model that reads, runs, fails in three ways and then answers.
pub fn toolmaker() -> MockModel {
    MockModel::with([
        Reply::new([
            ReplyEvent::Thought("**Looking** around".into()).step(),
            ReplyEvent::Text("Let me ".into()).step(),
            ReplyEvent::Text("look.".into()).step(),
            shell("ok", "echo out; echo err >&2"),
            call("fails", "read_file", &json!({ "file_path": "nothing.txt" })),
            ReplyEvent::call("broken", "read_file", "{broken").step(),
            call("unknown", "no_such_tool", &json!({})),
            ReplyEvent::Usage { input: 100, output: 20 }.step(),
        ]),
        Reply::new([
            ReplyEvent::Text("Done.".into()).step(),
            ReplyEvent::Usage { input: 200, output: 30 }.step(),
        ]),
    ])
}

/// The lines of a stream, judged as a whole stream of its dialect.
#[track_caller]
pub fn judged(dialect: &str, stdout: &str) -> Vec<Value> {
    assert!(stdout.ends_with('\n'), "a torn last line: {stdout}");
    let checked = qwen().args(["check", "--dialect", dialect]).stdin(stdout).run();
    let shown: String = stdout.chars().take(8000).collect();
    assert_eq!(checked.code, Some(0), "qwen check: {}\n{shown}", checked.stdout);
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs it to its end, which must have this code, and judges what it wrote.
#[track_caller]
pub fn told(program: &Program, dialect: &str, code: i32) -> Vec<Value> {
    let ended = program.run();
    assert_eq!(ended.code, Some(code), "{ended:?}");
    judged(dialect, &ended.stdout)
}

/// A host that drives a worker.
pub struct Host {
    pub run: Run,
    dialect: &'static str,
    cwd: PathBuf,
}

impl Host {
    /// Starts the worker.
    #[track_caller]
    pub fn of(program: &Program, dialect: &'static str) -> Self {
        Self { run: program.start(), dialect, cwd: program.cwd_path().to_owned() }
    }

    /// Where the worker works.
    pub fn file(&self, name: &str) -> PathBuf {
        self.cwd.join(name)
    }

    /// Asks something.
    pub fn ask(&mut self, text: &str) {
        self.run.write_line(json!({ "type": "user", "message": { "role": "user", "content": text } }));
    }

    /// Reads on to the end of the turn and answers all questions on the way alike.
    #[track_caller]
    pub fn turn(&mut self, behavior: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.run.json();
            if line["type"] == "control_request" {
                let id = line["request_id"].clone();
                let response =
                    json!({ "subtype": "success", "request_id": id, "result": { "behavior": behavior } });
                self.run.write_line(
                    json!({ "type": "control_response", "request_id": id, "response": response }),
                );
            }
            let last = ends_turn(self.dialect, &line);
            lines.push(line);
            if last {
                return lines;
            }
        }
    }

    /// Asks something and reads on to the end of its turn.
    #[track_caller]
    pub fn say(&mut self, text: &str) -> Vec<Value> {
        self.ask(text);
        self.turn("allow")
    }

    /// Ends input; the worker must end well, with a sound stream.
    #[track_caller]
    pub fn leave(mut self) -> Ended {
        self.run.close_stdin();
        let ended = self.run.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        judged(self.dialect, &ended.stdout);
        ended
    }
}

/// Whether a line is the terminal record of a turn, by DESIGN's table.
pub fn ends_turn(dialect: &str, line: &Value) -> bool {
    match dialect {
        "loom" | "loom-export" => line["reply"].is_string(),
        "core" => ["finished", "error", "user_cancelled"].iter().any(|kind| line["type"] == *kind),
        "claude-lite" => line["type"] == "message_stop",
        _ => line["type"] == "result",
    }
}

/// The lines of a type.
pub fn of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// The names of an object's fields, sorted.
#[track_caller]
pub fn fields(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// A model whose agent starts another one, `outer`, which calls a tool, `inner`.
pub fn with_a_sub_agent() -> MockModel {
    let mock = MockModel::start();
    mock.answer_with(|request: &mock_model::Request| {
        let results = request.messages().iter().any(|message| message["role"] == "tool");
        let task = json!({ "description": "d", "prompt": "SUBTASK", "subagent_type": "general-purpose" });
        Some(match (request.last_user_text().contains("SUBTASK"), results) {
            (true, false) => {
                Reply::new([ReplyEvent::call("inner", "list_directory", r#"{"path":"."}"#).step()])
            }
            (true, true) => Reply::text("from below"),
            (false, true) => Reply::text("from above"),
            (false, false) => Reply::new([call("outer", "agent", &task)]),
        })
    });
    mock
}
