//! Many live workers at once, each after a turn.

use crate::Bench;
use crate::mock::Mock;
use crate::output::CHUNK_TEXT;
use crate::process::Measured;
use crate::stats::percentile;
use crate::subject::IsolatedHome;
use crate::table::{Row, grouped};
use crate::worker::Worker;

const WORKERS: usize = 1000;
const TOTAL_MB: f64 = 2000.0;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let home = IsolatedHome::fresh()?;
    let count = bench.options.count(WORKERS, 20);
    // On any failure, dropping the list ends each of them.
    let mut workers = Vec::with_capacity(count);
    for n in 0..count {
        let mut worker = Worker::start(bench.subject.worker(&mock, &home))
            .map_err(|error| format!("worker {n} of {count}: {error}"))?;
        worker.turn("hi").map_err(|error| format!("worker {n} of {count}: {error}"))?;
        workers.push(worker);
    }
    let memory = workers.iter().map(|worker| Ok(worker.memory()?.pss_mb));
    let mut memory = memory.collect::<Result<Vec<f64>, String>>()?;
    let title = format!("{} live workers with a turn each", grouped(count as u64));
    Ok(vec![
        Row::at_most(format!("{title}: memory (PSS)"), memory.iter().sum(), "MB", TOTAL_MB),
        Row::without_target("— of which one, at most", percentile(&mut memory, 1.0), "MB"),
    ])
}
