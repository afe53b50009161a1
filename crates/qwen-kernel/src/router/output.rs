//! Lines from workers.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, SessionId};

use super::{ClientRequest, Pending, Question, Router};
use crate::action::RouterAction;
use crate::front::{OpenParts, WorkerOutput, command_summary, push_numbered};
use crate::worker_pool::{Stage, WorkerId};

/// In the refusal of a prompt whose session another process has.
const SESSION_IN_USE: &[u8] = b"\"code\":\"session_in_use\"";

impl Router {
    /// Processes one line of a worker, without its line break.
    pub fn worker_line(&mut self, worker: WorkerId, line: &[u8], now: Duration) {
        self.now = now;
        if self.ignored.contains(&worker) {
            return;
        }
        let front = self.front.clone();
        let output = front.output(line);
        if self.pool.worker(worker).is_some_and(|worker| worker.stage == Stage::Starting)
            && !self.is_first_line(worker, &output)
        {
            self.metrics.garbage_lines += 1;
            return self.pool.note_unexpected(worker, line);
        }
        let Some(id) = self.serves.get(&worker).cloned() else {
            return self.spare_line(worker, &output);
        };
        match output {
            WorkerOutput::Plain => {
                self.note_parts(&id, line);
                self.plain(&id, line);
            }
            WorkerOutput::ToolStarted => {
                self.note_parts(&id, line);
                self.plain(&id, line);
                self.note_effect(&id);
            }
            WorkerOutput::Handshake(version) => {
                self.greet(&id, line);
                self.handshake(worker, &version);
            }
            WorkerOutput::TurnEnd { prompt_id, status, tokens } => {
                self.metrics.tokens.0 += tokens.0;
                self.metrics.tokens.1 += tokens.1;
                self.allow_spares();
                self.turn_ended(&id, worker, prompt_id.as_deref(), status.as_deref(), line);
            }
            WorkerOutput::Refused { prompt_id } => self.refused(&id, prompt_id.as_deref(), line),
            WorkerOutput::Command { prompt_id, ends } => {
                self.relay(&id, line);
                if ends {
                    self.finish_prompt(&id, worker, prompt_id.as_deref());
                }
            }
            WorkerOutput::Joined { prompt_id } => {
                self.plain(&id, line);
                self.joined(&id, prompt_id.as_deref());
            }
            WorkerOutput::Question { request_id } => self.question(&id, &request_id, line),
            WorkerOutput::Withdrawn { request_id } => {
                self.close_question(&id, &request_id);
                self.relay(&id, line);
            }
            WorkerOutput::Answer { request_id } => self.answered(&id, &request_id, line),
            WorkerOutput::Probe(number) => self.probed(&id, number),
            WorkerOutput::Fatal { message } => {
                if self.stands_for_worker {
                    self.relay(&id, line);
                } else if let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.is_ready) {
                    session.refusal = message.map(std::borrow::Cow::into_owned);
                }
                self.fatal(worker);
            }
            WorkerOutput::Garbage => self.metrics.garbage_lines += 1,
        }
    }

    /// True for a line with which a worker that starts may begin. On a wire without handshakes, the first line
    /// shows that the worker has started.
    fn is_first_line(&mut self, worker: WorkerId, output: &WorkerOutput<'_>) -> bool {
        if self.front.has_handshake() {
            return matches!(output, WorkerOutput::Handshake(_) | WorkerOutput::Fatal { .. });
        }
        let is_of_wire = *output != WorkerOutput::Garbage;
        if is_of_wire {
            self.pool.ready(worker, self.now);
            if let Some(session) = self.serves.get(&worker).and_then(|id| self.sessions.get_mut(id)) {
                session.recovery.failed_starts = 0;
            }
        }
        is_of_wire
    }

    /// The worker uses this much memory. One that uses too much is replaced while its session is idle.
    pub fn worker_memory(&mut self, worker: WorkerId, bytes: u64, now: Duration) {
        self.now = now;
        if !self.pool.uses_memory(worker, bytes, now, &mut self.actions) {
            return;
        }
        let Some(id) = self.serves.get(&worker).cloned() else { return };
        if self.sessions.get(&id).is_some_and(|session| session.is_idle() && session.is_resumable) {
            self.pool.note_recycled("memory");
            self.release_worker(&id);
        }
    }

    /// The worker wrote bytes, possibly less than a line.
    pub fn worker_wrote(&mut self, worker: WorkerId, now: Duration) {
        self.pool.note_output(worker, now);
    }

    /// A worker's line was longer than the limit.
    pub fn worker_line_too_long(&mut self, worker: WorkerId, now: Duration) {
        self.now = now;
        self.metrics.garbage_lines += 1;
        if let Some(id) = self.serves.get(&worker).cloned() {
            let message = format!(
                "a line of the worker was longer than {} MiB and was skipped",
                crate::ipc::MAX_LINE / 1024 / 1024
            );
            let error = Self::refuse(qwen_events::ErrorKind::Internal, "line_too_long", message);
            let lines = self.writer.error(&id, error);
            self.emit(&id, &lines);
        }
    }

    fn spare_line(&mut self, worker: WorkerId, output: &WorkerOutput<'_>) {
        if let WorkerOutput::Handshake(version) = output {
            self.handshake(worker, version);
        } else if let WorkerOutput::Fatal { .. } = output {
            self.fatal(worker);
        }
    }

    /// The worker is about to end. It waits for a while so that its parent reads why; this one has.
    fn fatal(&mut self, worker: WorkerId) {
        self.metrics.worker_fatals += 1;
        if !self.stands_for_worker {
            self.actions.push(RouterAction::CloseInput { worker });
        }
    }

    /// Checks the first line of a worker: a worker with another protocol is ended.
    fn handshake(&mut self, worker: WorkerId, version: &str) {
        self.deadline_changed = true;
        if version.split('.').next() != qwen_dialects::qwen::PROTOCOL_VERSION.split('.').next() {
            let session = self.serves.get(&worker).and_then(|id| self.sessions.get_mut(id));
            if let Some(session) = session {
                session.foreign_version = Some(version.to_owned());
            }
            self.pool.kill(worker, "protocol", self.now, &mut self.actions);
            return;
        }
        if self.pool.worker(worker).is_some_and(|worker| worker.stage == Stage::Discarding) {
            return self.discarded(worker);
        }
        self.pool.ready(worker, self.now);
        if let Some(id) = self.serves.get(&worker).cloned() {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.is_ready = true;
                session.recovery.failed_starts = 0;
            }
            self.flush(&id);
        }
    }

    fn plain(&mut self, id: &SessionId, line: &[u8]) {
        if self.sessions.get(id).is_some_and(|session| session.turn.is_none()) {
            let front = self.front.clone();
            let name = front.prompt_id(line).map(std::borrow::Cow::into_owned);
            let now = self.now;
            if let Some(session) = self.sessions.get_mut(id)
                && let Some(name) = name
                && session.is_busy()
            {
                session.turn = Some(name);
                session.active_at = now;
                self.metrics.turns_started += 1;
            }
        }
        self.relay(id, line);
    }

    fn note_parts(&mut self, id: &SessionId, line: &[u8]) {
        if let Some(session) = self.sessions.get_mut(id) {
            self.front.note_parts(line, &mut session.open_parts);
        }
    }

    /// A prompt joined the running turn, so that it is not pending any more.
    fn joined(&mut self, id: &SessionId, prompt_id: Option<&str>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let named = session
            .pending
            .iter()
            .position(|prompt| prompt.prompt_id.is_some() && prompt.prompt_id.as_deref() == prompt_id);
        let at = named.or_else(|| {
            session
                .pending
                .iter()
                .position(|prompt| prompt.steers && prompt.sent && prompt.prompt_id.is_none())
        });
        if let Some(at) = at {
            session.pending.remove(at);
        }
    }

    /// The start of a turn is in the session's log.
    pub(super) fn note_start(&mut self, id: &SessionId, prompt_id: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let at = session.find_pending(Some(prompt_id));
        if let Some(prompt) = at.and_then(|at| session.pending.get_mut(at)) {
            prompt.seen = true;
        }
        if session.turn.is_none() && session.is_busy() {
            session.turn = Some(prompt_id.to_owned());
            session.active_at = self.now;
            self.metrics.turns_started += 1;
            self.store_start(id);
        }
    }

    pub(super) fn note_effect(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.get_mut(id) {
            let at = session.find_pending(session.turn.clone().as_deref());
            if let Some(prompt) = at.and_then(|at| session.pending.get_mut(at)) {
                prompt.had_effects = true;
            }
        }
    }

    fn turn_ended(
        &mut self,
        id: &SessionId,
        worker: WorkerId,
        prompt_id: Option<&str>,
        status: Option<&str>,
        line: &[u8],
    ) {
        self.log_turn(id, prompt_id, status);
        let ended = status.unwrap_or("done");
        self.metrics.ended(ended);
        if let Some(session) = self.sessions.get_mut(id) {
            let at = session.find_pending(prompt_id);
            if let Some(span) = at.and_then(|at| session.pending.get_mut(at)?.span.as_mut()) {
                span.ended(ended);
            }
            session.turns += 1;
            session.open_parts = OpenParts::default();
            session.recovery.finish_turn();
            session.fork_from = None;
            let runs = session.turn.as_deref();
            if runs.is_some() && (prompt_id.is_none() || runs == prompt_id) {
                session.turn = None;
            }
        }
        self.relay(id, line);
        self.metrics.turns += 1;
        self.finish_prompt(id, worker, prompt_id);
    }

    fn log_turn(&mut self, id: &SessionId, prompt_id: Option<&str>, status: Option<&str>) {
        let (Some(log), Some(session)) = (&mut self.log, self.sessions.get(id)) else { return };
        let prompt = session.find_pending(prompt_id).and_then(|at| session.pending.get(at));
        let took = prompt.map(|prompt| self.now.saturating_sub(prompt.at).as_millis());
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

    /// Removes a prompt from `pending`: its terminal record has passed, or it gets none.
    fn finish_prompt(&mut self, id: &SessionId, worker: WorkerId, prompt_id: Option<&str>) {
        self.deadline_changed = true;
        let now = self.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.active_at = now;
        if let Some(prompt) = session.find_pending(prompt_id).and_then(|at| session.pending.remove(at)) {
            self.metrics.turn_took(now.saturating_sub(prompt.at));
        }
        let busy = session.is_busy();
        let fenced = session.logs.is_fenced;
        self.pool.set_busy(worker, busy, now);
        if !busy {
            if self.drain_until.is_some() || fenced {
                self.release_worker(id);
            } else if !self.queue.is_empty() {
                // A session may be waiting for the slot.
                self.serve_queue();
            }
        }
    }

    /// Handles a refused line. Between the answers to a prompt's probes, the refusal concerns that prompt;
    /// later it concerns the prompt that it names, if that is not the running turn.
    fn refused(&mut self, id: &SessionId, prompt_id: Option<&str>, line: &[u8]) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let named = prompt_id.filter(|name| session.turn.as_deref() != Some(name));
        // A worker that opens a prompt's session too late to name the prompt: nothing else is refused between
        // turns.
        let is_of = |prompt: &Pending, name: &str| prompt.prompt_id.as_deref() == Some(name);
        let is_unnamed =
            prompt_id.is_none_or(|name| !session.pending.iter().any(|prompt| is_of(prompt, name)));
        let is_next = |prompt: &Pending| {
            is_unnamed && prompt.prompt_id.is_none() && prompt.seen && session.turn.is_none()
        };
        let at = session.pending.iter().position(|prompt| match session.judging {
            Some(number) => prompt.number == number,
            None => {
                let is_named = named.is_some() && prompt.prompt_id.as_deref() == named;
                prompt.sent && (is_named || is_next(prompt))
            }
        });
        if at.is_none() {
            return self.relay(id, line);
        }
        let prompt = at.and_then(|at| session.pending.remove(at));
        let worker = session.worker;
        match prompt {
            Some(prompt) if prompt.resent => {
                // The client's prompt was valid; only the resend was not.
                let name = session.turn_name(&prompt);
                let error = ErrorInfo::new(
                    qwen_events::ErrorKind::Internal,
                    "worker_lost",
                    "the worker died, and its successor could not take the turn up",
                );
                self.end_turn_for(id, &name, EndStatus::Interrupted, error, prompt.at);
            }
            Some(prompt) if memchr::memmem::find(line, SESSION_IN_USE).is_some() => {
                // The worker never had the session, so only the hub can end the prompt.
                let name = session.turn_name(&prompt);
                session.turns += u64::from(prompt.prompt_id.is_none());
                let error =
                    ErrorInfo::new(qwen_events::ErrorKind::Input, "session_in_use", refusal_text(line))
                        .with_param("session_id");
                self.end_turn_for(id, &name, EndStatus::Error, error, prompt.at);
            }
            _ => self.relay(id, line),
        }
        let busy = self.sessions.get(id).is_some_and(super::Session::is_busy);
        if let Some(worker) = worker {
            self.pool.set_busy(worker, busy, self.now);
        }
    }

    fn probed(&mut self, id: &SessionId, number: u64) {
        if let Some(session) = self.sessions.get_mut(id)
            && number > 1
        {
            session.judging = number.is_multiple_of(2).then_some(number / 2);
            if let Some(prompt) = session.pending.iter_mut().find(|prompt| prompt.number == number / 2) {
                prompt.seen = true;
            }
        }
    }

    fn question(&mut self, id: &SessionId, request_id: &str, line: &[u8]) {
        self.plain(id, line);
        if let Some(session) = self.sessions.get_mut(id) {
            let question = Question { line: line.to_vec(), seq: session.numbering.last };
            session.questions.insert(request_id.to_owned(), question);
            self.questions.entry(request_id.to_owned()).or_default().push(id.clone());
        }
    }

    pub(super) fn close_question(&mut self, id: &SessionId, request_id: &str) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.questions.remove(request_id);
        }
        if let Some(asking) = self.questions.get_mut(request_id) {
            asking.retain(|asking| asking != id);
            if asking.is_empty() {
                self.questions.remove(request_id);
            }
        }
    }

    fn answered(&mut self, id: &SessionId, request_id: &str, line: &[u8]) {
        if request_id.starts_with("hub.continue.") {
            let is_accepted = memchr::memmem::find(line, b"\"accepted\":true").is_some();
            if !is_accepted {
                self.resend_first(id);
            }
            return;
        }
        if request_id.starts_with("hub.") {
            return;
        }
        self.deadline_changed = true;
        self.allow_spares();
        if let Some(session) = self.sessions.get_mut(id) {
            session.unanswered.retain(|request| request.request_id != request_id);
        }
        self.relay(id, line);
    }

    /// Relays a worker's line to the client.
    fn relay(&mut self, id: &SessionId, line: &[u8]) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        self.metrics.relayed += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder(&session.tenant, id, false, line);
        }
        let numbering = &mut session.numbering;
        // Lines that wait for the store come first.
        let waits = !numbering.queue.is_empty();
        if (numbering.on || waits) && !numbering.is_foreign {
            numbering.push(line, session.turn.as_ref());
            if numbering.epoch.is_none() && !numbering.taking {
                return self.take_events(id, self.owns_log(id));
            }
            self.append_next(id);
        } else {
            // The numbers that the store has do not go on with this line.
            numbering.epoch = None;
            numbering.last += 1;
            self.out.extend_from_slice(line);
            self.out.push(b'\n');
        }
    }

    /// Writes whole lines of the kernel on behalf of a session.
    pub(super) fn emit(&mut self, id: &SessionId, lines: &[u8]) {
        if self.sessions.contains_key(id) {
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                self.relay(id, line);
            }
        } else {
            self.out.extend_from_slice(lines);
        }
    }

    /// Writes the terminal record of a turn that no worker can end.
    pub(super) fn end_turn_for(
        &mut self,
        id: &SessionId,
        prompt_id: &str,
        status: EndStatus,
        error: ErrorInfo,
        since: Duration,
    ) {
        let took = if since.is_zero() { Duration::ZERO } else { self.now.saturating_sub(since) };
        let code = error.code;
        let duration = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let open = match self.sessions.get_mut(id) {
            // Another turn runs.
            Some(session) if session.turn.as_deref().is_some_and(|turn| turn != prompt_id) => {
                OpenParts::default()
            }
            Some(session) => std::mem::take(&mut session.open_parts),
            None => OpenParts::default(),
        };
        let lines = self.writer.turn_end(id, prompt_id, status, error, duration, &open);
        let lines = with_error_fields(&lines, code, &self.error_fields(id, code));
        if let Some(session) = self.sessions.get_mut(id)
            && session.turn.as_deref() == Some(prompt_id)
        {
            session.turn = None;
        }
        self.metrics.turns_ended_by_hub += 1;
        self.metrics.ended(status.name());
        if let Some(log) = &mut self.log {
            log.push(serde_json::json!({
                "event": "turn_end",
                "session_id": id.as_str(),
                "prompt_id": prompt_id,
                "tenant": self.sessions.get(id).map(|session| session.tenant.as_str()),
                "status": status.name(),
                "code": code,
                "duration_ms": duration,
            }));
        }
        self.emit(id, &lines);
    }

    /// What an error with this code contains besides its message: when to try again, how the worker ended.
    fn error_fields(&self, id: &SessionId, code: &str) -> serde_json::Map<String, serde_json::Value> {
        let mut fields = serde_json::Map::new();
        if matches!(code, "overloaded" | "worker_circuit_open" | "session_quarantined" | "draining") {
            let wait = u64::try_from(self.retry_after(id, code).as_millis()).unwrap_or(u64::MAX);
            fields.insert("retry_after_ms".to_owned(), wait.into());
        }
        let session = self.sessions.get(id);
        let exit = match code {
            "worker_lost" | "worker_not_started" | "session_quarantined" => {
                session.and_then(|session| session.recovery.last_exit.as_ref())
            }
            "worker_circuit_open" => session.and_then(|session| self.pool.last_failure(&session.key)),
            _ => None,
        };
        if let Some(exit) = exit {
            fields.insert("worker".to_owned(), exit.to_json());
        }
        fields
    }

    /// Answers a request of the client with an error, on behalf of a session.
    pub(super) fn reply_error(&mut self, id: &SessionId, request: &ClientRequest, error: ErrorInfo) {
        let fields = self.error_fields(id, error.code);
        let code = error.code;
        let lines = self.writer.control_reply(id, &request.request_id, request.nested, Err(error));
        let lines = with_error_fields(&lines, code, &fields);
        self.emit(id, &lines);
    }

    /// Writes stored lines to the client with their numbers.
    pub(super) fn push_stored(&mut self, first: u64, lines: &[u8]) {
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for (number, line) in (first..).zip(lines) {
            push_numbered(&mut self.out, number, line);
        }
    }
}

/// The message in the refusal of a prompt, on any wire.
fn refusal_text(line: &[u8]) -> String {
    let line: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    let found = [&line["metadata"]["error"]["message"], &line["error"]["message"]];
    let text = found.into_iter().find_map(|text| text.as_str());
    text.unwrap_or("another process has the session").to_owned()
}

/// The lines with further fields in the error object that has this code. A wire whose terminal record has no
/// error object gets them in the record itself, with the code.
pub(super) fn with_error_fields(
    lines: &[u8],
    code: &str,
    fields: &serde_json::Map<String, serde_json::Value>,
) -> Vec<u8> {
    const RESULT: &[u8] = b"{\"type\":\"result\"";
    if fields.is_empty() {
        return lines.to_vec();
    }
    let text = serde_json::Value::Object(fields.clone()).to_string();
    let fields = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default();
    let mark = format!("\"code\":\"{code}\"");
    let (end, added) = if let Some(at) = memchr::memmem::find(lines, mark.as_bytes()) {
        (at + mark.len(), format!(",{fields}"))
    } else if let Some(at) = memchr::memmem::find(lines, RESULT) {
        (at + RESULT.len(), format!(",\"error_code\":\"{code}\",{fields}"))
    } else {
        return lines.to_vec();
    };
    [&lines[..end], added.as_bytes(), &lines[end..]].concat()
}
