//! One session, as the router sees it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use qwen_events::SessionId;

use super::numbering::Numbering;
use crate::worker_pool::{WorkerId, WorkerKey};

/// A prompt that has no terminal record yet.
#[derive(Debug)]
pub(super) struct Pending {
    /// Counts the prompts of the session.
    pub number: u64,
    /// The name that the client gave it.
    pub prompt_id: Option<String>,
    /// The line, until the turn ends: it is sent again when the worker dies before the turn started.
    pub line: Vec<u8>,
    /// It was written to the worker that the session has now.
    pub sent: bool,
    /// That worker has read it, as its answer to the probe in front of it shows.
    pub seen: bool,
    /// `retry: "safe"`
    pub retry_safe: bool,
    /// A tool started in its turn.
    pub had_effects: bool,
    /// It was sent to an earlier worker, too.
    pub resent: bool,
    /// When it came.
    pub at: Duration,
}

/// A line that waits for the session's worker.
#[derive(Debug)]
pub(super) enum Waiting {
    /// The prompt of this number.
    Prompt(u64),
    /// Anything else.
    Line(Vec<u8>),
}

/// A client's control request that the worker has not answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub request_id: String,
    pub nested: bool,
}

/// A question of the worker that the client has not answered.
#[derive(Debug)]
pub(super) struct Question {
    /// The line, and its number where lines are numbered: whoever attaches sees it again.
    pub line: Vec<u8>,
    pub seq: u64,
}

#[derive(Debug)]
pub(super) struct Session {
    pub id: SessionId,
    pub tenant: String,
    pub key: Arc<WorkerKey>,
    pub worker: Option<WorkerId>,
    /// The worker takes lines.
    pub is_ready: bool,
    /// A worker of this session that is about to end; the next one waits for that, because it holds the log.
    pub leaving: Option<WorkerId>,
    pub pending: VecDeque<Pending>,
    pub backlog: VecDeque<Waiting>,
    /// The turn that runs, by the name that its lines carry.
    pub turn: Option<String>,
    pub questions: BTreeMap<String, Question>,
    pub asked: Vec<Asked>,
    /// The client's `initialize`, which a new worker is given again.
    pub initialize: Option<Vec<u8>>,
    /// The client's last request of each kind that changes the session.
    pub settings: BTreeMap<String, Vec<u8>>,
    /// It had a worker before.
    pub had_worker: bool,
    /// The next worker must be told `initialize` and `settings` again.
    pub replays: bool,
    /// The new worker must go on with the turn that was cut.
    pub continues: bool,
    /// The session that it begins with, until its own log is there.
    pub fork_from: Option<String>,
    pub turns: u64,
    pub prompts: u64,
    /// Workers that died under it without finishing a turn.
    pub deaths: u32,
    pub quarantined_until: Option<Duration>,
    pub active_at: Duration,
    /// Waits for a slot since then.
    pub queued_at: Option<Duration>,
    /// Prompts that are being judged between two probes.
    pub judging: Option<u64>,
    /// The request of the client that closed it.
    pub closing: Option<Asked>,
    pub numbering: Numbering,
    /// It was closed, and only waits for its last lines to be stored.
    pub forgotten: bool,
    /// Its log is kept, so that its worker may be given back.
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
            worker: None,
            is_ready: false,
            leaving: None,
            pending: VecDeque::new(),
            backlog: VecDeque::new(),
            turn: None,
            questions: BTreeMap::new(),
            asked: Vec::new(),
            initialize: None,
            settings: BTreeMap::new(),
            had_worker: false,
            replays: false,
            continues: false,
            fork_from: None,
            turns: 0,
            prompts: 0,
            deaths: 0,
            quarantined_until: None,
            active_at: now,
            queued_at: None,
            judging: None,
            closing: None,
            numbering: Numbering::default(),
            forgotten: false,
            is_resumable,
        }
    }

    /// A turn runs, or a prompt was handed to the worker.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.pending.iter().any(|prompt| prompt.sent)
    }

    /// Nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.turn.is_none()
            && self.pending.is_empty()
            && self.backlog.is_empty()
            && self.asked.is_empty()
            && self.questions.is_empty()
    }

    /// The name of the turn that a prompt became or would have become.
    pub fn turn_name(&self, prompt: &Pending) -> String {
        prompt.prompt_id.clone().unwrap_or_else(|| format!("{}########{}", self.id, self.turns + 1))
    }

    /// Where in `pending` the turn of this name is.
    pub fn find_pending(&self, prompt_id: Option<&str>) -> Option<usize> {
        let named = prompt_id
            .and_then(|id| self.pending.iter().position(|prompt| prompt.prompt_id.as_deref() == Some(id)));
        named
            .or_else(|| self.pending.iter().position(|prompt| prompt.sent && prompt.prompt_id.is_none()))
            .or_else(
                // Wires without names for turns run prompts in order.
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
