//! The limits of a pool.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLimits {
    /// The number of spares to have ready.
    pub min_workers: usize,
    /// The maximum number of processes.
    pub max_workers: usize,
    /// A session that is idle this long releases its worker and continues from its log. A worker that waits
    /// for its next session this long ends.
    pub idle_timeout: Duration,
    /// How many sessions a worker may serve, one after the other.
    pub max_sessions_per_worker: u64,
    /// The probe interval of idle workers.
    pub health_check_interval: Duration,
    /// How long a busy worker may be silent before it is probed.
    pub heartbeat_interval: Duration,
    /// The time limit of the answer to a probe.
    pub heartbeat_timeout: Duration,
    /// The time limit of the handshake.
    pub start_timeout: Duration,
    /// How long a worker may take to exit before the next stronger signal.
    pub kill_after: Duration,
    /// A worker without a session that is older than this (10 % more or less) is replaced.
    pub max_worker_age: Option<Duration>,
    /// An idle worker that uses more memory than this, in bytes, is replaced.
    pub max_worker_memory: Option<u64>,
    /// The limit on a worker's open files.
    pub max_open_files: Option<u64>,
    /// The limit on a worker's address space, in bytes.
    pub max_address_space: Option<u64>,
    /// The longest silence of the kernel during which a worker may start tools and model calls; none lets
    /// workers run without asking.
    pub leash: Option<Duration>,
    /// The maximum number of requests that wait for a worker.
    pub max_queue: usize,
    /// The maximum number of one tenant's requests that wait for a worker.
    pub max_queue_per_tenant: usize,
    /// How long a request may wait.
    pub queue_timeout: Duration,
    /// How long running turns may take to finish when the hub drains.
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
            max_open_files: None,
            max_address_space: None,
            leash: Some(Duration::from_secs(2)),
            max_queue: 1000,
            max_queue_per_tenant: 50,
            queue_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
        }
    }
}
