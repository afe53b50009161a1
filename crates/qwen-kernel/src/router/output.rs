//! Lines from workers.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, SessionId};

use super::{ClientRequest, Router};
use crate::front::{OpenParts, push_numbered};
use crate::worker_pool::{Stage, WorkerId};

impl Router {
    /// Processes one line of a worker, without its line break.
    pub fn handle_worker_line(&mut self, worker: WorkerId, line: &[u8], now: Duration) {
        self.clock.now = now;
        let link = self.links.entry(worker).or_default();
        if link.is_ignored {
            return;
        }
        if !line.starts_with(b"{") || !line.ends_with(b"}") {
            self.metrics.garbage_lines += 1;
            if !link.is_ready {
                self.pool.note_unexpected(worker, line);
            }
            return;
        }
        if link.count_output() {
            return self.relay_reported(worker, line);
        }
        if !link.is_ready {
            return self.note_unreported(worker, line);
        }
        self.relay_session_line(worker, line);
    }

    /// Handles a line of a worker that has not reported that it accepts lines: no worker of this version writes
    /// one.
    pub(super) fn note_unreported(&mut self, worker: WorkerId, line: &[u8]) {
        if self.pool.worker(worker).is_none_or(|worker| worker.stage != Stage::Starting) {
            return;
        }
        self.metrics.garbage_lines += 1;
        self.pool.note_unexpected(worker, line);
        if let Some(version) = self.front.clone().handshake_version(line) {
            self.refuse_version(worker, &version);
        }
    }

    /// Relays a line to the client of the worker's session.
    pub(super) fn relay_session_line(&mut self, worker: WorkerId, line: &[u8]) {
        let Some(id) = self.session_of(worker).cloned() else { return };
        if let Some(session) = self.sessions.get_mut(&id) {
            self.front.note_parts(line, &mut session.prompts.open_parts);
        }
        self.relay(&id, line);
    }

    /// The worker uses this much memory. One that uses too much is replaced while its session is idle.
    pub fn note_worker_memory(&mut self, worker: WorkerId, bytes: u64, now: Duration) {
        self.clock.now = now;
        if !self.pool.note_memory(worker, bytes, now, &mut self.actions) {
            return;
        }
        let Some(id) = self.session_of(worker).cloned() else { return };
        if self.sessions.get(&id).is_some_and(|session| session.is_idle() && session.is_resumable) {
            self.pool.note_recycled("memory");
            self.release_worker(&id);
        }
    }

    /// The worker wrote bytes, possibly less than a line.
    pub fn note_worker_output(&mut self, worker: WorkerId, now: Duration) {
        self.pool.note_output(worker, now);
    }

    /// A worker's line was longer than the limit.
    pub fn note_line_too_long(&mut self, worker: WorkerId, now: Duration) {
        self.clock.now = now;
        self.metrics.garbage_lines += 1;
        if self.links.entry(worker).or_default().count_output() {
            self.apply_due(worker);
        }
        if let Some(id) = self.session_of(worker).cloned() {
            let message = format!(
                "a line of the worker was longer than {} MiB and was skipped",
                crate::ipc::MAX_LINE / 1024 / 1024
            );
            let error = Self::refuse(qwen_events::ErrorKind::Internal, "line_too_long", message);
            let lines = self.writer.error(&id, error);
            self.emit(&id, &lines);
        }
    }

    pub(super) fn note_effect(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.get_mut(id) {
            let turn = session.prompts.turn.clone();
            if let Some(prompt) = session.prompts.find_mut(turn.as_deref()) {
                prompt.had_effects = true;
            }
        }
    }

    /// Removes a prompt from `pending`: its terminal record has passed, or it gets none.
    pub(super) fn finish_prompt(&mut self, id: &SessionId, worker: WorkerId, prompt_id: Option<&str>) {
        self.clock.has_changed = true;
        let now = self.clock.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.active_at = now;
        if let Some(prompt) =
            session.prompts.find(prompt_id).and_then(|at| session.prompts.pending.remove(at))
        {
            self.metrics.record_turn_time(now.saturating_sub(prompt.at));
        }
        let busy = session.is_busy();
        let fenced = session.logs.is_fenced;
        self.pool.set_busy(worker, busy, now);
        if !busy {
            if self.ending.drain_until.is_some() || fenced {
                self.release_worker(id);
            } else if !self.admission.is_empty() {
                // A session may be waiting for the slot.
                self.serve_queue();
            }
        }
    }

    pub(super) fn close_question(&mut self, id: &SessionId, request_id: &str) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.requests.questions.remove(request_id);
        }
        if let Some(asking) = self.questions.get_mut(request_id) {
            asking.retain(|asking| asking != id);
            if asking.is_empty() {
                self.questions.remove(request_id);
            }
        }
    }

    /// Relays a worker's line to the client.
    fn relay(&mut self, id: &SessionId, line: &[u8]) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        self.metrics.relayed += 1;
        let numbering = &mut session.numbering;
        // Lines that wait for the store come first.
        let waits = !numbering.queue.is_empty();
        if (numbering.on || waits) && !numbering.is_foreign {
            numbering.push(line, session.prompts.turn.as_ref());
            if numbering.epoch.is_none() && !numbering.taking {
                return self.take_events(id, self.owns_log(id));
            }
            self.append_next(id);
        } else {
            // The next number of the store is not that of this line.
            numbering.epoch = None;
            numbering.last += 1;
            let mut whole = line.to_vec();
            whole.push(b'\n');
            self.send_lines(id, &whole);
        }
    }

    /// Adds a line to the stream of an open session on behalf of the program that runs the router.
    pub fn session_line_of_host(&mut self, id: &SessionId, line: &[u8]) {
        if self.sessions.contains_key(id) {
            self.relay(id, line);
        }
    }

    /// Writes whole lines of the kernel on behalf of a session.
    pub(super) fn emit(&mut self, id: &SessionId, lines: &[u8]) {
        if self.sessions.contains_key(id) {
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                self.relay(id, line);
            }
        } else {
            self.send_lines(id, lines);
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
        let took = if since.is_zero() { Duration::ZERO } else { self.clock.now.saturating_sub(since) };
        let code = error.code;
        let duration = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let open = match self.sessions.get_mut(id) {
            // Another turn runs.
            Some(session) if session.prompts.turn.as_deref().is_some_and(|turn| turn != prompt_id) => {
                OpenParts::default()
            }
            Some(session) => std::mem::take(&mut session.prompts.open_parts),
            None => OpenParts::default(),
        };
        let lines = self.writer.turn_end(id, prompt_id, status, error, duration, &open);
        let lines = with_error_fields(&lines, code, &self.error_fields(id, code));
        if let Some(session) = self.sessions.get_mut(id)
            && session.prompts.turn.as_deref() == Some(prompt_id)
        {
            session.prompts.turn = None;
        }
        self.metrics.turns_ended_by_hub += 1;
        self.metrics.count_end(status.name());
        if let Some(log) = &mut self.observers.log {
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
    pub(super) fn push_stored(&mut self, id: &SessionId, first: u64, lines: &[u8]) {
        let mut numbered = Vec::with_capacity(lines.len() + 32);
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for (number, line) in (first..).zip(lines) {
            push_numbered(&mut numbered, number, line);
        }
        self.send_lines(id, &numbered);
    }

    /// Writes whole lines of a session to the client as they are, and records them.
    pub(super) fn send_lines(&mut self, id: &SessionId, lines: &[u8]) {
        if let Some(recorder) = &mut self.observers.recorder {
            let only = self.client.tenant.as_deref().unwrap_or_default();
            let tenant = self.sessions.get(id).map_or(only, |session| session.tenant.as_str());
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                recorder(tenant, id, false, line);
            }
        }
        self.out.extend_from_slice(lines);
    }
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
