//! The router: which session's line goes to which worker, and what a client is told when a worker cannot answer.
//!
//! Rationale: like the pool, the router is a state machine without I/O. Its inputs are lines, exits and the time; its
//! outputs are bytes for the client and [`Action`]s. A session stays with its worker while that lives. Every prompt that was
//! accepted is held until its terminal record passed, so that a dead worker costs the running turn at most: the router ends
//! that turn in the worker's place, and hands what was queued behind it to the next worker.

mod admission;
mod exits;
mod input;
mod numbering;
mod output;
mod requests;
mod session;
mod status;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind, SessionId};

pub use self::input::HUB_CAPABILITIES;
pub use self::numbering::Appended;
use self::session::{Asked, Pending, Question, Session, Waiting};
use crate::action::Action;
use crate::front::{Front, LineWriter};
use crate::metrics::Metrics;
use crate::worker_pool::{Pool, WorkerId, WorkerKey};

/// What a client says about a session when it opens it.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct SessionOptions {
    /// The working directory.
    pub cwd: Option<String>,
    /// Further flags for the worker.
    pub args: Vec<String>,
    /// Variables for the worker; `null` removes one.
    pub env: BTreeMap<String, Option<String>>,
    /// Settings of this session alone.
    pub settings_profile: Option<serde_json::Value>,
    /// Begin with what this session said, and leave it as it is.
    pub fork_from: Option<String>,
}

impl SessionOptions {
    /// Adds the options to an `open` request.
    pub(crate) fn write(&self, request: &mut serde_json::Value) {
        for (key, value) in [
            ("cwd", serde_json::json!(self.cwd)),
            ("args", serde_json::json!(self.args)),
            ("env", serde_json::json!(self.env)),
            ("settings_profile", serde_json::json!(self.settings_profile)),
            ("fork_from", serde_json::json!(self.fork_from)),
        ] {
            if !value.is_null() {
                request[key] = value;
            }
        }
    }
}

/// Makes the key that workers of a session are started with.
pub trait WorkerKeys {
    /// The key of a tenant's session with these options.
    fn key(&mut self, tenant: &str, options: &SessionOptions) -> Result<Arc<WorkerKey>, ErrorInfo>;
}

/// Who the hub is, for `hub/status`.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// A name that stays.
    pub id: String,
    /// A name of this process.
    pub incarnation: String,
    /// The program's version.
    pub version: String,
}

/// The router.
pub struct Router {
    front: Arc<dyn Front>,
    writer: LineWriter,
    keys: Box<dyn WorkerKeys>,
    identity: Identity,
    pool: Pool,
    sessions: HashMap<SessionId, Session>,
    /// Which session a worker serves.
    serves: HashMap<WorkerId, SessionId>,
    /// Sessions that wait for a slot, in the order of their arrival.
    queue: VecDeque<SessionId>,
    /// Which sessions have a question of this id open.
    questions: HashMap<String, Vec<SessionId>>,
    /// Sessions that were closed, the latest last.
    closed: VecDeque<SessionId>,
    default_session: SessionId,
    /// The whole connection asked for numbers.
    sequence: bool,
    /// Requests of clients that wait for every worker of a session to be gone.
    eof: bool,
    drain_until: Option<Duration>,
    exit_code: u8,
    done: bool,
    probes: u64,
    out: Vec<u8>,
    actions: Vec<Action>,
    now: Duration,
    /// When the last computed deadline is due, to notice that we stood still.
    wake_at: Option<Duration>,
    deadline_changed: bool,
    /// Lines that workers wrote after the kernel gave them up.
    ignored: HashSet<WorkerId>,
    /// Sessions whose store answered `unknown` and must be asked again, and when.
    retries: Vec<(Duration, SessionId)>,
    metrics: Metrics,
    recorder: Option<Recorder>,
    /// Structured log records that nobody has taken yet; none where nobody logs.
    log: Option<Vec<serde_json::Value>>,
}

/// Is shown every line of every session: the session, whether it came from the client, and the line.
pub type Recorder = Box<dyn FnMut(&SessionId, bool, &[u8])>;

impl Router {
    /// A router over an empty pool. `default_session` takes the lines that name none.
    pub fn new(
        front: Arc<dyn Front>,
        writer: LineWriter,
        keys: Box<dyn WorkerKeys>,
        pool: Pool,
        identity: Identity,
        default_session: SessionId,
    ) -> Self {
        Self {
            front,
            writer,
            keys,
            identity,
            pool,
            sessions: HashMap::new(),
            serves: HashMap::new(),
            queue: VecDeque::new(),
            questions: HashMap::new(),
            closed: VecDeque::new(),
            default_session,
            sequence: false,
            eof: false,
            drain_until: None,
            exit_code: 0,
            done: false,
            probes: 0,
            out: Vec::new(),
            actions: Vec::new(),
            now: Duration::ZERO,
            wake_at: None,
            deadline_changed: true,
            ignored: HashSet::new(),
            retries: Vec::new(),
            metrics: Metrics::default(),
            recorder: None,
            log: None,
        }
    }

    /// Keeps structured log records from here on, for [`Router::take_log`].
    pub fn start_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The log records since the last call.
    pub fn take_log(&mut self) -> Vec<serde_json::Value> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Shows every line of every session to `recorder` from here on.
    pub fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Begins: the handshake, and the spares.
    pub fn start(&mut self, now: Duration) {
        self.now = now;
        if self.front.has_handshake() {
            let line = self.writer.handshake(&self.default_session);
            self.out.extend_from_slice(&line);
        }
        self.fill_spares();
        self.deadline_changed = true;
    }

    /// What clients are to be sent, taken.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// How many bytes wait for the client.
    pub fn output_len(&self) -> usize {
        self.out.len()
    }

    /// What is to be done, taken.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// The pool, to look at.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Counters and histograms.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// A line that a live worker answers at once.
    pub fn probe(&self) -> Option<Vec<u8>> {
        self.front.probe(0)
    }

    /// The metrics as Prometheus reads them.
    pub fn prometheus(&self) -> String {
        self.metrics.prometheus(&self.pool, self.queue.len())
    }

    /// True once everything is over.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The session of a worker.
    pub fn session_of(&self, worker: WorkerId) -> Option<&SessionId> {
        self.serves.get(&worker)
    }

    /// When [`Router::tick`] is due; none when nothing changed since the last answer.
    pub fn next_deadline(&mut self) -> Option<Option<Duration>> {
        if !std::mem::take(&mut self.deadline_changed) {
            return None;
        }
        let limits = self.pool.limits().clone();
        let pool = self.pool.next_deadline(self.now);
        let idle = self.sessions.values().filter_map(|session| {
            let queued = session.queued_at.map(|at| at + limits.queue_timeout);
            let rests = session.worker.is_some() && session.is_idle() && session.is_resumable;
            queued.or_else(|| rests.then(|| session.active_at + limits.idle_timeout))
        });
        let retry = self.retries.iter().map(|(at, _)| *at);
        self.wake_at = idle.chain(pool).chain(self.drain_until).chain(retry).min();
        Some(self.wake_at)
    }

    /// Looks at every clock.
    pub fn tick(&mut self, now: Duration) {
        let late = self.wake_at.map_or(Duration::ZERO, |at| now.saturating_sub(at));
        self.now = now;
        self.deadline_changed = true;
        if late > Duration::from_secs(1) {
            // We were stopped, or the machine slept: workers could not be heard.
            self.pool.excuse(late);
        }
        self.pool.tick(now, &mut self.actions);
        self.expire_queue();
        self.release_resting();
        self.retry_appends();
        if self.drain_until.is_some_and(|at| now >= at) {
            self.end_drain();
        }
        self.serve_queue();
        self.fill_spares();
        self.finish_if_over();
    }

    /// The client sends no more: what was accepted is finished, then everything ends.
    pub fn client_eof(&mut self, now: Duration) {
        self.now = now;
        self.eof = true;
        self.deadline_changed = true;
        self.pool.stop_filling(now, &mut self.actions);
        let ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for id in ids {
            self.close_input_if_done(&id);
        }
        self.finish_if_over();
    }

    /// Ends in good order: no new prompts, and what runs has [`crate::PoolLimits::drain_timeout`] to finish.
    pub fn drain(&mut self, now: Duration, exit_code: u8) {
        self.now = now;
        self.deadline_changed = true;
        self.exit_code = exit_code;
        if self.drain_until.is_some() {
            self.drain_until = Some(now);
            self.end_drain();
            return;
        }
        self.drain_until = Some(now + self.pool.limits().drain_timeout);
        self.pool.stop_filling(now, &mut self.actions);
        self.release_idle_for_drain();
        self.finish_if_over();
    }

    /// The limits were changed.
    pub fn set_limits(&mut self, limits: crate::PoolLimits, now: Duration) {
        self.now = now;
        self.pool.set_limits(limits);
        self.deadline_changed = true;
        // Sessions that wait come before spares, which would take the slot again.
        self.serve_queue();
        self.fill_spares();
    }

    /// With the input at its end, a worker whose session has nothing left to send is told so.
    fn close_input_if_done(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get(id) else { return };
        if self.eof
            && session.backlog.is_empty()
            && let Some(worker) = session.worker.filter(|_| session.is_ready)
        {
            self.actions.push(Action::CloseInput { worker });
        }
    }

    fn finish_if_over(&mut self) {
        if self.done || !(self.eof || self.drain_until.is_some()) {
            return;
        }
        let waits = self.sessions.values().any(|session| {
            session.worker.is_some() || session.leaving.is_some() || !session.pending.is_empty()
        });
        let unstored = self.sessions.values().any(|session| session.numbering.waiting_bytes() > 0);
        if !waits && !unstored && self.pool.workers().next().is_none() {
            self.done = true;
            self.actions.push(Action::Exit(self.exit_code));
        }
    }

    fn refuse(kind: ErrorKind, code: &'static str, message: impl Into<Arc<str>>) -> ErrorInfo {
        ErrorInfo::new(kind, code, message)
    }
}
