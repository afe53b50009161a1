//! Recovery of a turn whose worker has died, by the session's crash policy.
//!
//! The session's log is the only truth about a turn: a tool starts only after its start was committed, so that
//! a turn without an effect has run no tool, and a turn that is continued repeats none. The prompts after the
//! lost turn are handed to the next worker under every policy.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Json, SessionId};
use serde_json::{Value, json};

use super::admission::{MAX_DEATHS, QUARANTINE};
use super::input::BIND_SESSION;
use super::{Pending, Router, Session, Waiting};
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
    /// The position of the prompt that the worker was at: the running turn's, or else the first that was sent.
    fn position_of_running(&self) -> Option<usize> {
        let named = self.turn.as_deref().and_then(|turn| self.find_pending(Some(turn)));
        let at = named.or_else(|| self.pending.iter().position(|prompt| prompt.sent))?;
        self.pending.get(at).is_some_and(|prompt| prompt.sent).then_some(at)
    }

    /// Decides about the turn of a worker that has died. `answers_probes` tells whether the wire shows that a
    /// worker has read a prompt.
    fn remedy(&self, at: Option<usize>, answers_probes: bool) -> Remedy {
        let prompt = at.and_then(|at| self.pending.get(at));
        if prompt.is_some_and(|prompt| !prompt.seen) && self.turn.is_none() && answers_probes {
            return Remedy::Requeue;
        }
        // The turn's effects are known only with its prompt.
        let is_unstarted = prompt.is_some_and(|prompt| !prompt.had_effects);
        let is_retried = prompt.is_some_and(|prompt| prompt.retry_safe && !prompt.resent) && is_unstarted;
        let is_logged = self.recovery.is_start_logged || self.key.spec.leash.is_none();
        let can_continue = self.is_resumable && at.is_none_or(|at| at == 0) && (is_logged || is_unstarted);
        match self.recovery.on_crash {
            _ if !can_continue => Remedy::End,
            OnCrash::Resume => Remedy::Continue,
            OnCrash::Fork if self.turn.is_some() && is_logged && !self.recovery.is_forked => Remedy::Fork,
            OnCrash::Fork => Remedy::Continue,
            OnCrash::Retry if is_unstarted => Remedy::Continue,
            OnCrash::Error | OnCrash::Retry if is_retried => Remedy::Continue,
            OnCrash::Error | OnCrash::Retry => Remedy::End,
        }
    }

    /// The key that the session's next worker is started with.
    pub fn worker_key(&self) -> std::sync::Arc<crate::worker_pool::WorkerKey> {
        let id = self.id.as_str();
        let flags: &[&str] = match &self.fork_from {
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
        self.pending.iter_mut().map(|prompt| &mut prompt.line).for_each(rename);
        self.initialize.iter_mut().chain(self.settings.values_mut()).for_each(rename);
        for waiting in &mut self.backlog {
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
        let answers_probes = self.front.probe(0).is_some();
        let is_ending = self.drain_until.is_some();
        let Some(session) = self.sessions.get_mut(id) else { return id.clone() };
        let at = session.position_of_running();
        if at.is_none() && session.turn.is_none() {
            self.requeue(id);
            return id.clone();
        }
        session.recovery.deaths += 1;
        let is_poisoned = session.recovery.deaths >= MAX_DEATHS;
        let may_recover = !is_poisoned && session.closing.is_none() && !is_ending;
        let remedy = if may_recover { session.remedy(at, answers_probes) } else { Remedy::End };
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
        let prompt = at.and_then(|at| session.pending.remove(at));
        // A turn without a prompt is one that the client continued.
        let turn = session.turn.take();
        let name =
            turn.or_else(|| prompt.as_ref().map(|prompt| session.turn_name(prompt))).unwrap_or_default();
        session.turns += u64::from(prompt.is_some());
        session.recovery.reset_turn();
        if is_poisoned {
            session.recovery.quarantined_until = Some(self.now + QUARANTINE);
            session.recovery.deaths = 0;
        }
        let error = lost(format!(
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
        let continues = session.turn.is_some();
        session.recovery.continues = continues;
        if let Some(first) = session.pending.front_mut() {
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
        let mut next = Session::new(fork.clone(), session.tenant.clone(), key.into(), self.now);
        next.pending = std::mem::take(&mut session.pending);
        next.backlog = std::mem::take(&mut session.backlog);
        next.turn = session.turn.take();
        next.initialize = session.initialize.take();
        next.settings = std::mem::take(&mut session.settings);
        next.replays = true;
        next.had_worker = true;
        next.turns = session.turns;
        next.prompts = session.prompts;
        next.recovery = std::mem::take(&mut session.recovery);
        next.recovery.is_forked = true;
        next.recovery.is_start_logged = false;
        next.recovery.continues = true;
        next.fork_from = Some(id.to_string());
        next.numbering.on = session.numbering.on;
        if let Some(first) = next.pending.front_mut() {
            first.resent = true;
        }
        next.rename_waiting(id);
        self.sessions.insert(fork.clone(), next);
        self.metrics.retried += 1;
        self.forget_session(id);
        self.closed.retain(|closed| closed.id != *id);
        self.forks.insert(id.clone(), fork.clone());
        self.requeue(&fork);
        self.take_events_if_due(&fork);
        fork
    }

    /// Ends the open parts of the turn, so that its next lines begin anew, and tells the client that another
    /// worker takes it up.
    fn announce_recovery(&mut self, id: &SessionId, exit: &WorkerExit, fork: Option<&SessionId>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let open = std::mem::take(&mut session.open_parts);
        session.recovery.has_shown_calls = open.has_shown_calls && fork.is_none();
        let prompt = session.position_of_running().and_then(|at| session.pending.get(at));
        let name = session.turn.clone().or_else(|| prompt.map(|prompt| session.turn_name(prompt)));
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
            let turn = self.sessions.get_mut(id).and_then(|session| session.turn.take());
            self.emit_notice(id, &name, notice);
            if let Some(session) = self.sessions.get_mut(id) {
                session.turn = turn;
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

    /// Moves the prompts that were sent to the dead worker but never started to the front of the backlog.
    fn requeue(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let continues = session.recovery.continues;
        let mut again: Vec<u64> = Vec::new();
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

    /// The new worker's log has no unfinished turn. The prompt is sent again under the id of its turn: the
    /// worker answers with the stored end if the turn has one, and runs the prompt if the log does not have it.
    pub(super) fn resend_first(&mut self, id: &SessionId) {
        let names_turns = self.front.names_turns();
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.turn.clone() else { return };
        let may_rerun = |prompt: &Pending| prompt.resent && (names_turns || !prompt.had_effects);
        if let Some(first) = session.pending.front_mut().filter(|first| may_rerun(first)) {
            first.sent = false;
            if names_turns {
                first.line = with_true(&with_text(&first.line, "prompt_id", &turn), "resend");
                first.prompt_id = Some(turn);
            }
            let number = first.number;
            session.turn = None;
            session.backlog.push_front(Waiting::Prompt(number));
            return self.pump(id);
        }
        let at = session.position_of_running();
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
        let Some(turn) = session.turn.clone() else { return };
        let prompt = session.position_of_running().and_then(|at| session.pending.remove(at));
        session.turns += 1;
        let since = prompt.map_or(Duration::ZERO, |prompt| prompt.at);
        self.end_turn_for(id, &turn, EndStatus::Interrupted, error.clone(), since);
    }

    /// The turn whose end a lost worker has logged but not written.
    pub(crate) fn unwritten_end(&self, id: &SessionId) -> Option<&str> {
        let session = self.sessions.get(id)?;
        session.turn.as_deref().filter(|_| session.recovery.is_end_logged)
    }

    /// Writes the logged end of the running turn in place of its worker.
    pub(crate) fn write_logged_end(&mut self, id: &SessionId, end: &[u8], now: Duration) {
        self.now = now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.turn.clone() else { return };
        let open = std::mem::take(&mut session.open_parts);
        let prompt = session.position_of_running().and_then(|at| session.pending.remove(at));
        session.turns += 1;
        session.turn = None;
        session.fork_from = None;
        session.recovery.finish_turn();
        if let Some(prompt) = prompt {
            self.metrics.turn_took(now.saturating_sub(prompt.at));
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

    /// The session in which a session continues after crashes; itself if it was not forked.
    pub(super) fn follow_forks(&self, id: SessionId) -> SessionId {
        let mut last = id;
        while let Some(fork) = self.forks.get(&last) {
            last = fork.clone();
        }
        last
    }
}

/// The error of what a lost worker leaves unfinished.
pub(super) fn lost(message: String) -> ErrorInfo {
    ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Internal, "worker_lost", message) }
}
