//! The router: assigns each session's lines to a worker, and answers the client when a worker cannot.
//!
//! Rationale: like the pool, the router is a state machine without I/O. Its inputs are lines, exits and the
//! time; its outputs are bytes for the client and [`RouterAction`]s. A session stays with its worker while
//! the worker lives. Every accepted prompt is held until its terminal record has passed, so that a dead
//! worker costs at most the running turn: the router ends that turn on behalf of the worker, and hands the
//! prompts queued behind it to the next worker.
//!
//! Tests: `tests/schedules` (thousands of simulated schedules), `tests/peers` (fake workers) and
//! `crates/qwen/tests/hub` (the binary).

mod addressing;
mod admission;
mod commits;
mod exits;
mod history;
mod input;
mod numbering;
mod output;
mod recovery;
mod reports;
mod requests;
mod session;
mod status;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind, SessionId};

use self::admission::Admission;
use self::history::SessionHistory;
pub use self::input::HUB_CAPABILITIES;
pub(crate) use self::numbering::PAGE_BYTES;
pub use self::recovery::OnCrash;
use self::reports::WorkerLink;
use self::session::{Assignment, Session};
use crate::action::{ClientRequest, ProcessSignal, RouterAction};
use crate::front::{Front, LineWriter};
use crate::metrics::{Metric, Metrics};
pub use crate::turn_span::{TracedPrompt, TurnSpan, TurnTracer};
use crate::worker_pool::{Pool, WorkerId, WorkerKey};

/// The exit code of a process that SIGINT ended.
const INTERRUPTED: u8 = 130;
/// An output buffer that grew beyond this is released once it is written.
const MAX_RETAINED_BYTES: usize = 64 * 1024;

/// The options with which a client opens a session.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct SessionOptions {
    pub cwd: Option<String>,
    /// Additional flags for the worker.
    pub args: Vec<String>,
    /// Environment variables for the worker; `null` removes one.
    pub env: BTreeMap<String, Option<String>>,
    /// Settings of this session only.
    pub settings_profile: Option<serde_json::Value>,
    /// The session whose conversation to copy; that session remains unchanged.
    pub fork_from: Option<String>,
    /// What happens to a turn whose worker dies; [`OnCrash::Error`] if absent.
    #[serde(skip)]
    pub on_crash: Option<OnCrash>,
    /// Fields of the session's `initialize` request, for Rust hosts; clients of a hub send their own.
    #[serde(skip)]
    pub initialize: serde_json::Map<String, serde_json::Value>,
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
            ("on_crash", serde_json::json!(self.on_crash.map(OnCrash::name))),
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

/// The identity of the hub, for `hub/status`.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// A name that survives restarts.
    pub id: String,
    /// A name unique to this process.
    pub incarnation: String,
    pub version: String,
}

/// What the client of a router has set up for all its sessions.
struct Client {
    /// The session of lines that name none.
    default_session: SessionId,
    /// True once the client has initialized the default session, as a client of one worker does.
    drives_default: bool,
    /// See [`Router::represent_worker`].
    represents_worker: bool,
    /// True once the handshake of the worker that the router represents was passed on.
    has_passed_handshake: bool,
    /// The client's `initialize` that names no session.
    initialize: Option<Vec<u8>>,
    /// True if the client asked for numbers on the whole connection.
    sequence: bool,
    /// The only tenant whose sessions the client may use; it need not name it.
    tenant: Option<String>,
}

impl Client {
    fn new(default_session: SessionId) -> Self {
        Self {
            default_session,
            drives_default: false,
            represents_worker: false,
            has_passed_handshake: false,
            initialize: None,
            sequence: false,
            tenant: None,
        }
    }
}

/// How far the router is on its way to the end of its process.
struct Ending {
    /// True once the client's input has ended.
    is_input_over: bool,
    /// Until when running turns may finish while the hub drains.
    drain_until: Option<Duration>,
    /// What workers are ended with when the drain is over.
    signal: ProcessSignal,
    exit_code: u8,
    is_done: bool,
}

impl Default for Ending {
    fn default() -> Self {
        Self {
            is_input_over: false,
            drain_until: None,
            signal: ProcessSignal::Terminate,
            exit_code: 0,
            is_done: false,
        }
    }
}

/// The time, and what is due.
#[derive(Default)]
struct Clock {
    now: Duration,
    /// When the last computed deadline is due, to detect that this process was suspended.
    wake_at: Option<Duration>,
    /// True if a deadline may have changed since it was computed.
    has_changed: bool,
    /// Sessions whose append had an unknown outcome and must be retried, and when.
    retries: Vec<(Duration, SessionId)>,
    /// Sessions that another process drives and a client follows, and when their next lines are read.
    polls: Vec<(Duration, SessionId)>,
}

/// What the router knows of its stores.
#[derive(Default)]
struct Stores {
    /// Sessions that continued without numbers: their turns ended here, whatever the store contains.
    failed: HashSet<SessionId>,
    /// True if workers' logs are committed to a store.
    commits_logs: bool,
    /// True if the stores are shared with other machines ([`Router::share_stores`]).
    are_shared: bool,
    /// The sessions whose stored lines a client receives, and whose next page waits for room.
    replays: VecDeque<SessionId>,
}

/// Those who watch the router.
#[derive(Default)]
struct Observers {
    recorder: Option<LineRecorder>,
    tracer: Option<TurnTracer>,
    /// Structured log records that have not been read yet; none if logging is off.
    log: Option<Vec<serde_json::Value>>,
    /// The warnings that were passed on: code and text.
    warnings: HashSet<(String, String)>,
}

/// Routes the lines of a client to the workers of its sessions, and back.
pub struct Router {
    front: Arc<dyn Front>,
    writer: LineWriter,
    keys: Box<dyn WorkerKeys>,
    identity: Identity,
    pool: Pool,
    sessions: HashMap<SessionId, Session>,
    /// The sessions with an open control request of this id.
    questions: HashMap<String, Vec<SessionId>>,
    links: HashMap<WorkerId, WorkerLink>,
    history: SessionHistory,
    admission: Admission,
    client: Client,
    ending: Ending,
    clock: Clock,
    stores: Stores,
    observers: Observers,
    metrics: Metrics,
    /// The number of the hub's own requests to workers.
    own_requests: u64,
    out: Vec<u8>,
    actions: Vec<RouterAction>,
}

/// Receives every line of every session: the tenant, the session, whether the line came from the client, and
/// the line.
pub type LineRecorder = Box<dyn FnMut(&str, &SessionId, bool, &[u8])>;

impl Router {
    /// A router with an empty pool. Lines without a session go to `default_session`.
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
            questions: HashMap::new(),
            links: HashMap::new(),
            history: SessionHistory::default(),
            admission: Admission::default(),
            client: Client::new(default_session),
            ending: Ending::default(),
            clock: Clock { has_changed: true, ..Clock::default() },
            stores: Stores::default(),
            observers: Observers::default(),
            metrics: Metrics::default(),
            own_requests: 0,
            out: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// Starts collecting structured log records for [`Router::take_log`].
    pub fn start_log(&mut self) {
        self.observers.log = Some(Vec::new());
    }

    /// The log records since the last call.
    pub fn take_log(&mut self) -> Vec<serde_json::Value> {
        self.observers.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Passes every line of every session to `recorder` from now on.
    pub fn record(&mut self, recorder: LineRecorder) {
        self.observers.recorder = Some(recorder);
    }

    /// Makes a span of every turn from now on.
    pub fn trace(&mut self, tracer: TurnTracer) {
        self.observers.tracer = Some(tracer);
    }

    /// Writes the handshake and starts the spares.
    pub fn start(&mut self, now: Duration) {
        self.clock.now = now;
        if self.client.represents_worker {
            self.start_only_session();
        } else if self.front.has_handshake() {
            let line = self.writer.handshake(&self.client.default_session);
            self.out.extend_from_slice(&line);
        }
        self.fill_spares();
        self.clock.has_changed = true;
    }

    /// Removes and returns the pending bytes for the client.
    pub fn take_output(&mut self) -> Vec<u8> {
        let out = std::mem::take(&mut self.out);
        self.continue_replays();
        out
    }

    /// The pending bytes for the client.
    pub fn output(&self) -> &[u8] {
        &self.out
    }

    /// The first `count` pending bytes have reached the client.
    pub fn output_written(&mut self, count: usize) {
        if count < self.out.len() {
            self.out.drain(..count);
        } else if self.out.capacity() > MAX_RETAINED_BYTES {
            self.out = Vec::new();
        } else {
            self.out.clear();
        }
        self.continue_replays();
    }

    /// Removes and returns the pending actions.
    pub fn take_actions(&mut self) -> Vec<RouterAction> {
        std::mem::take(&mut self.actions)
    }

    /// True if actions are pending.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// All metrics with their current values.
    pub fn collect_metrics(&self) -> Vec<Metric> {
        self.metrics.collect(&self.pool, self.admission.len())
    }

    /// The metrics in Prometheus text format.
    pub fn prometheus(&self) -> String {
        crate::metrics::prometheus(&self.collect_metrics())
    }

    /// True once all work is finished.
    pub fn is_done(&self) -> bool {
        self.ending.is_done
    }

    /// The tenant of an open session; empty for the default one.
    pub fn tenant_of(&self, session: &SessionId) -> Option<&str> {
        self.sessions.get(session).map(|session| session.tenant.as_str())
    }

    /// The key that workers of an open session are started with.
    pub(crate) fn key_of(&self, session: &SessionId) -> Option<Arc<WorkerKey>> {
        self.sessions.get(session).map(|session| session.key.clone())
    }

    pub fn session_of(&self, worker: WorkerId) -> Option<&SessionId> {
        self.links.get(&worker)?.session.as_ref()
    }

    /// When [`Router::tick`] is due; none if nothing changed since the last call.
    pub fn next_deadline(&mut self) -> Option<Option<Duration>> {
        if !std::mem::take(&mut self.clock.has_changed) {
            return None;
        }
        let limits = self.pool.limits().clone();
        let pool = self.pool.next_deadline(self.clock.now);
        let idle = self.sessions.values().filter_map(|session| {
            let queued = session.queued_since().map(|at| at + limits.queue_timeout);
            let rests = session.worker().is_some() && session.is_idle() && session.is_resumable;
            queued.or_else(|| rests.then(|| session.active_at + limits.idle_timeout))
        });
        let retry = self.clock.retries.iter().chain(&self.clock.polls).map(|(at, _)| *at);
        self.clock.wake_at = idle.chain(pool).chain(self.ending.drain_until).chain(retry).min();
        Some(self.clock.wake_at)
    }

    /// Handles all expired deadlines.
    pub fn tick(&mut self, now: Duration) {
        let late = self.clock.wake_at.map_or(Duration::ZERO, |at| now.saturating_sub(at));
        self.clock.now = now;
        self.clock.has_changed = true;
        if late > Duration::from_secs(1) {
            // This process was stopped, or the machine slept: the output of workers could not be read.
            self.pool.extend_deadlines(late);
        }
        self.pool.tick(now, &mut self.actions);
        self.expire_queue();
        self.release_resting();
        self.retry_appends();
        self.poll_followed();
        if self.ending.drain_until.is_some_and(|at| now >= at) {
            self.end_drain();
        }
        self.serve_queue();
        // A worker that writes nothing for so long does not hold the spares up.
        self.admission.holds_spares = false;
        self.fill_spares();
        self.finish_if_over();
    }

    /// The client's input ended: accepted work is finished, then the hub exits.
    pub fn client_eof(&mut self, now: Duration) {
        self.clock.now = now;
        self.ending.is_input_over = true;
        self.clock.has_changed = true;
        self.pool.stop_filling(now, &mut self.actions);
        let ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for id in ids {
            self.close_input_if_done(&id);
        }
        self.stop_following();
        self.finish_if_over();
    }

    /// Drains: refuses new prompts and gives running turns [`crate::PoolLimits::drain_timeout`] to finish.
    pub fn drain(&mut self, now: Duration, exit_code: u8) {
        self.clock.now = now;
        self.clock.has_changed = true;
        self.ending.exit_code = exit_code;
        // A client of one worker expects that a signal ends it at once, as it does a worker.
        let is_one_worker = self.client.represents_worker
            || self.client.drives_default && !self.front.adopts_sessions() && self.sessions.len() == 1;
        if exit_code == INTERRUPTED {
            self.ending.signal = ProcessSignal::Interrupt;
        }
        if self.ending.drain_until.is_some() || is_one_worker {
            self.ending.drain_until = Some(now);
            self.pool.stop_filling(now, &mut self.actions);
            self.end_drain();
            return;
        }
        self.ending.drain_until = Some(now + self.pool.limits().drain_timeout);
        self.pool.stop_filling(now, &mut self.actions);
        self.release_idle_for_drain();
        self.stop_following();
        self.finish_if_over();
    }

    /// Applies new limits, and starts spares of `key` from now on. Sessions that are open keep their keys.
    pub fn reconfigure(&mut self, limits: crate::PoolLimits, key: Arc<WorkerKey>, now: Duration) {
        self.clock.now = now;
        self.pool.set_limits(limits);
        self.pool.set_default_key(key, now, &mut self.actions);
        self.clock.has_changed = true;
        // Waiting sessions come before spares, which would take the slot again.
        self.serve_queue();
        self.fill_spares();
    }

    /// At the end of the client's input, closes the input of a worker whose session has nothing left to
    /// send.
    fn close_input_if_done(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get(id) else { return };
        if self.ending.is_input_over
            && !session.has_work()
            && let Assignment::Assigned { worker, is_ready: true, .. } = session.assignment
        {
            self.actions.push(RouterAction::CloseInput { worker });
        }
    }

    fn finish_if_over(&mut self) {
        if self.ending.is_done || !(self.ending.is_input_over || self.ending.drain_until.is_some()) {
            return;
        }
        let waits = self.sessions.values().any(|session| {
            session.linked_worker().is_some()
                || session.recovery.continues
                || !session.prompts.pending.is_empty()
        });
        let unstored = self
            .sessions
            .values()
            .any(|session| session.numbering.waiting_bytes() > 0 || !session.numbering.replays.is_empty());
        if !waits && !unstored && self.pool.workers().next().is_none() {
            self.ending.is_done = true;
            self.actions.push(RouterAction::Exit(self.ending.exit_code));
        }
    }

    fn refuse(kind: ErrorKind, code: &'static str, message: impl Into<Arc<str>>) -> ErrorInfo {
        ErrorInfo::new(kind, code, message)
    }
}
