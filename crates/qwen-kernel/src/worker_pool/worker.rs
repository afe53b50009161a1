//! One worker process, as the pool sees it.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::PoolLimits;
use crate::action::ProcessSignal;
use crate::process_manager::SpawnSpec;

/// Names a worker for the life of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u64);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker-{}", self.0)
    }
}

/// What two workers must have in common to stand in for each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct WorkerKey {
    /// The tenant, empty for the default one.
    pub tenant: String,
    /// The program, its arguments, environment and directory.
    pub spec: SpawnSpec,
    /// Which file the program is: device, inode, size and time of change. An upgrade changes it.
    pub binary: (u64, u64, u64, i64),
}

impl WorkerKey {
    /// A number that stands for the key in tables.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its handshake has not come.
    Starting,
    /// It takes lines.
    Ready,
    /// It takes no more and is about to be gone.
    Ending,
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    /// Its name.
    pub id: WorkerId,
    /// What it was started for.
    pub key: Arc<WorkerKey>,
    /// Where it is in its life.
    pub stage: Stage,
    /// A session has it.
    pub bound: bool,
    /// A turn runs in it.
    pub busy: bool,
    /// Since when it is busy, or is not.
    pub busy_since: Duration,
    /// When it was started.
    pub started_at: Duration,
    /// What it did wrong, where the kernel ended it.
    pub fault: Option<&'static str>,
    pub(super) heard_at: Duration,
    /// A probe was sent then, and nothing came since.
    pub(super) silent_since: Option<Duration>,
    /// The next signal and when it is due.
    pub(super) ends_at: Option<(Duration, ProcessSignal)>,
    lifetime: Option<Duration>,
}

impl Worker {
    pub(super) fn new(id: WorkerId, key: Arc<WorkerKey>, now: Duration, lifetime: Option<Duration>) -> Self {
        Self {
            id,
            key,
            stage: Stage::Starting,
            bound: false,
            busy: false,
            busy_since: now,
            started_at: now,
            fault: None,
            heard_at: now,
            silent_since: None,
            ends_at: None,
            lifetime,
        }
    }

    /// True while no session has it and one may.
    pub fn is_spare(&self) -> bool {
        !self.bound && self.stage != Stage::Ending
    }

    pub(super) fn is_expired(&self, now: Duration) -> bool {
        self.lifetime.is_some_and(|lifetime| now >= self.started_at + lifetime)
    }

    pub(super) fn heard(&mut self, now: Duration) {
        self.heard_at = now;
        self.silent_since = None;
    }

    /// When it should be asked whether it is alive.
    pub(super) fn probe_at(&self, limits: &PoolLimits) -> Duration {
        let interval = if self.busy { limits.heartbeat_interval } else { limits.health_check_interval };
        self.heard_at + interval
    }

    pub(super) fn excuse(&mut self, gap: Duration) {
        self.heard_at += gap;
        self.started_at += gap;
        self.silent_since = self.silent_since.map(|since| since + gap);
    }

    /// When the pool must look at it next.
    pub(super) fn deadline(&self, limits: &PoolLimits) -> Option<Duration> {
        match self.stage {
            Stage::Starting => Some(self.started_at + limits.start_timeout),
            Stage::Ending => self.ends_at.map(|(at, _)| at),
            Stage::Ready => {
                let health = match self.silent_since {
                    Some(since) => since + limits.heartbeat_timeout,
                    None => self.probe_at(limits),
                };
                let age =
                    self.lifetime.filter(|_| self.is_spare()).map(|lifetime| self.started_at + lifetime);
                Some(age.map_or(health, |age| age.min(health)))
            }
        }
    }
}
