//! The phases of a session: how it is connected to workers, and whether it is being closed.

use std::time::Duration;

use super::Session;
use crate::action::ClientRequest;
use crate::worker_pool::{Lease, WorkerId};

/// How a session is connected to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::router) enum Assignment {
    /// It has no worker and waits for none.
    Unassigned,
    /// It waits for a slot.
    Queued { since: Duration },
    /// It has a worker.
    Assigned {
        worker: WorkerId,
        /// The right to send lines to that worker.
        lease: Lease,
        /// True while the worker accepts lines.
        is_ready: bool,
    },
    /// Its worker is about to end or to discard it. The next one must wait for that, because this one holds the
    /// log.
    Leaving(WorkerId),
}

/// Whether a session is being closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::router) enum Lifecycle {
    Open,
    /// The client's request is answered when the last worker has exited.
    Closing(ClientRequest),
    /// It only waits for its last lines to be stored.
    Closed,
}

impl Session {
    /// The worker to which the session's lines go.
    pub fn worker(&self) -> Option<WorkerId> {
        match self.assignment {
            Assignment::Assigned { worker, .. } => Some(worker),
            Assignment::Unassigned | Assignment::Queued { .. } | Assignment::Leaving(_) => None,
        }
    }

    /// The worker that has the session or is about to leave it.
    pub fn linked_worker(&self) -> Option<WorkerId> {
        match self.assignment {
            Assignment::Assigned { worker, .. } | Assignment::Leaving(worker) => Some(worker),
            Assignment::Unassigned | Assignment::Queued { .. } => None,
        }
    }

    /// True while its worker accepts lines.
    pub fn is_ready(&self) -> bool {
        matches!(self.assignment, Assignment::Assigned { is_ready: true, .. })
    }

    pub fn is_leaving(&self) -> bool {
        matches!(self.assignment, Assignment::Leaving(_))
    }

    /// The time since which it waits for a slot.
    pub fn queued_since(&self) -> Option<Duration> {
        match self.assignment {
            Assignment::Queued { since } => Some(since),
            Assignment::Unassigned | Assignment::Assigned { .. } | Assignment::Leaving(_) => None,
        }
    }

    /// Notes that its worker accepts lines.
    pub fn set_ready(&mut self) {
        if let Assignment::Assigned { is_ready, .. } = &mut self.assignment {
            *is_ready = true;
        }
    }

    /// Stops waiting for a slot.
    pub fn leave_queue(&mut self) {
        if let Assignment::Queued { .. } = self.assignment {
            self.assignment = Assignment::Unassigned;
        }
    }

    /// Gives up a worker that has exited or is ignored from now on.
    pub fn lose_worker(&mut self) {
        self.assignment = Assignment::Unassigned;
        self.setup.replays = true;
    }

    /// Begins to part from its worker, and returns it with its lease.
    pub fn part_from_worker(&mut self) -> Option<(WorkerId, Lease)> {
        let Assignment::Assigned { worker, lease, .. } = self.assignment else { return None };
        self.assignment = Assignment::Leaving(worker);
        self.setup.replays = true;
        Some((worker, lease))
    }

    /// Notes that a worker has left, if the session waits for that.
    pub fn finish_leaving(&mut self, worker: WorkerId) {
        if self.assignment == Assignment::Leaving(worker) {
            self.assignment = Assignment::Unassigned;
        }
    }

    pub fn is_closing(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::Closing(_))
    }

    /// True once it was closed and only waits for its last lines to be stored.
    pub fn is_closed(&self) -> bool {
        self.lifecycle == Lifecycle::Closed
    }

    /// Removes the request to close it, if there is one.
    pub fn take_close_request(&mut self) -> Option<ClientRequest> {
        match std::mem::replace(&mut self.lifecycle, Lifecycle::Open) {
            Lifecycle::Closing(request) => Some(request),
            other => {
                self.lifecycle = other;
                None
            }
        }
    }
}
