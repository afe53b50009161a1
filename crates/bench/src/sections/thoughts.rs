//! Graphs of thoughts: many in one run, and several at the same time.

use std::process::Command;

use serde_json::{Value, json};

use super::repeat;
use crate::Bench;
use crate::child::{self, Cost};
use crate::mock::Mock;
use crate::output::{Lines, contains};
use crate::stats::median;
use crate::subject::IsolatedHome;
use crate::table::{Row, grouped};

const THOUGHTS: usize = 10_000;
const PEAK_MB: f64 = 100.0;
const CONCURRENT_THOUGHTS: usize = 10;
const DELAY_MS: u64 = 100;
const CONCURRENT_LIMIT_MS: f64 = 150.0;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let count = bench.options.count(THOUGHTS, 100);
    let home = IsolatedHome::fresh()?;
    let mock = Mock::scripted(&graph(count, 0))?;
    let many = think(bench, &mock, &home, count)?;

    let mock = Mock::scripted(&graph(CONCURRENT_THOUGHTS, DELAY_MS))?;
    let spans = repeat(bench.options.runs.div_ceil(4), || {
        Ok(think(bench, &mock, &home, CONCURRENT_THOUGHTS)?.span_ms)
    })?;
    let title = format!("{} thoughts in one run", grouped(count as u64));
    #[expect(clippy::cast_precision_loss, reason = "a count of thoughts is small")]
    let each = many.cost.cpu_ms * 1e3 / count as f64;
    Ok(vec![
        Row::at_most(format!("{title}: peak memory"), many.cost.peak_mb, "MB", PEAK_MB),
        Row::without_target("— processor time a thought, its model call and the log included", each, "µs"),
        Row::at_most(
            format!("{CONCURRENT_THOUGHTS} independent thoughts of {DELAY_MS} ms each: all of them"),
            median(spans),
            "ms",
            CONCURRENT_LIMIT_MS,
        ),
    ])
}

/// The replies of a model that plans so many independent thoughts, thinks each of them and answers.
fn graph(count: usize, delay_ms: u64) -> Vec<Value> {
    let thought =
        |n: usize| json!({ "id": format!("t{n}"), "op": "generate", "instruction": "Think.", "inputs": [] });
    let plan = json!({ "nodes": (0..count).map(thought).collect::<Vec<_>>() }).to_string();
    let think = json!([{ "delay_ms": delay_ms }, { "text": "A thought of some words." }]);
    let mut replies = vec![json!([{ "text": plan }])];
    replies.extend(vec![think; count]);
    replies.push(json!([{ "text": "The answer." }]));
    replies
}

struct Thought {
    cost: Cost,
    /// From the first thought that began to the last that ended.
    span_ms: f64,
}

/// One run of so many thoughts, all of which must be thought.
fn think(bench: &Bench, mock: &Mock, home: &IsolatedHome, count: usize) -> Result<Thought, String> {
    let mut command = Command::new(bench.subject.path());
    command.args([
        "-p",
        "Think about it",
        "--model",
        "m",
        "--output-format",
        "stream-json",
        "--dialect",
        "loom",
    ]);
    command.args(["--agent", "got", "--parallel", &CONCURRENT_THOUGHTS.to_string()]);
    command.args(["--got-max-nodes", &THOUGHTS.to_string()]);
    home.isolate(&mut command, mock);
    let mut lines = Lines::default();
    let (mut first, mut last, mut done) = (None, 0, 0);
    let cost = child::run(&mut command, |bytes, now| {
        lines.feed(bytes, |line| {
            if contains(line, b"\"type\":\"got_node_start\"") {
                first.get_or_insert(now);
            } else if contains(line, b"\"type\":\"got_node_complete\"") {
                last = now;
                done += 1;
            }
        });
    })?;
    if done != count {
        return Err(format!("{done} of {count} thoughts were thought"));
    }
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few digits")]
    let span_ms = last.saturating_sub(first.unwrap_or(last)) as f64 / 1e6;
    Ok(Thought { cost, span_ms })
}
