//! Recovery of a session whose worker has exited.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Json, SessionId};

use super::Router;
use super::recovery::lost;
use crate::process_manager::WorkerExit;
use crate::worker_pool::{Stage, Worker, WorkerId};

/// After this many workers in a row that ended before their handshake, the session's prompts are refused.
const MAX_FAILED_STARTS: u32 = 2;

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
            session.recovery.has_lost_worker = true;
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
        let mut exit = exit.because(gone.and_then(|worker| worker.fault));
        if let Some(line) = gone.and_then(|worker| worker.unexpected.as_deref()) {
            exit.detail = format!("{}\nqwen: its first line is not a handshake: {line}", exit.detail);
        }
        let failed_to_start = gone.is_some_and(|worker| !worker.was_ready() && !worker.is_ending());
        if failed_to_start {
            session.recovery.failed_starts += 1;
        }
        let gives_up = failed_to_start && session.recovery.failed_starts >= MAX_FAILED_STARTS;
        session.recovery.last_exit = Some(exit.clone());
        self.cancel_questions(id);
        // Lines for a worker that had not finished its handshake still wait for the next one.
        if !failed_to_start || !self.front.has_handshake() {
            let what = format!("the worker of this session is gone: {exit}");
            self.fail_requests(id, &lost(what));
        }
        let id = &self.recover_turn(id, &exit);
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
        } else if gives_up {
            if let Some(session) = self.sessions.get_mut(id) {
                session.recovery.failed_starts = 0;
            }
            let message = format!("The workers of the session '{id}' cannot be started: {exit}.");
            let error = Self::refuse(ErrorKind::Internal, "worker_not_started", message);
            self.fail_waiting(id, &ErrorInfo { retryable: true, ..error });
        } else {
            self.pump(id);
        }
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
            self.reply_error(id, &asked, error.clone());
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
