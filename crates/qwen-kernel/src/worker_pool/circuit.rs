//! Restart intensity: a key whose workers fail repeatedly gets no worker for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use super::WorkerKey;
use crate::process_manager::WorkerExit;

/// This many failures within [`WINDOW`] open the circuit.
const INTENSITY: usize = 5;
const WINDOW: Duration = Duration::from_secs(10);
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// A key whose last failure is older than this is forgotten: its next failure counts as the first.
const MEMORY: Duration = Duration::from_secs(300);
/// The most keys that are remembered.
const MAX_KEYS: usize = 1024;

/// The circuits of the keys whose workers failed recently. Keys that work have none.
#[derive(Debug, Default)]
pub struct Circuits(BTreeMap<u64, Circuit>);

impl Circuits {
    /// Records a failure of a key's worker that took this long; `jitter` is between 0 and 1.
    pub fn record_failure(
        &mut self,
        key: &WorkerKey,
        exit: WorkerExit,
        took: Duration,
        now: Duration,
        jitter: f64,
    ) {
        let digest = key.digest();
        self.0.entry(digest).or_default().record_failure(exit, took, now, jitter);
        if self.0.len() > MAX_KEYS {
            self.0.retain(|_, circuit| circuit.failed_at + MEMORY > now);
        }
        if self.0.len() > MAX_KEYS {
            let others = self.0.iter().filter(|(key, _)| **key != digest);
            let oldest = others.min_by_key(|(_, circuit)| circuit.failed_at).map(|(key, _)| *key);
            oldest.and_then(|key| self.0.remove(&key));
        }
    }

    /// Records that a worker of a key has finished a turn.
    pub fn record_success(&mut self, key: &WorkerKey) {
        if !self.0.is_empty() {
            self.0.remove(&key.digest());
        }
    }

    /// The remaining time during which no worker of a key is started.
    pub fn retry_after(&self, key: &WorkerKey, now: Duration) -> Option<Duration> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&key.digest())?.retry_after(now)
    }

    /// How the last worker of a key failed, if the key failed recently.
    pub fn last_failure(&self, key: &WorkerKey) -> Option<&WorkerExit> {
        self.0.get(&key.digest())?.last.as_ref()
    }

    /// The number of keys of which no worker is started.
    pub fn count_open(&self, now: Duration) -> usize {
        self.0.values().filter(|circuit| circuit.retry_after(now).is_some()).count()
    }
}

/// The recent failures of one key.
#[derive(Debug, Default)]
struct Circuit {
    /// The time of the last failure.
    failed_at: Duration,
    /// When each worker failed, without the time that the failures took.
    failures: Vec<Duration>,
    /// The time that all failures took.
    spent: Duration,
    /// Consecutive failures, for the back-off.
    streak: u32,
    open_until: Option<Duration>,
    /// How the last worker failed.
    last: Option<WorkerExit>,
}

impl Circuit {
    /// Records a failure that took this long; `jitter` is between 0 and 1.
    fn record_failure(&mut self, exit: WorkerExit, took: Duration, now: Duration, jitter: f64) {
        self.last = Some(exit);
        self.failed_at = now;
        // Slow failures must count as fast ones do, so the time that they took is left out.
        self.spent += took;
        let at = now.saturating_sub(self.spent);
        self.failures.retain(|former| *former + WINDOW > at);
        self.failures.push(at);
        if self.failures.len() >= INTENSITY {
            let backed_off = FIRST.saturating_mul(2_u32.saturating_pow(self.streak.min(16))).min(LONGEST);
            self.streak += 1;
            self.open_until = Some(now + backed_off.mul_f64(0.5 + 0.5 * jitter));
        }
    }

    /// The remaining time during which no worker is started, if the circuit is open.
    fn retry_after(&self, now: Duration) -> Option<Duration> {
        self.open_until.filter(|until| *until > now).map(|until| until.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_manager::ExitCause;

    fn exit() -> WorkerExit {
        WorkerExit { cause: ExitCause::Code(1), detail: String::new() }
    }

    #[test]
    fn five_failures_in_ten_seconds_open_the_circuit_and_it_backs_off() {
        let mut circuit = Circuit::default();
        let at = Duration::from_secs;
        for second in 0..4 {
            circuit.record_failure(exit(), Duration::ZERO, at(second), 1.0);
            assert_eq!(circuit.retry_after(at(second)), None);
        }
        circuit.record_failure(exit(), Duration::ZERO, at(4), 1.0);
        assert_eq!(circuit.retry_after(at(4)), Some(FIRST));
        assert_eq!(circuit.retry_after(at(5)), None, "one try is allowed then");
        for _ in 0..20 {
            circuit.record_failure(exit(), Duration::ZERO, at(5), 1.0);
        }
        assert_eq!(circuit.retry_after(at(5)), Some(LONGEST));
    }

    #[test]
    fn a_key_that_works_or_failed_long_ago_is_forgotten_and_the_number_of_keys_is_bounded() {
        let key = |n: u64| WorkerKey { tenant: n.to_string(), ..WorkerKey::default() };
        let mut circuits = Circuits::default();
        let mut now = Duration::from_secs(1000);
        for n in 0..100_000 {
            now += Duration::from_millis(10);
            circuits.record_failure(&key(n), exit(), Duration::ZERO, now, 1.0);
            assert!(circuits.0.len() <= MAX_KEYS);
        }
        assert!(circuits.last_failure(&key(99_999)).is_some(), "the last one is remembered");
        for n in 0..5 {
            circuits.record_failure(&key(7), exit(), Duration::ZERO, now, 1.0);
            assert_eq!(circuits.retry_after(&key(7), now).is_some(), n == 4);
        }
        assert_eq!(circuits.count_open(now), 1);
        circuits.record_success(&key(7));
        assert_eq!((circuits.retry_after(&key(7), now), circuits.last_failure(&key(7))), (None, None));
        // After a while, keys that failed before make room for those that fail now.
        now += MEMORY;
        circuits.record_failure(&key(1), exit(), Duration::ZERO, now, 1.0);
        circuits.record_failure(&key(2), exit(), Duration::ZERO, now, 1.0);
        assert_eq!(circuits.0.len(), 2);
    }

    #[test]
    fn failures_far_apart_do_not_count_together() {
        let mut circuit = Circuit::default();
        for n in 0..100 {
            circuit.record_failure(exit(), Duration::ZERO, Duration::from_secs(n * 11), 1.0);
            assert_eq!(circuit.retry_after(Duration::from_secs(n * 11)), None);
        }
    }

    #[test]
    fn failures_count_the_same_however_long_each_takes() {
        for took in [0, 1, 10, 300].map(Duration::from_secs) {
            let mut circuit = Circuit::default();
            let mut now = Duration::from_secs(1000);
            for _ in 0..INTENSITY {
                assert_eq!(circuit.retry_after(now), None, "{took:?}");
                now += took;
                circuit.record_failure(exit(), took, now, 1.0);
            }
            assert_eq!(circuit.retry_after(now), Some(FIRST), "{took:?}");
        }
    }
}
