//! Recovery of a session whose worker has exited.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Json, SessionId};

use super::Router;
use super::recovery::{StartFailure, lost_error};
use crate::process_manager::WorkerExit;
use crate::worker_pool::{Stage, Worker, WorkerId};

/// After this many workers in a row that ended before their handshake, the session's prompts are refused.
const MAX_FAILED_STARTS: u32 = 2;

impl Router {
    /// The worker has exited, and all its output has been processed.
    pub fn note_worker_exit(&mut self, worker: WorkerId, exit: &WorkerExit, now: Duration) {
        self.clock.now = now;
        self.clock.has_changed = true;
        let gone = self.pool.remove_exited(worker, exit, now);
        if let Some(id) = self.links.remove(&worker).and_then(|link| link.session) {
            self.session_lost_worker(&id, worker, exit, gone.as_ref());
        }
        // Waiting sessions come before spares, which would take the slot again.
        self.serve_queue();
        self.admission.holds_spares = false;
        self.fill_spares();
        self.finish_if_over();
    }

    /// The worker closed its output but still runs: it cannot answer any more, so it is ended.
    pub fn note_output_closed(&mut self, worker: WorkerId, now: Duration) {
        self.clock.now = now;
        self.clock.has_changed = true;
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
        session.finish_leaving(worker);
        if session.worker() == Some(worker) {
            session.lose_worker();
            session.recovery.has_lost_worker = true;
        }
        let start_failure = session.recovery.start_failure.take();
        let was_greeted = self.client.has_passed_handshake || !self.client.represents_worker;
        let is_stand_in = self.client.represents_worker
            || *id == self.client.default_session && !self.front.has_handshake();
        if is_stand_in && let Some(code) = exit.cause.code().or((!was_greeted).then_some(1)) {
            // Clients of such a wire assume that they started one worker, and check its exit code.
            self.ending.exit_code = u8::try_from(code).unwrap_or(1);
            let by_itself = gone.is_some_and(|worker| worker.stage != Stage::Ending);
            if by_itself && session.prompts.turn.is_none() && is_only && !self.ending.is_input_over {
                // The worker refused its flags or its session; another one would do the same.
                self.ending.is_input_over = true;
                // As after the end of a worker, open requests get no answer.
                session.requests.unanswered.clear();
                self.pool.stop_filling(self.clock.now, &mut self.actions);
                return self.fail_waiting(id, &lost_error(format!("the worker ended: {exit}")));
            }
        }
        let mut exit = exit.with_cause(gone.and_then(|worker| worker.fault));
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
        if !failed_to_start {
            let what = format!("the worker of this session has ended: {exit}");
            self.fail_requests(id, &lost_error(what));
        }
        let id = &self.recover_turn(id, &exit);
        self.complete_close(id);
        if self.ending.drain_until.is_some() {
            self.fail_waiting(id, &Self::draining_error());
        } else if let Some(StartFailure::Version(version)) = start_failure {
            // Another worker of the same program would speak the same version.
            let message = unsupported_version(&version);
            let kind = ErrorKind::UnsupportedProtocol;
            self.fail_waiting(id, &Self::refuse(kind, "unsupported_protocol", message));
        } else if let Some(StartFailure::Refused(why)) = start_failure {
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
        self.sessions
            .get(id)
            .map(|session| session.requests.questions.keys().cloned().collect())
            .unwrap_or_default()
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
            .map(|session| std::mem::take(&mut session.requests.unanswered))
            .unwrap_or_default();
        for asked in asked {
            self.reply_error(id, &asked, error.clone());
        }
    }

    /// Completes the close request of a session whose last worker has exited.
    pub(super) fn complete_close(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.linked_worker().is_some() {
            return;
        }
        let Some(asked) = session.take_close_request() else { return };
        let error = Self::refuse(ErrorKind::Input, "session_closed", "the session was closed");
        for prompt in &mut session.prompts.pending {
            prompt.sent = false;
        }
        while let Some((name, since)) = self.withdraw(id, None) {
            self.end_turn_for(id, &name, EndStatus::Cancelled, error.clone(), since);
        }
        let result = Json::trusted(format!("{{\"closed\":true,\"session_id\":\"{id}\"}}"));
        let lines = self.writer.control_reply(id, &asked.request_id, asked.nested, Ok(result));
        if self.has_released_numbers(id) {
            // To number it, the session would have to be claimed again.
            self.send_lines(id, &lines);
        } else {
            self.emit(id, &lines);
        }
        self.forget_session(id);
    }
}

/// The error text about a worker program that does not speak this hub's protocol.
fn unsupported_version(version: &str) -> String {
    let own = qwen_dialects::qwen::PROTOCOL_VERSION;
    if version.split('.').next() == own.split('.').next() {
        return "the worker does not report its turns to the hub, so it is a program of another version; start the hub and its workers from the same version"
            .to_owned();
    }
    format!("the worker speaks protocol version '{version}', which is not supported; this is version {own}")
}
