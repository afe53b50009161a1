//! A cold turn: from nothing to the end of a one-chunk answer.

use std::process::Command;

use super::{repeat, turn};
use crate::Bench;
use crate::child::{self, Cost};
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, Mode};
use crate::stats::median;
use crate::subject::{self, IsolatedHome};
use crate::table::Row;

const CPU_MS: f64 = 5.0;
const REQUEST_MS: f64 = 6.0;
const PEAK_MB: f64 = 10.0;

/// What a turn cost and how long its request took to arrive.
struct Sample {
    cost: Cost,
    request_ms: f64,
}

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let home = IsolatedHome::fresh()?;
    let runs = bench.options.runs;
    let sample = |run: &dyn Fn() -> Result<Cost, String>| {
        mock.reset()?;
        let cost = run()?;
        let arrived = mock.last_arrival_ns()?;
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few digits")]
        let request_ms = arrived.saturating_sub(cost.started_ns) as f64 / 1e6;
        Ok(Sample { cost, request_ms })
    };
    let turns = repeat(runs, || {
        sample(&|| turn(&mut bench.subject.turn(Mode::Claude, &mock, &home), Mode::Claude, 1))
    })?;
    let copies = repeat(runs, || sample(&|| child::run(&mut subject::copy(&mock)?, |_, _| {})))?;
    let nothing = repeat(runs, || child::run(&mut Command::new("/bin/true"), |_, _| {}))?;

    let peak = |costs: &[&Cost]| costs.iter().map(|cost| cost.peak_mb).fold(0.0, f64::max);
    let of = |samples: &[Sample], value: fn(&Sample) -> f64| median(samples.iter().map(value));
    Ok(vec![
        Row::at_most("cold turn: processor time", of(&turns, |s| s.cost.cpu_ms), "ms", CPU_MS),
        Row::at_most("cold turn: start to request", of(&turns, |s| s.request_ms), "ms", REQUEST_MS),
        Row::without_target("cold turn: start to end", of(&turns, |s| s.cost.wall_ms), "ms"),
        Row::at_most(
            "cold turn: peak memory",
            peak(&turns.iter().map(|s| &s.cost).collect::<Vec<_>>()),
            "MB",
            PEAK_MB,
        ),
        Row::without_target(
            "— a program that only copies: processor time",
            of(&copies, |s| s.cost.cpu_ms),
            "ms",
        ),
        Row::without_target(
            "— a program that only copies: start to request",
            of(&copies, |s| s.request_ms),
            "ms",
        ),
        Row::without_target(
            "— /bin/true: processor time",
            median(nothing.iter().map(|cost| cost.cpu_ms)),
            "ms",
        ),
        Row::without_target(
            "— /bin/true: peak memory (the least this harness can see)",
            peak(&nothing.iter().collect::<Vec<_>>()),
            "MB",
        ),
    ])
}
