//! Counters and histograms. Counting is a few additions; metrics are rendered only on request.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::worker_pool::{Pool, Stage};

/// The upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0];

/// A histogram of durations.
#[derive(Debug, Default, Clone)]
pub struct Histogram {
    /// For each bound, the number of durations up to it.
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

    /// The upper bounds of the buckets in seconds, and for each how many durations are up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        BUCKETS.into_iter().zip(self.counts)
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }
}

/// One metric with its current values.
#[derive(Debug, Clone)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
    pub data: MetricData,
}

/// The values of a metric. A value may have one label: its name and its value.
#[derive(Debug, Clone)]
pub enum MetricData {
    /// A count that only grows, with one label at most.
    Counter(Vec<(Option<(&'static str, String)>, u64)>),
    Gauge(Vec<(Option<(&'static str, String)>, u64)>),
    Histogram(Histogram),
}

/// Metrics in Prometheus text format.
pub(crate) fn prometheus(metrics: &[Metric]) -> String {
    let mut out = String::new();
    for Metric { name, help, data } in metrics {
        let kind = match data {
            MetricData::Counter(_) => "counter",
            MetricData::Gauge(_) => "gauge",
            MetricData::Histogram(_) => "histogram",
        };
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        match data {
            MetricData::Counter(values) | MetricData::Gauge(values) => {
                for (label, value) in values {
                    let _ = match label {
                        Some((key, label)) => writeln!(out, "{name}{{{key}=\"{label}\"}} {value}"),
                        None => writeln!(out, "{name} {value}"),
                    };
                }
            }
            MetricData::Histogram(histogram) => {
                for (bound, count) in histogram.cumulative() {
                    let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
                }
                let (count, sum) = (histogram.count, histogram.sum.as_secs_f64());
                let _ = writeln!(
                    out,
                    "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}"
                );
            }
        }
    }
    out
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
    /// Turns that workers reported as started.
    pub turns_started: u64,
    /// Turns that a worker ended.
    pub turns: u64,
    /// Turns that the hub ended because the worker could not.
    pub turns_ended_by_hub: u64,
    /// Turns that were run again (`retry: "safe"`).
    pub retried: u64,
    /// Lines of workers that violated their protocol.
    pub garbage_lines: u64,
    /// Messages of workers on their commit sockets.
    pub messages: u64,
    /// Fatal errors that workers reported.
    pub worker_fatals: u64,
    /// Tokens of the prompts and of the answers, according to the terminal records.
    pub tokens: (u64, u64),
    /// Ended turns by status, those that the hub ended included.
    pub ends: BTreeMap<String, u64>,
    turn_seconds: Histogram,
    queue_seconds: Histogram,
}

impl Metrics {
    pub(crate) fn record_turn_time(&mut self, took: Duration) {
        self.turn_seconds.add(took);
    }

    pub(crate) fn record_queue_time(&mut self, waited: Duration) {
        self.queue_seconds.add(waited);
    }

    /// The average duration of a turn.
    pub(crate) fn mean_turn(&self) -> Duration {
        let count = u32::try_from(self.turn_seconds.count).unwrap_or(u32::MAX).max(1);
        self.turn_seconds.sum / count
    }

    pub(crate) fn count_end(&mut self, status: &str) {
        *self.ends.entry(status.to_owned()).or_default() += 1;
    }

    /// All metrics with their current values.
    pub(crate) fn collect(&self, pool: &Pool, queue: usize) -> Vec<Metric> {
        let one = |value: u64| vec![(None, value)];
        let labelled = |key: &'static str, label: &str, value: u64| (Some((key, label.to_owned())), value);
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
        let mut metrics: Vec<Metric> = counters
            .into_iter()
            .map(|(name, help, value)| Metric { name, help, data: MetricData::Counter(one(value)) })
            .collect();
        let mut add = |name, help, data| metrics.push(Metric { name, help, data });
        let ends = self.ends.iter().map(|(status, count)| labelled("status", status, *count)).collect();
        add("qwen_hub_turn_ends_total", "Ended turns by status", MetricData::Counter(ends));
        let tokens =
            vec![labelled("kind", "prompt", self.tokens.0), labelled("kind", "completion", self.tokens.1)];
        add("qwen_hub_tokens_total", "Tokens of ended turns", MetricData::Counter(tokens));
        let restarts =
            pool.restarts().iter().map(|(reason, count)| labelled("reason", reason, *count)).collect();
        add("qwen_hub_worker_restarts_total", "Replaced workers by reason", MetricData::Counter(restarts));
        let (mut idle, mut busy, mut warm, mut ending) = (0, 0, 0, 0);
        for worker in pool.workers() {
            match worker.stage {
                Stage::Discarding | Stage::Ending => ending += 1,
                _ if worker.is_spare() => warm += 1,
                _ if worker.busy => busy += 1,
                _ => idle += 1,
            }
        }
        let workers = [("idle", idle), ("busy", busy), ("warm", warm), ("ending", ending)];
        let workers = workers.map(|(state, count)| labelled("state", state, count)).into();
        add("qwen_hub_workers", "Worker processes", MetricData::Gauge(workers));
        add("qwen_hub_queue", "Sessions that wait for a worker", MetricData::Gauge(one(queue as u64)));
        add("qwen_hub_memory_bytes", "Resident memory of the hub", MetricData::Gauge(one(own_memory())));
        let turns = MetricData::Histogram(self.turn_seconds.clone());
        add("qwen_hub_turn_seconds", "Time from a prompt to its terminal record", turns);
        let queued = MetricData::Histogram(self.queue_seconds.clone());
        add("qwen_hub_queue_seconds", "Time that prompts waited for a worker", queued);
        metrics
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
