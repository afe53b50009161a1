//! How long a chunk takes from the model's write to the line on the host's pipe.

use std::process::Command;

use crate::Bench;
use crate::child;
use crate::mock::Mock;
use crate::output::{Lines, Mode, contains, stamps};
use crate::stats::percentile;
use crate::subject::{self, IsolatedHome};
use crate::table::Row;

const CHUNKS: usize = 2000;
const CHUNK_INTERVAL_US: &str = "1000";
const ROUNDS: usize = 2;
const RATIO: f64 = 2.0;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let chunks = CHUNKS.to_string();
    let mock = Mock::start(&[
        "--chunks",
        &chunks,
        "--stamp",
        "--delay-us",
        CHUNK_INTERVAL_US,
        "--write-size",
        "one",
    ])?;
    let home = IsolatedHome::fresh()?;
    let mode = Mode::ClaudePartial;
    let (mut turns, mut copies) = (Vec::new(), Vec::new());
    // In turns, so that both see the same machine.
    for _ in 0..ROUNDS {
        turns.extend(latencies(&mut bench.subject.turn(mode, &mock, &home), mode.delta_word())?);
        copies.extend(latencies(&mut subject::copy(&mock)?, b"chat.completion.chunk")?);
    }
    let mut rows = Vec::new();
    for (name, at) in [("p50", 0.5), ("p99", 0.99)] {
        let (turn, copy) = (percentile(&mut turns, at), percentile(&mut copies, at));
        rows.extend([
            Row::without_target(format!("chunk to line ({}): {name}", mode.name()), turn, "µs"),
            Row::without_target(format!("— a program that only copies: {name}"), copy, "µs"),
            Row::at_most(format!("chunk to line: {name} beside only copying"), turn / copy, "×", RATIO),
        ]);
    }
    Ok(rows)
}

/// Microseconds from stamp to arrival, one for each chunk.
fn latencies(command: &mut Command, delta_word: &[u8]) -> Result<Vec<f64>, String> {
    let mut lines = Lines::default();
    let mut samples = Vec::with_capacity(CHUNKS);
    child::run(command, |bytes, now| {
        lines.feed(bytes, |line| {
            if contains(line, delta_word) {
                #[expect(clippy::cast_precision_loss, reason = "microseconds of a few digits")]
                samples.extend(stamps(line).map(|stamp| now.saturating_sub(stamp) as f64 / 1e3));
            }
        });
    })?;
    if samples.len() != CHUNKS {
        return Err(format!("{} of {CHUNKS} stamped chunks arrived", samples.len()));
    }
    Ok(samples)
}
