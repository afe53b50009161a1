//! A long answer in many small chunks: what each of them costs.

use super::{repeat, turn};
use crate::Bench;
use crate::child;
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, Mode};
use crate::stats::median;
use crate::subject::{self, IsolatedHome};
use crate::table::{Row, grouped};

const CPU_US: f64 = 3.0;
const PEAK_MB: f64 = 16.0;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let home = IsolatedHome::fresh()?;
    let chunks = bench.options.chunks;
    let runs = bench.options.runs.div_ceil(4);
    #[expect(clippy::cast_precision_loss, reason = "counts of chunks are small")]
    let per_chunk = |cpu_ms: f64| cpu_ms * 1e3 / chunks as f64;
    let mut rows = Vec::new();
    for mode in [Mode::ClaudePartial, Mode::QwenChunks] {
        let single = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
        let cold = repeat(runs, || turn(&mut bench.subject.turn(mode, &single, &home), mode, 1))?;
        let cold_ms = median(cold.iter().map(|cost| cost.cpu_ms));
        for writes in ["many", "one"] {
            let title = format!("{} chunks ({}), {writes} a write", grouped(chunks as u64), mode.name());
            let mock = flood(chunks, writes)?;
            match repeat(runs, || turn(&mut bench.subject.turn(mode, &mock, &home), mode, chunks)) {
                Ok(costs) => {
                    let cpu_ms = median(costs.iter().map(|cost| cost.cpu_ms));
                    let peak = costs.iter().map(|cost| cost.peak_mb).fold(0.0, f64::max);
                    rows.extend([
                        Row::at_most(
                            format!("{title}: processor time a chunk"),
                            per_chunk(cpu_ms),
                            "µs",
                            CPU_US,
                        ),
                        Row::without_target(
                            format!("{title}: without the cold turn"),
                            per_chunk(cpu_ms - cold_ms),
                            "µs",
                        ),
                        Row::at_most(format!("{title}: peak memory"), peak, "MB", PEAK_MB),
                    ]);
                }
                Err(error) => rows.push(Row::failed(title, &error)),
            }
        }
    }
    for writes in ["many", "one"] {
        let mock = flood(chunks, writes)?;
        let costs = repeat(runs, || child::run(&mut subject::copy(&mock)?, |_, _| {}))?;
        let cpu = per_chunk(median(costs.iter().map(|cost| cost.cpu_ms)));
        rows.push(Row::without_target(
            format!("— a program that only copies, {writes} a write: a chunk"),
            cpu,
            "µs",
        ));
    }
    Ok(rows)
}

fn flood(chunks: usize, writes: &str) -> Result<Mock, String> {
    Mock::start(&["--chunks", &chunks.to_string(), "--chunk-text", CHUNK_TEXT, "--write-size", writes])
}
