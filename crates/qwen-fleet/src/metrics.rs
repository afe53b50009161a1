//! What a process did on the bus, for Prometheus.

use std::cell::Cell;
use std::fmt::Write;
use std::time::Duration;

/// The upper bounds of the commit latency's buckets, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];

/// A number that only grows.
#[derive(Default)]
pub struct Counter(Cell<u64>);

impl Counter {
    /// Adds one to the number.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts so many more.
    pub fn add(&self, count: u64) {
        self.0.set(self.0.get().saturating_add(count));
    }

    /// Returns the number that was counted so far.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// The metrics of a process on the bus.
#[derive(Default)]
pub struct BusMetrics {
    /// Appends that are stored.
    pub appends: Counter,
    /// The bytes of the payloads of stored appends.
    pub appended_bytes: Counter,
    /// Numbered lines that are stored; per append, they are the batch size.
    pub lines: Counter,
    /// Appends that the bus refused because another process was faster.
    pub refused: Counter,
    /// Appends whose outcome was looked up.
    pub lookups: Counter,
    /// Appends whose outcome stayed unknown until the commit timeout.
    pub unknown: Counter,
    /// Appends that waited because the store was full.
    pub full: Counter,
    /// Losses in the relay that were read from the streams.
    pub repairs: Counter,
    /// Sessions taken from an owner that was dead.
    pub takeovers_dead: Counter,
    /// Sessions taken by force from an owner that was alive.
    pub takeovers_forced: Counter,
    /// Sessions that this process lost to another owner.
    pub fenced: Counter,
    /// Own heartbeats that did not come back in time.
    pub missed_heartbeats: Counter,
    buckets: [Counter; BUCKETS.len()],
    latency_micros: Counter,
}

impl BusMetrics {
    /// Counts an append that is stored.
    pub fn count_append(&self, bytes: usize, latency: Duration) {
        self.appends.increment();
        self.appended_bytes.add(bytes as u64);
        self.latency_micros.add(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        for (bound, counter) in BUCKETS.iter().zip(&self.buckets) {
            if latency.as_secs_f64() <= *bound {
                counter.increment();
            }
        }
    }

    /// Returns the metrics as Prometheus reads them.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        let counters = [
            ("appended_bytes", "Bytes of stored appends.", &self.appended_bytes),
            ("lines", "Numbered lines that are stored.", &self.lines),
            ("refused_appends", "Appends for which another process was faster.", &self.refused),
            ("outcome_lookups", "Appends whose outcome was looked up.", &self.lookups),
            ("unknown_outcomes", "Appends whose outcome stayed unknown.", &self.unknown),
            ("full_waits", "Appends that waited because the store was full.", &self.full),
            ("repairs", "Losses in the relay that were read from the streams.", &self.repairs),
            ("fenced_owners", "Sessions that this process lost to another owner.", &self.fenced),
            ("missed_heartbeats", "Own heartbeats that did not come back.", &self.missed_heartbeats),
        ];
        for (name, help, counter) in counters {
            let _ =
                writeln!(out, "# HELP qwen_bus_{name}_total {help}\n# TYPE qwen_bus_{name}_total counter");
            let _ = writeln!(out, "qwen_bus_{name}_total {}", counter.get());
        }
        let _ = writeln!(out, "# HELP qwen_bus_takeovers_total Sessions taken from another owner.");
        let _ = writeln!(out, "# TYPE qwen_bus_takeovers_total counter");
        for (cause, counter) in [("dead", &self.takeovers_dead), ("forced", &self.takeovers_forced)] {
            let _ = writeln!(out, "qwen_bus_takeovers_total{{cause=\"{cause}\"}} {}", counter.get());
        }
        let _ = writeln!(out, "# HELP qwen_bus_commit_seconds Time until an append is stored.");
        let _ = writeln!(out, "# TYPE qwen_bus_commit_seconds histogram");
        for (bound, counter) in BUCKETS.iter().zip(&self.buckets) {
            let _ = writeln!(out, "qwen_bus_commit_seconds_bucket{{le=\"{bound}\"}} {}", counter.get());
        }
        let count = self.appends.get();
        let sum = Duration::from_micros(self.latency_micros.get()).as_secs_f64();
        let _ = writeln!(out, "qwen_bus_commit_seconds_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "qwen_bus_commit_seconds_sum {sum}\nqwen_bus_commit_seconds_count {count}");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_cumulative_and_every_series_has_one_type() {
        let metrics = BusMetrics::default();
        metrics.count_append(10, Duration::from_millis(2));
        metrics.count_append(5, Duration::from_millis(200));
        let text = metrics.prometheus();
        for line in [
            "qwen_bus_appended_bytes_total 15",
            "qwen_bus_commit_seconds_bucket{le=\"0.001\"} 0",
            "qwen_bus_commit_seconds_bucket{le=\"0.0025\"} 1",
            "qwen_bus_commit_seconds_bucket{le=\"0.5\"} 2",
            "qwen_bus_commit_seconds_count 2",
        ] {
            assert!(text.lines().any(|written| written == line), "{line}: {text}");
        }
        let types = text.lines().filter(|line| line.starts_with("# TYPE"));
        assert_eq!(types.count(), 11);
    }
}
