//! The pool's state of one worker process.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::PoolLimits;
use crate::action::ProcessSignal;
use crate::process_manager::SpawnSpec;

/// Identifies a worker for the life of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u64);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker-{}", self.0)
    }
}

/// The properties that two workers must share to be interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct WorkerKey {
    /// Empty for the default tenant.
    pub tenant: String,
    /// The program, its arguments, environment and directory.
    pub spec: SpawnSpec,
    /// The settings profile as JSON without secrets, for logs.
    pub profile: Option<String>,
    /// The identity of the program file: device, inode, size and time of change. An upgrade changes it.
    pub binary: (u64, u64, u64, i64),
}

impl WorkerKey {
    /// A hash of the key, for tables.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// The stage of a worker's life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The handshake has not arrived.
    Starting,
    /// The worker accepts lines.
    Ready,
    /// The worker discards its session and will write its handshake again.
    Discarding,
    /// The worker accepts no more lines and is about to exit.
    Ending,
}

#[derive(Debug)]
pub struct Worker {
    pub id: WorkerId,
    /// The key it was started for.
    pub key: Arc<WorkerKey>,
    pub stage: Stage,
    /// True while a session owns it.
    pub bound: bool,
    /// True while a turn runs in it.
    pub busy: bool,
    /// The time of the last change of `busy`.
    pub busy_since: Duration,
    pub started_at: Duration,
    /// When its handshake is due.
    pub(super) ready_by: Duration,
    /// True once it has finished its handshake.
    pub(super) was_ready: bool,
    /// The first line that it wrote in place of a handshake.
    pub unexpected: Option<String>,
    /// How many sessions it was given.
    pub sessions: u64,
    /// Since when it waits for a session.
    pub(super) waits_since: Duration,
    /// The fault for which the kernel ended it.
    pub fault: Option<&'static str>,
    pub(super) last_activity: Duration,
    /// When a probe was sent that is still unanswered.
    pub(super) silent_since: Option<Duration>,
    /// The next signal and when it is due.
    pub(super) ends_at: Option<(Duration, ProcessSignal)>,
    lifetime: Option<Duration>,
    /// How many sessions it may be given.
    max_sessions: u64,
}

impl Worker {
    pub(super) fn new(
        id: WorkerId,
        key: Arc<WorkerKey>,
        now: Duration,
        ready_by: Duration,
        lifetime: Option<Duration>,
        max_sessions: u64,
    ) -> Self {
        Self {
            id,
            key,
            stage: Stage::Starting,
            bound: false,
            busy: false,
            busy_since: now,
            started_at: now,
            ready_by,
            was_ready: false,
            unexpected: None,
            sessions: 0,
            waits_since: now,
            fault: None,
            last_activity: now,
            silent_since: None,
            ends_at: None,
            lifetime,
            max_sessions,
        }
    }

    /// True once it has finished its handshake.
    pub fn was_ready(&self) -> bool {
        self.was_ready
    }

    /// True if the kernel ended it, and not because of a fault.
    pub fn is_ending(&self) -> bool {
        self.stage == Stage::Ending && self.fault.is_none()
    }

    /// True while it is unassigned and available.
    pub fn is_spare(&self) -> bool {
        !self.bound && self.stage != Stage::Ending
    }

    pub(super) fn is_expired(&self, now: Duration) -> bool {
        self.lifetime.is_some_and(|lifetime| now >= self.started_at + lifetime)
    }

    /// Why it must not be given another session, if it must not.
    pub(super) fn retirement_reason(&self, now: Duration) -> Option<&'static str> {
        if self.sessions >= self.max_sessions {
            return Some("sessions");
        }
        self.is_expired(now).then_some("age")
    }

    /// When a worker that has served a session and waits for the next one has waited long enough.
    pub(super) fn idle_deadline(&self, limits: &PoolLimits) -> Option<Duration> {
        (self.is_spare() && self.sessions > 0).then(|| self.waits_since + limits.idle_timeout)
    }

    pub(super) fn note_output(&mut self, now: Duration) {
        self.last_activity = now;
        self.silent_since = None;
    }

    /// When the next probe is due.
    pub(super) fn probe_at(&self, limits: &PoolLimits) -> Duration {
        let interval = if self.busy { limits.heartbeat_interval } else { limits.health_check_interval };
        self.last_activity + interval
    }

    pub(super) fn extend_deadlines(&mut self, gap: Duration) {
        self.last_activity += gap;
        self.started_at += gap;
        self.ready_by += gap;
        self.silent_since = self.silent_since.map(|since| since + gap);
    }

    /// The worker's next deadline.
    pub(super) fn deadline(&self, limits: &PoolLimits) -> Option<Duration> {
        match self.stage {
            Stage::Starting => Some(self.ready_by),
            Stage::Discarding | Stage::Ending => self.ends_at.map(|(at, _)| at),
            Stage::Ready => {
                let health = match self.silent_since {
                    Some(since) => since + limits.heartbeat_timeout,
                    None => self.probe_at(limits),
                };
                let age =
                    self.lifetime.filter(|_| self.is_spare()).map(|lifetime| self.started_at + lifetime);
                let rest = self.idle_deadline(limits);
                [Some(health), age, rest].into_iter().flatten().min()
            }
        }
    }
}
