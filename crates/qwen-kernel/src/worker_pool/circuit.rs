//! Restart intensity: a key whose workers fail repeatedly gets no worker for a while.

use std::time::Duration;

use crate::process_manager::WorkerExit;

/// This many failures within [`WINDOW`] open the circuit.
const INTENSITY: usize = 5;
const WINDOW: Duration = Duration::from_secs(10);
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// The recent failures of one key.
#[derive(Debug, Default)]
pub struct Circuit {
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
    pub fn failed(&mut self, exit: WorkerExit, took: Duration, now: Duration, jitter: f64) {
        self.last = Some(exit);
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

    /// Records a success.
    pub fn succeeded(&mut self) {
        self.failures.clear();
        self.streak = 0;
        self.open_until = None;
    }

    pub fn last_failure(&self) -> Option<&WorkerExit> {
        self.last.as_ref()
    }

    /// The remaining time during which no worker is started, if the circuit is open.
    pub fn retry_after(&self, now: Duration) -> Option<Duration> {
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
            circuit.failed(exit(), Duration::ZERO, at(second), 1.0);
            assert_eq!(circuit.retry_after(at(second)), None);
        }
        circuit.failed(exit(), Duration::ZERO, at(4), 1.0);
        assert_eq!(circuit.retry_after(at(4)), Some(FIRST));
        assert_eq!(circuit.retry_after(at(5)), None, "one try is allowed then");
        for _ in 0..20 {
            circuit.failed(exit(), Duration::ZERO, at(5), 1.0);
        }
        assert_eq!(circuit.retry_after(at(5)), Some(LONGEST));
        circuit.succeeded();
        assert_eq!(circuit.retry_after(at(5)), None);
    }

    #[test]
    fn failures_far_apart_do_not_count_together() {
        let mut circuit = Circuit::default();
        for n in 0..100 {
            circuit.failed(exit(), Duration::ZERO, Duration::from_secs(n * 11), 1.0);
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
                circuit.failed(exit(), took, now, 1.0);
            }
            assert_eq!(circuit.retry_after(now), Some(FIRST), "{took:?}");
        }
    }
}
