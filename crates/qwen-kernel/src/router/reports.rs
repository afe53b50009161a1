//! Reports of workers, applied at their places on standard output.
//!
//! The [`ipc::Place`](crate::ipc::Place) of a report says when it applies. A report about a line is applied with
//! that line: first what the line changes in the session, then the line itself, then what follows from it.

use std::collections::VecDeque;
use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, SessionId};

use super::Router;
use super::recovery::StartFailure;
use super::session::Question;
use crate::action::RouterAction;
use crate::front::{OpenParts, command_summary};
use crate::ipc::{HUB_REQUEST, Place, Report, ReportedFact};
use crate::worker_pool::{Stage, WorkerId};

/// The prefix of the ids of the hub's requests to continue a turn.
pub(super) const CONTINUE_REQUEST: &str = "hub.continue.";

/// How many warnings are remembered.
const MAX_WARNINGS: usize = 1000;

/// Whether the client gets a line of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relayed {
    Yes,
    No,
}

impl Relayed {
    fn and(self, other: Self) -> Self {
        if self == Self::No { self } else { other }
    }
}

/// The router's state of one worker: its session, and how far its streams are.
#[derive(Debug, Default)]
pub(super) struct WorkerLink {
    /// The session that it serves.
    pub session: Option<SessionId>,
    /// True once it has reported that it accepts lines.
    pub is_ready: bool,
    /// True once the kernel has given it up: its lines are ignored.
    pub is_ignored: bool,
    /// The lines that it has read from its standard input or will read.
    inputs: u64,
    /// The lines of its standard output so far.
    outputs: u64,
    /// Reports whose place has not been reached.
    waiting: VecDeque<Report>,
}

impl WorkerLink {
    /// Counts whole lines that are written to the worker, and returns the number of the last.
    pub fn count_inputs(&mut self, lines: &[u8]) -> u64 {
        self.inputs += memchr::memchr_iter(b'\n', lines).count() as u64;
        self.inputs
    }

    /// Counts a line of output. True if a report is about it or applies before it.
    #[inline]
    pub fn count_output(&mut self) -> bool {
        self.outputs += 1;
        !self.waiting.is_empty()
    }

    /// The process image was replaced.
    fn restart(&mut self) {
        self.inputs = 0;
        self.outputs = 0;
        self.is_ready = false;
    }

    /// Removes the next report that applies now. `line` is true while the last line that was counted is not
    /// relayed yet.
    fn next_report(&mut self, line: bool) -> Option<Report> {
        let relayed = self.outputs - u64::from(line);
        let is_due = match self.waiting.front()?.at {
            Place::Anywhere => true,
            Place::After(count) => count <= relayed,
            Place::Line(number) => number <= self.outputs,
        };
        if is_due { self.waiting.pop_front() } else { None }
    }
}

impl Router {
    /// Handles a report of a worker: at once if its place is reached, otherwise with the line that it names.
    pub fn handle_report(&mut self, worker: WorkerId, report: Report, now: Duration) {
        self.clock.now = now;
        let link = self.links.entry(worker).or_default();
        if link.is_ignored {
            return;
        }
        if report.at == Place::Anywhere {
            return self.apply_without_line(worker, report.fact);
        }
        link.waiting.push_back(report);
        self.apply_due(worker);
    }

    /// Applies reports that are not about a line that is still to come.
    pub(super) fn apply_due(&mut self, worker: WorkerId) {
        while let Some(report) = self.links.get_mut(&worker).and_then(|link| link.next_report(false)) {
            self.apply_without_line(worker, report.fact);
        }
    }

    fn apply_without_line(&mut self, worker: WorkerId, fact: ReportedFact) {
        self.prepare(worker, &fact, b"");
        self.conclude(worker, fact, b"");
    }

    /// Relays a line with the reports about it.
    pub(super) fn relay_reported(&mut self, worker: WorkerId, line: &[u8]) {
        let mut facts = Vec::new();
        let mut relayed = Relayed::Yes;
        while let Some(report) = self.links.get_mut(&worker).and_then(|link| link.next_report(true)) {
            if matches!(report.at, Place::Line(_)) {
                relayed = relayed.and(self.prepare(worker, &report.fact, line));
                facts.push(report.fact);
            } else {
                self.apply_without_line(worker, report.fact);
            }
        }
        if facts.is_empty() && !self.links.get(&worker).is_some_and(|link| link.is_ready) {
            return self.note_unreported(worker, line);
        }
        if relayed == Relayed::Yes {
            self.relay_session_line(worker, line);
        }
        for fact in facts {
            self.conclude(worker, fact, line);
        }
        self.apply_due(worker);
    }

    /// Does what a fact requires before its line is relayed. Returns whether the client gets the line.
    fn prepare(&mut self, worker: WorkerId, fact: &ReportedFact, line: &[u8]) -> Relayed {
        let Some(id) = self.session_of(worker).cloned() else { return Relayed::No };
        match fact {
            ReportedFact::Ready { .. } => {
                self.pass_handshake(&id, line);
                return Relayed::No;
            }
            ReportedFact::Refused { input, prompt_id, code, message } => {
                return self.refuse_sent(&id, *input, prompt_id.as_deref(), code, message);
            }
            ReportedFact::QuestionClosed { request_id } => self.close_question(&id, request_id),
            ReportedFact::RequestAnswered { request_id, .. } => return self.note_answer(&id, request_id),
            ReportedFact::TurnEnded { prompt_id, status, input_tokens, output_tokens } => {
                self.metrics.tokens.0 += input_tokens;
                self.metrics.tokens.1 += output_tokens;
                self.allow_spares();
                let prompt_id = self.wire_turn_id(prompt_id).map(str::to_owned);
                self.end_turn(&id, prompt_id.as_deref(), status);
            }
            ReportedFact::Failed { message } => return self.note_failure(&id, message),
            ReportedFact::PromptRead { .. }
            | ReportedFact::TurnStarted { .. }
            | ReportedFact::PromptJoined { .. }
            | ReportedFact::QuestionOpened { .. }
            | ReportedFact::CommandEnded { .. }
            | ReportedFact::Warned { .. }
            | ReportedFact::Restarting => {}
        }
        Relayed::Yes
    }

    /// Does what follows from a fact once its line is relayed.
    fn conclude(&mut self, worker: WorkerId, fact: ReportedFact, line: &[u8]) {
        match fact {
            ReportedFact::Ready { version } => return self.note_worker_ready(worker, &version),
            ReportedFact::Warned { code, text } => return self.warn_once(code, text),
            ReportedFact::Failed { .. } => return self.await_exit(worker),
            ReportedFact::Restarting => {
                if let Some(link) = self.links.get_mut(&worker) {
                    link.restart();
                }
                return;
            }
            _ => {}
        }
        let Some(id) = self.session_of(worker).cloned() else { return };
        match fact {
            ReportedFact::PromptRead { input } => self.note_read(&id, input),
            ReportedFact::TurnStarted { prompt_id } => {
                let prompt_id = self.wire_turn_id(&prompt_id).unwrap_or_default().to_owned();
                self.note_start(&id, &prompt_id);
            }
            ReportedFact::PromptJoined { prompt_id } => self.note_joined(&id, &prompt_id),
            ReportedFact::QuestionOpened { request_id } => self.note_question(&id, request_id, line),
            ReportedFact::RequestAnswered { request_id, accepted: false }
                if request_id.starts_with(CONTINUE_REQUEST) =>
            {
                self.resend_first(&id);
            }
            ReportedFact::CommandEnded { prompt_id, submits_prompt: false } => {
                let prompt_id = self.wire_turn_id(&prompt_id).map(str::to_owned);
                self.finish_prompt(&id, worker, prompt_id.as_deref());
            }
            ReportedFact::TurnEnded { prompt_id, .. } => {
                self.metrics.turns += 1;
                let prompt_id = self.wire_turn_id(&prompt_id).map(str::to_owned);
                self.finish_prompt(&id, worker, prompt_id.as_deref());
            }
            _ => {}
        }
    }

    /// The id of a turn as the wire names it; none on a wire without ids, which runs prompts in order.
    fn wire_turn_id<'a>(&self, prompt_id: &'a str) -> Option<&'a str> {
        self.front.names_turns().then_some(prompt_id)
    }

    /// The worker accepts lines, unless it speaks another version of the protocol.
    fn note_worker_ready(&mut self, worker: WorkerId, version: &str) {
        self.clock.has_changed = true;
        if version.split('.').next() != qwen_dialects::qwen::PROTOCOL_VERSION.split('.').next() {
            return self.refuse_version(worker, version);
        }
        self.links.entry(worker).or_default().is_ready = true;
        if self.pool.worker(worker).is_some_and(|worker| worker.stage == Stage::Discarding) {
            return self.note_discarded(worker);
        }
        self.pool.note_ready(worker, self.clock.now);
        if let Some(id) = self.session_of(worker).cloned() {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.set_ready();
                session.recovery.failed_starts = 0;
            }
            self.flush(&id);
        }
    }

    /// Ends a worker whose protocol version is not supported.
    pub(super) fn refuse_version(&mut self, worker: WorkerId, version: &str) {
        self.clock.has_changed = true;
        let session = self.session_of(worker).cloned();
        if let Some(session) = session.and_then(|id| self.sessions.get_mut(&id)) {
            session.recovery.start_failure = Some(StartFailure::Version(version.to_owned()));
        }
        self.pool.kill(worker, "protocol", self.clock.now, &mut self.actions);
    }

    /// Passes a warning on, once for all workers.
    fn warn_once(&mut self, code: String, text: String) {
        if self.observers.warnings.len() >= MAX_WARNINGS {
            self.observers.warnings.clear();
        }
        if self.observers.warnings.insert((code.clone(), text.clone())) {
            self.actions.push(RouterAction::Warn { code, text });
        }
    }

    /// The worker is about to end. It waits for a while so that its parent reads why; this one has.
    fn await_exit(&mut self, worker: WorkerId) {
        self.metrics.worker_fatals += 1;
        if !self.client.represents_worker {
            self.actions.push(RouterAction::CloseInput { worker });
        }
    }

    /// Notes why a worker is about to end. Its line is the client's if the client started this one worker.
    fn note_failure(&mut self, id: &SessionId, message: &str) -> Relayed {
        let is_only = self.client.represents_worker
            || *id == self.client.default_session && !self.front.has_handshake();
        let names_turns = self.front.names_turns();
        let Some(session) = self.sessions.get_mut(id) else { return Relayed::No };
        if is_only {
            if !names_turns && let Some(first) = session.prompts.pending.pop_front() {
                // On such a wire the error is the terminal record of a prompt.
                session.prompts.forget_waiting(first.number);
            }
            return Relayed::Yes;
        }
        if !session.is_ready() {
            session.recovery.start_failure = Some(StartFailure::Refused(message.to_owned()));
        }
        Relayed::No
    }

    fn note_read(&mut self, id: &SessionId, input: u64) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if let Some(prompt) = session.prompts.pending.iter_mut().find(|prompt| prompt.input == Some(input)) {
            prompt.seen = true;
        }
    }

    /// A prompt joined the running turn, so that it is not pending any more.
    fn note_joined(&mut self, id: &SessionId, prompt_id: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let named =
            session.prompts.pending.iter().position(|prompt| prompt.prompt_id.as_deref() == Some(prompt_id));
        let at = named.or_else(|| {
            let steers =
                |prompt: &super::session::Pending| prompt.steers && prompt.sent && prompt.prompt_id.is_none();
            session.prompts.pending.iter().position(steers)
        });
        if let Some(at) = at {
            session.prompts.pending.remove(at);
        }
    }

    /// The start of a turn: its worker reported it, or it is in the session's log.
    pub(super) fn note_start(&mut self, id: &SessionId, prompt_id: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.prompts.start_turn(prompt_id) {
            session.active_at = self.clock.now;
            self.metrics.turns_started += 1;
            self.store_start(id);
        }
    }

    /// Keeps a question of the session's worker until it is answered or withdrawn.
    fn note_question(&mut self, id: &SessionId, request_id: String, line: &[u8]) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let question = Question { line: line.to_vec(), seq: session.numbering.last };
        session.requests.questions.insert(request_id.clone(), question);
        self.questions.entry(request_id).or_default().push(id.clone());
    }

    /// Notes that a request was answered. The hub's own requests have no other reader.
    fn note_answer(&mut self, id: &SessionId, request_id: &str) -> Relayed {
        if request_id.starts_with(HUB_REQUEST) {
            return Relayed::No;
        }
        self.clock.has_changed = true;
        self.allow_spares();
        if let Some(session) = self.sessions.get_mut(id) {
            session.requests.unanswered.retain(|request| request.request_id != request_id);
        }
        Relayed::Yes
    }

    /// Notes the end of a turn, before its terminal record is relayed.
    fn end_turn(&mut self, id: &SessionId, prompt_id: Option<&str>, status: &str) {
        self.log_turn(id, prompt_id, status);
        self.metrics.count_end(status);
        let Some(session) = self.sessions.get_mut(id) else { return };
        if let Some(span) = session.prompts.find_mut(prompt_id).and_then(|prompt| prompt.span.as_mut()) {
            span.ended(status);
        }
        session.prompts.ended += 1;
        session.prompts.open_parts = OpenParts::default();
        session.recovery.finish_turn();
        session.recovery.fork_from = None;
        let runs = session.prompts.turn.as_deref();
        if runs.is_some() && (prompt_id.is_none() || runs == prompt_id) {
            session.prompts.turn = None;
        }
    }

    fn log_turn(&mut self, id: &SessionId, prompt_id: Option<&str>, status: &str) {
        let (Some(log), Some(session)) = (&mut self.observers.log, self.sessions.get(id)) else { return };
        let prompt = session.prompts.find(prompt_id).and_then(|at| session.prompts.pending.get(at));
        let took = prompt.map(|prompt| self.clock.now.saturating_sub(prompt.at).as_millis());
        log.push(serde_json::json!({
            "event": "turn_end",
            "session_id": id.as_str(),
            "prompt_id": prompt_id,
            "tenant": session.tenant,
            "status": status,
            "command": prompt.and_then(|prompt| command_summary(&prompt.line)),
            "duration_ms": took.map(|took| u64::try_from(took).unwrap_or(u64::MAX)),
        }));
    }

    /// Handles the refusal of a line of input. If the line was a prompt, the prompt is not pending any more.
    fn refuse_sent(
        &mut self,
        id: &SessionId,
        input: Option<u64>,
        prompt_id: Option<&str>,
        code: &str,
        message: &str,
    ) -> Relayed {
        let Some(session) = self.sessions.get_mut(id) else { return Relayed::No };
        let named = prompt_id.filter(|name| session.prompts.turn.as_deref() != Some(name));
        let at = session.prompts.pending.iter().position(|prompt| {
            prompt.sent
                && match input {
                    Some(input) => prompt.input == Some(input),
                    None => named.is_some() && prompt.prompt_id.as_deref() == named,
                }
        });
        let Some(prompt) = at.and_then(|at| session.prompts.pending.remove(at)) else { return Relayed::Yes };
        let worker = session.worker();
        let relayed = if prompt.resent {
            // The client's prompt was valid; only the resend was not.
            let name = session.turn_name(&prompt);
            let error = ErrorInfo::new(
                qwen_events::ErrorKind::Internal,
                "worker_lost",
                "the worker died, and its successor could not take the turn up",
            );
            self.end_turn_for(id, &name, EndStatus::Interrupted, error, prompt.at);
            Relayed::No
        } else if code == "session_in_use" {
            // The worker never had the session, so only the hub can end the prompt.
            let name = session.turn_name(&prompt);
            session.prompts.ended += u64::from(prompt.prompt_id.is_none());
            let error = ErrorInfo::new(qwen_events::ErrorKind::Input, "session_in_use", message)
                .with_param("session_id");
            self.end_turn_for(id, &name, EndStatus::Error, error, prompt.at);
            Relayed::No
        } else {
            Relayed::Yes
        };
        let busy = self.sessions.get(id).is_some_and(super::session::Session::is_busy);
        if let Some(worker) = worker {
            self.pool.set_busy(worker, busy, self.clock.now);
        }
        relayed
    }
}
