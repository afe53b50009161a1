//! What is measured, section by section. A new kind of row is a new file here and a line in [`ALL`].

mod acp;
mod answers;
mod cold;
mod configured;
mod crowd;
mod flood;
mod grep;
mod hub;
mod idle;
mod instructions;
mod latency;
mod peers;
mod readers;
mod serve;
mod steps;
mod tenants;
mod terminal;
mod thoughts;
mod tools;
mod turns;

use std::process::Command;

use crate::Bench;
use crate::child::{self, Cost};
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, Mode, Tally};
use crate::table::Row;

/// A group of rows that are measured together.
pub struct Section {
    pub name: &'static str,
    pub measure: fn(&Bench) -> Result<Vec<Row>, String>,
}

/// All of them, in the order of the table. Where the harness itself needs memory, which the kernel would
/// count into the peaks of whatever is started after it, a section comes late.
pub const ALL: &[Section] = &[
    Section { name: "cold", measure: cold::measure },
    Section { name: "configured", measure: configured::measure },
    Section { name: "flood", measure: flood::measure },
    Section { name: "latency", measure: latency::measure },
    Section { name: "tools", measure: tools::measure },
    Section { name: "grep", measure: grep::measure },
    Section { name: "turns", measure: turns::measure },
    Section { name: "idle", measure: idle::measure },
    Section { name: "answers", measure: answers::measure },
    Section { name: "steps", measure: steps::measure },
    Section { name: "thoughts", measure: thoughts::measure },
    Section { name: "hub", measure: hub::measure },
    Section { name: "acp", measure: acp::measure },
    Section { name: "serve", measure: serve::measure },
    Section { name: "tenants", measure: tenants::measure },
    Section { name: "readers", measure: readers::measure },
    Section { name: "peers", measure: peers::measure },
    Section { name: "crowd", measure: crowd::measure },
    Section { name: "terminal", measure: terminal::measure },
    Section { name: "instructions", measure: instructions::measure },
];

/// Runs one turn and checks that its output is the mock's answer.
fn turn(command: &mut Command, mode: Mode, chunks: usize) -> Result<Cost, String> {
    let mut tally = Tally::new(mode);
    let cost = child::run(command, |bytes, _| tally.feed(bytes))?;
    tally.check(chunks)?;
    Ok(cost)
}

/// Measures `runs` times after a warm-up of a tenth of that, at least once.
fn repeat<T>(runs: usize, mut once: impl FnMut() -> Result<T, String>) -> Result<Vec<T>, String> {
    for _ in 0..runs.div_ceil(10) {
        once()?;
    }
    (0..runs).map(|_| once()).collect()
}

/// The time between two moments in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "times are short")]
fn milliseconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}

/// A mock that answers with one chunk.
fn one_chunk() -> Result<Mock, String> {
    Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])
}
