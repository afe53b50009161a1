//! Actions that the state machines request. Their driver executes them.

use std::sync::Arc;

use qwen_events::SessionId;

use crate::store::LogCommit;
use crate::worker_pool::{WorkerId, WorkerKey};

/// A control request of the client that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRequest {
    pub request_id: String,
    /// True if the request wrapped its body in `request`; the answer then has that form too.
    pub nested: bool,
}

/// A signal to a worker's process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessSignal {
    /// SIGTERM: finish and exit.
    Terminate,
    /// SIGINT: cancel and exit.
    Interrupt,
    /// SIGABRT: leave evidence of where the process hangs.
    Abort,
    Kill,
}

/// What the router asks its owner to do. The owner performs actions in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouterAction {
    /// Starts a process for `key` and reports it under this id.
    Spawn { worker: WorkerId, key: Arc<WorkerKey> },
    /// Writes whole lines to the worker's standard input.
    Write { worker: WorkerId, lines: Vec<u8> },
    /// Sends a ping on the worker's commit socket, and reports its memory.
    Probe { worker: WorkerId },
    /// Writes whole lines to the worker's commit socket.
    Reply { worker: WorkerId, lines: Vec<u8> },
    /// Closes the worker's standard input.
    CloseInput { worker: WorkerId },
    /// Signals the worker's process group.
    Signal { worker: WorkerId, signal: ProcessSignal },
    /// Takes ownership of a session's numbered lines and reports the outcome.
    TakeEvents {
        session: SessionId,
        /// True if the ownership is taken even from another process that drives the session at this moment.
        from_driver: bool,
        /// True if the ownership is taken only of a session that exists already.
        if_stored: bool,
    },
    /// Appends numbered lines and reports the outcome.
    Append {
        session: SessionId,
        /// The epoch under which the owner appends; the store refuses an older one.
        epoch: u64,
        /// The number of the first line.
        first: u64,
        /// Whole lines, each with its line break.
        lines: Vec<u8>,
        /// The turn that is open after these lines.
        open: Option<String>,
    },
    /// Reads about `limit` bytes of a session's numbered lines after `after`, for a client that attached.
    ReadEvents { session: SessionId, after: u64, limit: usize },
    /// Finds out whether the process that drives a followed session has died in a turn, and reports it.
    CheckOwner { session: SessionId },
    /// Gives up the ownership of a session's numbered lines.
    ReleaseEvents { session: SessionId },
    /// Finds out whether another process has the session whose worker starts a turn without a log, and reports
    /// it.
    CheckDriver { worker: WorkerId, session: SessionId, commit: u64, prompt_id: String },
    /// Commits a worker's log and reports the outcome.
    CommitLog { worker: WorkerId, commit: LogCommit },
    /// Gives the ownership of a log up.
    ReleaseLog { worker: WorkerId, log: SessionId, epoch: u64 },
    /// Stops or resumes reading the session's worker, because its client reads slowly.
    SetPaused { session: SessionId, paused: bool },
    /// Reports an error to the user, on standard error.
    Report(String),
    /// Passes a warning of a worker on to the user.
    Warn {
        /// The kind of warning.
        code: String,
        text: String,
    },
    /// All work is finished; the process exits with this code.
    Exit(u8),
}
