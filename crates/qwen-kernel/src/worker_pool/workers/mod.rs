//! Workers as the router sees them: something that offers slots, grants leases and takes lines.
//!
//! Rationale: a lease is an epoch of one incarnation of whoever runs the workers. Lines under a lease that is
//! no longer valid reach no one. The interface exposes no pid, path or pipe, and every call may be repeated,
//! so that workers on another machine can implement it.

mod local;
mod memory;

use std::time::Duration;

use qwen_events::SessionId;

pub(super) use local::Leases;
pub use local::LocalWorkers;
pub use memory::MemoryWorkers;

/// The right to send lines to a session's worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Increases with every lease of the session.
    pub epoch: u64,
    /// Differs after a restart of whoever runs the workers.
    pub incarnation: u64,
}

/// What could be claimed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Slots in which a worker could be started.
    pub free: usize,
    /// Workers that wait for a session.
    pub warm: usize,
}

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    Lease(Lease),
    /// Every slot is in use.
    Busy,
    /// Workers with this profile fail repeatedly; the next attempt is allowed after this time.
    Later(Duration),
}

/// An instruction that is not a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerControl {
    /// No more lines follow.
    EndInput,
    /// End the turn and the worker.
    Terminate,
}

/// Runs workers for sessions. Calls under a lease return false if the lease is not valid.
pub trait Workers {
    /// What a session's worker is started with.
    type Profile;

    /// What could be claimed now.
    fn offer(&self) -> Offer;

    /// Claims a worker for a session. A session that has a lease gets the same one again.
    fn claim(&mut self, session: &SessionId, profile: &Self::Profile) -> Granted;

    /// Sends whole lines to the session's worker.
    fn input(&mut self, session: &SessionId, lease: Lease, lines: Vec<u8>) -> bool;

    /// Gives the session's worker an instruction.
    fn control(&mut self, session: &SessionId, lease: Lease, control: WorkerControl) -> bool;

    /// Gives the worker back. The lease is not valid any more.
    fn release(&mut self, session: &SessionId, lease: Lease) -> bool;
}

#[cfg(test)]
mod conformance;
