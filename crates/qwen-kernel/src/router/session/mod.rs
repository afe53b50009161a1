//! The router's state of one session.

mod assignment;
mod prompts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::SessionId;

pub(super) use self::assignment::{Assignment, Lifecycle};
pub(super) use self::prompts::{Pending, Prompts, Waiting};
use super::commits::OwnedLogs;
use super::numbering::Numbering;
use super::recovery::Recovery;
use crate::action::ClientRequest;
use crate::worker_pool::WorkerKey;

/// A control request of the worker that the client has not answered.
#[derive(Debug)]
pub(super) struct Question {
    /// The line, and its number if lines are numbered: clients that attach receive it again.
    pub line: Vec<u8>,
    pub seq: u64,
}

/// Requests without an answer, in both directions.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    /// The worker's questions, by request id.
    pub questions: BTreeMap<String, Question>,
    /// The client's control requests that the worker has not answered.
    pub unanswered: Vec<ClientRequest>,
}

/// What the client has set up, which a new worker must be told.
#[derive(Debug, Default)]
pub(super) struct Setup {
    /// The client's `initialize`.
    pub initialize: Option<Vec<u8>>,
    /// The client's last request of each kind that changes the session.
    pub settings: BTreeMap<String, Vec<u8>>,
    /// True if the session had a worker before.
    pub had_worker: bool,
    /// True if the next worker must receive it all.
    pub replays: bool,
}

#[derive(Debug)]
pub(super) struct Session {
    pub id: SessionId,
    pub tenant: String,
    pub key: Arc<WorkerKey>,
    pub assignment: Assignment,
    pub lifecycle: Lifecycle,
    pub prompts: Prompts,
    pub requests: OpenRequests,
    pub setup: Setup,
    pub recovery: Recovery,
    pub numbering: Numbering,
    pub logs: OwnedLogs,
    /// The time of the last activity.
    pub active_at: Duration,
    /// True if its log is stored, so that its worker may be released.
    pub is_resumable: bool,
}

impl Session {
    pub fn new(id: SessionId, tenant: String, key: Arc<WorkerKey>, now: Duration) -> Self {
        let is_resumable = !key.spec.args.iter().any(|arg| {
            arg == "--no-session-persistence"
                || arg == "--no-chat-recording"
                || arg.starts_with("--chat-recording")
        });
        Self {
            id,
            tenant,
            key,
            assignment: Assignment::Unassigned,
            lifecycle: Lifecycle::Open,
            prompts: Prompts::default(),
            requests: OpenRequests::default(),
            setup: Setup::default(),
            recovery: Recovery::default(),
            numbering: Numbering::default(),
            logs: OwnedLogs::default(),
            active_at: now,
            is_resumable,
        }
    }

    /// True if a turn runs, or a prompt was sent to the worker.
    pub fn is_busy(&self) -> bool {
        self.prompts.is_busy()
    }

    /// True if something waits for a worker.
    pub fn has_work(&self) -> bool {
        !self.prompts.backlog.is_empty() || self.recovery.continues
    }

    /// True if no work is in flight.
    pub fn is_idle(&self) -> bool {
        self.prompts.is_empty() && self.requests.unanswered.is_empty() && self.requests.questions.is_empty()
    }

    /// The id of the turn that a prompt became or would have become.
    pub fn turn_name(&self, prompt: &Pending) -> String {
        prompt.prompt_id.clone().unwrap_or_else(|| format!("{}########{}", self.id, self.prompts.ended + 1))
    }
}
