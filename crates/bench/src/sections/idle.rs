//! Workers that wait: their memory, and that they do nothing at all.

use std::time::Duration;

use crate::Bench;
use crate::mock::Mock;
use crate::output::CHUNK_TEXT;
use crate::process::{self, Measured};
use crate::subject::IsolatedHome;
use crate::table::Row;
use crate::worker::Worker;

const FIRST_MB: f64 = 6.0;
const FURTHER_MB: f64 = 2.0;
const FURTHER: usize = 10;
const SETTLE_TIME: Duration = Duration::from_millis(500);
const REST: Duration = Duration::from_secs(5);

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let home = IsolatedHome::fresh()?;
    let start = || Worker::start(bench.subject.worker(&mock, &home));
    let mut workers = vec![start()?];
    settle();
    let fresh = total(&workers)?;
    for _ in 0..FURTHER {
        workers.push(start()?);
    }
    settle();
    let fresh_all = total(&workers)?;
    workers.truncate(1);
    workers[0].turn("hi")?;
    let rested = rest(&workers[0])?;
    let used = total(&workers)?;
    for _ in 0..FURTHER {
        let mut worker = start()?;
        worker.turn("hi")?;
        workers.push(worker);
    }
    settle();
    let used_all = total(&workers)?;
    #[expect(clippy::cast_precision_loss, reason = "ten")]
    let each = |all: f64, one: f64| (all - one) / FURTHER as f64;
    let seconds = REST.as_secs();
    Ok(vec![
        Row::at_most("idle worker before its first turn: memory (PSS)", fresh, "MB", FIRST_MB),
        Row::at_most("— each further one", each(fresh_all, fresh), "MB", FURTHER_MB),
        Row::at_most("idle worker after a turn: memory (PSS)", used, "MB", FIRST_MB),
        Row::at_most("— each further one", each(used_all, used), "MB", FURTHER_MB),
        Row::at_most(format!("idle worker: processor time in {seconds} s"), rested.cpu_us, "µs", 0.0),
        Row::at_most(format!("idle worker: wake-ups in {seconds} s"), rested.wakeups, "", 0.0),
    ])
}

/// Waits until work left over from a start or a turn is done.
fn settle() {
    std::thread::sleep(SETTLE_TIME);
}

fn total(workers: &[Worker]) -> Result<f64, String> {
    workers.iter().map(|worker| Ok(worker.memory()?.pss_mb)).sum()
}

/// The usage of a worker without requests.
struct IdleUsage {
    cpu_us: f64,
    wakeups: f64,
}

fn rest(worker: &Worker) -> Result<IdleUsage, String> {
    settle();
    let (cpu, wakeups) = (worker.cpu_ns()?, process::wakeups(worker.pid())?);
    std::thread::sleep(REST);
    let (cpu, wakeups) = (worker.cpu_ns()? - cpu, process::wakeups(worker.pid())? - wakeups);
    #[expect(clippy::cast_precision_loss, reason = "small numbers, or the target is missed by far")]
    Ok(IdleUsage { cpu_us: cpu as f64 / 1e3, wakeups: wakeups as f64 })
}
