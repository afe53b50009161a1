//! `qwen serve` beside a worker on standard input and output: start, first byte, events, readers, memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mock_model::monotonic_ns;
use rustix::process::Pid;
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

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const START_MS: f64 = 15.0;
const FIRST_BYTE_MS: f64 = 1.0;
const EVENT_US: f64 = 150.0;
const CHUNK_CPU_US: f64 = 3.0;
const READERS: usize = 200;
const IDLE_READERS: usize = 1000;
const IDLE_READERS_MB: f64 = 20.0;
const IDLE_MB: f64 = 8.0;
const STOPPED_MB: f64 = 1.0;
const REPLAY_MS: f64 = 50.0;
/// Events that are replayed.
const EVENTS: usize = 10_000;
const REST: Duration = Duration::from_secs(2);
/// A second of a session that writes 1,000 chunks a second.
const CROWD_CHUNKS: usize = 1000;
/// A connection without bytes for this long hangs.
const TIME_LIMIT: Duration = Duration::from_secs(60);

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mut rows = starts(bench)?;
    rows.extend(first_bytes(bench)?);
    rows.extend(events(bench)?);
    rows.push(crowd(bench)?);
    rows.push(replay(bench)?);
    rows.push(stopped_reader(bench)?);
    Ok(rows)
}

/// A server that runs until it is dropped.
struct Server {
    process: Child,
    port: u16,
}

impl Measured for Server {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn failed(what: &str) -> impl FnOnce(std::io::Error) -> String {
    let what = what.to_owned();
    move |error| format!("{what}: {error}")
}

impl Server {
    /// Starts a server and waits until it listens. Returns it and how long that took in milliseconds.
    fn start(bench: &Bench, mock: &Mock, home: &IsolatedHome) -> Result<(Self, f64), String> {
        let mut command = Command::new(bench.subject.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "--", "--model", "m"]);
        home.isolate(&mut command, mock);
        command.env("QWEN_SERVER_TOKEN", TOKEN).stdin(Stdio::null()).stdout(Stdio::null());
        let started = monotonic_ns();
        let mut process = command.stderr(Stdio::piped()).spawn().map_err(failed("cannot start a server"))?;
        let mut line = String::new();
        if let Some(stderr) = process.stderr.take() {
            BufReader::new(stderr).read_line(&mut line).map_err(failed("cannot read from a server"))?;
        }
        let took = milliseconds(started, monotonic_ns());
        let port = line
            .split("127.0.0.1:")
            .nth(1)
            .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
        let mut server = Self { process, port: 0 };
        server.port = port.ok_or_else(|| format!("a server reported no address: {line}"))?;
        Ok((server, took))
    }

    /// Sends a request. Returns the connection after the head of the answer.
    fn send(&self, head: &str, body: &str) -> Result<BufReader<TcpStream>, String> {
        let mut stream =
            TcpStream::connect(("127.0.0.1", self.port)).map_err(failed("cannot connect to a server"))?;
        stream.set_read_timeout(Some(TIME_LIMIT)).map_err(failed("a connection"))?;
        let length = body.len();
        let port = self.port;
        let text = format!(
            "{head} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
        );
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).map_err(failed("a request"))?;
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).map_err(failed("an answer"))?;
        if !status.starts_with("HTTP/1.1 2") {
            return Err(format!("{head} was answered by {status}"));
        }
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).map_err(failed("an answer"))?;
        }
        Ok(reader)
    }

    /// Sends a request whose answer is a short JSON document.
    fn ask(&self, head: &str, body: &Value) -> Result<Value, String> {
        let mut answer = vec![0; 4096];
        let count = self.send(head, &body.to_string())?.read(&mut answer).map_err(failed("an answer"))?;
        serde_json::from_slice(&answer[..count]).map_err(|error| format!("{head}: {error}"))
    }

    fn session(&self) -> Result<String, String> {
        let created = self.ask("POST /api/sessions", &json!({}))?;
        created["id"].as_str().map(str::to_owned).ok_or("a session without an id".to_owned())
    }

    fn prompt(&self, session: &str) -> Result<(), String> {
        self.ask(&format!("POST /api/sessions/{session}/prompts"), &json!({"prompt": "hi"})).map(drop)
    }

    fn follow(&self, session: &str, after: Option<u64>) -> Result<Reader, String> {
        let after = after.map(|after| format!("?after={after}")).unwrap_or_default();
        let reader = self.send(&format!("GET /api/sessions/{session}/events{after}"), "")?;
        Ok(Reader { reader })
    }
}

/// A reader of events.
struct Reader {
    reader: BufReader<TcpStream>,
}

impl Reader {
    /// Reads lines up to one that satisfies `wanted`. Returns it and its arrival time.
    fn read_until(&mut self, mut wanted: impl FnMut(&[u8], u64) -> bool) -> Result<u64, String> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = self.reader.read_until(b'\n', &mut line).map_err(failed("an event stream"))?;
            let now = monotonic_ns();
            if count == 0 {
                return Err("an event stream ended".to_owned());
            }
            if wanted(&line, now) {
                return Ok(now);
            }
        }
    }

    /// Reads up to the end of a turn.
    fn end(&mut self) -> Result<u64, String> {
        self.read_until(|line, _| contains(line, b"\"turn\":{\"status\":"))
    }
}

/// From the start to the line with the address, and what a server without requests costs.
fn starts(bench: &Bench) -> Result<Vec<Row>, String> {
    let (mock, home) = (one_chunk()?, IsolatedHome::fresh()?);
    let mut took = Vec::new();
    for _ in 0..bench.options.runs {
        took.push(Server::start(bench, &mock, &home)?.1);
    }
    let (server, _) = Server::start(bench, &mock, &home)?;
    std::thread::sleep(REST);
    let memory = server.memory()?.pss_mb;
    let (cpu, wakeups) = (server.cpu_ns()?, process::wakeups(server.pid())?);
    std::thread::sleep(REST);
    #[expect(clippy::cast_precision_loss, reason = "small numbers, or the target is missed by far")]
    let (cpu, wakeups) =
        ((server.cpu_ns()? - cpu) as f64 / 1e3, (process::wakeups(server.pid())? - wakeups) as f64);
    let seconds = REST.as_secs();
    let session = server.session()?;
    let before = server.memory()?.pss_mb;
    let count = bench.options.count(IDLE_READERS, 20);
    let readers = (0..count).map(|_| server.follow(&session, None)).collect::<Result<Vec<_>, _>>()?;
    let with_readers = server.memory()?.pss_mb - before;
    drop(readers);
    Ok(vec![
        Row::at_most("serve: start to listening", median(took), "ms", START_MS),
        Row::at_most("serve idle: memory (PSS)", memory, "MB", IDLE_MB),
        Row::at_most(format!("serve idle: processor time in {seconds} s"), cpu, "µs", 0.0),
        Row::at_most(format!("serve idle: wake-ups in {seconds} s"), wakeups, "", 0.0),
        Row::at_most(format!("serve: memory of {count} idle readers"), with_readers, "MB", IDLE_READERS_MB),
    ])
}

/// From a prompt to the first piece of its answer, beside a worker without a server.
fn first_bytes(bench: &Bench) -> Result<Vec<Row>, String> {
    let (mock, home) = (one_chunk()?, IsolatedHome::fresh()?);
    let (server, _) = Server::start(bench, &mock, &home)?;
    let session = server.session()?;
    let mut command = bench.subject.worker(&mock, &home);
    command.args(["--output-format", "stream-chunk-json"]);
    let mut worker = Worker::start(command)?;
    let is_text = |line: &[u8]| contains(line, b"\"delta\":{\"content\":");
    let (mut served, mut direct) = (Vec::new(), Vec::new());
    let mut reader = server.follow(&session, None)?;
    for _ in 0..bench.options.runs {
        let sent = monotonic_ns();
        server.prompt(&session)?;
        served.push(milliseconds(sent, reader.read_until(|line, _| is_text(line))?));
        reader.end()?;
        let sent = monotonic_ns();
        worker.ask("hi")?;
        direct.push(milliseconds(sent, worker.read_until("a chunk", is_text)?.1));
        worker.turn_end()?;
    }
    let (served, direct) = (median(served), median(direct));
    Ok(vec![
        Row::without_target("serve: prompt to the first byte of the answer", served, "ms"),
        Row::without_target("— of one worker directly", direct, "ms"),
        Row::at_most("serve: prompt to first byte, above a worker", served - direct, "ms", FIRST_BYTE_MS),
    ])
}

/// From the model's write to the event, and the server's processor time of a chunk.
fn events(bench: &Bench) -> Result<Vec<Row>, String> {
    let chunks = bench.options.count(2000, 100);
    let mock = Mock::start(&[
        "--chunks",
        &chunks.to_string(),
        "--stamp",
        "--delay-us",
        "1000",
        "--write-size",
        "one",
    ])?;
    let home = IsolatedHome::fresh()?;
    let (server, _) = Server::start(bench, &mock, &home)?;
    let session = server.session()?;
    let mut reader = server.follow(&session, None)?;
    server.prompt(&session)?;
    let mut served = Vec::new();
    reader.read_until(|line, now| {
        #[expect(clippy::cast_precision_loss, reason = "microseconds of a few digits")]
        served.extend(stamps(line).map(|stamp| now.saturating_sub(stamp) as f64 / 1e3));
        contains(line, b"\"turn\":{\"status\":")
    })?;
    let mut command = bench.subject.worker(&mock, &home);
    command.args(["--output-format", "stream-chunk-json"]);
    let mut worker = Worker::start(command)?;
    worker.ask("hi")?;
    let mut direct = Vec::new();
    loop {
        let (line, now) = worker.read_until("a line", |_| true)?;
        #[expect(clippy::cast_precision_loss, reason = "microseconds of a few digits")]
        direct.extend(stamps(&line).map(|stamp| now.saturating_sub(stamp) as f64 / 1e3));
        if contains(&line, b"\"turn\":{\"status\":") {
            break;
        }
    }
    let (served, direct) = (percentile(&mut served, 0.5), percentile(&mut direct, 0.5));
    Ok(vec![
        Row::without_target("serve: model's chunk to event, p50", served, "µs"),
        Row::at_most("serve: chunk to event above a worker's line, p50", served - direct, "µs", EVENT_US),
    ])
}

/// Processor time of a chunk and reader, with many readers of one session.
fn crowd(bench: &Bench) -> Result<Row, String> {
    let chunks = bench.options.count(CROWD_CHUNKS, 50);
    let readers = bench.options.count(READERS, 4);
    let mock = Mock::start(&[
        "--chunks",
        &chunks.to_string(),
        "--chunk-text",
        CHUNK_TEXT,
        "--delay-us",
        "1000",
        "--write-size",
        "one",
    ])?;
    let home = IsolatedHome::fresh()?;
    let (server, _) = Server::start(bench, &mock, &home)?;
    let session = server.session()?;
    let mut following = Vec::new();
    for _ in 0..readers {
        let mut reader = server.follow(&session, None)?;
        following.push(std::thread::spawn(move || reader.end().map(drop)));
    }
    let before = server.cpu_ns()?;
    server.prompt(&session)?;
    for reader in following {
        reader.join().map_err(|_| "a reader failed".to_owned())??;
    }
    #[expect(clippy::cast_precision_loss, reason = "times and counts are small")]
    let each = (server.cpu_ns()? - before) as f64 / 1e3 / (chunks * readers) as f64;
    Ok(Row::at_most(
        format!("serve: processor time of a chunk and reader, {readers} readers"),
        each,
        "µs",
        CHUNK_CPU_US,
    ))
}

/// A reader that asks for a long history.
fn replay(bench: &Bench) -> Result<Row, String> {
    let events = bench.options.count(EVENTS, 100);
    let mock =
        Mock::start(&["--chunks", &events.to_string(), "--chunk-text", CHUNK_TEXT, "--write-size", "many"])?;
    let home = IsolatedHome::fresh()?;
    let (server, _) = Server::start(bench, &mock, &home)?;
    let session = server.session()?;
    let mut reader = server.follow(&session, Some(0))?;
    server.prompt(&session)?;
    reader.end()?;
    let mut took = Vec::new();
    for _ in 0..bench.options.count(10, 2) {
        let sent = monotonic_ns();
        let came = server.follow(&session, Some(0))?.end()?;
        took.push(milliseconds(sent, came));
    }
    Ok(Row::at_most(format!("serve: replay of {events} events"), median(took), "ms", REPLAY_MS))
}

/// What a reader that stops reading costs the server.
fn stopped_reader(bench: &Bench) -> Result<Row, String> {
    let chunks = (bench.options.chunks * 10).to_string();
    let mock = Mock::start(&["--chunks", &chunks, "--chunk-text", CHUNK_TEXT, "--write-size", "many"])?;
    let home = IsolatedHome::fresh()?;
    let (server, _) = Server::start(bench, &mock, &home)?;
    let session = server.session()?;
    let turn = |server: &Server| -> Result<f64, String> {
        let mut reader = server.follow(&session, None)?;
        server.prompt(&session)?;
        reader.end()?;
        Ok(server.memory()?.pss_mb)
    };
    // The first turn fills what is kept for every reader.
    turn(&server)?;
    let before = turn(&server)?;
    let stopped = server.follow(&session, None)?;
    let after = turn(&server)?;
    drop(stopped);
    Ok(Row::at_most("serve: memory of a reader that stopped", after - before, "MB", STOPPED_MB))
}
