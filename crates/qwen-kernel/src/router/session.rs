//! The router's state of one session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use qwen_events::SessionId;

use super::TurnSpan;
use super::commits::OwnedLogs;
use super::numbering::Numbering;
use super::recovery::Recovery;
use crate::action::ClientRequest;
use crate::front::OpenParts;
use crate::worker_pool::{Lease, WorkerId, WorkerKey};

/// A prompt that has no terminal record yet.
#[derive(Debug)]
pub(super) struct Pending {
    /// The prompt's number in the session.
    pub number: u64,
    /// The id that the client assigned.
    pub prompt_id: Option<String>,
    /// The line, until the turn ends: it is sent again if the worker dies before the turn started.
    pub line: Vec<u8>,
    /// True once it was written to the session's current worker.
    pub sent: bool,
    /// True once that worker has read it, as shown by its answer to the preceding probe.
    pub seen: bool,
    /// `resend: true`
    pub joins: bool,
    /// `retry: "safe"`
    pub retry_safe: bool,
    /// True if it joins a running turn.
    pub steers: bool,
    /// True once a tool started in its turn.
    pub had_effects: bool,
    /// True if it was also sent to an earlier worker.
    pub resent: bool,
    /// The time of arrival.
    pub at: Duration,
    pub span: Option<Box<dyn TurnSpan>>,
}

/// A line that waits for the session's worker.
#[derive(Debug)]
pub(super) enum Waiting {
    /// The prompt with this number.
    Prompt(u64),
    /// A heartbeat request, which is answered in any case.
    Heartbeat(Vec<u8>),
    Line(Vec<u8>),
}

/// A control request of the worker that the client has not answered.
#[derive(Debug)]
pub(super) struct Question {
    /// The line, and its number if lines are numbered: clients that attach receive it again.
    pub line: Vec<u8>,
    pub seq: u64,
}

#[derive(Debug)]
pub(super) struct Session {
    pub id: SessionId,
    pub tenant: String,
    pub key: Arc<WorkerKey>,
    pub worker: Option<WorkerId>,
    /// The right to send lines to that worker.
    pub lease: Option<Lease>,
    /// True while the worker accepts lines.
    pub is_ready: bool,
    /// A worker of this session that is about to end; the next one must wait for that, because it holds the
    /// log.
    pub leaving: Option<WorkerId>,
    pub pending: VecDeque<Pending>,
    pub backlog: VecDeque<Waiting>,
    /// The running turn, by the id in its lines.
    pub turn: Option<String>,
    /// What the client has seen begin and not end in it.
    pub open_parts: OpenParts,
    pub questions: BTreeMap<String, Question>,
    /// The client's control requests that the worker has not answered.
    pub unanswered: Vec<ClientRequest>,
    /// The client's `initialize`, which is replayed to a new worker.
    pub initialize: Option<Vec<u8>>,
    /// The client's last request of each kind that changes the session.
    pub settings: BTreeMap<String, Vec<u8>>,
    /// True if it had a worker before.
    pub had_worker: bool,
    /// True if `initialize` and `settings` must be replayed to the next worker.
    pub replays: bool,
    /// The session to fork from, until this session's log exists.
    pub fork_from: Option<String>,
    pub turns: u64,
    pub prompts: u64,
    pub recovery: Recovery,
    pub active_at: Duration,
    /// The time since which it waits for a slot.
    pub queued_at: Option<Duration>,
    /// The prompt whose refusal would come between the answers to two probes.
    pub judging: Option<u64>,
    /// The close request of the client.
    pub closing: Option<ClientRequest>,
    pub numbering: Numbering,
    pub logs: OwnedLogs,
    /// True if it was closed and only waits for its last lines to be stored.
    pub forgotten: bool,
    /// True if its log is stored, so that its worker may be released.
    pub is_resumable: bool,
    /// The protocol version of its last worker, if that is not supported.
    pub foreign_version: Option<String>,
    /// Why its last worker refused to start.
    pub refusal: Option<String>,
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
            worker: None,
            lease: None,
            is_ready: false,
            leaving: None,
            pending: VecDeque::new(),
            backlog: VecDeque::new(),
            turn: None,
            open_parts: OpenParts::default(),
            questions: BTreeMap::new(),
            unanswered: Vec::new(),
            initialize: None,
            settings: BTreeMap::new(),
            had_worker: false,
            replays: false,
            fork_from: None,
            turns: 0,
            prompts: 0,
            recovery: Recovery::default(),
            active_at: now,
            queued_at: None,
            judging: None,
            closing: None,
            numbering: Numbering::default(),
            logs: OwnedLogs::default(),
            forgotten: false,
            is_resumable,
            foreign_version: None,
            refusal: None,
        }
    }

    /// True if a turn runs, or a prompt was sent to the worker.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.pending.iter().any(|prompt| prompt.sent)
    }

    /// True if something waits for a worker.
    pub fn has_work(&self) -> bool {
        !self.backlog.is_empty() || self.recovery.continues
    }

    /// True if no work is in flight.
    pub fn is_idle(&self) -> bool {
        self.turn.is_none()
            && self.pending.is_empty()
            && self.backlog.is_empty()
            && self.unanswered.is_empty()
            && self.questions.is_empty()
    }

    /// The id of the turn that a prompt became or would have become.
    pub fn turn_name(&self, prompt: &Pending) -> String {
        prompt.prompt_id.clone().unwrap_or_else(|| format!("{}########{}", self.id, self.turns + 1))
    }

    /// The index in `pending` of the turn with this id.
    pub fn find_pending(&self, prompt_id: Option<&str>) -> Option<usize> {
        let named = prompt_id
            .and_then(|id| self.pending.iter().position(|prompt| prompt.prompt_id.as_deref() == Some(id)));
        named
            .or_else(|| self.pending.iter().position(|prompt| prompt.sent && prompt.prompt_id.is_none()))
            .or_else(
                // Wires without turn ids run prompts in order.
                || {
                    if prompt_id.is_none_or(str::is_empty) {
                        (!self.pending.is_empty()).then_some(0)
                    } else {
                        None
                    }
                },
            )
    }
}
