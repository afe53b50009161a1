//! Lines from the client.

use super::session::{Pending, Session, Waiting};
use super::{ClientRequest, OnCrash, Router, SessionOptions, TracedPrompt};
use crate::action::RouterAction;
use crate::front::{ClientInput, InputKind};
use qwen_dialects::decode;
use qwen_dialects::qwen::{CAPABILITIES, PROTOCOL_VERSION};
use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Json, PromptId, SessionId};
use std::time::Duration;

/// Capabilities that only a hub has, for `requires`.
pub const HUB_CAPABILITIES: &[&str] = &["hub", "sequence"];

/// The maximum size of a session's backlog.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;

/// The flag that binds a worker to its session where a wire does not name sessions reliably.
pub(super) const BIND_SESSION: &str = "--bind-session";

/// Requests that change a session and must be replayed to a new worker.
const SETTINGS: [&str; 4] = ["set_model", "set_permission_mode", "set_effort", "set_max_thinking_tokens"];

impl Router {
    /// Processes one line of the client, without its line break.
    pub fn client_line(&mut self, line: &[u8], now: Duration) {
        self.clock.now = now;
        let text = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        if text.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.clock.has_changed = true;
        let front = self.front.clone();
        match front.input(line) {
            Ok(mut input) => {
                if let Some(error) = self.check_only_tenant(&input) {
                    return self.refuse_input(&input, None, error);
                }
                if input.tenant.is_none() {
                    input.tenant = self.client.tenant.clone().map(Into::into);
                }
                self.route(&input, line);
            }
            // The worker that it represents refuses the line, in its place among the others.
            Err(_) if self.client.represents_worker => {
                let id = self.only_session();
                self.deliver(&id, line.to_vec());
            }
            // The decoder knows more precisely what is wrong.
            Err(error) if error.code == "invalid_json" => {
                self.refuse_line(decode(line).err().unwrap_or(error));
            }
            Err(error) => self.refuse_line(error),
        }
    }

    /// A line of the client was longer than the limit.
    pub fn client_line_too_long(&mut self, now: Duration) {
        self.clock.now = now;
        let message =
            format!("the line is longer than {} MiB and was skipped", crate::ipc::MAX_LINE / 1024 / 1024);
        self.refuse_line(Self::refuse(ErrorKind::Input, "line_too_long", message));
    }

    /// Answers a line that belongs to no session with an error.
    fn refuse_line(&mut self, error: ErrorInfo) {
        self.metrics.refused += 1;
        let id = self.client.default_session.clone();
        let lines = self.writer.error(&id, error);
        self.out.extend_from_slice(&lines);
    }

    /// Refuses a request in the form that its kind requires.
    pub(super) fn refuse_input(&mut self, input: &ClientInput<'_>, id: Option<&SessionId>, error: ErrorInfo) {
        self.metrics.refused += 1;
        let shown = id.unwrap_or(&self.client.default_session);
        let prompt = input.prompt_id.as_deref().map(PromptId::new);
        let lines = match (&input.kind, &input.request_id) {
            (InputKind::Control, Some(request)) => {
                self.writer.control_reply(shown, request, input.nested, Err(error))
            }
            (InputKind::Prompt | InputKind::Addition | InputKind::Steer, _) => {
                self.writer.error(shown, error.for_prompt(input.session_id.as_deref(), prompt))
            }
            _ => self.writer.error(shown, error),
        };
        match id {
            Some(id) => self.emit(id, &lines),
            // It belongs to no session and has no number.
            None => self.out.extend_from_slice(&lines),
        }
    }

    fn route(&mut self, input: &ClientInput<'_>, line: &[u8]) {
        if let Err(error) = check_support(input)
            && !self.client.represents_worker
        {
            return self.end_unsupported(error);
        }
        if let Some(named) = input.invalid_tenant {
            let shown: String = named.chars().take(80).collect();
            let message =
                format!("`tenant` is {shown}; a tenant's name is 1 to 64 letters, digits, '_' and '-'");
            let error = Self::refuse(ErrorKind::Input, "invalid_tenant", message).with_param("tenant");
            if input.subtype.as_deref() == Some("open") {
                self.note_refused_open(input);
            }
            return self.refuse_input(input, None, error);
        }
        if let Some(error) = self.check_tenant(input) {
            return self.refuse_input(input, None, error);
        }
        if input.kind == InputKind::Control && self.hub_request(input) {
            return;
        }
        let (id, line) = match self.resolve_session(input, line) {
            Ok(found) => found,
            Err(error) => return self.refuse_input(input, None, error),
        };
        // The request id of an answer says whose it is.
        if input.kind != InputKind::Answer
            && let Some(error) = self.check_tenant_of(input, &id)
        {
            return self.refuse_input(input, None, error);
        }
        if let Some(recorder) = &mut self.observers.recorder {
            let known = self.sessions.get(&id).map(|session| session.tenant.as_str());
            let named = input.tenant.as_deref().or(self.client.tenant.as_deref());
            recorder(known.or(named).unwrap_or_default(), &id, true, &line);
        }
        match input.kind {
            InputKind::Answer => self.handle_answer(input, &id, line),
            InputKind::Heartbeat | InputKind::Cancel if self.has_ready_worker(&id) => self.deliver(&id, line),
            InputKind::Heartbeat | InputKind::Cancel => match decode(&line) {
                Ok(_) if input.kind == InputKind::Cancel => self.cancel_waiting(input, &id),
                Ok(_) => self.answer_heartbeat(&id, line),
                Err(error) => self.refuse_input(input, None, error),
            },
            InputKind::Prompt
            | InputKind::Addition
            | InputKind::Steer
            | InputKind::Control
            | InputKind::Other => {
                // A line of no known kind must not start a worker only to be refused there.
                let is_unknown = input.kind == InputKind::Other
                    || input.kind == InputKind::Control && input.request_id.is_none();
                if is_unknown && let Err(error) = decode(&line) {
                    return self.refuse_input(input, None, error);
                }
                if let Err(error) = self.open_session(&id, input, &SessionOptions::default()) {
                    return self.refuse_prompt(input, &id, error);
                }
                self.handle_session_line(input, &id, line);
            }
        }
    }

    /// The client requires what this version does not have: every turn ends, then the process.
    fn end_unsupported(&mut self, error: ErrorInfo) {
        let ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for id in ids {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            let prompts = std::mem::take(&mut session.prompts.pending);
            session.prompts.backlog.clear();
            for prompt in prompts {
                let Some(session) = self.sessions.get(&id) else { break };
                let name = session.turn_name(&prompt);
                self.end_turn_for(&id, &name, EndStatus::Interrupted, error.clone(), prompt.at);
            }
        }
        self.end_with(error);
    }

    /// Writes an error that ends the process.
    pub(super) fn end_with(&mut self, error: ErrorInfo) {
        self.actions.push(RouterAction::Report(error.message.to_string()));
        let id = self.client.default_session.clone();
        let lines = self.writer.fatal(&id, error);
        self.out.extend_from_slice(&lines);
        self.ending.exit_code = 1;
        self.ending.is_done = true;
        self.actions.push(RouterAction::Exit(1));
    }

    /// Answers a heartbeat for a session without a worker. One for a worker that is about to be ready waits
    /// for it, behind the lines that came before.
    fn answer_heartbeat(&mut self, id: &SessionId, line: Vec<u8>) {
        if let Some(session) = self.sessions.get_mut(id)
            && session.worker().is_some()
        {
            session.prompts.backlog.push_back(Waiting::Heartbeat(line));
            return;
        }
        let lines = self.writer.heartbeat(id);
        self.emit(id, &lines);
    }

    /// Registers the session; the first line that names it opens it.
    pub(super) fn open_session(
        &mut self,
        id: &SessionId,
        input: &ClientInput<'_>,
        options: &SessionOptions,
    ) -> Result<(), ErrorInfo> {
        let former = self.history.closed_tenant(id).map(str::to_owned);
        let tenant = input.tenant.as_deref().or(former.as_deref()).unwrap_or_default();
        if let Some(session) = self.sessions.get(id) {
            if session.is_closed() {
                let message = format!("the session '{id}' is being closed; try again");
                let error = Self::refuse(ErrorKind::Overloaded, "session_closing", message);
                return Err(ErrorInfo { retryable: true, ..error.with_param("session_id") });
            }
            return Ok(());
        }
        let subtype = input.subtype.as_deref();
        let reopens = matches!(subtype, Some("initialize" | "open"));
        if subtype != Some("open") && self.history.is_refused(id) {
            let message =
                format!("The session '{id}' was not opened: its `open` was refused. Send a valid `open`.");
            let error = Self::refuse(ErrorKind::Input, "session_not_opened", message);
            return Err(error.with_param("session_id"));
        }
        if !reopens && former.is_some() {
            let message = format!("The session '{id}' was closed; `open` or `initialize` continues it.");
            return Err(Self::refuse(ErrorKind::Input, "session_closed", message).with_param("session_id"));
        }
        if self.ending.drain_until.is_some() {
            return Err(Self::draining_error());
        }
        if !reopens && self.adopt_default(id, tenant, options) {
            return Ok(());
        }
        self.register_session(id, tenant, options)?;
        if let Some(session) = self.sessions.get_mut(id)
            && input.subtype.as_deref() != Some("initialize")
        {
            // What the client set up without a session holds for all that it does not set up itself.
            session.setup.initialize.clone_from(&self.client.initialize);
            session.setup.replays = session.setup.initialize.is_some();
        }
        self.take_events_if_due(id);
        Ok(())
    }

    /// Adds a session without lines.
    pub(super) fn register_session(
        &mut self,
        id: &SessionId,
        tenant: &str,
        options: &SessionOptions,
    ) -> Result<(), ErrorInfo> {
        let mut key = self.keys.key(tenant, options)?;
        if !self.front.adopts_sessions() && *id != self.client.default_session {
            let mut bound = (*key).clone();
            bound.spec.args.extend([BIND_SESSION.to_owned(), id.to_string()]);
            key = bound.into();
        }
        self.history.reopen(id);
        let mut session = Session::new(id.clone(), tenant.to_owned(), key, self.clock.now);
        session.numbering.on = self.client.sequence;
        session.recovery.on_crash = options.on_crash.unwrap_or_default();
        if !session.is_resumable && session.recovery.on_crash != OnCrash::Error {
            let message = format!(
                "`on_crash` is {:?}, which needs the session's log, but the session is opened without one; leave out the flag that turns the log off",
                session.recovery.on_crash.name()
            );
            return Err(Self::refuse(ErrorKind::Input, "invalid_on_crash", message).with_param("on_crash"));
        }
        if let Some(from) = &options.fork_from {
            let from = SessionId::parse(from).map_err(|error| {
                Self::refuse(ErrorKind::Input, "invalid_session_id", format!("fork_from: {error}"))
                    .with_param("fork_from")
            })?;
            session.recovery.fork_from = Some(from.to_string());
        }
        self.sessions.insert(id.clone(), session);
        self.metrics.sessions += 1;
        Ok(())
    }

    /// Refuses a prompt with a terminal record, because every prompt must get one.
    pub(super) fn refuse_prompt(&mut self, input: &ClientInput<'_>, id: &SessionId, error: ErrorInfo) {
        if matches!(input.kind, InputKind::Prompt | InputKind::Steer) && error.retryable {
            self.metrics.refused += 1;
            let prompt_id =
                input.prompt_id.as_deref().map_or_else(|| format!("{id}########0"), str::to_owned);
            let status = self.refusal_status(&error);
            self.end_turn_for(id, &prompt_id, status, error, Duration::ZERO);
        } else {
            self.refuse_input(input, Some(id), error);
        }
    }

    fn handle_session_line(&mut self, input: &ClientInput<'_>, id: &SessionId, line: Vec<u8>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.active_at = self.clock.now;
        if session.is_closing() {
            let message = format!("the session '{id}' is being closed");
            let error = Self::refuse(ErrorKind::Input, "session_closed", message).with_param("session_id");
            return self.refuse_prompt(input, id, error);
        }
        match input.kind {
            // On a wire that does not report when a prompt joined, it has no separate terminal record.
            InputKind::Steer if session.prompts.turn.is_some() && !self.front.adopts_sessions() => {
                self.deliver(id, line);
            }
            InputKind::Prompt | InputKind::Steer => self.handle_prompt(input, id, line),
            InputKind::Control => self.handle_control(input, id, line),
            _ => self.deliver(id, line),
        }
    }

    fn handle_prompt(&mut self, input: &ClientInput<'_>, id: &SessionId, line: Vec<u8>) {
        if let Err(error) = self.admit(id, line.len()) {
            return self.refuse_prompt(input, id, error);
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        let known = input.prompt_id.as_deref().is_some_and(|wanted| {
            session.prompts.pending.iter().any(|prompt| prompt.prompt_id.as_deref() == Some(wanted))
        });
        if input.resend && known {
            // The prompt already runs or waits; its lines reach the client as usual.
            return;
        }
        let (line, span) = match &mut self.observers.tracer {
            Some(tracer) => {
                let prompt_id = input.prompt_id.as_deref();
                let prompt = TracedPrompt { session_id: id, prompt_id, tenant: &session.tenant, line: &line };
                let (traceparent, span) = tracer(&prompt);
                (crate::front::with_text(&line, "traceparent", &traceparent), Some(span))
            }
            None => (line, None),
        };
        session.prompts.count += 1;
        let number = session.prompts.count;
        session.prompts.push(Pending {
            number,
            prompt_id: input.prompt_id.as_deref().map(str::to_owned),
            line,
            sent: false,
            input: None,
            seen: false,
            joins: input.resend,
            retry_safe: input.retry_safe,
            steers: input.kind == InputKind::Steer,
            had_effects: false,
            resent: false,
            at: self.clock.now,
            span,
        });
        self.metrics.prompts += 1;
        self.pump(id);
    }

    fn handle_control(&mut self, input: &ClientInput<'_>, id: &SessionId, line: Vec<u8>) {
        let subtype = input.subtype.as_deref().unwrap_or_default();
        let Some(request_id) = input.request_id.as_deref() else { return self.deliver(id, line) };
        if subtype == "interrupt" && !self.has_ready_worker(id) {
            let withdrawn = self.withdraw(id, None).is_some();
            let result = Json::trusted(format!("{{\"interrupted\":{withdrawn}}}"));
            let lines = self.writer.control_reply(id, request_id, input.nested, Ok(result));
            return self.emit(id, &lines);
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        if subtype == "initialize" {
            self.client.drives_default |= *id == self.client.default_session;
            session.setup.initialize = Some(line.clone());
            session.setup.replays &= session.setup.had_worker;
            if input.session_id.is_none() && self.front.adopts_sessions() {
                self.client.initialize = Some(line.clone());
            }
            if let Some(on) = input.sequence {
                session.numbering.on = on || self.stores.are_shared;
            }
        } else if SETTINGS.contains(&subtype) {
            session.setup.settings.insert(subtype.to_owned(), line.clone());
        }
        session
            .requests
            .unanswered
            .push(ClientRequest { request_id: request_id.to_owned(), nested: input.nested });
        self.take_events_if_due(id);
        self.deliver(id, line);
    }

    /// Passes an answer to the session that asked, and to no other.
    fn handle_answer(&mut self, input: &ClientInput<'_>, id: &SessionId, line: Vec<u8>) {
        let request_id = input.request_id.as_deref().unwrap_or_default();
        let mut asking = self.questions.get(request_id).cloned().unwrap_or_default();
        asking.retain(|id| self.check_tenant_of(input, id).is_none());
        let named = input.session_id.is_some().then_some(id);
        let owner = match (named, asking.as_slice()) {
            (Some(id), asking) if asking.contains(id) => id.clone(),
            (None, [one]) => one.clone(),
            (named, asking) => {
                let shown: String = request_id.chars().take(80).collect();
                let (code, message) = match (named, asking) {
                    (_, []) => {
                        ("unknown_request_id", format!("no question is open under the request_id '{shown}'"))
                    }
                    (None, _) => (
                        "ambiguous_request_id",
                        format!("several sessions have a question '{shown}'; name the session_id"),
                    ),
                    (Some(id), _) => {
                        ("foreign_answer", format!("the question '{shown}' is not one of the session '{id}'"))
                    }
                };
                let error = Self::refuse(ErrorKind::Input, code, message).with_param("request_id");
                return self.refuse_input(input, named, error);
            }
        };
        self.close_question(&owner, request_id);
        self.deliver(&owner, line);
    }

    /// Cancels a prompt that no worker has read.
    fn cancel_waiting(&mut self, input: &ClientInput<'_>, id: &SessionId) {
        let wanted = input.prompt_id.as_deref();
        let withdrawn = self.withdraw(id, wanted);
        let named = withdrawn.as_ref().map(|(name, ..)| name.as_str()).or(wanted);
        let lines = self.writer.cancelled(id, named, withdrawn.is_some(), input.request_id.as_deref());
        self.emit(id, &lines);
        if let Some((name, since)) = withdrawn {
            let error = Self::refuse(
                ErrorKind::Input,
                "cancelled",
                "The prompt was withdrawn before its turn began.",
            );
            self.end_turn_for(id, &name, EndStatus::Cancelled, error, since);
        }
    }

    /// Removes a prompt that no worker has read: the one with this id, or the first.
    pub(super) fn withdraw(&mut self, id: &SessionId, wanted: Option<&str>) -> Option<(String, Duration)> {
        let session = self.sessions.get_mut(id)?;
        let prompt = session.prompts.withdraw(wanted)?;
        let name = session.turn_name(&prompt);
        if prompt.prompt_id.is_none() {
            session.prompts.ended += 1;
        }
        Some((name, prompt.at))
    }

    /// Removes a prompt that was sent again and that no worker has read: its turn is ended without it.
    pub(super) fn withdraw_resent(&mut self, id: &SessionId, turn: &str) {
        let joins =
            |prompt: &Pending| prompt.joins && !prompt.sent && prompt.prompt_id.as_deref() == Some(turn);
        if self.sessions.get(id).is_some_and(|session| session.prompts.pending.iter().any(joins)) {
            self.withdraw(id, Some(turn));
        }
    }

    pub(super) fn has_ready_worker(&self, id: &SessionId) -> bool {
        self.sessions.get(id).is_some_and(Session::is_ready)
    }

    /// Passes a line to the session's worker, as soon as it has one.
    pub(super) fn deliver(&mut self, id: &SessionId, line: Vec<u8>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let waiting: usize = session
            .prompts
            .backlog
            .iter()
            .map(|line| if let Waiting::Line(line) = line { line.len() } else { 0 })
            .sum();
        if waiting > 0 && waiting + line.len() > MAX_WAITING_BYTES {
            let message = format!("the session '{id}' has no worker yet and too much waits for it");
            let error = ErrorInfo {
                retryable: true,
                ..Self::refuse(ErrorKind::Overloaded, "overloaded", message).with_param("session_id")
            };
            let lines = self.writer.error(id, error);
            return self.emit(id, &lines);
        }
        session.prompts.backlog.push_back(Waiting::Line(line));
        self.pump(id);
    }
}

fn check_support(input: &ClientInput<'_>) -> Result<(), ErrorInfo> {
    let major = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
    let known = |wanted: &str| CAPABILITIES.contains(&wanted) || HUB_CAPABILITIES.contains(&wanted);
    let message = match (&input.protocol_version, input.requires.iter().find(|wanted| !known(wanted))) {
        (Some(version), _) if major(version) != major(PROTOCOL_VERSION) => {
            format!("protocol version '{version}' is not supported; this is version {PROTOCOL_VERSION}")
        }
        (_, Some(unknown)) => format!("the capability '{unknown}' is not supported"),
        _ => return Ok(()),
    };
    Err(ErrorInfo::new(ErrorKind::UnsupportedProtocol, "unsupported_protocol", message))
}
