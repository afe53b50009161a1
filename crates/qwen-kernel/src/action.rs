//! What the state machines want done. Whoever drives them does it.

use std::sync::Arc;

use qwen_events::SessionId;

use crate::worker_pool::{WorkerId, WorkerKey};

/// A signal to a worker's process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessSignal {
    /// SIGTERM: finish and go.
    Terminate,
    /// SIGABRT: leave a trace of where it hangs.
    Abort,
    /// SIGKILL.
    Kill,
}

/// Something to do outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start a process for `key` and report it under this name.
    Spawn {
        /// The name.
        worker: WorkerId,
        /// What to start.
        key: Arc<WorkerKey>,
    },
    /// Write whole lines to its standard input.
    Write {
        /// The worker.
        worker: WorkerId,
        /// The lines.
        lines: Vec<u8>,
    },
    /// Ask it whether it is alive.
    Probe {
        /// The worker.
        worker: WorkerId,
    },
    /// Close its standard input.
    CloseInput {
        /// The worker.
        worker: WorkerId,
    },
    /// Signal its process group.
    Signal {
        /// The worker.
        worker: WorkerId,
        /// The signal.
        signal: ProcessSignal,
    },
    /// Become the owner of a session's numbered lines and report the outcome.
    TakeEvents {
        /// The session.
        session: SessionId,
    },
    /// Append numbered lines and report the outcome.
    Append {
        /// The session.
        session: SessionId,
        /// The owner's epoch.
        epoch: u64,
        /// The number of the first line.
        first: u64,
        /// Whole lines, each with its line break.
        lines: Vec<u8>,
        /// The turn that is open after these lines.
        open: Option<String>,
    },
    /// Read a session's numbered lines behind `after` for the request.
    ReadEvents {
        /// The session.
        session: SessionId,
        /// The last number that the client has.
        after: u64,
        /// The client's request.
        request_id: String,
    },
    /// Everything is over; end with this exit code.
    Exit(u8),
}
