//! The driver: runs the router against real processes, clocks and stores on one thread.
//!
//! A [`Hub`] lives on a current-thread runtime inside a `LocalSet`. Readers call the router directly,
//! without channels, so that a relayed line costs one read, one classification and one copy.

mod logs;
mod output;
mod polling;
mod process;
mod shared;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use qwen_events::SessionId;
use tokio::sync::Notify;

use self::logs::LogStores;
pub use self::logs::SessionLogs;
use self::output::ClientOutput;
pub use self::output::WriteNow;
use self::polling::AnswerPolling;
use self::process::Process;
use self::shared::SharedStores;
use crate::action::{ProcessSignal, RouterAction};
use crate::front::OpenParts;
use crate::ipc::HubMessage;
use crate::process_manager::{ExitCause, SpawnSpec, Spawner, WorkerExit};
use crate::router::{PAGE_BYTES, Router};
use crate::store::{Appended, Events, Read, SharedSessions, Taken, count_lines};
use crate::worker_pool::{WorkerId, WorkerKey};

/// With more pending bytes for the client, workers are not read: back-pressure reaches them through their
/// pipes.
const HIGH_WATER: usize = 256 * 1024;

/// Looks up how a turn ended whose worker or hub is gone, in the session log directory that is given. What reads
/// the log has the view, the user and the limits of the session's worker.
pub type TurnEnds = Box<dyn Fn(&Path, &SpawnSpec, &SessionId, &str) -> Option<Vec<u8>>>;

/// Opens the store of a tenant's numbered lines. Each tenant has its own, so that a session id never leads to
/// another tenant's lines.
pub type EventStores = Box<dyn Fn(&str) -> io::Result<Box<dyn Events>>>;

/// The components of a hub.
pub struct HubParts {
    pub router: Router,
    /// The stores of numbered lines; without them, `sequence` is an error.
    pub events: Option<EventStores>,
    /// See [`SessionLogs`]; without them, workers' questions about their logs are answered at once.
    pub session_logs: Option<SessionLogs>,
    /// The stores of sessions on several machines, which then take the place of `events`; workers still write
    /// their logs below `session_logs`.
    pub shared: Option<Rc<dyn SharedSessions>>,
    /// Finds the ends of turns whose worker or hub died; without it they end as `interrupted`.
    pub turn_ends: Option<TurnEnds>,
    /// Receives structured log records; none disables logging at no cost.
    pub log: Option<Box<dyn Fn(&serde_json::Value)>>,
    /// Receives what workers write to standard error.
    pub worker_stderr: Option<WorkerStderr>,
    /// See [`WriteNow`]; without it, all output is returned by [`Hub::next_output`].
    pub write_now: Option<WriteNow>,
}

/// Receives what workers write to standard error, line by line.
pub type WorkerStderr = Box<dyn Fn(&str)>;

/// A running hub. Clones share it.
#[derive(Clone)]
pub struct Hub(Rc<Shared>);

struct Shared {
    router: RefCell<Router>,
    processes: RefCell<HashMap<WorkerId, Rc<Process>>>,
    spawner: Spawner,
    event_stores: Option<EventStores>,
    /// The stores that are open, by tenant.
    events: RefCell<HashMap<String, Rc<dyn Events>>>,
    session_logs: Option<SessionLogs>,
    logs: RefCell<LogStores>,
    shared: Option<SharedStores>,
    turn_ends: Option<TurnEnds>,
    log: Option<Box<dyn Fn(&serde_json::Value)>>,
    worker_stderr: Option<WorkerStderr>,
    /// The shared read buffer. It is never borrowed across an await.
    scratch: RefCell<Vec<u8>>,
    /// Sessions whose workers are currently not read.
    paused: RefCell<HashSet<String>>,
    output: ClientOutput,
    polling: AnswerPolling,
    /// Signalled when there is room for more output.
    room: Notify,
    timer: Timer,
    started: Instant,
    exit: Cell<Option<u8>>,
    applying: Cell<bool>,
}

/// When the router is called next without an event.
#[derive(Default)]
struct Timer {
    /// Signalled when the deadline changed.
    changed: Notify,
    deadline: Cell<Option<Duration>>,
}

impl Hub {
    /// Starts the hub: writes its handshake and starts the spares.
    pub fn start(parts: HubParts) -> io::Result<Self> {
        let spawner = Spawner::start(parts.router.pool().limits().max_workers)?;
        let hub = Self(Rc::new(Shared {
            router: RefCell::new(parts.router),
            processes: RefCell::default(),
            spawner,
            event_stores: parts.events,
            events: RefCell::default(),
            session_logs: parts.session_logs,
            logs: RefCell::default(),
            shared: parts.shared.map(SharedStores::new),
            turn_ends: parts.turn_ends,
            log: parts.log,
            worker_stderr: parts.worker_stderr,
            scratch: RefCell::new(vec![0; 64 * 1024]),
            paused: RefCell::default(),
            output: ClientOutput::new(parts.write_now),
            polling: AnswerPolling::default(),
            room: Notify::new(),
            timer: Timer::default(),
            started: Instant::now(),
            exit: Cell::new(None),
            applying: Cell::new(false),
        }));
        if hub.0.log.is_some() {
            hub.0.router.borrow_mut().start_log();
        }
        if hub.0.session_logs.is_some() {
            hub.0.router.borrow_mut().commit_logs();
        }
        if hub.0.shared.is_some() {
            hub.0.router.borrow_mut().share_stores();
        }
        hub.drive(Router::start);
        tokio::task::spawn_local(hub.clone().run_timer());
        tokio::task::spawn_local(hub.clone().run_polling());
        Ok(hub)
    }

    /// Time since the hub started, on the monotonic clock.
    fn now(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// Passes an input to the router and executes the resulting actions.
    fn drive(&self, handle: impl FnOnce(&mut Router, Duration)) {
        let now = self.now();
        handle(&mut self.0.router.borrow_mut(), now);
        self.apply();
    }

    /// Gives read access to the router.
    pub fn inspect<T>(&self, inspect: impl FnOnce(&Router) -> T) -> T {
        inspect(&self.0.router.borrow())
    }

    /// Gives a session up that another process owns.
    pub fn give_up_session(&self, session: &SessionId) {
        self.drive(|router, _| router.note_taken_over(session));
    }

    /// Processes one line of the client.
    pub fn client_line(&self, line: &[u8]) {
        self.drive(|router, now| router.client_line(line, now));
    }

    /// Adds a line of the program that runs the hub to a session's stream, numbered like the worker's lines.
    /// A session that is not open has no stream.
    pub fn session_line(&self, session: &SessionId, line: &[u8]) {
        self.drive(|router, _| router.session_line_of_host(session, line));
    }

    /// Reports that a line of the client was too long.
    pub fn client_line_too_long(&self) {
        self.drive(Router::client_line_too_long);
    }

    /// Reports the end of the client's input.
    pub fn client_eof(&self) {
        self.drive(Router::client_eof);
    }

    /// Drains and exits; a second call exits at once.
    pub fn drain(&self, exit_code: u8) {
        self.drive(|router, now| router.drain(now, exit_code));
    }

    /// Changes the limits of the pool and the key of its spares.
    pub fn reconfigure(&self, limits: crate::PoolLimits, key: Arc<WorkerKey>) {
        self.drive(|router, now| router.reconfigure(limits, key, now));
    }

    /// The exit code, once all work is finished.
    pub fn exit_code(&self) -> Option<u8> {
        self.0.exit.get()
    }

    /// Kills every worker at once, without a chance to end its turn.
    pub fn kill_all(&self) {
        for process in self.0.processes.borrow().values() {
            process.signal(ProcessSignal::Kill);
        }
    }

    /// Returns the sessions that have a worker, and the pids of these.
    pub fn session_pids(&self) -> Vec<(SessionId, i32)> {
        let router = self.0.router.borrow();
        let processes = self.0.processes.borrow();
        let found = processes
            .iter()
            .filter_map(|(worker, process)| Some((router.session_of(*worker)?.clone(), process.pid()?)));
        found.collect()
    }

    /// Pauses or resumes reading the worker of a session. Its output then waits in the worker's pipe.
    pub(crate) fn set_paused(&self, session: &str, paused: bool) {
        let changed = {
            let mut sessions = self.0.paused.borrow_mut();
            if paused { sessions.insert(session.to_owned()) } else { sessions.remove(session) }
        };
        if changed && !paused {
            self.0.room.notify_waiters();
        }
    }

    /// True while this worker should be read.
    fn has_room(&self, worker: WorkerId) -> bool {
        let router = self.0.router.borrow();
        let paused = self.0.paused.borrow();
        let is_paused = || router.session_of(worker).is_some_and(|session| paused.contains(session.as_str()));
        router.output().len() < HIGH_WATER && (paused.is_empty() || !is_paused())
    }

    fn log(&self, record: impl FnOnce() -> serde_json::Value) {
        if let Some(log) = &self.0.log {
            log(&record());
        }
    }

    /// Executes the router's actions until there are none.
    fn apply(&self) {
        if self.0.applying.replace(true) {
            return;
        }
        loop {
            let actions = self.0.router.borrow_mut().take_actions();
            if actions.is_empty() {
                // Written output makes room for more.
                if self.flush_output() {
                    continue;
                }
                break;
            }
            for action in actions {
                self.act(action);
            }
        }
        self.0.applying.set(false);
        if let Some(log) = &self.0.log {
            for record in self.0.router.borrow_mut().take_log() {
                log(&record);
            }
        }
        let deadline = self.0.router.borrow_mut().next_deadline();
        if let Some(deadline) = deadline
            && self.0.timer.deadline.replace(deadline) != deadline
        {
            self.0.timer.changed.notify_one();
        }
    }

    fn act(&self, action: RouterAction) {
        match action {
            RouterAction::Spawn { worker, key } => {
                let process = Rc::new(Process::new(worker, key));
                self.0.processes.borrow_mut().insert(worker, process.clone());
                tokio::task::spawn_local(process::run(self.clone(), process));
            }
            RouterAction::Write { worker, lines } => {
                if let Some(process) = self.process(worker) {
                    process.write(&lines);
                    self.0.polling.start(self.now());
                }
            }
            RouterAction::Probe { worker } => {
                if let Some(process) = self.process(worker) {
                    process.reply(HubMessage::Ping.to_line());
                    if let Some(memory) = process.memory() {
                        let now = self.now();
                        self.0.router.borrow_mut().note_worker_memory(worker, memory, now);
                    }
                }
            }
            RouterAction::Reply { worker, lines } => {
                if let Some(process) = self.process(worker) {
                    process.reply(lines);
                }
            }
            RouterAction::CloseInput { worker } => {
                if let Some(process) = self.process(worker) {
                    process.close_input();
                }
            }
            RouterAction::Signal { worker, signal } => {
                self.log(|| serde_json::json!({"event": "signal", "worker": worker.to_string(), "signal": format!("{signal:?}")}));
                if let Some(process) = self.process(worker) {
                    process.signal(signal);
                }
            }
            RouterAction::TakeEvents { .. }
            | RouterAction::Append { .. }
            | RouterAction::ReadEvents { .. }
            | RouterAction::CheckOwner { .. }
            | RouterAction::ReleaseEvents { .. }
            | RouterAction::CheckDriver { .. }
            | RouterAction::CommitLog { .. }
            | RouterAction::ReleaseLog { .. } => match &self.0.shared {
                None => self.act_on_store(action),
                Some(shared) => self.queue_for_store(shared, action),
            },
            RouterAction::SetPaused { session, paused } => self.set_paused(session.as_str(), paused),
            RouterAction::Report(text) => {
                if let Some(pass_on) = &self.0.worker_stderr {
                    pass_on(&format!("qwen: {text}"));
                }
                self.log(|| serde_json::json!({"event": "error", "text": text}));
            }
            RouterAction::Warn { code, text } => {
                if let Some(pass_on) = &self.0.worker_stderr {
                    pass_on(&format!("qwen: {text}"));
                }
                self.log(|| serde_json::json!({"event": "warning", "code": code, "text": text}));
            }
            RouterAction::Exit(code) => {
                self.0.exit.set(Some(code));
                self.0.output.ready.notify_one();
            }
        }
    }

    /// Executes an action on the stores.
    fn act_on_store(&self, action: RouterAction) {
        match action {
            RouterAction::TakeEvents { session, from_driver, if_stored } => {
                if if_stored && self.is_new_session(&session) {
                    return self.0.router.borrow_mut().note_events_absent(&session);
                }
                if !from_driver && self.is_driven_elsewhere(&session) {
                    return self.0.router.borrow_mut().note_events_in_use(&session);
                }
                let taken = self.take_events(&session);
                let open = match &taken {
                    Ok(taken) if taken.open.is_some() => self.stored_parts(&session),
                    _ => OpenParts::default(),
                };
                self.0.router.borrow_mut().note_events_taken(&session, taken, &open);
            }
            RouterAction::Append { session, epoch, first, lines, open } => {
                let outcome = match self.events_of(&session) {
                    Ok(events) => events.append(&session, epoch, first, &lines, open.as_deref()),
                    Err(_) => Appended::Unknown,
                };
                self.0.router.borrow_mut().note_appended(&session, first, outcome);
            }
            RouterAction::ReadEvents { session, after, limit } => {
                let read = match self.events_of(&session) {
                    Ok(events) => events.read(&session, after, limit),
                    Err(error) => Read::Failed(error.to_string()),
                };
                self.0.router.borrow_mut().send_events(&session, read);
            }
            RouterAction::CheckOwner { session } => {
                let is_abandoned = !self.is_driven_elsewhere(&session)
                    && self.events_of(&session).is_ok_and(|events| events.open_turn(&session).is_some());
                self.0.router.borrow_mut().note_owner_checked(&session, is_abandoned);
            }
            RouterAction::ReleaseEvents { session } => {
                if let Ok(events) = self.events_of(&session) {
                    events.release(&session);
                }
            }
            RouterAction::CheckDriver { worker, session, commit, prompt_id } => {
                let is_elsewhere = self.is_driven_elsewhere(&session);
                let mut router = self.0.router.borrow_mut();
                router.note_driver_checked(worker, &session, commit, &prompt_id, is_elsewhere);
            }
            RouterAction::CommitLog { worker, commit } => self.commit_log(worker, &commit),
            RouterAction::ReleaseLog { worker, log, epoch } => self.release_log(worker, &log, epoch),
            _ => {}
        }
    }

    fn take_events(&self, session: &SessionId) -> Result<Taken, String> {
        let events = self.events_of(session).map_err(|error| error.to_string())?;
        let mut taken = events.take(session).map_err(|error| error.to_string())?;
        if let Some(turn) = &taken.open {
            // A former owner that still runs must start no tool in a turn that is about to be ended.
            self.fence_log(session);
            taken.end = self.logged_end(session, turn);
        }
        Ok(taken)
    }

    /// The parts that are open after a session's stored lines, which are read in pages.
    fn stored_parts(&self, session: &SessionId) -> OpenParts {
        let mut open = OpenParts::default();
        let Ok(events) = self.events_of(session) else { return open };
        let mut after = 0;
        loop {
            match events.read(session, after, PAGE_BYTES) {
                Read::Lines { lines, .. } if !lines.is_empty() => {
                    self.0.router.borrow().note_stored_parts(&lines, &mut open);
                    after += count_lines(&lines);
                }
                Read::TooOld { oldest } if oldest > after + 1 => after = oldest - 1,
                Read::Lines { .. } | Read::TooOld { .. } | Read::Future { .. } | Read::Failed(_) => {
                    return open;
                }
            }
        }
    }

    fn tenant_of(&self, session: &SessionId) -> String {
        self.0.router.borrow().tenant_of(session).unwrap_or_default().to_owned()
    }

    /// The store of the lines of a session's tenant.
    pub(super) fn events_of(&self, session: &SessionId) -> io::Result<Rc<dyn Events>> {
        let tenant = self.tenant_of(session);
        if let Some(open) = self.0.events.borrow().get(&tenant) {
            return Ok(open.clone());
        }
        let open = self.0.event_stores.as_ref().ok_or_else(|| io::Error::other("this hub keeps no lines"))?;
        let events: Rc<dyn Events> = open(&tenant)?.into();
        self.0.events.borrow_mut().insert(tenant, events.clone());
        Ok(events)
    }

    fn process(&self, worker: WorkerId) -> Option<Rc<Process>> {
        self.0.processes.borrow().get(&worker).cloned()
    }

    fn finish_exit(&self, worker: WorkerId, exit: &WorkerExit) {
        self.log(|| {
            let session = self.0.router.borrow().session_of(worker).map(ToString::to_string);
            let reason = exit.cause.reason();
            serde_json::json!({"event": "worker_exit", "worker": worker.to_string(), "session_id": session, "reason": reason, "detail": exit.detail})
        });
        self.write_logged_end(worker);
        self.drive(|router, now| router.note_worker_exit(worker, exit, now));
        self.0.processes.borrow_mut().remove(&worker);
    }

    /// Writes the end of a turn that a lost worker has logged but not written.
    fn write_logged_end(&self, worker: WorkerId) {
        let router = self.0.router.borrow();
        let Some(session) = router.session_of(worker).cloned() else { return };
        let Some(turn) = router.unwritten_end(&session).map(str::to_owned) else { return };
        drop(router);
        if let Some(end) = self.logged_end(&session, &turn) {
            let now = self.now();
            self.0.router.borrow_mut().write_logged_end(&session, &end, now);
        }
    }

    /// The end of a turn in the log of its session.
    fn logged_end(&self, session: &SessionId, turn: &str) -> Option<Vec<u8>> {
        let directory = self.session_log_directory(session)?;
        let key = self.0.router.borrow().key_of(session)?;
        self.0.turn_ends.as_ref()?(&directory, &key.spec, session, turn)
    }

    fn report_failed_start(&self, worker: WorkerId, error: &io::Error) {
        self.finish_exit(worker, &WorkerExit { cause: ExitCause::NotStarted, detail: error.to_string() });
    }

    async fn run_timer(self) {
        while self.0.exit.get().is_none() {
            let deadline = self.0.timer.deadline.get();
            let due = async {
                match deadline {
                    Some(at) => tokio::time::sleep(at.saturating_sub(self.now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => self.drive(Router::tick),
                () = self.0.timer.changed.notified() => {}
            }
        }
    }
}
