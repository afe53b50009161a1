//! Instructions counted by callgrind: they do not wobble with the machine, so a drift is the code's.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::tools::tool_turn;
use super::turn;
use crate::Bench;
use crate::baseline;
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, Mode};
use crate::subject::IsolatedHome;
use crate::table::{Row, grouped};
use crate::worker::Worker;

/// Growth beyond this is worth a look.
const ALLOWED_PERCENT: f64 = 3.0;
const FEW: usize = 1000;
const MANY: usize = 2000;
/// Turns of a worker, and calls in a turn.
const ONE: usize = 1;
const MORE: usize = 21;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(vec![Row::note("instructions", "not counted: valgrind is not installed")]);
    }
    let mut counts = BTreeMap::new();
    counts.insert("cold turn".to_owned(), count(bench, Mode::Claude, 1)?);
    for mode in [Mode::ClaudePartial, Mode::QwenChunks] {
        let (few, many) = (count(bench, mode, FEW)?, count(bench, mode, MANY)?);
        counts.insert(format!("chunk ({})", mode.name()), many.saturating_sub(few) / (MANY - FEW) as u64);
    }
    let each = |few: u64, many: u64| many.saturating_sub(few) / (MORE - ONE) as u64;
    let turns = each(count_turns(bench, ONE)?, count_turns(bench, MORE)?);
    counts.insert("further turn in a live worker".to_owned(), turns);
    let calls = each(count_calls(bench, ONE)?, count_calls(bench, MORE)?);
    counts.insert("tool call (todo_write)".to_owned(), calls);
    if bench.options.bless {
        baseline::save(&counts)?;
    }
    let before = baseline::load()?;
    let rows = counts.iter().map(|(name, count)| {
        let what = format!("instructions: {name}");
        match before.get(name) {
            Some(before) => Row::drift(what, *count, *before, ALLOWED_PERCENT),
            None => {
                Row::note(what, format!("{} (nothing to compare with; --bless keeps it)", grouped(*count)))
            }
        }
    });
    Ok(rows.collect())
}

/// Instructions of one turn.
fn count(bench: &Bench, mode: Mode, chunks: usize) -> Result<u64, String> {
    let mock =
        Mock::start(&["--chunks", &chunks.to_string(), "--chunk-text", CHUNK_TEXT, "--write-size", "many"])?;
    let home = IsolatedHome::fresh()?;
    counted(&bench.subject.turn(mode, &mock, &home), |mut command| turn(&mut command, mode, chunks).map(drop))
}

/// Instructions of a worker that lives for so many turns.
fn count_turns(bench: &Bench, turns: usize) -> Result<u64, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let home = IsolatedHome::fresh()?;
    counted(&bench.subject.worker(&mock, &home), |command| {
        let mut worker = Worker::start(command)?;
        (0..turns).try_for_each(|_| worker.turn("hi"))?;
        worker.finish()
    })
}

/// Instructions of a turn with so many tool calls. Of a tool that asks nothing of the kernel, because
/// callgrind does not know all that ours ask.
fn count_calls(bench: &Bench, calls: usize) -> Result<u64, String> {
    let home = IsolatedHome::fresh()?;
    let todos = json!({ "todos": [{ "content": "Read it", "status": "pending" }] });
    let call = json!([{ "tool_call": { "name": "todo_write", "arguments": todos } }]);
    let replies: Vec<Value> = vec![call; calls].into_iter().chain([json!([{ "text": "done" }])]).collect();
    let mock = Mock::scripted(&replies)?;
    counted(&bench.subject.turn(Mode::Claude, &mock, &home), |mut command| {
        tool_turn(&mut command, calls, |_, _| {}).map(drop)
    })
}

/// Instructions of what `run` does with a command.
fn counted(command: &Command, run: impl FnOnce(Command) -> Result<(), String>) -> Result<u64, String> {
    let log =
        tempfile::NamedTempFile::new().map_err(|error| format!("cannot make a temporary file: {error}"))?;
    let mut counting = Command::new("valgrind");
    counting.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    counting.arg(format!("--log-file={}", log.path().display()));
    counting.arg(command.get_program()).args(command.get_args());
    counting.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(home) = command.get_current_dir() {
        counting.current_dir(home);
    }
    run(counting)?;
    let report = std::fs::read_to_string(log.path()).unwrap_or_default();
    let total = report.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    total.ok_or_else(|| format!("callgrind did not say what it counted: {report}"))
}
