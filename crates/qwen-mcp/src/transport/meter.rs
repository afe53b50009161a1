//! Rate limit for unsolicited messages of a server.

use tokio::time::Instant;

/// Largest burst, in messages.
const BURST: f64 = 5_000.0;
/// Sustained messages per second.
const PER_SECOND: f64 = 500.0;
/// Largest burst, in bytes.
const BURST_BYTES: f64 = 32.0 * 1024.0 * 1024.0;
/// Sustained bytes per second.
const BYTES_PER_SECOND: f64 = 1024.0 * 1024.0;

/// Two token buckets, one for messages and one for their bytes.
#[derive(Debug)]
pub(crate) struct Meter {
    messages: f64,
    bytes: f64,
    at: Instant,
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self { messages: BURST, bytes: BURST_BYTES, at: now }
    }

    /// Counts an unsolicited message. Returns false if it exceeds the limit.
    pub(crate) fn count(&mut self, bytes: usize, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        #[expect(
            clippy::cast_precision_loss,
            reason = "messages are far shorter than what a float counts exactly"
        )]
        let size = bytes as f64;
        self.messages = (self.messages + passed * PER_SECOND).min(BURST) - 1.0;
        self.bytes = (self.bytes + passed * BYTES_PER_SECOND).min(BURST_BYTES) - size;
        self.messages >= 0.0 && self.bytes >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_let_through_and_a_flood_is_not() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        let passed = (0..100_000).take_while(|_| meter.count(10, start)).count();
        assert_eq!(passed, 5_000);
        assert!(meter.count(10, start + Duration::from_secs(1)));
        let mut meter = Meter::new(start);
        assert!(meter.count(32 << 20, start));
        assert!(!meter.count(1, start));
        let mut meter = Meter::new(start);
        assert!((0..100_000_u32).all(|n| meter.count(1_000, start + Duration::from_millis(2) * n)));
    }
}
