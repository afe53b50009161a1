//! Counters and histograms. Counting is a few additions; metrics are rendered only on request.

use std::fmt::Write;
use std::time::Duration;

use crate::worker_pool::{Pool, Stage};

/// The upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0];

/// A histogram of durations.
#[derive(Debug, Default, Clone)]
pub struct Histogram {
    counts: [u64; BUCKETS.len()],
    sum: Duration,
    count: u64,
}

impl Histogram {
    fn add(&mut self, took: Duration) {
        self.sum += took;
        self.count += 1;
        for (count, bound) in self.counts.iter_mut().zip(BUCKETS) {
            if took.as_secs_f64() <= bound {
                *count += 1;
            }
        }
    }

    fn write(&self, name: &str, help: &str, out: &mut String) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (count, bound) in self.counts.iter().zip(BUCKETS) {
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(
            out,
            "{name}_bucket{{le=\"+Inf\"}} {0}\n{name}_sum {1}\n{name}_count {0}",
            self.count,
            self.sum.as_secs_f64()
        );
    }
}

/// Counters of a router.
#[derive(Debug, Default, Clone)]
pub struct Metrics {
    /// Sessions that were opened.
    pub sessions: u64,
    /// Prompts that were accepted.
    pub prompts: u64,
    pub refused: u64,
    /// Lines written to the client.
    pub relayed: u64,
    /// Turns whose first line was seen.
    pub turns_started: u64,
    /// Turns that a worker ended.
    pub turns: u64,
    /// Turns that the hub ended because the worker could not.
    pub turns_ended_by_hub: u64,
    /// Turns that were run again (`retry: "safe"`).
    pub retried: u64,
    /// Lines of workers that violated their protocol.
    pub garbage_lines: u64,
    /// Fatal errors that workers reported.
    pub worker_fatals: u64,
    turn_seconds: Histogram,
    queue_seconds: Histogram,
}

impl Metrics {
    pub(crate) fn turn_took(&mut self, took: Duration) {
        self.turn_seconds.add(took);
    }

    pub(crate) fn queued(&mut self, waited: Duration) {
        self.queue_seconds.add(waited);
    }

    /// The average duration of a turn.
    pub(crate) fn mean_turn(&self) -> Duration {
        let count = u32::try_from(self.turn_seconds.count).unwrap_or(u32::MAX).max(1);
        self.turn_seconds.sum / count
    }

    /// The metrics in Prometheus text format.
    pub fn prometheus(&self, pool: &Pool, queue: usize) -> String {
        let mut out = String::new();
        let counters = [
            ("qwen_hub_sessions_total", "Sessions opened", self.sessions),
            ("qwen_hub_prompts_total", "Prompts accepted", self.prompts),
            ("qwen_hub_refused_total", "Lines and prompts refused", self.refused),
            ("qwen_hub_lines_total", "Lines relayed to clients", self.relayed),
            ("qwen_hub_turns_total", "Turns ended by their workers", self.turns),
            (
                "qwen_hub_turns_lost_total",
                "Turns ended by the hub in a worker's place",
                self.turns_ended_by_hub,
            ),
            ("qwen_hub_turns_retried_total", "Turns run again after their worker died", self.retried),
            (
                "qwen_hub_garbage_lines_total",
                "Lines of workers that were not of the protocol",
                self.garbage_lines,
            ),
        ];
        for (name, help, value) in counters {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
        }
        let _ = writeln!(
            out,
            "# HELP qwen_hub_worker_restarts_total Unexpected ends of workers\n# TYPE qwen_hub_worker_restarts_total counter"
        );
        for (reason, count) in pool.restarts() {
            let _ = writeln!(out, "qwen_hub_worker_restarts_total{{reason=\"{reason}\"}} {count}");
        }
        let _ = writeln!(out, "# HELP qwen_hub_workers Worker processes\n# TYPE qwen_hub_workers gauge");
        let (mut idle, mut busy, mut warm, mut ending) = (0, 0, 0, 0);
        for worker in pool.workers() {
            match worker.stage {
                Stage::Ending => ending += 1,
                _ if worker.is_spare() => warm += 1,
                _ if worker.busy => busy += 1,
                _ => idle += 1,
            }
        }
        for (state, count) in [("idle", idle), ("busy", busy), ("warm", warm), ("ending", ending)] {
            let _ = writeln!(out, "qwen_hub_workers{{state=\"{state}\"}} {count}");
        }
        let _ = writeln!(
            out,
            "# HELP qwen_hub_queue Sessions that wait for a worker\n# TYPE qwen_hub_queue gauge\nqwen_hub_queue {queue}"
        );
        let _ = writeln!(
            out,
            "# HELP qwen_hub_memory_bytes Resident memory of the hub\n# TYPE qwen_hub_memory_bytes gauge\nqwen_hub_memory_bytes {}",
            own_memory()
        );
        self.turn_seconds.write(
            "qwen_hub_turn_seconds",
            "Time from a prompt to its terminal record",
            &mut out,
        );
        self.queue_seconds.write("qwen_hub_queue_seconds", "Time that prompts waited for a worker", &mut out);
        out
    }
}

/// The resident memory of this process in bytes; 0 if the system does not report it.
pub(crate) fn own_memory() -> u64 {
    memory_of("self").unwrap_or(0)
}

/// The resident memory of a process in bytes, by its name below `/proc`.
pub(crate) fn memory_of(process: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
