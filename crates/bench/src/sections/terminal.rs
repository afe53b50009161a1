//! The interactive terminal, read at a pseudo-terminal that answers nothing.

use std::time::Duration;

use serde_json::json;

use crate::Bench;
use crate::mock::Mock;
use crate::output::CHUNK_TEXT;
use crate::process::Measured;
use crate::pty::Pty;
use crate::stats::{median, percentile};
use crate::subject::IsolatedHome;
use crate::table::{Row, grouped};
use crate::worker::Worker;

const FIRST_FRAME_MS: f64 = 10.0;
const KEY_MS: f64 = 10.0;
const FRESH_MB: f64 = 12.0;
const LONG_MB: f64 = 20.0;
const GROWTH_MB: f64 = 1.0;
const WAITING_BYTES: f64 = 100.0;
const WAITING_CPU: f64 = 0.1;
const STREAMING_CPU: f64 = 1.0;
const STREAMING_WRITES: f64 = 60.0;
const PASTE_MS: f64 = 100.0;
const PASTE_BYTES: usize = 5_000_000;
const HINT_MS: f64 = 30.0;

/// The sign of the composer: the first frame has it.
const COMPOSER: &str = "> ";
const SETTLING: Duration = Duration::from_millis(500);

#[expect(clippy::unnecessary_wraps, reason = "the signature of every section")]
pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let parts: [(&str, fn(&Bench) -> Result<Vec<Row>, String>); 8] = [
        ("start", start),
        ("keys", keys),
        ("long session", long_session),
        ("many chunks", many_chunks),
        ("waiting", waiting),
        ("streaming", streaming),
        ("paste", paste),
        ("completion", completion),
    ];
    let mut rows = Vec::new();
    for (name, part) in parts {
        let row = |error: String| vec![Row::failed(format!("terminal: {name}"), &error)];
        rows.extend(part(bench).unwrap_or_else(row));
    }
    Ok(rows)
}

fn small_mock() -> Result<Mock, String> {
    Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])
}

/// A session that shows its composer.
fn ready(bench: &Bench, mock: &Mock, home: &IsolatedHome, flags: &[&str]) -> Result<Pty, String> {
    let mut pty = Pty::start(bench.subject.terminal(mock, home, flags))?;
    pty.wait_for(COMPOSER)?;
    Ok(pty)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few digits")]
fn milliseconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}

fn start(bench: &Bench) -> Result<Vec<Row>, String> {
    let (mock, home) = (small_mock()?, IsolatedHome::fresh()?);
    let mut times = Vec::new();
    for _ in 0..bench.options.count(20, 2) {
        let mut pty = Pty::start(bench.subject.terminal(&mock, &home, &[]))?;
        times.push(milliseconds(pty.started_ns, pty.wait_for(COMPOSER)?));
    }
    let mut pty = ready(bench, &mock, &home, &[])?;
    pty.watch(SETTLING);
    let fresh = pty.memory()?.pss_mb;
    let cpu = pty.cpu_ns()?;
    let time = Duration::from_secs(3);
    let (bytes, _) = pty.watch(time);
    let cpu = percent(pty.cpu_ns()? - cpu, time);
    #[expect(clippy::cast_precision_loss, reason = "a few bytes")]
    Ok(vec![
        Row::at_most("terminal: start to first frame", median(times), "ms", FIRST_FRAME_MS),
        Row::at_most("terminal: memory, fresh (PSS)", fresh, "MB", FRESH_MB),
        Row::at_most("terminal: idle: bytes written in 3 s", bytes as f64, "", 0.0),
        Row::at_most("terminal: idle: processor time", cpu, "%", 0.0),
    ])
}

/// The share of one core, in percent.
#[expect(clippy::cast_precision_loss, reason = "a percentage needs three digits")]
fn percent(cpu_ns: u64, time: Duration) -> f64 {
    cpu_ns as f64 / time.as_nanos() as f64 * 100.0
}

/// The time from a key to its cell while much happens.
fn key_latencies(pty: &mut Pty, count: usize) -> Result<Vec<f64>, String> {
    let mut times = Vec::new();
    // A letter is shown only if it was just typed: the one before was deleted with the same write.
    for letter in ["Q", "X", "Z"].into_iter().cycle().take(count) {
        let typed = pty.type_keys(&format!("\u{15}{letter}"))?;
        times.push(milliseconds(typed, pty.wait_for(letter)?));
        pty.watch(Duration::from_millis(10));
    }
    Ok(times)
}

fn keys(bench: &Bench) -> Result<Vec<Row>, String> {
    let count = bench.options.count(200, 10);
    let home = IsolatedHome::fresh()?;
    let mock = Mock::start(&["--chunks", "200000", "--chunk-text", CHUNK_TEXT, "--delay-us", "500"])?;
    let mut pty = ready(bench, &mock, &home, &[])?;
    pty.type_keys("go\r")?;
    pty.wait_for("Answering")?;
    let mut streaming = key_latencies(&mut pty, count)?;
    drop(pty);
    let command = json!([{ "tool_call": {
        "name": "run_shell_command",
        "arguments": { "command": "yes 0123456789012345678901234567890123456789 | head -c 2000000000" },
    }}]);
    let mock = Mock::scripted(&[command, json!([{ "text": "done" }])])?;
    let mut pty = ready(bench, &mock, &home, &["--yolo"])?;
    pty.type_keys("go\r")?;
    pty.wait_for("0123456789")?;
    let mut tool = key_latencies(&mut pty, count)?;
    Ok(vec![
        Row::at_most(
            "terminal: key to cell at 2,000 chunks/s: p99",
            percentile(&mut streaming, 0.99),
            "ms",
            KEY_MS,
        ),
        Row::at_most(
            "terminal: key to cell beside a tool that floods: p99",
            percentile(&mut tool, 0.99),
            "ms",
            KEY_MS,
        ),
    ])
}

/// A session of 10,000 messages, made by repeating the log of one turn.
fn long_session(bench: &Bench) -> Result<Vec<Row>, String> {
    let (mock, home) = (small_mock()?, IsolatedHome::fresh()?);
    let mut command = bench.subject.worker(&mock, &home);
    command.args(["--session-id", "long"]);
    let mut worker = Worker::start(command)?;
    worker.turn("hi")?;
    worker.finish()?;
    let path = home.sessions().join("long.jsonl");
    let log = std::fs::read_to_string(&path).map_err(|error| format!("cannot read the log: {error}"))?;
    let (header, turn) = log.split_once('\n').ok_or("the log has no turn")?;
    let id = turn.split("\"prompt_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let id = id.ok_or("the log names no prompt")?;
    let turns = bench.options.count(5000, 50);
    let mut text = format!("{header}\n");
    for n in 1..=turns {
        let renamed = turn.replace(id, &format!("{id}-{n}"));
        text.push_str(&renamed.replace("\"turn\":1,", &format!("\"turn\":{n},")));
    }
    std::fs::write(&path, text).map_err(|error| format!("cannot write the log: {error}"))?;
    let mut pty = ready(bench, &mock, &home, &["--resume", "long"])?;
    pty.watch(SETTLING);
    let messages = grouped(2 * turns as u64);
    Ok(vec![Row::at_most(
        format!("terminal: memory with {messages} messages (PSS)"),
        pty.memory()?.pss_mb,
        "MB",
        LONG_MB,
    )])
}

fn many_chunks(bench: &Bench) -> Result<Vec<Row>, String> {
    let chunks = bench.options.count(1_000_000, 2000);
    let home = IsolatedHome::fresh()?;
    // The conversation itself must be kept for the model, so the window is large and the texts are short.
    home.configure(&json!({ "model": { "contextWindow": 1_000_000_000 } }))?;
    let count = chunks.to_string();
    let mock = Mock::start(&["--chunks", &count, "--chunk-text", "w", "--write-size", "many"])?;
    let mut pty = ready(bench, &mock, &home, &[])?;
    // The first turn pays for what every session needs.
    let mut memory = Vec::new();
    for _ in 0..2 {
        pty.type_keys("go\r")?;
        pty.until_quiet();
        pty.type_keys("/clear\r")?;
        pty.until_quiet();
        memory.push(pty.memory()?.anonymous_mb);
    }
    let growth = memory[1] - memory[0];
    let what = format!("terminal: memory after {} chunks, cleared: growth", grouped(chunks as u64));
    Ok(vec![Row::at_most(what, growth, "MB", GROWTH_MB)])
}

fn waiting(bench: &Bench) -> Result<Vec<Row>, String> {
    let home = IsolatedHome::fresh()?;
    let mock = Mock::start(&["--chunks", "3", "--chunk-text", CHUNK_TEXT, "--delay-us", "60000000"])?;
    let mut pty = ready(bench, &mock, &home, &[])?;
    pty.type_keys("go\r")?;
    pty.wait_for("esc interrupts")?;
    pty.watch(SETTLING);
    let time = Duration::from_secs(bench.options.count(5, 1) as u64);
    let cpu = pty.cpu_ns()?;
    let (bytes, _) = pty.watch(time);
    let cpu = percent(pty.cpu_ns()? - cpu, time);
    #[expect(clippy::cast_precision_loss, reason = "a few hundred bytes")]
    let rate = bytes as f64 / time.as_secs_f64();
    Ok(vec![
        Row::at_most("terminal: waiting: bytes/s", rate, "", WAITING_BYTES),
        Row::at_most("terminal: waiting: processor time", cpu, "%", WAITING_CPU),
    ])
}

fn streaming(bench: &Bench) -> Result<Vec<Row>, String> {
    let home = IsolatedHome::fresh()?;
    let mock = Mock::start(&["--chunks", "100000", "--chunk-text", CHUNK_TEXT, "--delay-us", "5000"])?;
    let mut pty = ready(bench, &mock, &home, &[])?;
    pty.type_keys("go\r")?;
    pty.wait_for("Answering")?;
    let time = Duration::from_secs(bench.options.count(4, 1) as u64);
    let cpu = pty.cpu_ns()?;
    let (_, writes) = pty.watch(time);
    let cpu = percent(pty.cpu_ns()? - cpu, time);
    #[expect(clippy::cast_precision_loss, reason = "a few hundred writes")]
    let rate = writes as f64 / time.as_secs_f64();
    Ok(vec![
        Row::at_most("terminal: streaming 200 chunks/s: processor time", cpu, "%", STREAMING_CPU),
        Row::at_most("terminal: streaming 200 chunks/s: writes/s", rate, "", STREAMING_WRITES),
    ])
}

fn paste(bench: &Bench) -> Result<Vec<Row>, String> {
    let (mock, home) = (small_mock()?, IsolatedHome::fresh()?);
    let line = "0123456789".repeat(10);
    let text = format!("{line}\r").repeat(PASTE_BYTES / (line.len() + 1));
    let mut times = Vec::new();
    for _ in 0..bench.options.count(5, 1) {
        let mut pty = ready(bench, &mock, &home, &[])?;
        let pasted = pty.paste(format!("\u{1b}[200~{text}\u{1b}[201~").into_bytes())?;
        times.push(milliseconds(pasted, pty.wait_for("[paste 1:")?));
        // The draft is not kept for the next one.
        pty.type_keys("\u{3}")?;
        pty.wait_for("Cleared")?;
    }
    Ok(vec![Row::at_most("terminal: a paste of 5 MB is shown", median(times), "ms", PASTE_MS)])
}

fn completion(bench: &Bench) -> Result<Vec<Row>, String> {
    let (mock, home) = (small_mock()?, IsolatedHome::fresh()?);
    let folders = bench.options.count(200, 2);
    for folder in 0..folders {
        let path = home.work().join(format!("d{folder}"));
        let make = || -> std::io::Result<()> {
            std::fs::create_dir(&path)?;
            (0..1000).try_for_each(|file| {
                std::fs::File::create(path.join(format!("n{file}x{folder}.rs"))).map(drop)
            })
        };
        make().map_err(|error| format!("cannot make files: {error}"))?;
    }
    let mut pty = ready(bench, &mock, &home, &[])?;
    let mut times = Vec::new();
    for n in 0..bench.options.count(40, 5) {
        let name = format!("n{}x{}", n * 37 % 1000, n * 11 % folders);
        let typed = pty.type_keys(&format!("\u{15}@{name}"))?;
        times.push(milliseconds(typed, pty.wait_for(&format!("{name}.rs"))?));
    }
    let first = times.remove(0);
    let files = grouped(1000 * folders as u64);
    Ok(vec![
        Row::without_target(
            format!("terminal: @ in {files} files: the first, which reads the tree"),
            first,
            "ms",
        ),
        Row::at_most(
            format!("terminal: @ in {files} files: p99"),
            percentile(&mut times, 0.99),
            "ms",
            HINT_MS,
        ),
    ])
}
