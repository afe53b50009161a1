//! What a pool may use, as data.

use std::time::Duration;

/// The limits of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLimits {
    /// Spares that are kept ready.
    pub min_workers: usize,
    /// Processes in all.
    pub max_workers: usize,
    /// A session that rests so long gives its worker back and continues from its log.
    pub idle_timeout: Duration,
    /// Sessions that one process may serve. Every process serves one, so this is never exceeded.
    pub max_sessions_per_worker: u64,
    /// How often a resting worker is asked whether it is alive.
    pub health_check_interval: Duration,
    /// How long a working one may be silent before it is asked.
    pub heartbeat_interval: Duration,
    /// How long the answer may take.
    pub heartbeat_timeout: Duration,
    /// How long a handshake may take.
    pub start_timeout: Duration,
    /// How long a worker may take to end before the next stronger signal.
    pub kill_after: Duration,
    /// A spare older than this (10 % more or less) is replaced.
    pub max_worker_age: Option<Duration>,
    /// A resting worker that uses more memory than this gives way to a new one.
    pub max_worker_memory: Option<u64>,
    /// Requests that wait for a worker, in all.
    pub max_queue: usize,
    /// Requests of one tenant that wait for a worker.
    pub max_queue_per_tenant: usize,
    /// How long a request waits.
    pub queue_timeout: Duration,
    /// How long turns may take to finish when the hub drains.
    pub drain_timeout: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            min_workers: 1,
            max_workers: 50,
            idle_timeout: Duration::from_secs(1800),
            max_sessions_per_worker: 100,
            health_check_interval: Duration::from_secs(60),
            heartbeat_interval: Duration::from_secs(2),
            heartbeat_timeout: Duration::from_secs(10),
            start_timeout: Duration::from_secs(10),
            kill_after: Duration::from_secs(5),
            max_worker_age: Some(Duration::from_secs(3600)),
            max_worker_memory: None,
            max_queue: 1000,
            max_queue_per_tenant: 50,
            queue_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
        }
    }
}
