//! The simulated world: kernels without processes, workers that are what they write, and a store that both kernels share.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::Format;
use qwen_events::{EndStatus, ErrorInfo, SessionId};
use qwen_kernel::front::{LineWriter, OpenParts, QwenFront};
use qwen_kernel::ipc::{CommitReason, Place, Report, ReportedFact, WorkerMessage};
use qwen_kernel::process_manager::{ExitCause, SpawnSpec, WorkerExit};
use qwen_kernel::store::{Appended, Events, MemoryEvents, MemoryLog, SessionLog, commit};
use qwen_kernel::{
    Identity, Pool, PoolLimits, ProcessSignal, Router, RouterAction, SessionOptions, WorkerId, WorkerKey,
    WorkerKeys,
};
use serde_json::Value;

struct OneKey;

impl WorkerKeys for OneKey {
    fn key(&mut self, tenant: &str, _options: &SessionOptions) -> Result<Arc<WorkerKey>, ErrorInfo> {
        Ok(key_of(tenant))
    }
}

fn key_of(tenant: &str) -> Arc<WorkerKey> {
    WorkerKey { tenant: tenant.to_owned(), spec: SpawnSpec::default(), ..WorkerKey::default() }.into()
}

/// What workers have written to their logs, on the disk that both kernels see.
pub type Disk = Rc<RefCell<BTreeMap<String, Vec<u8>>>>;

/// A worker as the kernel sees it: what it was sent, and what it does next.
#[derive(Default)]
pub struct Worker {
    pub greeted: bool,
    pub queue: VecDeque<(String, String)>,
    pub running: Option<(String, String)>,
    pub closed: bool,
    pub stalled: bool,
    pub asks: Option<String>,
    /// The bytes that it waits to be committed.
    pub uncommitted: Option<u64>,
    /// The answer to its last commit.
    pub outcome: Option<String>,
    /// Lines that it wrote and that the kernel has not read.
    pub pipe: VecDeque<String>,
    /// Reports that the kernel has not read.
    pub reports: VecDeque<Report>,
    /// True if it was asked for a sign of life.
    pub is_pinged: bool,
    /// The number of lines of output and of input of its process image.
    pub lines: u64,
    pub inputs: u64,
}

/// One kernel and its simulated world.
pub struct Kernel {
    pub router: Router,
    pub workers: BTreeMap<WorkerId, Worker>,
    pub store: MemoryEvents,
    pub logs: MemoryLog,
    pub disk: Disk,
    pub lossy: Rc<RefCell<u32>>,
    /// Appends that are still on their way: they arrive at the store later, perhaps after another owner's.
    pub late: Vec<(SessionId, u64, u64, Vec<u8>, Option<String>)>,
    /// How many of the next appends are late.
    pub delays: u32,
    pub seen: Vec<Value>,
    pub exit: Option<u8>,
    pub questions: u32,
}

pub fn limits() -> PoolLimits {
    PoolLimits {
        min_workers: 1,
        max_workers: 3,
        queue_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(20),
        max_sessions_per_worker: 3,
        max_queue: 6,
        max_queue_per_tenant: 4,
        drain_timeout: Duration::from_secs(3),
        ..PoolLimits::default()
    }
}

impl Kernel {
    pub fn new(store: &MemoryEvents, logs: &(MemoryLog, Disk), numbered: bool, now: Duration) -> Self {
        let front = Arc::new(QwenFront::new(Format::StreamJson));
        let writer = LineWriter::new(&*front, "test".into(), "0");
        let pool = Pool::new(limits(), key_of(""), 7);
        let session = SessionId::parse("default").unwrap();
        let mut router = Router::new(front, writer, Box::new(OneKey), pool, Identity::default(), session);
        router.commit_logs();
        let mut kernel = Self {
            router,
            workers: BTreeMap::new(),
            store: store.clone(),
            logs: logs.0.clone(),
            disk: logs.1.clone(),
            lossy: Rc::default(),
            late: Vec::new(),
            delays: 0,
            seen: Vec::new(),
            exit: None,
            questions: 0,
        };
        kernel.router.start(now);
        kernel.apply();
        if numbered {
            let line =
                br#"{"type":"control_request","request_id":"i","subtype":"initialize","sequence":true}"#;
            kernel.router.client_line(line, now);
            kernel.apply();
        }
        kernel
    }

    /// Does what the router wants, in the simulated world.
    pub fn apply(&mut self) {
        loop {
            let actions = self.router.take_actions();
            if actions.is_empty() {
                break;
            }
            for action in actions {
                self.act(action);
            }
        }
        let out = self.router.take_output();
        for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.seen.push(serde_json::from_slice(line).unwrap());
        }
        self.router.next_deadline();
    }

    fn act(&mut self, action: RouterAction) {
        match action {
            RouterAction::Spawn { worker, .. } => {
                self.workers.insert(worker, Worker::default());
            }
            RouterAction::Write { worker, lines } => {
                if let Some(worker) = self.workers.get_mut(&worker).filter(|worker| !worker.closed) {
                    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                        worker.take(&serde_json::from_slice(line).unwrap());
                    }
                }
            }
            RouterAction::Probe { worker } => {
                if let Some(worker) = self.workers.get_mut(&worker).filter(|worker| !worker.stalled) {
                    worker.is_pinged = true;
                }
            }
            RouterAction::Reply { worker, lines } => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.handle_reply(&serde_json::from_slice(&lines).unwrap());
                }
            }
            RouterAction::CheckDriver { worker, session, commit, prompt_id } => {
                self.router.note_driver_checked(worker, &session, commit, &prompt_id, false);
            }
            RouterAction::CommitLog { worker, commit: wanted } => {
                let (position, outcome) = commit(&self.logs, &wanted, |from, to| {
                    let disk = self.disk.borrow();
                    let range = usize::try_from(from).unwrap()..usize::try_from(to).unwrap();
                    Ok(disk[wanted.log.as_str()][range].to_vec())
                });
                let (position, outcome) =
                    if self.loses() { (wanted.owned, Appended::Unknown) } else { (position, outcome) };
                self.router.note_log_committed(worker, &wanted, position, outcome);
            }
            RouterAction::ReleaseLog { log, epoch, .. } => {
                self.logs.release(&log, epoch);
            }
            RouterAction::CloseInput { worker } => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.closed = true;
                }
            }
            RouterAction::Signal { worker, signal } => {
                if self
                    .workers
                    .get(&worker)
                    .is_some_and(|worker| signal == ProcessSignal::Kill || !worker.stalled)
                {
                    // A signalled worker is gone at the next step; here at once, which is the hardest case.
                    self.workers.get_mut(&worker).unwrap().closed = true;
                    self.workers.get_mut(&worker).unwrap().stalled = false;
                    self.workers.get_mut(&worker).unwrap().queue.clear();
                    self.workers.get_mut(&worker).unwrap().running = None;
                }
            }
            RouterAction::TakeEvents { session, .. } => {
                let taken = self.store.take(&session).map_err(|error| error.to_string());
                self.router.note_events_taken(&session, taken, &OpenParts::default());
            }
            RouterAction::Append { session, epoch, first, lines, open } => {
                if self.delays > 0 {
                    // The owner hears nothing and tries the same again; this attempt arrives whenever it
                    // does.
                    self.delays -= 1;
                    self.late.push((session.clone(), epoch, first, lines, open));
                    return self.router.note_appended(&session, first, Appended::Unknown);
                }
                let outcome = self.store.append(&session, epoch, first, &lines, open.as_deref());
                let lost = self.loses();
                self.router.note_appended(&session, first, if lost { Appended::Unknown } else { outcome });
            }
            RouterAction::ReadEvents { session, after, limit } => {
                let read = self.store.read(&session, after, limit);
                self.router.send_events(&session, read);
            }
            // Every take succeeds here, so that no session is followed.
            RouterAction::CheckOwner { session } => self.router.note_owner_checked(&session, false),
            RouterAction::ReleaseEvents { session } => self.store.release(&session),
            RouterAction::SetPaused { .. } | RouterAction::Report(_) | RouterAction::Warn { .. } => {}
            RouterAction::Exit(code) => self.exit = Some(code),
        }
    }

    /// Whether an acknowledgement is lost: the store has what it was given, and the owner does not know.
    fn loses(&self) -> bool {
        let mut lossy = self.lossy.borrow_mut();
        *lossy = lossy.saturating_sub(1);
        *lossy > 0
    }

    /// A worker writes to its log and asks for a commit, or asks again. The outcome.
    fn commit(&mut self, id: WorkerId, session: &str, reason: CommitReason, now: Duration) -> String {
        let worker = self.workers.get_mut(&id).unwrap();
        let bytes = *worker.uncommitted.get_or_insert_with(|| {
            let mut disk = self.disk.borrow_mut();
            let log = disk.entry(session.to_owned()).or_default();
            log.extend_from_slice(format!("{{\"at\":{}}}\n", log.len()).as_bytes());
            log.len() as u64
        });
        let message = WorkerMessage::Commit { id: 1, session_id: Some(session.to_owned()), bytes, reason };
        self.router.handle_worker_message(id, message, now);
        self.apply();
        let worker = self.workers.get_mut(&id).unwrap();
        let outcome = worker.outcome.take().unwrap();
        if outcome != "unknown" {
            worker.uncommitted = None;
        }
        outcome
    }

    /// Late appends arrive at the store, whose answers nobody waits for.
    pub fn deliver_late(&mut self) {
        for (session, epoch, first, lines, open) in std::mem::take(&mut self.late) {
            self.store.append(&session, epoch, first, &lines, open.as_deref());
        }
    }

    pub fn line(&mut self, line: &str, now: Duration) {
        self.router.client_line(line.as_bytes(), now);
        self.apply();
    }

    /// One step of one worker.
    pub fn step(&mut self, which: usize, step: Step, now: Duration) {
        let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
        let Some(id) = ids.get(which % ids.len().max(1)).copied() else { return };
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if worker.stalled && !matches!(step, Step::Crash | Step::CrashBetween) {
            return;
        }
        match step {
            Step::Advance => {
                if worker.closed {
                    // Nobody will answer; a worker takes that for a no.
                    worker.asks = None;
                }
                if !worker.greeted {
                    worker.greeted = true;
                    let handshake =
                        r#"{"object":"chat.completion","choices":[],"metadata":{"protocol_version":"1.0"}}"#;
                    worker
                        .write(handshake.to_owned(), Some(ReportedFact::Ready { version: "1.0".to_owned() }));
                } else if worker.asks.is_some() {
                    // It waits for the answer.
                } else if let Some((session, prompt)) = worker.running.clone() {
                    let reason = CommitReason::End { prompt_id: prompt.clone() };
                    let status = match self.commit(id, &session, reason, now).as_str() {
                        "unknown" => return,
                        "fenced" => "interrupted",
                        _ => "done",
                    };
                    let worker = self.workers.get_mut(&id).unwrap();
                    worker.running = None;
                    worker.end(&session, &prompt, status);
                } else if let Some((session, prompt)) = worker.queue.front().cloned() {
                    let reason = CommitReason::Start { prompt_id: prompt.clone() };
                    if self.commit(id, &session, reason, now) == "unknown" {
                        return;
                    }
                    let worker = self.workers.get_mut(&id).unwrap();
                    worker.queue.pop_front();
                    worker.report(
                        Place::After(worker.lines),
                        ReportedFact::TurnStarted { prompt_id: prompt.clone() },
                    );
                    let line = format!(
                        r#"{{"object":"chat.completion","session_id":"{session}","prompt_id":"{prompt}","choices":[]}}"#
                    );
                    worker.write(line, None);
                    worker.running = Some((session, prompt));
                } else if worker.closed {
                    return self.exits(id, ExitCause::Code(0), now);
                }
            }
            Step::Ask => {
                if let Some((session, prompt)) = worker.running.clone().filter(|_| worker.asks.is_none()) {
                    self.questions += 1;
                    let request = format!("q{}", self.questions);
                    let line = format!(
                        r#"{{"type":"control_request","request_id":"{request}","session_id":"{session}","prompt_id":"{prompt}"}}"#
                    );
                    worker.write(line, Some(ReportedFact::QuestionOpened { request_id: request.clone() }));
                    worker.asks = Some(request);
                }
            }
            Step::Stall => worker.stalled = true,
            Step::Crash => return self.exits(id, ExitCause::Signal(9), now),
            Step::CrashBetween => {
                self.advance_unread(id, now);
                self.drain_reports(id, now);
                self.workers.get_mut(&id).unwrap().pipe.clear();
                return self.exits(id, ExitCause::Signal(9), now);
            }
        }
        self.drain_pipe(id, now);
    }

    /// A worker ends its turn, reports that, and is gone before it writes the line.
    fn advance_unread(&mut self, id: WorkerId, now: Duration) {
        let Some((session, prompt)) = self.workers[&id].running.clone() else { return };
        let reason = CommitReason::End { prompt_id: prompt.clone() };
        if self.commit(id, &session, reason, now) == "ok" {
            self.workers.get_mut(&id).unwrap().end(&session, &prompt, "done");
        }
    }

    /// The kernel reads what the worker reported. It always does so before it reads lines.
    fn drain_reports(&mut self, id: WorkerId, now: Duration) {
        if self.workers.get_mut(&id).is_some_and(|worker| std::mem::take(&mut worker.is_pinged)) {
            self.router.handle_worker_message(id, WorkerMessage::Pong, now);
        }
        while let Some(report) = self.workers.get_mut(&id).and_then(|worker| worker.reports.pop_front()) {
            self.router.handle_worker_message(id, WorkerMessage::Report(report), now);
            self.apply();
        }
    }

    /// The kernel reads what the worker wrote.
    fn drain_pipe(&mut self, id: WorkerId, now: Duration) {
        self.drain_reports(id, now);
        while let Some(line) = self.workers.get_mut(&id).and_then(|worker| worker.pipe.pop_front()) {
            self.router.note_worker_output(id, now);
            self.router.handle_worker_line(id, line.as_bytes(), now);
            self.apply();
            self.drain_reports(id, now);
        }
    }

    fn exits(&mut self, id: WorkerId, cause: ExitCause, now: Duration) {
        self.drain_pipe(id, now);
        self.workers.remove(&id);
        self.router.note_worker_exit(id, &WorkerExit { cause, detail: String::new() }, now);
        self.apply();
    }

    /// Answers every open question and lets every worker finish, until nothing moves.
    pub fn settle(&mut self, now: &mut Duration) {
        for _ in 0..400 {
            *now += Duration::from_millis(500);
            self.router.tick(*now);
            self.apply();
            let asked: Vec<(String, String)> = self
                .workers
                .values()
                .filter_map(|worker| Some((worker.asks.clone()?, worker.running.clone()?.0)))
                .collect();
            for (request, session) in asked {
                let line = format!(
                    r#"{{"type":"control_response","request_id":"{request}","session_id":"{session}","response":{{"subtype":"success"}}}}"#
                );
                self.line(&line, *now);
            }
            let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
            for id in ids {
                let Some(worker) = self.workers.get(&id) else { continue };
                if worker.stalled {
                    continue;
                }
                let which = self.workers.keys().position(|known| *known == id).unwrap();
                self.step(which, Step::Advance, *now);
            }
        }
    }
}

impl Worker {
    /// Takes a line on the commit socket.
    fn handle_reply(&mut self, line: &Value) {
        match line["type"].as_str() {
            Some("committed") => self.outcome = line["outcome"].as_str().map(str::to_owned),
            // It starts anew, with a handshake.
            Some("discard") => {
                assert!(self.queue.is_empty() && self.running.is_none(), "work is discarded");
                // Its new process image knows nothing of a commit whose outcome was unknown.
                self.uncommitted = None;
                self.greeted = false;
                self.report(Place::After(self.lines), ReportedFact::Restarting);
                (self.lines, self.inputs) = (0, 0);
            }
            _ => {}
        }
    }

    fn take(&mut self, line: &Value) {
        self.inputs += 1;
        match line["type"].as_str() {
            Some("control_response") => self.asks = None,
            // It knows nothing of an earlier turn.
            Some("control_request") => {
                let answer = format!(
                    r#"{{"type":"control_response","request_id":{},"response":{{"subtype":"success","result":{{"accepted":false}}}}}}"#,
                    line["request_id"]
                );
                let request_id = line["request_id"].as_str().unwrap().to_owned();
                self.write(answer, Some(ReportedFact::RequestAnswered { request_id, accepted: false }));
            }
            Some("control/cancel") => {
                if let Some((session, prompt)) = self.running.take() {
                    self.asks = None;
                    self.end(&session, &prompt, "cancelled");
                }
            }
            _ if line["input"].is_object() => {
                let text = |name: &str| line[name].as_str().unwrap().to_owned();
                self.queue.push_back((text("session_id"), text("prompt_id")));
                self.report(Place::Anywhere, ReportedFact::PromptRead { input: self.inputs });
            }
            _ => {}
        }
    }

    /// Writes the terminal record of a turn.
    fn end(&mut self, session: &str, prompt: &str, status: &str) {
        let line = format!(
            r#"{{"object":"chat.completion","session_id":"{session}","prompt_id":"{prompt}","choices":[],"metadata":{{"turn":{{"status":"{status}"}}}}}}"#
        );
        self.write(line, Some(ReportedFact::turn_ended(prompt, EndStatus::Done, (1, 1))));
    }

    /// Writes a line, after the report of what it is.
    fn write(&mut self, line: String, fact: Option<ReportedFact>) {
        self.lines += 1;
        if let Some(fact) = fact {
            self.report(Place::Line(self.lines), fact);
        }
        self.pipe.push_back(line);
    }

    fn report(&mut self, at: Place, fact: ReportedFact) {
        self.reports.push_back(Report { at, fact });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Advance,
    Ask,
    Stall,
    Crash,
    /// Between the report of a turn's end and its line.
    CrashBetween,
}
