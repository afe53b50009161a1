//! Questions of workers on their commit sockets: the log is committed to the session's store before a worker
//! continues, so that a worker whose session another kernel has taken over has no effect any more.

use std::collections::HashMap;
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind, SessionId};

use super::numbering::STORE_TIMEOUT;
use super::{Router, Session};
use crate::action::RouterAction;
use crate::ipc::{CommitReason, HubMessage, WorkerMessage};
use crate::store::{Appended, LogCommit, LogPosition};
use crate::worker_pool::WorkerId;

/// The logs that a session's worker writes: usually one, with the name of the session.
#[derive(Debug, Default)]
pub(super) struct OwnedLogs {
    owned: HashMap<SessionId, LogPosition>,
    /// Since when commits have had no known outcome.
    failing_since: Option<Duration>,
    /// True once the session continues without commits, because the store failed for too long.
    is_off: bool,
    /// True once another kernel took the session over: its worker has to go.
    pub is_fenced: bool,
}

impl OwnedLogs {
    /// The highest epoch of our ownership.
    pub fn epoch(&self) -> Option<u64> {
        self.owned.values().map(|position| position.epoch).max()
    }
}

impl Router {
    /// True while a worker of ours writes the session's log.
    pub(crate) fn owns_log(&self, id: &SessionId) -> bool {
        self.sessions.get(id).is_some_and(|session| session.logs.epoch().is_some())
    }

    /// Commits logs from now on: the driver executes [`RouterAction::CommitLog`].
    pub fn commit_logs(&mut self) {
        self.stores.commits_logs = true;
    }

    /// Numbers every session from its first line on and claims it before its worker is sent anything, because
    /// processes on other machines use the same stores.
    pub fn share_stores(&mut self) {
        self.stores.are_shared = true;
        self.client.sequence = true;
    }

    /// Notes that the session's log was claimed, before a worker of ours writes it.
    pub fn note_log_claimed(&mut self, id: &SessionId, position: LogPosition) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.logs.owned.insert(id.clone(), position);
        }
    }

    /// Ends what the client asked of a session that a live process elsewhere has.
    pub(super) fn refuse_driven_elsewhere(&mut self, id: &SessionId) {
        let message = format!(
            "The session '{id}' is in use by a process on the bus. End that one first, or attach with `takeover: true`."
        );
        let error = ErrorInfo::new(ErrorKind::Input, "session_in_use", message).with_param("session_id");
        let Some(session) = self.sessions.get_mut(id) else { return };
        // The numbers are the owner's.
        session.numbering.leave_to_other();
        if let Some(worker) = session.linked_worker() {
            session.lose_worker();
            self.ignore_worker(worker);
            self.pool.kill(worker, "session_in_use", self.clock.now, &mut self.actions);
        }
        self.fail_waiting(id, &error);
        self.refuse_replays(id, &error);
        self.sessions.remove(id);
        self.admission.remove(id);
        self.finish_if_over();
    }

    /// Handles a message on the worker's commit socket. A tool starts only after the answer to its commit, so
    /// that a turn without an effect here has run no tool.
    pub fn handle_worker_message(&mut self, worker: WorkerId, message: WorkerMessage, now: Duration) {
        self.clock.now = now;
        self.pool.note_output(worker, now);
        self.metrics.messages += 1;
        match message {
            WorkerMessage::Alive => self.answer_worker(worker, &HubMessage::Alive),
            WorkerMessage::Pong => self.clock.has_changed = true,
            WorkerMessage::Report(report) => self.handle_report(worker, report, now),
            WorkerMessage::Commit { id, session_id, bytes, reason } => {
                let named = session_id.as_deref().and_then(|text| SessionId::parse(text).ok());
                if let Some(outcome) = self.commit(worker, id, named, bytes, &reason) {
                    self.answer_worker(worker, &HubMessage::Committed { id, outcome });
                }
            }
        }
    }

    fn answer_worker(&mut self, worker: WorkerId, message: &HubMessage) {
        self.actions.push(RouterAction::Reply { worker, lines: message.to_line() });
    }

    /// Notes how far the turn of a worker is. The answer, unless the store must be asked first; a worker that
    /// the kernel has given up is fenced.
    fn commit(
        &mut self,
        worker: WorkerId,
        id: u64,
        named: Option<SessionId>,
        bytes: u64,
        reason: &CommitReason,
    ) -> Option<Appended> {
        let link = self.links.get(&worker).filter(|link| !link.is_ignored);
        let Some(session) = link.and_then(|link| link.session.clone()) else {
            return Some(Appended::Fenced);
        };
        let session = match &named {
            // The worker that this hub represents chooses its session itself.
            Some(named) if self.client.represents_worker => {
                self.rename_session(&session, named);
                named.clone()
            }
            _ => session,
        };
        if let CommitReason::Start { prompt_id } = reason
            && bytes == 0
            && self.stores.commits_logs
            && self.sessions.get(&session).is_some_and(|session| session.is_resumable)
        {
            let prompt_id = prompt_id.clone();
            self.actions.push(RouterAction::CheckDriver { worker, session, commit: id, prompt_id });
            return None;
        }
        match reason {
            CommitReason::Start { prompt_id } => {
                self.note_start(&session, prompt_id);
                if let Some(session) = self.sessions.get_mut(&session).filter(|_| bytes > 0) {
                    session.recovery.is_start_logged = true;
                    // The session's log exists now.
                    session.recovery.fork_from = None;
                }
            }
            CommitReason::Effect { .. } => self.note_effect(&session),
            CommitReason::End { prompt_id } => {
                if let Some(session) = self.sessions.get_mut(&session).filter(|_| bytes > 0) {
                    session.recovery.is_end_logged = session.prompts.turn.as_ref() == Some(prompt_id);
                }
            }
        }
        // A session that is gone has no worker that may go on.
        let Some(Session { logs, .. }) = self.sessions.get(&session) else { return Some(Appended::Fenced) };
        if !self.stores.commits_logs || logs.is_off || bytes == 0 {
            // A session without a log has nothing to commit.
            return Some(Appended::Ok);
        }
        let log = named.unwrap_or(session);
        let owned = logs.owned.get(&log).copied();
        let commit = LogCommit { id, log, owned, bytes, reason: reason.clone() };
        self.actions.push(RouterAction::CommitLog { worker, commit });
        None
    }

    /// Handles the outcome of [`RouterAction::CheckDriver`]: a worker without the session's log runs no turn
    /// while another process has it.
    pub fn note_driver_checked(
        &mut self,
        worker: WorkerId,
        id: &SessionId,
        commit: u64,
        prompt_id: &str,
        is_driven_elsewhere: bool,
    ) {
        let outcome = if is_driven_elsewhere { Appended::Fenced } else { Appended::Ok };
        self.answer_worker(worker, &HubMessage::Committed { id: commit, outcome });
        if is_driven_elsewhere {
            self.lose_session(id, worker);
        } else {
            self.note_start(id, prompt_id);
        }
    }

    /// Ignores what a worker writes from now on: the kernel has given it up.
    pub(super) fn ignore_worker(&mut self, worker: WorkerId) {
        let link = self.links.entry(worker).or_default();
        link.is_ignored = true;
        link.session = None;
    }

    /// Another process began the session first: ends what this one was asked for.
    fn lose_session(&mut self, id: &SessionId, worker: WorkerId) {
        self.clock.has_changed = true;
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.lose_worker();
        session.numbering.leave_to_other();
        let waiting = session.numbering.take_waiting();
        self.send_lines(id, &waiting);
        self.ignore_worker(worker);
        self.pool.kill(worker, "session_in_use", self.clock.now, &mut self.actions);
        let message = format!(
            "The session '{id}' is in use by another process. End that one first, attach to it, or fork the session."
        );
        let error = ErrorInfo::new(ErrorKind::Input, "session_in_use", message).with_param("session_id");
        self.fail_waiting(id, &error);
    }

    /// Handles the outcome of a commit and answers the worker.
    pub fn note_log_committed(
        &mut self,
        worker: WorkerId,
        commit: &LogCommit,
        position: Option<LogPosition>,
        outcome: Appended,
    ) {
        let now = self.clock.now;
        let id = self.session_of(worker).cloned();
        let Some((id, session)) = id.and_then(|id| Some((id.clone(), self.sessions.get_mut(&id)?))) else {
            let fenced = HubMessage::Committed { id: commit.id, outcome: Appended::Fenced };
            return self.answer_worker(worker, &fenced);
        };
        match position {
            Some(position) => drop(session.logs.owned.insert(commit.log.clone(), position)),
            None => drop(session.logs.owned.remove(&commit.log)),
        }
        let mut outcome = outcome;
        match outcome {
            Appended::Ok => session.logs.failing_since = None,
            Appended::Fenced => session.logs.is_fenced = true,
            Appended::Unknown => {
                let since = *session.logs.failing_since.get_or_insert(now);
                if self.stores.are_shared {
                    // Nothing may start that is not committed.
                    let fenced = HubMessage::Committed { id: commit.id, outcome: Appended::Fenced };
                    self.answer_worker(worker, &fenced);
                    return self.give_up_unstored(&id);
                }
                if now >= since + STORE_TIMEOUT {
                    // As with numbers: a turn that waits for ever is worse than one whose log has no owner.
                    session.logs.is_off = true;
                    outcome = Appended::Ok;
                    let message =
                        "the session's log cannot be committed, because its store does not accept it";
                    let error = ErrorInfo::new(ErrorKind::Internal, "store_failed", message);
                    let lines = self.writer.error(&id, error);
                    self.emit(&id, &lines);
                }
            }
        }
        self.answer_worker(worker, &HubMessage::Committed { id: commit.id, outcome });
    }

    /// Gives up the logs of a session whose worker has left it.
    pub(super) fn release_logs(&mut self, id: &SessionId, worker: WorkerId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.logs.is_fenced = false;
        for (log, position) in session.logs.owned.drain() {
            self.actions.push(RouterAction::ReleaseLog { worker, log, epoch: position.epoch });
        }
        self.release_numbers(id);
    }

    /// Another process was found to own the session: ends what the client waits for, and kills its worker.
    pub fn note_taken_over(&mut self, id: &SessionId) {
        self.give_up_fenced(id);
    }
}
