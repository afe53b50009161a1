//! A host and its worker: lines in, lines out, and one place where all that a worker leaves behind is judged.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use mock_model::process::{self, Ended, Program, Run, Signal, wait_marked_gone};
use mock_model::{MockModel, Reply, Request};
use serde_json::{Value, json};

/// The two formats that spec 1 writes.
pub const FORMATS: [&str; 2] = ["stream-json", "stream-chunk-json"];

/// The binary in a clean place, or what `make test-hub` puts in its place.
pub fn qwen() -> Program {
    let other = std::env::var_os("QWEN_CONFORMANCE_BIN");
    process::qwen(other.unwrap_or_else(|| env!("CARGO_BIN_EXE_qwen").into()))
}

/// The word for a worker that speaks `claude`, where a test is about more than spec 1.
pub const CLAUDE: &str = "claude";

/// A worker that speaks `qwen` in this format, or `claude`.
pub fn worker(mock: &MockModel, format: &str) -> Program {
    if format == CLAUDE {
        let flags =
            ["--dialect", "claude", "--input-format", "stream-json", "--output-format", "stream-json"];
        return qwen().with_model(mock).args(flags).args([
            "--permission-prompt-tool",
            "stdio",
            "--model",
            "mock",
        ]);
    }
    let flags = ["--dialect", "qwen", "--input-format", "stream-json", "--model", "mock"];
    qwen().with_model(mock).args(flags).args(["--output-format", format])
}

/// A model that repeats the prompt.
pub fn echo() -> MockModel {
    let mock = MockModel::start();
    mock.answer_with(|request: &Request| Some(Reply::text(&format!("<{}>", request.last_user_text()))));
    mock
}

/// Runs `check` in both formats.
pub fn each_format(check: impl Fn(&'static str)) {
    for format in FORMATS {
        check(format);
    }
}

/// What was said so far, as a model is told it: without the instructions, which name a workspace that may be
/// called anything.
pub fn conversation(request: &Request) -> String {
    let messages = request.body["messages"].as_array().unwrap().iter();
    messages.filter(|message| message["role"] != "system").map(Value::to_string).collect()
}

/// A chat request for the session `s`.
pub fn chat(prompt_id: &str, text: &str) -> Value {
    let input = json!({"origin": "user", "parts": [{"type": "text", "text": text}]});
    json!({"session_id": "s", "prompt_id": prompt_id, "input": input})
}

/// A prompt in OpenAI's shape.
pub fn openai(text: &str) -> Value {
    json!({"model": "mock", "messages": [{"role": "user", "content": text}]})
}

/// A shell command as the arguments of a call.
pub fn shell(command: &str) -> String {
    json!({"command": command}).to_string()
}

/// Whether a line ends a turn, in either dialect.
pub fn ends_turn(line: &Value) -> bool {
    line["metadata"]["turn"].is_object() || line["type"] == "result"
}

/// Whether a line says that a line of input was bad, in either dialect.
pub fn is_error(line: &Value) -> bool {
    let claude = line["type"] == "system" && line["subtype"] == "input_error";
    claude || (line["metadata"]["error"].is_object() && line["metadata"].get("turn").is_none())
}

/// A host that drives a worker.
pub struct Host {
    pub run: Run,
    pub program: Program,
    pub hello: Value,
    mark: String,
    dialect: &'static str,
}

impl Host {
    /// Starts a worker and hears its greeting.
    #[track_caller]
    pub fn start(program: Program) -> Self {
        let mut host = Self::begin(program, "qwen");
        host.hello = host.run.json();
        assert_eq!(host.hello["choices"], json!([]), "the greeting comes first: {}", host.hello);
        host
    }

    /// Starts a worker of `format`; in `claude` there is no greeting, so it is asked for a sign of life.
    #[track_caller]
    pub fn start_in(program: Program, format: &str) -> Self {
        if format != CLAUDE {
            return Self::start(program);
        }
        let mut host = Self::begin(program, CLAUDE);
        host.send(json!({"type": "heartbeat_request"}));
        host.hello = host.run.json();
        host
    }

    #[track_caller]
    fn begin(program: Program, dialect: &'static str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!("conform-{}-{}-", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let program = program.env("CONFORM_MARK", &mark);
        let run = program.start();
        Self { run, program, hello: Value::Null, mark, dialect }
    }

    /// Starts a plain worker in this format.
    #[track_caller]
    pub fn with(mock: &MockModel, format: &str) -> Self {
        Self::start_in(worker(mock, format), format)
    }

    /// Says a line.
    pub fn send(&mut self, line: impl std::fmt::Display) {
        self.run.write_line(line);
    }

    /// Reads on to the first line that `is` is true for.
    #[track_caller]
    pub fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        self.run.json_until(is).pop().unwrap()
    }

    /// Reads on to the end of the turn.
    #[track_caller]
    pub fn turn(&mut self) -> Vec<Value> {
        self.run.json_until(ends_turn)
    }

    /// Says something and reads on to the end of its turn.
    #[track_caller]
    pub fn say(&mut self, text: &str) -> Vec<Value> {
        self.send(openai(text));
        self.turn()
    }

    /// Asks on the control channel, in the flat form, and reads on to the answer.
    #[track_caller]
    pub fn ask(&mut self, subtype: &str, fields: Value) -> Value {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let id = format!("ask-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut request = json!({"type": "control_request", "request_id": id, "subtype": subtype});
        let Value::Object(fields) = fields else { panic!("{fields} is no object") };
        for (name, value) in fields {
            request[name] = value;
        }
        self.send(request);
        self.until(|line| line["type"] == "control_response" && line["request_id"] == *id)["response"].clone()
    }

    /// Reads on to the worker's next question.
    #[track_caller]
    pub fn question(&mut self) -> Value {
        self.until(|line| line["type"] == "control_request")
    }

    /// Answers a question of the worker.
    pub fn answer(&mut self, question: &Value, result: Value) {
        let mut response = json!({"subtype": "success"});
        response["result"] = result;
        let id = question["request_id"].clone();
        self.send(json!({"type": "control_response", "request_id": id, "response": response}));
    }

    /// Checks that the worker is there: it answers a heartbeat, and a turn.
    #[track_caller]
    pub fn is_well(&mut self) {
        self.send(json!({"type": "heartbeat_request"}));
        self.until(|line| line["type"] == "result/heartbeat");
        let lines = self.say("still there?");
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "done", "{lines:#?}");
    }

    /// Ends input; the worker must end well.
    #[track_caller]
    pub fn leave(mut self) -> Vec<Value> {
        self.run.close_stdin();
        self.ended(0)
    }

    /// Sends a signal; the worker must end with this code.
    #[track_caller]
    pub fn signalled(self, signal: Signal, code: i32) -> Vec<Value> {
        self.run.signal(signal);
        self.ended(code)
    }

    /// Waits for the end and judges all that is left: the exit code, the stream, the logs, the children.
    #[track_caller]
    pub fn ended(self, code: i32) -> Vec<Value> {
        let Self { run, program, mark, dialect, .. } = self;
        let ended = run.wait();
        assert_eq!(ended.code, Some(code), "{}", tail(&ended));
        let for_people = ended.stderr.lines().all(|line| line.starts_with("qwen: "));
        assert!(for_people, "what is on standard error is no warning: {}", ended.stderr);
        if !ended.stdout.is_empty() {
            passes_check_in(dialect, &ended.stdout);
        }
        wait_marked_gone(&mark);
        logs_parse(&program);
        ended.json_lines()
    }
}

/// The end of what a worker wrote, for the message of a failure.
fn tail(ended: &Ended) -> String {
    let lines: Vec<&str> = ended.stdout.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n").chars().take(6000).collect()
}

/// A worker that waits for the answer to a hook of its host.
pub fn in_host_hook(format: &str) -> (MockModel, Host) {
    let mock = echo();
    let mut host = Host::with(&mock, format);
    host.ask("initialize", json!({"hooks": {"UserPromptSubmit": [{"hookCallbackIds": ["h"]}]}}));
    host.send(chat("p1", "go"));
    host.question();
    (mock, host)
}

/// Fails unless `qwen check` finds nothing wrong with a stream of `qwen`.
#[track_caller]
pub fn passes_check(stdout: &str) {
    passes_check_in("qwen", stdout);
}

#[track_caller]
pub fn passes_check_in(dialect: &str, stdout: &str) {
    let checked = qwen().args(["check", "--dialect", dialect]).stdin(stdout).run();
    let shown: String = stdout.chars().take(8000).collect();
    assert_eq!(checked.code, Some(0), "qwen check: {}\n{shown}", checked.stdout);
}

/// Fails unless every session that the program kept can be read and told again.
#[track_caller]
pub fn logs_parse(program: &Program) {
    let Ok(entries) = fs::read_dir(program.qwen_home_path().join("sessions")) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        }
        let id = path.file_stem().unwrap().to_str().unwrap();
        let export = qwen().env("QWEN_HOME", program.qwen_home_path()).args(["sessions", "export", id]).run();
        assert_eq!(export.code, Some(0), "{id}: {}", export.stderr);
    }
}
