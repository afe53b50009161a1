//! The system-wide monotonic clock, so that one process can write timestamps that another one compares.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock: comparable between processes, unlike an `Instant`.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}
