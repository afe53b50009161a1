//! Recovery of a turn whose worker has died, by the session's crash policy.
//!
//! The session's log is the only truth about a turn: a tool starts only after its start was committed, so that
//! a turn without an effect has run no tool, and a turn that is continued repeats none. The prompts after the
//! lost turn are handed to the next worker under every policy.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Json, SessionId};
use serde_json::{Value, json};

use super::Router;
use super::admission::{MAX_DEATHS, QUARANTINE};
use super::input::BIND_SESSION;
use super::session::{Pending, Session, Waiting};
use crate::front::{OpenParts, session_id_of, with_session_id, with_text, with_true};
use crate::process_manager::WorkerExit;

/// What happens to a turn whose worker dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnCrash {
    /// The turn ends as `interrupted`; the session continues with the next prompt.
    #[default]
    Error,
    /// A new worker continues the turn. Finished calls are not repeated; the model is told that the outcome of
    /// an interrupted call is unknown.
    Resume,
    /// A new worker runs the prompt again if no tool had started; otherwise as [`OnCrash::Error`].
    Retry,
    /// As [`OnCrash::Resume`], in a fork of the session; the session itself stays as it was.
    Fork,
}

impl OnCrash {
    pub const ALL: [Self; 4] = [Self::Error, Self::Resume, Self::Retry, Self::Fork];

    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Fork => "fork",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// How far a session is in recovering from the death of its workers.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    pub on_crash: OnCrash,
    /// Consecutive workers that died without finishing a turn.
    pub deaths: u32,
    pub quarantined_until: Option<Duration>,
    /// Consecutive workers that ended before their handshake.
    pub failed_starts: u32,
    /// True if the next worker must continue the session's turn.
    pub continues: bool,
    /// True if the client has the message whose calls the next worker continues.
    pub has_shown_calls: bool,
    /// True once a worker was lost: its successor must be told which session a prompt means.
    pub has_lost_worker: bool,
    /// How the last worker was lost.
    pub last_exit: Option<WorkerExit>,
    /// True if the start of the running turn is in the session's log.
    pub is_start_logged: bool,
    /// True if the end of the running turn is in the session's log.
    pub is_end_logged: bool,
    /// True while the running turn continues in a fork that a crash caused.
    pub is_forked: bool,
    /// The session to fork from, until this session's log exists.
    pub fork_from: Option<String>,
    /// Why the last worker could not start, if another one of the same program cannot either.
    pub start_failure: Option<StartFailure>,
}

/// Why no worker of a program can start.
#[derive(Debug)]
pub(super) enum StartFailure {
    /// It speaks this version of the protocol, which is not supported.
    Version(String),
    /// It refused its flags, settings or session.
    Refused(String),
}

impl Recovery {
    /// The turn has ended.
    pub fn finish_turn(&mut self) {
        self.deaths = 0;
        self.quarantined_until = None;
        self.reset_turn();
    }

    fn reset_turn(&mut self) {
        self.continues = false;
        self.is_start_logged = false;
        self.is_end_logged = false;
        self.is_forked = false;
    }
}

/// What becomes of a lost turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// The prompt is sent to the next worker: none has begun it.
    Requeue,
    /// The next worker takes the turn up.
    Continue,
    /// The next worker takes the turn up in a fork.
    Fork,
    /// The turn ends as interrupted.
    End,
}

impl Session {
    /// Decides about the turn of a worker that has died.
    fn choose_remedy(&self, at: Option<usize>) -> Remedy {
        let prompt = at.and_then(|at| self.prompts.pending.get(at));
        if prompt.is_some_and(|prompt| !prompt.seen) && self.prompts.turn.is_none() {
            return Remedy::Requeue;
        }
        // The turn's effects are known only with its prompt.
        let is_unstarted = prompt.is_some_and(|prompt| !prompt.had_effects);
        let is_retried = prompt.is_some_and(|prompt| prompt.retry_safe && !prompt.resent) && is_unstarted;
        let is_logged = self.recovery.is_start_logged;
        let can_continue = self.is_resumable && at.is_none_or(|at| at == 0) && (is_logged || is_unstarted);
        match self.recovery.on_crash {
            _ if !can_continue => Remedy::End,
            OnCrash::Resume => Remedy::Continue,
            OnCrash::Fork if self.prompts.turn.is_some() && is_logged && !self.recovery.is_forked => {
                Remedy::Fork
            }
            OnCrash::Fork => Remedy::Continue,
            OnCrash::Retry if is_unstarted => Remedy::Continue,
            OnCrash::Error | OnCrash::Retry if is_retried => Remedy::Continue,
            OnCrash::Error | OnCrash::Retry => Remedy::End,
        }
    }

    /// The key that the session's next worker is started with.
    pub fn worker_key(&self) -> std::sync::Arc<crate::worker_pool::WorkerKey> {
        let id = self.id.as_str();
        let flags: &[&str] = match &self.recovery.fork_from {
            Some(from) => &["--resume", from, "--fork-session", "--session-id", id],
            None if self.recovery.continues => &["--resume", id],
            None => return self.key.clone(),
        };
        let mut key = (*self.key).clone();
        key.spec.args.extend(flags.iter().map(|flag| (*flag).to_owned()));
        key.into()
    }

    /// Makes the lines that wait for a worker name the session by its new id.
    fn rename_waiting(&mut self, from: &SessionId) {
        let rename = |line: &mut Vec<u8>| {
            if session_id_of(line).as_ref() == Some(from) {
                *line = with_session_id(line, &self.id);
            }
        };
        self.prompts.pending.iter_mut().map(|prompt| &mut prompt.line).for_each(rename);
        self.setup.initialize.iter_mut().chain(self.setup.settings.values_mut()).for_each(rename);
        for waiting in &mut self.prompts.backlog {
            match waiting {
                Waiting::Line(line) | Waiting::Heartbeat(line) => rename(line),
                Waiting::Prompt(_) => {}
            }
        }
    }
}

impl Router {
    /// Recovers the turn that a lost worker was at, and hands the prompts after it to the next worker. Returns
    /// the session that continues, which is another one after a fork.
    pub(super) fn recover_turn(&mut self, id: &SessionId, exit: &WorkerExit) -> SessionId {
        let is_ending = self.ending.drain_until.is_some();
        let Some(session) = self.sessions.get_mut(id) else { return id.clone() };
        let at = session.prompts.find_running();
        if at.is_none() && session.prompts.turn.is_none() {
            self.requeue(id);
            return id.clone();
        }
        session.recovery.deaths += 1;
        let is_poisoned = session.recovery.deaths >= MAX_DEATHS;
        let may_recover = !is_poisoned && !session.is_closing() && !is_ending;
        let remedy = if may_recover { session.choose_remedy(at) } else { Remedy::End };
        match remedy {
            Remedy::Requeue => self.requeue(id),
            Remedy::Continue => self.continue_turn(id, exit),
            Remedy::Fork => return self.fork_turn(id, exit),
            Remedy::End => self.end_lost_turn(id, at, is_poisoned, exit),
        }
        id.clone()
    }

    fn end_lost_turn(&mut self, id: &SessionId, at: Option<usize>, is_poisoned: bool, exit: &WorkerExit) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let prompt = at.and_then(|at| session.prompts.pending.remove(at));
        // A turn without a prompt is one that the client continued.
        let turn = session.prompts.turn.take();
        let name =
            turn.or_else(|| prompt.as_ref().map(|prompt| session.turn_name(prompt))).unwrap_or_default();
        session.prompts.ended += u64::from(prompt.is_some());
        session.recovery.reset_turn();
        if is_poisoned {
            session.recovery.quarantined_until = Some(self.clock.now + QUARANTINE);
            session.recovery.deaths = 0;
        }
        let error = lost_error(format!(
            "The worker of this turn is gone: {exit}. What its tools did is unknown; the session continues with the next prompt."
        ));
        let since = prompt.map_or(Duration::ZERO, |prompt| prompt.at);
        self.end_turn_for(id, &name, EndStatus::Interrupted, error, since);
        self.requeue(id);
    }

    /// Lets the next worker continue the turn; one that had not started is sent to it again.
    fn continue_turn(&mut self, id: &SessionId, exit: &WorkerExit) {
        self.announce_recovery(id, exit, None);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let continues = session.prompts.turn.is_some();
        session.recovery.continues = continues;
        if let Some(first) = session.prompts.pending.front_mut() {
            first.resent = true;
            first.sent = continues;
        }
        self.metrics.retried += 1;
        self.requeue(id);
    }

    /// Lets the next worker continue the turn in a fork of the session, and returns the fork.
    fn fork_turn(&mut self, id: &SessionId, exit: &WorkerExit) -> SessionId {
        let fork = SessionId::from_random(fastrand::u128(..));
        self.announce_recovery(id, exit, Some(&fork));
        let Some(session) = self.sessions.get_mut(id) else { return id.clone() };
        let mut key = (*session.key).clone();
        let args = &mut key.spec.args;
        if let Some(flag) = args.iter().position(|arg| arg == BIND_SESSION)
            && let Some(bound) = args.get_mut(flag + 1)
        {
            *bound = fork.to_string();
        }
        let mut next = Session::new(fork.clone(), session.tenant.clone(), key.into(), self.clock.now);
        next.prompts.pending = std::mem::take(&mut session.prompts.pending);
        next.prompts.backlog = std::mem::take(&mut session.prompts.backlog);
        next.prompts.turn = session.prompts.turn.take();
        next.setup.initialize = session.setup.initialize.take();
        next.setup.settings = std::mem::take(&mut session.setup.settings);
        next.setup.replays = true;
        next.setup.had_worker = true;
        next.prompts.ended = session.prompts.ended;
        next.prompts.count = session.prompts.count;
        next.recovery = std::mem::take(&mut session.recovery);
        next.recovery.is_forked = true;
        next.recovery.is_start_logged = false;
        next.recovery.continues = true;
        next.recovery.fork_from = Some(id.to_string());
        next.numbering.on = session.numbering.on;
        if let Some(first) = next.prompts.pending.front_mut() {
            first.resent = true;
        }
        next.rename_waiting(id);
        self.sessions.insert(fork.clone(), next);
        self.metrics.retried += 1;
        self.forget_session(id);
        self.history.forget_closed(id);
        self.history.note_fork(id.clone(), fork.clone());
        self.requeue(&fork);
        self.take_events_if_due(&fork);
        fork
    }

    /// Ends the open parts of the turn, so that its next lines begin anew, and tells the client that another
    /// worker takes it up.
    fn announce_recovery(&mut self, id: &SessionId, exit: &WorkerExit, fork: Option<&SessionId>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let open = std::mem::take(&mut session.prompts.open_parts);
        session.recovery.has_shown_calls = open.has_shown_calls && fork.is_none();
        let prompt = session.prompts.find_running().and_then(|at| session.prompts.pending.get(at));
        let name = session.prompts.turn.clone().or_else(|| prompt.map(|prompt| session.turn_name(prompt)));
        let name = name.unwrap_or_default();
        let mut notice = json!({
            "kind": "worker_restarted",
            "on_crash": session.recovery.on_crash.name(),
            "attempt": session.recovery.deaths,
            "session_id": fork.unwrap_or(id).as_str(),
            "worker": exit.to_json(),
        });
        if fork.is_some() {
            notice["forked_from"] = Value::from(id.as_str());
        }
        let lines = match fork {
            Some(_) => self.writer.before_fork(id, &name, &open),
            None => self.writer.before_continuation(id, &name, &open),
        };
        self.emit(id, &lines);
        if fork.is_some() {
            // The turn continues elsewhere: it is not open in this session's numbered lines any more.
            let turn = self.sessions.get_mut(id).and_then(|session| session.prompts.turn.take());
            self.emit_notice(id, &name, notice);
            if let Some(session) = self.sessions.get_mut(id) {
                session.prompts.turn = turn;
            }
        } else {
            self.emit_notice(id, &name, notice);
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers have no further use for it")]
    fn emit_notice(&mut self, id: &SessionId, prompt_id: &str, notice: Value) {
        let lines = self.writer.notice(id, prompt_id, Json::trusted(notice.to_string()));
        self.emit(id, &lines);
    }

    /// Hands the prompts that the dead worker has not started to the next one.
    fn requeue(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.prompts.requeue(session.recovery.continues);
        }
    }

    /// The new worker's log has no unfinished turn. The prompt is sent again under the id of its turn: the
    /// worker answers with the stored end if the turn has one, and runs the prompt if the log does not have it.
    pub(super) fn resend_first(&mut self, id: &SessionId) {
        let names_turns = self.front.names_turns();
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.prompts.turn.clone() else { return };
        let may_rerun = |prompt: &Pending| prompt.resent && (names_turns || !prompt.had_effects);
        if let Some(first) = session.prompts.pending.front_mut().filter(|first| may_rerun(first)) {
            first.sent = false;
            if names_turns {
                first.line = with_true(&with_text(&first.line, "prompt_id", &turn), "resend");
                first.prompt_id = Some(turn);
            }
            let number = first.number;
            session.prompts.turn = None;
            session.prompts.backlog.push_front(Waiting::Prompt(number));
            return self.pump(id);
        }
        let at = session.prompts.find_running();
        let exit = session.recovery.last_exit.clone();
        if let Some(exit) = exit {
            self.end_lost_turn(id, at, false, &exit);
        }
        self.pump(id);
    }

    /// Ends a turn that waits for the worker that should continue it.
    pub(super) fn end_continuing_turn(&mut self, id: &SessionId, error: &ErrorInfo) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.recovery.continues) else {
            return;
        };
        session.recovery.reset_turn();
        let Some(turn) = session.prompts.turn.clone() else { return };
        let prompt = session.prompts.take_running();
        session.prompts.ended += 1;
        let since = prompt.map_or(Duration::ZERO, |prompt| prompt.at);
        self.end_turn_for(id, &turn, EndStatus::Interrupted, error.clone(), since);
    }

    /// The turn whose end a lost worker has logged but not written.
    pub(crate) fn unwritten_end(&self, id: &SessionId) -> Option<&str> {
        let session = self.sessions.get(id)?;
        session.prompts.turn.as_deref().filter(|_| session.recovery.is_end_logged)
    }

    /// Writes the logged end of the running turn in place of its worker.
    pub(crate) fn write_logged_end(&mut self, id: &SessionId, end: &[u8], now: Duration) {
        self.clock.now = now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.prompts.turn.clone() else { return };
        let open = std::mem::take(&mut session.prompts.open_parts);
        let prompt = session.prompts.take_running();
        session.prompts.ended += 1;
        session.prompts.turn = None;
        session.recovery.fork_from = None;
        session.recovery.finish_turn();
        if let Some(prompt) = prompt {
            self.metrics.record_turn_time(now.saturating_sub(prompt.at));
        }
        self.metrics.turns += 1;
        self.emit_stored_end(id, &turn, end, &open);
    }

    /// Writes the ends of a turn's open parts and its stored end.
    pub(super) fn emit_stored_end(&mut self, id: &SessionId, turn: &str, end: &[u8], open: &OpenParts) {
        let mut lines = self.writer.before_end(id, turn, open);
        for line in end.split_inclusive(|byte| *byte == b'\n') {
            // The end belongs to the message that is open, or else brings its own.
            if !open.is_message_open || !self.front.begins_message(line) {
                lines.extend_from_slice(line);
            }
        }
        self.emit(id, &lines);
    }
}

/// The error of what a lost worker leaves unfinished.
pub(super) fn lost_error(message: String) -> ErrorInfo {
    ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Internal, "worker_lost", message) }
}
