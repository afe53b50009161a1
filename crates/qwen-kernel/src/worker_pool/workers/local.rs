//! The workers of this process's pool.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::SessionId;

use super::{Granted, Lease, Offer, WorkerControl, Workers};
use crate::action::{ProcessSignal, RouterAction};
use crate::worker_pool::{Claim, Pool, WorkerId, WorkerKey};

/// The leases of a pool.
#[derive(Debug, Default)]
pub(in crate::worker_pool) struct Leases {
    incarnation: u64,
    last_epoch: u64,
    held: HashMap<SessionId, (Lease, WorkerId)>,
}

impl Leases {
    pub fn new(incarnation: u64) -> Self {
        Self { incarnation, ..Self::default() }
    }

    /// The session is called by another id.
    pub fn rename(&mut self, from: &SessionId, to: &SessionId) {
        if let Some(lease) = self.held.remove(from) {
            self.held.insert(to.clone(), lease);
        }
    }

    /// The worker has exited or is about to: nothing can be sent to it any more.
    pub fn end(&mut self, worker: WorkerId) {
        self.held.retain(|_, (_, held)| *held != worker);
    }
}

/// A pool at a moment: its answers are actions for its driver.
pub struct LocalWorkers<'a> {
    pool: &'a mut Pool,
    now: Duration,
    actions: &'a mut Vec<RouterAction>,
}

impl<'a> LocalWorkers<'a> {
    pub fn new(pool: &'a mut Pool, now: Duration, actions: &'a mut Vec<RouterAction>) -> Self {
        Self { pool, now, actions }
    }

    /// The worker of a valid lease.
    pub fn worker(&self, session: &SessionId, lease: Lease) -> Option<WorkerId> {
        let (held, worker) = self.pool.leases.held.get(session)?;
        (*held == lease).then_some(*worker)
    }
}

impl Workers for LocalWorkers<'_> {
    type Profile = Arc<WorkerKey>;

    fn offer(&self) -> Offer {
        let all = self.pool.workers.len();
        let warm = self.pool.workers().filter(|worker| worker.is_spare()).count();
        Offer { free: self.pool.limits.max_workers.saturating_sub(all), warm }
    }

    fn claim(&mut self, session: &SessionId, profile: &Self::Profile) -> Granted {
        if let Some((lease, _)) = self.pool.leases.held.get(session) {
            return Granted::Lease(*lease);
        }
        match self.pool.claim(profile, self.now, self.actions) {
            Claim::Worker(worker) => {
                let leases = &mut self.pool.leases;
                leases.last_epoch += 1;
                let lease = Lease { epoch: leases.last_epoch, incarnation: leases.incarnation };
                leases.held.insert(session.clone(), (lease, worker));
                Granted::Lease(lease)
            }
            Claim::Full => Granted::Busy,
            Claim::Open(wait) => Granted::Later(wait),
        }
    }

    fn input(&mut self, session: &SessionId, lease: Lease, lines: Vec<u8>) -> bool {
        let Some(worker) = self.worker(session, lease) else { return false };
        self.actions.push(RouterAction::Write { worker, lines });
        true
    }

    fn control(&mut self, session: &SessionId, lease: Lease, control: WorkerControl) -> bool {
        let Some(worker) = self.worker(session, lease) else { return false };
        match control {
            WorkerControl::EndInput => self.actions.push(RouterAction::CloseInput { worker }),
            WorkerControl::Terminate => {
                self.pool.terminate(worker, ProcessSignal::Terminate, self.now, self.actions);
            }
        }
        true
    }

    fn release(&mut self, session: &SessionId, lease: Lease) -> bool {
        let Some(worker) = self.worker(session, lease) else { return false };
        self.pool.take_back(worker, self.now, self.actions);
        true
    }
}
