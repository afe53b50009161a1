//! `qwen --acp`: from the start of an editor's agent to its answers, and what a session costs.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use mock_model::monotonic_ns;
use serde_json::{Value, json};

use super::{milliseconds, one_chunk};
use crate::Bench;
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, contains, stamps};
use crate::process::{self, Measured};
use crate::stats::{median, percentile};
use crate::subject::IsolatedHome;
use crate::table::Row;
use crate::worker::Worker;

const INITIALIZE_MS: f64 = 10.0;
const NEW_MS: f64 = 5.0;
const NEW_WITH_SERVERS_MS: f64 = 10.0;
const FIRST_UPDATE_MS: f64 = 2.0;
const CHUNK_US: f64 = 1.5;
const PERMISSION_MS: f64 = 1.0;
const CANCEL_MS: f64 = 50.0;
const LOAD_MS: f64 = 150.0;
const SESSION_MB: f64 = 2.0;
/// Messages of the session that is loaded.
const MESSAGES: usize = 10_000;
const SESSIONS: usize = 10;
const REST: Duration = Duration::from_secs(2);

/// Other agents of the protocol from npm: the package, its program and the arguments.
const PEERS: [(&str, &str, &[&str]); 3] = [
    ("@qwen-code/qwen-code@0.24.4", "qwen", &["--acp"]),
    ("@agentclientprotocol/claude-agent-acp@0.100.0", "claude-agent-acp", &[]),
    ("@agentclientprotocol/codex-acp@2.6.0", "codex-acp", &[]),
];

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mut rows = starts(bench)?;
    rows.extend(peers(bench)?);
    rows.extend(first_updates(bench)?);
    rows.extend(relay(bench)?);
    rows.extend(questions(bench)?);
    rows.push(load(bench)?);
    rows.extend(idle(bench)?);
    Ok(rows)
}

/// A client of the protocol.
struct Editor {
    agent: Worker,
    cwd: String,
    next_id: u64,
}

impl Editor {
    fn start(bench: &Bench, mock: &Mock, home: &IsolatedHome) -> Result<Self, String> {
        let mut command = Command::new(bench.subject.path());
        command.args(["--acp", "--model", "m"]);
        home.isolate(&mut command, mock);
        Self::initialize(command, home)
    }

    /// Starts an agent and waits for its answer to `initialize`.
    fn initialize(command: Command, home: &IsolatedHome) -> Result<Self, String> {
        let cwd = home.work().display().to_string();
        let mut editor = Self { agent: Worker::spawn(command)?, cwd, next_id: 0 };
        editor.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
        Ok(editor)
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<(u64, u64), String> {
        self.next_id += 1;
        let id = self.next_id;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Ok((id, self.agent.send(&line)?))
    }

    /// Reads up to the response to a request. Returns it and its arrival time.
    fn response(&mut self, id: u64) -> Result<(Value, u64), String> {
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        let (line, came) = self.agent.read_until("a response", |line| line.starts_with(head.as_bytes()))?;
        let response: Value = serde_json::from_slice(&line).map_err(|error| error.to_string())?;
        match response.get("error") {
            None => Ok((response["result"].clone(), came)),
            Some(error) => Err(format!("a request failed: {error}")),
        }
    }

    /// Sends a request. Returns its result and how long it took in milliseconds.
    fn request(&mut self, method: &str, params: &Value) -> Result<(Value, f64), String> {
        let (id, sent) = self.send(method, params)?;
        let (result, came) = self.response(id)?;
        Ok((result, milliseconds(sent, came)))
    }

    fn open(&mut self, servers: &Value) -> Result<(String, f64), String> {
        let params = json!({"cwd": self.cwd, "mcpServers": servers});
        let (result, took) = self.request("session/new", &params)?;
        let id = result["sessionId"].as_str().ok_or("a session without an id")?;
        Ok((id.to_owned(), took))
    }

    fn prompt(&mut self, session: &str) -> Result<u64, String> {
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]});
        Ok(self.send("session/prompt", &prompt)?.0)
    }

    fn turn(&mut self, session: &str) -> Result<(), String> {
        let id = self.prompt(session)?;
        let (result, _) = self.response(id)?;
        if result["stopReason"] == "end_turn" { Ok(()) } else { Err(format!("a turn went wrong: {result}")) }
    }
}

/// From the start to the answer to `initialize`, and new sessions.
fn starts(bench: &Bench) -> Result<Vec<Row>, String> {
    let (mock, home) = (one_chunk()?, IsolatedHome::fresh()?);
    let (mut initialized, mut opened, mut with_servers) = (Vec::new(), Vec::new(), Vec::new());
    let server = |n: usize| json!({"name": format!("s{n}"), "command": "sleep", "args": ["1"], "env": []});
    let servers: Vec<Value> = (0..3).map(server).collect();
    for _ in 0..bench.options.runs {
        let started = monotonic_ns();
        let mut editor = Editor::start(bench, &mock, &home)?;
        initialized.push(milliseconds(started, monotonic_ns()));
        opened.push(editor.open(&json!([]))?.1);
        with_servers.push(editor.open(&json!(servers))?.1);
    }
    Ok(vec![
        Row::at_most("acp: session/new", median(opened), "ms", NEW_MS),
        Row::at_most(
            "— with three MCP servers that take a second",
            median(with_servers),
            "ms",
            NEW_WITH_SERVERS_MS,
        ),
        Row::at_most("acp: start to the answer to initialize", median(initialized), "ms", INITIALIZE_MS),
    ])
}

/// The start of other agents.
fn peers(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = one_chunk()?;
    let start = |package: &str, program: &str, args: &[&str]| -> Result<f64, String> {
        let program = super::peers::install(package, program)?;
        let mut took = Vec::new();
        for _ in 0..bench.options.count(5, 2) {
            let home = IsolatedHome::fresh()?;
            let mut command = Command::new(&program);
            command.args(args);
            home.isolate(&mut command, &mock);
            let started = monotonic_ns();
            Editor::initialize(command, &home)?;
            took.push(milliseconds(started, monotonic_ns()));
        }
        Ok(median(took))
    };
    let row = |&(package, program, args): &(&str, &str, &[&str])| {
        let title = format!("— of {package}");
        match start(package, program, args) {
            Ok(took) => Row::without_target(title, took, "ms"),
            Err(reason) => Row::note(title, format!("skipped: {reason}")),
        }
    };
    Ok(PEERS.iter().map(row).collect())
}

/// From the model's first byte to the first update, and the same for a worker without a front.
fn first_updates(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--stamp"])?;
    let home = IsolatedHome::fresh()?;
    let mut editor = Editor::start(bench, &mock, &home)?;
    let (session, _) = editor.open(&json!([]))?;
    let mut command = bench.subject.worker(&mock, &home);
    command.args(["--output-format", "stream-chunk-json"]);
    let mut worker = Worker::start(command)?;
    let (mut updates, mut lines) = (Vec::new(), Vec::new());
    for _ in 0..bench.options.runs {
        let id = editor.prompt(&session)?;
        let (line, came) =
            editor.agent.read_until("an update", |line| contains(line, b"agent_message_chunk"))?;
        updates.extend(stamps(&line).map(|stamp| milliseconds(stamp, came)));
        editor.response(id)?;
        worker.ask("hi")?;
        let (line, came) = worker.read_until("a chunk", |line| stamps(line).next().is_some())?;
        lines.extend(stamps(&line).map(|stamp| milliseconds(stamp, came)));
        worker.turn_end()?;
    }
    Ok(vec![
        Row::at_most("acp: model's first byte to the first update", median(updates), "ms", FIRST_UPDATE_MS),
        Row::without_target("— of one worker directly, in the qwen dialect", median(lines), "ms"),
    ])
}

/// Processor time of a chunk, in microseconds: in the worker above the `qwen` dialect, and in the role.
fn relay(bench: &Bench) -> Result<Vec<Row>, String> {
    let chunks = bench.options.chunks;
    let mock =
        Mock::start(&["--chunks", &chunks.to_string(), "--chunk-text", CHUNK_TEXT, "--write-size", "many"])?;
    let home = IsolatedHome::fresh()?;
    #[expect(clippy::cast_precision_loss, reason = "times and counts are small")]
    let each = |ns: u64| ns as f64 / 1e3 / chunks as f64;
    let mut editor = Editor::start(bench, &mock, &home)?;
    let (session, _) = editor.open(&json!([]))?;
    let before = editor.agent.cpu_ns()?;
    editor.turn(&session)?;
    let relayed = each(editor.agent.cpu_ns()? - before);
    let worker = |dialect: &str, format: &str, end: &'static [u8]| {
        let mut command = Command::new(bench.subject.path());
        command.args(["--model", "m", "--input-format", "stream-json"]);
        command.args(["--dialect", dialect, "--output-format", format]);
        home.isolate(&mut command, &mock);
        let mut worker = Worker::spawn(command)?;
        let before = worker.cpu_ns()?;
        worker.send(&json!({"session_id": dialect, "prompt_id": "p", "input": {"parts": [{"type": "text", "text": "hi"}]}}))?;
        worker.read_until("the end of a turn", |line| contains(line, end))?;
        Ok::<f64, String>(each(worker.cpu_ns()? - before))
    };
    let encoded = worker("acp", "stream-json", b"\"stopReason\"")?;
    let plain = worker("qwen", "stream-chunk-json", b"\"turn\":{\"status\":")?;
    Ok(vec![
        Row::at_most("acp: processor time of the front a chunk", relayed, "µs", CHUNK_US),
        Row::at_most(
            "acp: processor time of a worker a chunk, above the qwen dialect",
            encoded - plain,
            "µs",
            CHUNK_US,
        ),
    ])
}

/// From an answer to a permission request to the call's start, and from a cancellation to the prompt's answer.
fn questions(bench: &Bench) -> Result<Vec<Row>, String> {
    let sleep = json!({ "name": "run_shell_command", "arguments": { "command": "touch made; sleep 100" } });
    let mock = Mock::scripted(&[json!([{ "tool_call": sleep }])])?;
    let home = IsolatedHome::fresh()?;
    let mut editor = Editor::start(bench, &mock, &home)?;
    let (session, _) = editor.open(&json!([]))?;
    let (mut answered, mut cancelled) = (Vec::new(), Vec::new());
    for _ in 0..bench.options.runs {
        let prompt = editor.prompt(&session)?;
        let asks = |line: &[u8]| contains(line, b"session/request_permission");
        let (line, _) = editor.agent.read_until("a permission request", asks)?;
        let request: Value = serde_json::from_slice(&line).map_err(|error| error.to_string())?;
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        let sent = editor.agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome}))?;
        let (_, came) =
            editor.agent.read_until("a call", |line| contains(line, b"\"status\":\"in_progress\""))?;
        answered.push(milliseconds(sent, came));
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
        let sent = editor.agent.send(&cancel)?;
        cancelled.push(milliseconds(sent, editor.response(prompt)?.1));
    }
    Ok(vec![
        Row::at_most(
            "acp: permission answer to the call's start, p50",
            percentile(&mut answered, 0.5),
            "ms",
            PERMISSION_MS,
        ),
        Row::at_most(
            "acp: cancel to answer during a tool, p99",
            percentile(&mut cancelled, 0.99),
            "ms",
            CANCEL_MS,
        ),
    ])
}

/// Loading a long session. Its log is one turn that is repeated with other ids.
fn load(bench: &Bench) -> Result<Row, String> {
    let (mock, home) = (one_chunk()?, IsolatedHome::fresh()?);
    let mut editor = Editor::start(bench, &mock, &home)?;
    let (session, _) = editor.open(&json!([]))?;
    editor.turn(&session)?;
    editor.request("session/close", &json!({"sessionId": session}))?;
    let path = home.sessions().join(format!("{session}.jsonl"));
    let failed = |error: std::io::Error| format!("cannot write a session: {error}");
    let log = std::fs::read_to_string(&path).map_err(failed)?;
    let turn_at = log.find("{\"at\":").ok_or("a session without a turn")?;
    let (mut long, turn) = (log[..turn_at].to_owned(), &log[turn_at..]);
    let messages = bench.options.count(MESSAGES, 100);
    for n in 0..messages / 2 {
        let turn = turn.replace("\"turn\":1,", &format!("\"turn\":{},", n + 1));
        let _ = write!(
            long,
            "{}",
            turn.replace("\"msg-", &format!("\"msg-{n}-")).replace("\"prompt-", &format!("\"prompt-{n}-"))
        );
    }
    std::fs::write(&path, long).map_err(failed)?;
    let params = json!({"sessionId": session, "cwd": editor.cwd, "mcpServers": []});
    let mut took = Vec::new();
    for _ in 0..bench.options.count(5, 2) {
        let (id, sent) = editor.send("session/load", &params)?;
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        let seen = std::cell::Cell::new(0);
        let (_, came) = editor.agent.read_until("the answer to load", |line| {
            seen.set(seen.get() + usize::from(contains(line, b"_message_chunk")));
            line.starts_with(head.as_bytes())
        })?;
        if seen.get() < messages / 2 * 2 {
            return Ok(Row::failed(
                "acp: load of a long session",
                &format!("{} messages were replayed", seen.get()),
            ));
        }
        took.push(milliseconds(sent, came));
        editor.request("session/close", &json!({"sessionId": session}))?;
    }
    Ok(Row::at_most(format!("acp: load of {messages} messages"), median(took), "ms", LOAD_MS))
}

/// Memory of a further idle session with its worker, and that nothing happens without requests.
fn idle(bench: &Bench) -> Result<Vec<Row>, String> {
    let (mock, home) = (one_chunk()?, IsolatedHome::fresh()?);
    let mut editor = Editor::start(bench, &mock, &home)?;
    let session = editor.open(&json!([]))?.0;
    editor.turn(&session)?;
    std::thread::sleep(REST);
    let one = total_mb(&editor)?;
    for _ in 0..SESSIONS {
        let session = editor.open(&json!([]))?.0;
        editor.turn(&session)?;
    }
    std::thread::sleep(REST);
    #[expect(clippy::cast_precision_loss, reason = "ten")]
    let each = (total_mb(&editor)? - one) / SESSIONS as f64;
    let (cpu, wakeups) = (editor.agent.cpu_ns()?, process::wakeups(editor.agent.pid())?);
    std::thread::sleep(REST);
    #[expect(clippy::cast_precision_loss, reason = "small numbers, or the target is missed by far")]
    let (cpu, wakeups) = (
        (editor.agent.cpu_ns()? - cpu) as f64 / 1e3,
        (process::wakeups(editor.agent.pid())? - wakeups) as f64,
    );
    let seconds = REST.as_secs();
    Ok(vec![
        Row::at_most("acp: memory of a further idle session (PSS)", each, "MB", SESSION_MB),
        Row::at_most(format!("acp idle: processor time in {seconds} s"), cpu, "µs", 0.0),
        Row::at_most(format!("acp idle: wake-ups in {seconds} s"), wakeups, "", 0.0),
    ])
}

/// The memory of the agent and of its workers.
fn total_mb(editor: &Editor) -> Result<f64, String> {
    let own = editor.agent.memory()?.pss_mb;
    let workers = process::children(editor.agent.pid())?;
    workers.into_iter().try_fold(own, |sum, pid| Ok(sum + process::memory(pid)?.pss_mb))
}
