//! The worker pool: which processes exist, what each is for, and when one ends.
//!
//! Rationale: the pool is a state machine without I/O. Its inputs are events and the time, its outputs are
//! [`RouterAction`]s, so the same code runs in production and in simulated schedules. A worker serves one
//! session at a time. When that is over the worker discards it: it replaces its own process image, so that
//! neither memory nor open files of the session are left, and waits for the next session of the same key.
//! Spares are started ahead of time for the default key only; a key consists of tenant, program, arguments,
//! environment and directory, and a worker is never given to another key. It ends after
//! `max_sessions_per_worker` sessions, `max_worker_age`, or `idle_timeout` without a session.

mod circuit;
mod limits;
mod worker;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use limits::PoolLimits;
pub use worker::{Stage, Worker, WorkerId, WorkerKey};
pub use workers::{Granted, Lease, LocalWorkers, MemoryWorkers, Offer, WorkerControl, Workers};

use qwen_events::SessionId;

use self::circuit::Circuits;
use self::workers::Leases;
use crate::action::{ProcessSignal, RouterAction};
use crate::ipc::HubMessage;
use crate::process_manager::WorkerExit;

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// A worker that has finished its handshake or will do so.
    Worker(WorkerId),
    /// Every slot is in use.
    Full,
    /// Workers of this key fail repeatedly; the next attempt is allowed after this time.
    Open(Duration),
}

#[derive(Debug)]
pub struct Pool {
    limits: PoolLimits,
    default_key: Arc<WorkerKey>,
    workers: BTreeMap<WorkerId, Worker>,
    circuits: Circuits,
    next: u64,
    rng: fastrand::Rng,
    /// False while draining: no spare is started.
    filling: bool,
    restarts: BTreeMap<&'static str, u64>,
    leases: Leases,
}

impl Pool {
    /// A pool without workers; the first [`Pool::fill`] starts the spares.
    pub fn new(limits: PoolLimits, default_key: Arc<WorkerKey>, seed: u64) -> Self {
        Self {
            limits,
            default_key,
            workers: BTreeMap::new(),
            circuits: Circuits::default(),
            next: 0,
            rng: fastrand::Rng::with_seed(seed),
            filling: true,
            restarts: BTreeMap::new(),
            leases: Leases::new(fastrand::Rng::with_seed(seed).u64(..)),
        }
    }

    pub fn limits(&self) -> &PoolLimits {
        &self.limits
    }

    /// Replaces the limits; workers beyond them end when they become idle.
    pub fn set_limits(&mut self, limits: PoolLimits) {
        self.limits = limits;
    }

    pub fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.values()
    }

    pub fn worker(&self, id: WorkerId) -> Option<&Worker> {
        self.workers.get(&id)
    }

    /// The number of replaced workers, by reason: unexpected exits, age and memory.
    pub fn restarts(&self) -> &BTreeMap<&'static str, u64> {
        &self.restarts
    }

    /// How many keys have an open circuit.
    pub fn open_circuits(&self, now: Duration) -> usize {
        self.circuits.count_open(now)
    }

    /// Starts spares of this key from now on; spares of the former one end.
    pub fn set_default_key(&mut self, key: Arc<WorkerKey>, now: Duration, actions: &mut Vec<RouterAction>) {
        let former = std::mem::replace(&mut self.default_key, key);
        if former == self.default_key {
            return;
        }
        let outdated = self.workers.values().filter(|worker| worker.is_spare() && worker.key == former);
        for id in outdated.map(|worker| worker.id).collect::<Vec<_>>() {
            self.release(id, now, actions);
        }
    }

    /// Stops starting spares and ends the existing ones.
    pub fn stop_filling(&mut self, now: Duration, actions: &mut Vec<RouterAction>) {
        self.filling = false;
        let spares: Vec<WorkerId> =
            self.workers.values().filter(|worker| worker.is_spare()).map(|worker| worker.id).collect();
        for id in spares {
            self.release(id, now, actions);
        }
    }

    /// Assigns a worker of `key` to a session: a spare, or a new process.
    pub fn claim(&mut self, key: &Arc<WorkerKey>, now: Duration, actions: &mut Vec<RouterAction>) -> Claim {
        if let Some(wait) = self.circuits.retry_after(key, now) {
            return Claim::Open(wait);
        }
        let spare = self.workers.values_mut().filter(|worker| worker.is_spare() && worker.key == *key);
        // A ready spare is preferred to a starting one.
        if let Some(worker) = spare.min_by_key(|worker| worker.stage != Stage::Ready) {
            worker.bound = true;
            worker.sessions += 1;
            worker.busy_since = now;
            return Claim::Worker(worker.id);
        }
        if self.workers.len() >= self.limits.max_workers {
            return self.replace_spare(key, now, actions);
        }
        let id = self.start(key.clone(), now, actions);
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.bound = true;
            worker.sessions = 1;
        }
        Claim::Worker(id)
    }

    /// With every slot in use, ends a spare of another key to make room.
    fn replace_spare(
        &mut self,
        key: &Arc<WorkerKey>,
        now: Duration,
        actions: &mut Vec<RouterAction>,
    ) -> Claim {
        let spare = self.workers.values().find(|worker| worker.is_spare() && worker.key != *key);
        if let Some(id) = spare.map(|worker| worker.id) {
            self.release(id, now, actions);
        }
        Claim::Full
    }

    fn start(&mut self, key: Arc<WorkerKey>, now: Duration, actions: &mut Vec<RouterAction>) -> WorkerId {
        self.next += 1;
        let id = WorkerId(self.next);
        actions.push(RouterAction::Spawn { worker: id, key: key.clone() });
        let lifetime = self.limits.max_worker_age.map(|age| age.mul_f64(0.9 + 0.2 * self.rng.f64()));
        // Fewer by up to a tenth, so that workers that were started together do not end together.
        let most = self.limits.max_sessions_per_worker;
        let max_sessions = most - self.rng.u64(0..=most / 10);
        let ready_by = now + self.limits.start_timeout;
        self.workers.insert(id, Worker::new(id, key, now, ready_by, lifetime, max_sessions));
        id
    }

    /// The session that a worker was assigned to is called by another id.
    pub fn rename_session(&mut self, from: &SessionId, to: &SessionId) {
        self.leases.rename(from, to);
    }

    /// Gives a worker that starts in place of one that failed at most this long until its handshake.
    pub fn limit_start(&mut self, id: WorkerId, limit: Duration, now: Duration) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.ready_by = worker.ready_by.min(now + limit);
        }
    }

    /// Remembers the first line of a worker that wrote something else before its handshake.
    pub fn note_unexpected(&mut self, id: WorkerId, line: &[u8]) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.unexpected.get_or_insert_with(|| {
                let text = String::from_utf8_lossy(&line[..line.len().min(200)]);
                text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
            });
        }
    }

    /// Records the worker's handshake.
    pub fn note_ready(&mut self, id: WorkerId, now: Duration) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.note_output(now);
            if worker.stage == Stage::Starting {
                worker.stage = Stage::Ready;
                worker.was_ready = true;
            }
        }
    }

    /// The worker has discarded its session: it waits for another one, unless no more are taken.
    pub fn note_discarded(&mut self, id: WorkerId, now: Duration, actions: &mut Vec<RouterAction>) {
        let Some(worker) = self.workers.get_mut(&id).filter(|worker| worker.stage == Stage::Discarding)
        else {
            return;
        };
        worker.note_output(now);
        worker.stage = Stage::Ready;
        worker.bound = false;
        worker.waits_since = now;
        worker.ends_at = None;
        if !self.filling {
            self.release(id, now, actions);
        }
    }

    /// Records that the worker wrote something.
    pub fn note_output(&mut self, id: WorkerId, now: Duration) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.note_output(now);
        }
    }

    /// Records whether a turn runs in the worker.
    pub fn set_busy(&mut self, id: WorkerId, busy: bool, now: Duration) {
        if let Some(worker) = self.workers.get_mut(&id) {
            if worker.busy != busy {
                worker.busy = busy;
                worker.busy_since = now;
                worker.note_output(now);
            }
            if !busy {
                let key = worker.key.clone();
                // A turn that ended proves that this key works.
                self.circuits.record_success(&key);
            }
        }
    }

    /// Takes a worker back from its session. One that may serve another session discards this one and waits
    /// for the next of the same key; otherwise it is released.
    pub fn take_back(&mut self, id: WorkerId, now: Duration, actions: &mut Vec<RouterAction>) {
        let grace = self.limits.kill_after;
        let Some(worker) = self.workers.get_mut(&id).filter(|worker| worker.stage == Stage::Ready) else {
            return self.release(id, now, actions);
        };
        let retirement_reason = worker.retirement_reason(now);
        if retirement_reason.is_some() || worker.busy || !self.filling {
            if let Some(why) = retirement_reason {
                self.note_recycled(why);
            }
            return self.release(id, now, actions);
        }
        worker.stage = Stage::Discarding;
        worker.ends_at = Some((now + grace, ProcessSignal::Terminate));
        self.leases.end(id);
        actions.push(RouterAction::Reply { worker: id, lines: HubMessage::Discard.to_line() });
    }

    /// Releases a worker: closes its input, and signals it if it does not exit.
    pub fn release(&mut self, id: WorkerId, now: Duration, actions: &mut Vec<RouterAction>) {
        let grace = self.limits.kill_after;
        if let Some(worker) = self.workers.get_mut(&id)
            && worker.stage != Stage::Ending
        {
            // A spare that has not finished its handshake has nothing to finish.
            let is_starting = worker.stage == Stage::Starting && !worker.bound;
            worker.stage = Stage::Ending;
            worker.ends_at = Some((now + grace, ProcessSignal::Terminate));
            self.leases.end(id);
            actions.push(if is_starting {
                RouterAction::Signal { worker: id, signal: ProcessSignal::Kill }
            } else {
                RouterAction::CloseInput { worker: id }
            });
        }
    }

    /// The worker was asked to end. Unlike after `release`, it still receives lines: answers to the questions
    /// that it has on its way out.
    pub fn await_end(&mut self, id: WorkerId, now: Duration) {
        let grace = self.limits.kill_after;
        if let Some(worker) = self.workers.get_mut(&id)
            && worker.stage != Stage::Ending
        {
            worker.stage = Stage::Ending;
            worker.ends_at = Some((now + grace, ProcessSignal::Terminate));
        }
    }

    /// Reports the memory of a worker, in bytes. True if its session should give it back; a spare that uses
    /// too much is replaced at once.
    pub fn note_memory(
        &mut self,
        id: WorkerId,
        bytes: u64,
        now: Duration,
        actions: &mut Vec<RouterAction>,
    ) -> bool {
        let too_large = self.limits.max_worker_memory.is_some_and(|limit| bytes > limit);
        let Some(worker) = self.workers.get(&id).filter(|worker| too_large && worker.stage == Stage::Ready)
        else {
            return false;
        };
        if worker.bound {
            return !worker.busy;
        }
        self.note_recycled("memory");
        self.release(id, now, actions);
        false
    }

    /// Counts a worker that is replaced although it did nothing wrong.
    pub fn note_recycled(&mut self, why: &'static str) {
        *self.restarts.entry(why).or_default() += 1;
    }

    /// Kills a worker at once because of a fault.
    pub fn kill(&mut self, id: WorkerId, why: &'static str, now: Duration, actions: &mut Vec<RouterAction>) {
        if let Some(worker) = self.workers.get_mut(&id) {
            self.leases.end(id);
            worker.stage = Stage::Ending;
            worker.fault.get_or_insert(why);
            worker.ends_at = Some((now + self.limits.kill_after, ProcessSignal::Kill));
            let signal = if why == "stalled" { ProcessSignal::Abort } else { ProcessSignal::Kill };
            actions.push(RouterAction::Signal { worker: id, signal });
            if why == "stalled" {
                // A stopped process does not see the abort.
                worker.ends_at = Some((now + Duration::from_millis(200), ProcessSignal::Kill));
            }
        }
    }

    /// Asks a worker to end its turn and exit.
    pub fn terminate(
        &mut self,
        id: WorkerId,
        signal: ProcessSignal,
        now: Duration,
        actions: &mut Vec<RouterAction>,
    ) {
        if let Some(worker) = self.workers.get_mut(&id) {
            self.leases.end(id);
            worker.stage = Stage::Ending;
            worker.ends_at = Some((now + self.limits.kill_after, ProcessSignal::Kill));
            actions.push(RouterAction::Signal { worker: id, signal });
        }
    }

    /// Removes a worker that has exited and whose output was read to the end, and returns it.
    pub fn remove_exited(&mut self, id: WorkerId, exit: &WorkerExit, now: Duration) -> Option<Worker> {
        let worker = self.workers.remove(&id)?;
        self.leases.end(id);
        let expected = matches!(worker.stage, Stage::Discarding | Stage::Ending) && worker.fault.is_none();
        if !expected
            && (worker.busy || worker.stage != Stage::Ready || worker.fault.is_some() || !worker.bound)
        {
            let exit = exit.with_cause(worker.fault);
            *self.restarts.entry(exit.cause.reason()).or_default() += 1;
            let jitter = self.rng.f64();
            let since = if worker.was_ready { worker.busy_since } else { worker.started_at };
            self.circuits.record_failure(&worker.key, exit, now.saturating_sub(since), now, jitter);
        }
        Some(worker)
    }

    /// True if a claim gets a worker at once.
    pub fn has_room(&self) -> bool {
        self.workers.len() < self.limits.max_workers || self.workers.values().any(Worker::is_spare)
    }

    /// How long no worker of the key is started because the last ones failed.
    pub fn retry_after(&self, key: &WorkerKey, now: Duration) -> Option<Duration> {
        self.circuits.retry_after(key, now)
    }

    /// How the last worker of a key failed, if one did.
    pub fn last_failure(&self, key: &WorkerKey) -> Option<&WorkerExit> {
        self.circuits.last_failure(key)
    }

    /// Starts spares up to `min_workers`, as far as there is room. The router calls it only while no
    /// session waits for a slot.
    pub fn fill(&mut self, now: Duration, actions: &mut Vec<RouterAction>) {
        let key = self.default_key.clone();
        if !self.filling || self.circuits.retry_after(&key, now).is_some() {
            return;
        }
        let mut spares =
            self.workers.values().filter(|worker| worker.is_spare() && worker.key == key).count();
        while spares < self.limits.min_workers && self.workers.len() < self.limits.max_workers {
            self.start(key.clone(), now, actions);
            spares += 1;
        }
    }

    /// Handles all expired deadlines: missing handshakes, silent workers, slow exits.
    pub fn tick(&mut self, now: Duration, actions: &mut Vec<RouterAction>) {
        let limits = self.limits.clone();
        let mut faults = Vec::new();
        for worker in self.workers.values_mut() {
            match worker.stage {
                Stage::Starting if now >= worker.ready_by => {
                    faults.push((worker.id, "handshake_timeout"));
                }
                Stage::Discarding | Stage::Ending => {
                    if let Some((at, signal)) = worker.ends_at
                        && now >= at
                    {
                        worker.stage = Stage::Ending;
                        actions.push(RouterAction::Signal { worker: worker.id, signal });
                        worker.ends_at = Some((now + limits.kill_after, ProcessSignal::Kill));
                    }
                }
                Stage::Ready if worker.is_spare() && worker.is_expired(now) => {
                    faults.push((worker.id, "age"));
                }
                Stage::Ready if worker.idle_deadline(&limits).is_some_and(|at| now >= at) => {
                    faults.push((worker.id, "idle"));
                }
                Stage::Ready => {
                    if worker.silent_since.is_some_and(|since| now >= since + limits.heartbeat_timeout) {
                        faults.push((worker.id, "stalled"));
                    } else if worker.silent_since.is_none() && now >= worker.probe_at(&limits) {
                        worker.silent_since = Some(now);
                        actions.push(RouterAction::Probe { worker: worker.id });
                    }
                }
                Stage::Starting => {}
            }
        }
        for (id, why) in faults {
            if matches!(why, "age" | "idle") {
                self.note_recycled(why);
                self.release(id, now, actions);
            } else {
                self.kill(id, why, now, actions);
            }
        }
    }

    /// The kernel itself was suspended for `gap`: workers are not blamed for the silence.
    pub fn extend_deadlines(&mut self, gap: Duration) {
        for worker in self.workers.values_mut() {
            worker.extend_deadlines(gap);
        }
    }

    /// When [`Pool::tick`] is due next.
    pub fn next_deadline(&mut self, now: Duration) -> Option<Duration> {
        let limits = &self.limits;
        let clocks = self.workers.values().filter_map(|worker| worker.deadline(limits)).min();
        let key = self.default_key.clone();
        let retry = self.circuits.retry_after(&key, now).map(|wait| now + wait);
        clocks.into_iter().chain(retry).min()
    }
}
