//! Admission: assigns workers to sessions, queues them or refuses their prompts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, SessionId};

use super::Router;
use super::session::{Assignment, Session, Waiting};
use crate::action::ProcessSignal;
use crate::front::{InputKind, session_id_of, with_session_id};
use crate::worker_pool::{Granted, Lease, LocalWorkers, Stage, WorkerId, WorkerKey, Workers};

/// Consecutive worker deaths without a finished turn after which a session is quarantined.
pub(super) const MAX_DEATHS: u32 = 3;
/// The time limit of the handshake of a worker that replaces one that failed to start: a worker starts in
/// milliseconds, and the client waits already.
const SECOND_START: Duration = Duration::from_millis(1700);
/// The duration of the quarantine.
pub(super) const QUARANTINE: Duration = Duration::from_secs(30);

/// The sessions that wait for a slot, and whether new sessions come before spares.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// Sessions that wait for a slot, in order of arrival.
    queue: VecDeque<SessionId>,
    /// True from the moment a session was given a worker until a turn has ended or a request was answered: a
    /// process that starts meanwhile would slow the new session's first turn down.
    pub holds_spares: bool,
}

impl Admission {
    /// The number of sessions that wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &SessionId> {
        self.queue.iter()
    }

    /// Adds a session at the end.
    fn push(&mut self, id: SessionId) {
        self.queue.push_back(id);
    }

    /// Removes a session that does not wait any more.
    pub fn remove(&mut self, id: &SessionId) {
        self.queue.retain(|queued| queued != id);
    }

    /// Calls a session by another id.
    pub fn rename(&mut self, from: &SessionId, to: &SessionId) {
        for id in self.queue.iter_mut().filter(|id| *id == from) {
            *id = to.clone();
        }
    }
}

impl Router {
    /// Checks whether the session may queue another prompt.
    pub(super) fn admit(&mut self, id: &SessionId, bytes: usize) -> Result<(), ErrorInfo> {
        let Some(session) = self.sessions.get(id) else { return Ok(()) };
        if self.ending.drain_until.is_some() {
            return Err(Self::draining_error());
        }
        if let Some(until) = session.recovery.quarantined_until.filter(|until| *until > self.clock.now) {
            let wait = until.saturating_sub(self.clock.now);
            let message = format!(
                "the workers of the session '{id}' died {MAX_DEATHS} times in a row; it is quarantined, try again in {} ms",
                wait.as_millis()
            );
            return Err(ErrorInfo {
                retryable: true,
                ..Self::refuse(ErrorKind::Overloaded, "session_quarantined", message)
            });
        }
        let held: usize = session.prompts.pending.iter().map(|prompt| prompt.line.len()).sum();
        if held > 0 && held + bytes > 128 * 1024 * 1024 || session.prompts.pending.len() >= 10_000 {
            return Err(self.overloaded_error("too many prompts wait in this session"));
        }
        if session.worker().is_some() || self.admission.is_empty() && self.pool.has_room() {
            return Ok(());
        }
        let limits = self.pool.limits();
        let waiting = |tenant: Option<&str>| {
            let queued = self.admission.iter().filter_map(|id| self.sessions.get(id));
            let queued = queued.filter(|session| tenant.is_none_or(|tenant| session.tenant == tenant));
            queued.map(|session| session.prompts.pending.len()).sum::<usize>()
        };
        if waiting(None) >= limits.max_queue {
            return Err(self.overloaded_error("too many prompts wait for a worker"));
        }
        if waiting(Some(&session.tenant)) >= limits.max_queue_per_tenant {
            return Err(self.overloaded_error("too many prompts of this tenant wait for a worker"));
        }
        Ok(())
    }

    /// The error of a hub that is about to end.
    pub(super) fn draining_error() -> ErrorInfo {
        let message = "the hub is draining and takes no new prompts; use another one";
        ErrorInfo { retryable: true, ..Self::refuse(ErrorKind::Overloaded, "draining", message) }
    }

    /// How a prompt ends that no worker reads. A worker that is told to end calls its prompts interrupted, or
    /// cancelled; so does a hub that represents one.
    pub(super) fn refusal_status(&self, error: &ErrorInfo) -> EndStatus {
        match self.ending.signal {
            _ if !self.client.represents_worker || error.code != Self::draining_error().code => {
                EndStatus::Error
            }
            ProcessSignal::Interrupt => EndStatus::Cancelled,
            ProcessSignal::Terminate | ProcessSignal::Abort | ProcessSignal::Kill => EndStatus::Interrupted,
        }
    }

    /// The error of a queue that is full, with a hint when to try again.
    fn overloaded_error(&self, what: &str) -> ErrorInfo {
        let wait = self.retry_hint();
        let message = format!("{what}; try again in {} ms", wait.as_millis());
        ErrorInfo { retryable: true, ..Self::refuse(ErrorKind::Overloaded, "overloaded", message) }
    }

    /// How long a client should wait that was refused with this code.
    pub(super) fn retry_after(&self, id: &SessionId, code: &str) -> Duration {
        let session = self.sessions.get(id);
        let wait = match code {
            "worker_circuit_open" => {
                session.and_then(|session| self.pool.retry_after(&session.key, self.clock.now))
            }
            "session_quarantined" => session
                .and_then(|session| session.recovery.quarantined_until)
                .map(|until| until.saturating_sub(self.clock.now)),
            _ => None,
        };
        wait.unwrap_or_else(|| self.retry_hint())
    }

    /// How long a client should wait: about the time until the queue advances, based on the average turn.
    pub(super) fn retry_hint(&self) -> Duration {
        let turn = self.metrics.mean_turn().clamp(Duration::from_millis(100), Duration::from_secs(30));
        let slots = self.pool.limits().max_workers.max(1);
        let rounds = u32::try_from(1 + self.admission.len() / slots).unwrap_or(u32::MAX);
        turn.saturating_mul(rounds).min(Duration::from_secs(30))
    }

    /// Advances the session: writes its backlog to its worker, or claims a worker.
    pub(super) fn pump(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get(id) else { return };
        if !session.has_work() || session.is_leaving() || session.is_closed() {
            return;
        }
        if session.worker().is_some() {
            return self.flush(id);
        }
        if session.queued_since().is_none() {
            self.claim(id);
        }
    }

    /// Claims a worker for the session, or queues the session.
    pub(super) fn claim(&mut self, id: &SessionId) -> bool {
        let Some(session) = self.sessions.get(id) else { return true };
        let key = session.worker_key();
        match self.workers().claim(id, &key) {
            Granted::Lease(lease) => {
                self.bind(id, lease);
                self.admission.holds_spares = true;
                true
            }
            Granted::Busy => {
                self.evict_one(&key);
                let now = self.clock.now;
                if let Some(session) = self.sessions.get_mut(id)
                    && session.queued_since().is_none()
                {
                    session.assignment = Assignment::Queued { since: now };
                    self.admission.push(id.clone());
                }
                false
            }
            Granted::Later(wait) => {
                let message = format!(
                    "workers fail repeatedly at their start; the last one: {}; the next attempt is in {} ms",
                    self.pool.last_failure(&key).map(ToString::to_string).unwrap_or_default(),
                    wait.as_millis()
                );
                let error = ErrorInfo {
                    retryable: true,
                    ..Self::refuse(ErrorKind::Overloaded, "worker_circuit_open", message)
                };
                self.fail_waiting(id, &error);
                true
            }
        }
    }

    /// Starts spare workers while no session waits for a slot: a spare in the slot of a waiting session
    /// would be ended for it at once, again and again.
    pub(super) fn fill_spares(&mut self) {
        if self.admission.is_empty() && !self.admission.holds_spares {
            self.pool.fill(self.clock.now, &mut self.actions);
        }
    }

    /// A turn ended or a request was answered: spares take the place of those that sessions were given.
    /// Starting one earlier would take the processor from the turn that someone waits for.
    pub(super) fn allow_spares(&mut self) {
        if std::mem::take(&mut self.admission.holds_spares) {
            self.fill_spares();
        }
    }

    /// The workers of this kernel, now.
    fn workers(&mut self) -> LocalWorkers<'_> {
        LocalWorkers::new(&mut self.pool, self.clock.now, &mut self.actions)
    }

    fn bind(&mut self, id: &SessionId, lease: Lease) {
        let Some(worker) = self.workers().worker(id, lease) else { return };
        let starts_ready = self.pool.worker(worker).is_some_and(|worker| worker.stage == Stage::Ready);
        if let Some(session) = self.sessions.get_mut(id) {
            if session.recovery.failed_starts > 0 {
                self.pool.limit_start(worker, SECOND_START, self.clock.now);
            }
            let assigned = Assignment::Assigned { worker, lease, is_ready: starts_ready };
            let former = std::mem::replace(&mut session.assignment, assigned);
            if let Assignment::Queued { since } = former {
                self.metrics.record_queue_time(self.clock.now.saturating_sub(since));
            }
        }
        self.admission.remove(id);
        self.links.entry(worker).or_default().session = Some(id.clone());
        if starts_ready {
            self.flush(id);
        }
    }

    /// Writes the session's backlog to its worker.
    pub(super) fn flush(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let takes = session.numbering.taking;
        let Assignment::Assigned { worker, lease, is_ready: true } = session.assignment else { return };
        if takes {
            return;
        }
        let mut lines = Vec::new();
        session.setup.had_worker = true;
        if std::mem::take(&mut session.setup.replays) {
            for line in session.setup.initialize.iter().chain(session.setup.settings.values()) {
                self.own_requests += 1;
                lines.extend_from_slice(&with_request_id(line, &format!("hub.replay.{}", self.own_requests)));
                lines.push(b'\n');
            }
        }
        let continues = std::mem::take(&mut session.recovery.continues);
        if continues {
            self.own_requests += 1;
            let asks = format!(
                "{{\"type\":\"control_request\",\"request_id\":\"hub.continue.{}\",\"session_id\":\"{id}\",\"subtype\":\"continue_last_turn\",\"replay\":{}}}\n",
                self.own_requests, !session.recovery.has_shown_calls
            );
            lines.extend_from_slice(asks.as_bytes());
        }
        let mut prompted = false;
        let mut counted = 0;
        let link = self.links.entry(worker).or_default();
        while let Some(waiting) = session.prompts.backlog.pop_front() {
            match waiting {
                Waiting::Line(line) | Waiting::Heartbeat(line) => {
                    lines.extend_from_slice(&line);
                    lines.push(b'\n');
                }
                Waiting::Prompt(number) => {
                    let Some(prompt) =
                        session.prompts.pending.iter_mut().find(|prompt| prompt.number == number)
                    else {
                        continue;
                    };
                    prompt.sent = true;
                    if let Some(span) = &mut prompt.span {
                        span.dispatched(worker);
                    }
                    prompted = true;
                    let from = std::mem::replace(&mut counted, lines.len());
                    prompt.input = Some(link.count_inputs(&lines[from..]) + 1);
                    if session.recovery.has_lost_worker && session_id_of(&prompt.line).is_none() {
                        lines.extend_from_slice(&with_session_id(&prompt.line, id));
                    } else {
                        lines.extend_from_slice(&prompt.line);
                    }
                    lines.push(b'\n');
                }
            }
        }
        link.count_inputs(&lines[counted..]);
        if prompted || continues {
            self.pool.set_busy(worker, true, self.clock.now);
        }
        if !lines.is_empty() {
            // Lines for a worker that is about to exit are lost with it; its prompts go to the next one.
            self.workers().input(id, lease, lines);
        }
        self.close_input_if_done(id);
    }

    /// Releases the worker of the session that has been idle longest, so that a session that wants a worker
    /// of this key gets its slot.
    fn evict_one(&mut self, wanted: &Arc<WorkerKey>) {
        let leaves = |stage| matches!(stage, Stage::Discarding | Stage::Ending);
        let leaving = self.pool.workers().filter(|worker| leaves(worker.stage)).count();
        if leaving > self.admission.len() {
            return;
        }
        let resting = self
            .sessions
            .values()
            .filter(|session| session.is_ready() && session.is_idle() && session.is_resumable);
        let Some(session) = resting.min_by_key(|session| session.active_at) else { return };
        let (id, fits) = (session.id.clone(), session.key == *wanted);
        if fits {
            self.return_worker(&id);
        } else {
            self.release_worker(&id);
        }
    }

    /// Ends the session's worker; the session continues from its log with another one.
    pub(super) fn release_worker(&mut self, id: &SessionId) {
        if let Some((worker, _)) = self.part_from_worker(id) {
            self.pool.release(worker, self.clock.now, &mut self.actions);
        }
    }

    /// Gives the session's worker back for other sessions with the same key; the session continues from its
    /// log with any worker.
    pub(super) fn return_worker(&mut self, id: &SessionId) {
        let key = self.sessions.get(id).map(|session| session.key.clone());
        let Some((worker, lease)) = self.part_from_worker(id) else { return };
        // A worker that was started for this session alone, to resume or to fork it, cannot serve another.
        let is_general = self.front.adopts_sessions()
            && self.pool.worker(worker).is_some_and(|worker| Some(&worker.key) == key.as_ref());
        if is_general {
            self.workers().release(id, lease);
        } else {
            self.pool.release(worker, self.clock.now, &mut self.actions);
        }
    }

    fn part_from_worker(&mut self, id: &SessionId) -> Option<(WorkerId, Lease)> {
        let session = self.sessions.get_mut(id)?;
        session.part_from_worker()
    }

    /// The worker has discarded its session and waits for another one.
    pub(super) fn note_discarded(&mut self, worker: WorkerId) {
        self.pool.note_discarded(worker, self.clock.now, &mut self.actions);
        if let Some(id) = self.links.get_mut(&worker).and_then(|link| link.session.take()) {
            self.release_logs(&id, worker);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.finish_leaving(worker);
            }
            self.complete_close(&id);
            self.pump(&id);
        }
        self.serve_queue();
        self.fill_spares();
        self.finish_if_over();
    }

    /// Assigns free slots to waiting sessions: the tenant with the fewest turns first, then in order of
    /// arrival.
    pub(super) fn serve_queue(&mut self) {
        while !self.admission.is_empty() {
            let load = |session: &Session| {
                self.sessions
                    .values()
                    .filter(|other| other.tenant == session.tenant && other.worker().is_some())
                    .count()
            };
            let next =
                self.admission.iter().enumerate().filter_map(|(at, id)| Some((at, self.sessions.get(id)?)));
            let Some((_, session)) = next.min_by_key(|(at, session)| (load(session), *at)) else {
                return;
            };
            let id = session.id.clone();
            if !self.claim(&id) {
                return;
            }
        }
    }

    /// Refuses every prompt of the session that no worker has read, and every request.
    pub(super) fn fail_waiting(&mut self, id: &SessionId, error: &ErrorInfo) {
        self.admission.remove(id);
        self.end_continuing_turn(id, error);
        if let Some(session) = self.sessions.get_mut(id) {
            session.leave_queue();
            if session.worker().is_none() {
                // The state of the former worker no longer applies.
                for prompt in &mut session.prompts.pending {
                    prompt.sent = false;
                }
            }
        }
        let status = self.refusal_status(error);
        while let Some((name, since)) = self.withdraw(id, None) {
            self.end_turn_for(id, &name, status, error.clone(), since);
        }
        self.fail_requests(id, error);
        let waiting = self.sessions.get_mut(id).map(|session| std::mem::take(&mut session.prompts.backlog));
        for line in waiting.into_iter().flatten() {
            let lines = match line {
                Waiting::Heartbeat(_) => self.writer.heartbeat(id),
                Waiting::Line(line) if self.is_unanswered(&line) => self.writer.error(id, error.clone()),
                // Prompts and requests have their answers.
                Waiting::Line(_) | Waiting::Prompt(_) => continue,
            };
            self.emit(id, &lines);
        }
    }

    /// True for a line of the client that only its worker would have answered. Requests are answered
    /// elsewhere.
    fn is_unanswered(&self, line: &[u8]) -> bool {
        self.front.input(line).is_ok_and(|input| match input.kind {
            InputKind::Addition | InputKind::Cancel | InputKind::Other => true,
            InputKind::Control
            | InputKind::Answer
            | InputKind::Heartbeat
            | InputKind::Prompt
            | InputKind::Steer => false,
        })
    }

    /// Refuses requests that waited too long for a worker.
    pub(super) fn expire_queue(&mut self) {
        let timeout = self.pool.limits().queue_timeout;
        let late: Vec<SessionId> = self
            .admission
            .iter()
            .filter(|id| {
                let since = self.sessions.get(id).and_then(Session::queued_since);
                since.is_some_and(|since| self.clock.now >= since + timeout)
            })
            .cloned()
            .collect();
        for id in late {
            let error =
                self.overloaded_error(&format!("no worker became free within {} s", timeout.as_secs()));
            self.fail_waiting(&id, &error);
        }
    }

    /// Releases the workers of sessions that have been idle longer than `idle_timeout`.
    pub(super) fn release_resting(&mut self) {
        let timeout = self.pool.limits().idle_timeout;
        let resting: Vec<SessionId> = self
            .sessions
            .values()
            .filter(|session| {
                session.worker().is_some()
                    && session.is_idle()
                    && session.is_resumable
                    && self.clock.now >= session.active_at + timeout
            })
            .map(|session| session.id.clone())
            .collect();
        for id in resting {
            self.release_worker(&id);
        }
    }

    /// While draining, releases the workers of sessions without work at once and refuses waiting sessions.
    pub(super) fn release_idle_for_drain(&mut self) {
        let ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
        let error = Self::draining_error();
        for id in ids {
            let Some(session) = self.sessions.get(&id) else { continue };
            if session.worker().is_none() && session.has_work() {
                self.fail_waiting(&id, &error);
            } else if session.worker().is_some() && !session.is_busy() {
                self.release_worker(&id);
            }
        }
    }

    /// Draining took too long: terminates the workers, which end their turns now.
    pub(super) fn end_drain(&mut self) {
        self.ending.drain_until = Some(Duration::MAX);
        let working: Vec<crate::WorkerId> = self
            .pool
            .workers()
            .filter(|worker| worker.stage != Stage::Ending)
            .map(|worker| worker.id)
            .collect();
        for worker in working {
            self.pool.terminate(worker, self.ending.signal, self.clock.now, &mut self.actions);
        }
        self.finish_if_over();
    }
}

/// Replaces the id of a request, so that its answer is recognised as one for the kernel.
fn with_request_id(line: &[u8], request_id: &str) -> Vec<u8> {
    crate::front::with_text(line, "request_id", request_id)
}
