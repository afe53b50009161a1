//! Recovery of a session whose worker has exited.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Json, SessionId};

use super::admission::{MAX_DEATHS, QUARANTINE};
use super::{Router, Waiting};
use crate::process_manager::WorkerExit;
use crate::worker_pool::{Stage, Worker, WorkerId};

impl Router {
    /// The worker has exited, and all its output has been processed.
    pub fn worker_exited(&mut self, worker: WorkerId, exit: &WorkerExit, now: Duration) {
        self.now = now;
        self.deadline_changed = true;
        self.ignored.remove(&worker);
        let gone = self.pool.exited(worker, exit, now);
        if let Some(id) = self.serves.remove(&worker) {
            self.session_lost_worker(&id, worker, exit, gone.as_ref());
        }
        // Waiting sessions come before spares, which would take the slot again.
        self.serve_queue();
        self.holds_spares = false;
        self.fill_spares();
        self.finish_if_over();
    }

    /// The worker closed its output but still runs: it cannot answer any more, so it is ended.
    pub fn worker_output_closed(&mut self, worker: WorkerId, now: Duration) {
        self.now = now;
        self.deadline_changed = true;
        if self.pool.worker(worker).is_some_and(|worker| worker.stage != Stage::Ending) {
            self.pool.kill(worker, "stdout_closed", now, &mut self.actions);
        }
    }

    fn session_lost_worker(
        &mut self,
        id: &SessionId,
        worker: WorkerId,
        exit: &WorkerExit,
        gone: Option<&Worker>,
    ) {
        let is_only = self.sessions.len() == 1;
        self.release_logs(id, worker);
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.leaving == Some(worker) {
            session.leaving = None;
        }
        if session.worker == Some(worker) {
            session.worker = None;
            session.lease = None;
            session.is_ready = false;
            session.replays = true;
            session.is_recovered = true;
        }
        session.judging = None;
        let foreign_version = session.foreign_version.take();
        let was_greeted = self.is_greeted || !self.stands_for_worker;
        let is_stand_in =
            self.stands_for_worker || *id == self.default_session && !self.front.has_handshake();
        if is_stand_in && let Some(code) = exit.cause.code().or((!was_greeted).then_some(1)) {
            // Clients of such a wire assume that they started one worker, and check its exit code.
            self.exit_code = u8::try_from(code).unwrap_or(1);
            let by_itself = gone.is_some_and(|worker| worker.stage != Stage::Ending);
            if by_itself && session.turn.is_none() && is_only && !self.eof {
                // The worker refused its flags or its session; another one would do the same.
                self.eof = true;
                // As after the end of a worker, open requests get no answer.
                session.unanswered.clear();
                self.pool.stop_filling(self.now, &mut self.actions);
                return self.fail_waiting(id, &lost(format!("the worker ended: {exit}")));
            }
        }
        let refusal = session.refusal.take();
        let exit = exit.because(gone.and_then(|worker| worker.fault));
        self.cancel_questions(id);
        self.end_or_retry(id, &exit);
        let what = format!("the worker of this session is gone: {exit}");
        self.fail_requests(id, &lost(what));
        self.complete_close(id);
        if self.drain_until.is_some() {
            self.fail_waiting(id, &Self::draining());
        } else if let Some(version) = foreign_version {
            // Another worker of the same program would speak the same version.
            let message = format!(
                "the worker speaks protocol version '{version}', which is not supported; this is version {}",
                qwen_dialects::qwen::PROTOCOL_VERSION
            );
            let kind = ErrorKind::UnsupportedProtocol;
            self.fail_waiting(id, &Self::refuse(kind, "unsupported_protocol", message));
        } else if let Some(why) = refusal {
            // Another worker would refuse the same flags and settings.
            let message = format!("the worker of the session '{id}' cannot start: {why}");
            self.fail_waiting(id, &Self::refuse(ErrorKind::Input, "worker_not_started", message));
        } else {
            self.pump(id);
        }
    }

    /// Ends the running turn, and hands the prompts queued behind it to the next worker.
    fn end_or_retry(&mut self, id: &SessionId, exit: &WorkerExit) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        // The turn with the most recent lines, or else the first prompt that was sent.
        let named = session.turn.as_deref().and_then(|turn| session.find_pending(Some(turn)));
        let at = named.or_else(|| session.pending.iter().position(|prompt| prompt.sent));
        let Some((at, first)) =
            at.and_then(|at| Some((at, session.pending.get(at)?))).filter(|(_, first)| first.sent)
        else {
            if let Some(turn) = session.turn.take() {
                // A turn without a pending prompt, such as one that the client continued.
                let error = lost(format!("the worker of this turn is gone: {exit}"));
                self.end_turn_for(id, &turn, EndStatus::Interrupted, error, Duration::ZERO);
            }
            return self.requeue(id);
        };
        session.deaths += 1;
        let poisoned = session.deaths >= MAX_DEATHS;
        let may_go_on = !poisoned && session.closing.is_none() && self.drain_until.is_none();
        let unread = !first.seen && session.turn.is_none() && self.front.probe(0).is_some();
        if unread && may_go_on {
            // No worker has begun it: it is only passed to the next one.
            return self.requeue(id);
        }
        if first.retry_safe && !first.had_effects && !first.resent && may_go_on && at == 0 {
            return self.retry(id);
        }
        let name = session.turn.take().unwrap_or_else(|| session.turn_name(first));
        let since = first.at;
        session.pending.remove(at);
        session.continues = false;
        session.turns += 1;
        if poisoned {
            session.quarantined_until = Some(self.now + QUARANTINE);
            session.deaths = 0;
        }
        let error = lost(format!(
            "the worker of this turn is gone: {exit}; what its tools did is unknown, and the session goes on with the next prompt"
        ));
        self.end_turn_for(id, &name, EndStatus::Interrupted, error, since);
        self.requeue(id);
    }

    /// Retries the first prompt: as the same turn if its start was seen, otherwise as a new one.
    fn retry(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let turn = session.turn.take();
        session.continues = turn.is_some();
        let continues = session.continues;
        let open = std::mem::take(&mut session.open_parts);
        if let Some(first) = session.pending.front_mut() {
            first.resent = true;
            first.sent = continues;
        }
        self.metrics.retried += 1;
        if let Some(turn) = turn {
            let lines = self.writer.before_retry(id, &turn, &open);
            self.emit(id, &lines);
        }
        self.requeue(id);
        if continues && let Some(session) = self.sessions.get_mut(id) {
            // The backlog must not be empty, so that a worker is claimed.
            session.backlog.push_front(Waiting::Line(Vec::new()));
        }
    }

    /// Moves the prompts that were sent to the dead worker but never started to the front of the backlog.
    fn requeue(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let mut again: Vec<u64> = Vec::new();
        let continues = session.continues;
        for (place, prompt) in session.pending.iter_mut().enumerate() {
            let runs_on = continues && place == 0;
            if prompt.sent && !runs_on {
                prompt.sent = false;
                prompt.seen = false;
                prompt.resent = true;
                again.push(prompt.number);
            } else if !prompt.sent && place == 0 && prompt.resent {
                again.push(prompt.number);
            }
        }
        let waiting: Vec<u64> = session
            .backlog
            .iter()
            .filter_map(|line| if let Waiting::Prompt(number) = line { Some(*number) } else { None })
            .collect();
        for number in again.into_iter().rev().filter(|number| !waiting.contains(number)) {
            session.backlog.push_front(Waiting::Prompt(number));
        }
    }

    /// The new worker does not know the turn: the prompt itself is sent again.
    pub(super) fn resend_first(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.get_mut(id)
            && let Some(first) = session.pending.front_mut()
            && first.resent
        {
            first.sent = false;
            let number = first.number;
            session.backlog.push_front(Waiting::Prompt(number));
        }
        self.pump(id);
    }

    /// The ids of the control requests that wait for an answer from the client.
    pub(super) fn open_questions(&self, id: &SessionId) -> Vec<String> {
        self.sessions.get(id).map(|session| session.questions.keys().cloned().collect()).unwrap_or_default()
    }

    /// Withdraws the control requests of a worker that has exited.
    fn cancel_questions(&mut self, id: &SessionId) {
        for request_id in self.open_questions(id) {
            let lines = self.writer.control_cancel(id, &request_id);
            self.emit(id, &lines);
            self.close_question(id, &request_id);
        }
    }

    /// Answers the client's requests that no worker will answer any more.
    pub(super) fn fail_requests(&mut self, id: &SessionId, error: &ErrorInfo) {
        let asked = self
            .sessions
            .get_mut(id)
            .map(|session| std::mem::take(&mut session.unanswered))
            .unwrap_or_default();
        for asked in asked {
            let lines = self.writer.control_reply(id, &asked.request_id, asked.nested, Err(error.clone()));
            self.emit(id, &lines);
        }
    }

    /// Completes the close request of a session whose last worker has exited.
    pub(super) fn complete_close(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.worker.is_some() || session.leaving.is_some() {
            return;
        }
        let Some(asked) = session.closing.take() else { return };
        let error = Self::refuse(ErrorKind::Input, "session_closed", "the session was closed");
        for prompt in &mut session.pending {
            prompt.sent = false;
        }
        while let Some((name, since)) = self.withdraw(id, None) {
            self.end_turn_for(id, &name, EndStatus::Cancelled, error.clone(), since);
        }
        let result = Json::trusted(format!("{{\"closed\":true,\"session_id\":\"{id}\"}}"));
        let lines = self.writer.control_reply(id, &asked.request_id, asked.nested, Ok(result));
        self.emit(id, &lines);
        self.forget_session(id);
    }
}

fn lost(message: String) -> ErrorInfo {
    ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Internal, "worker_lost", message) }
}
