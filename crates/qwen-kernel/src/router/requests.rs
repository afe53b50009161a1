//! Requests that the hub answers itself: `hub/status`, `open`, `attach`, `close`, and `initialize` of a
//! whole connection.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, Json, SessionId};
use serde::Deserialize;

use super::output::with_error_fields;
use super::{ClientRequest, ClosedSession, OnCrash, Router, Session, SessionOptions};
use crate::action::RouterAction;
use crate::front::ClientInput;

/// How many closed sessions are remembered, so that late lines get a specific error.
const CLOSED: usize = 4096;

/// Flags that the hub sets itself, or that only make sense without a hub.
const OWN_FLAGS: [&str; 9] = [
    "--input-format",
    "--output-format",
    "--dialect",
    "--session-id",
    "--bind-session",
    "--resume",
    "--continue",
    "--prompt",
    "--print",
];

impl Router {
    /// Answers the request if it is addressed to the hub.
    pub(super) fn hub_request(&mut self, input: &ClientInput<'_>) -> bool {
        let Some(request_id) = input.request_id.as_deref() else { return false };
        match input.subtype.as_deref().unwrap_or_default() {
            "hub/status" => self.status_request(input, request_id),
            "open" => self.open_request(input, request_id),
            "attach" => self.attach_request(input, request_id),
            "close" => self.close_request(input, request_id),
            "flow" => self.flow_request(input, request_id),
            "initialize" if input.session_id.is_none() && input.sequence.is_some() => {
                self.sequence = input.sequence.unwrap_or(false);
                let result = format!(
                    "{{\"hub\":true,\"sequence\":{},\"session_id\":\"{}\",\"protocol_version\":\"{}\"}}",
                    self.sequence,
                    self.default_session,
                    qwen_dialects::qwen::PROTOCOL_VERSION
                );
                self.reply(input, None, request_id, Ok(Json::trusted(result)));
            }
            _ => return false,
        }
        true
    }

    fn reply(
        &mut self,
        input: &ClientInput<'_>,
        id: Option<&SessionId>,
        request_id: &str,
        result: Result<Json, ErrorInfo>,
    ) {
        let id = id.unwrap_or(&self.default_session).clone();
        let lines = self.writer.control_reply(&id, request_id, input.nested, result);
        // Answers to requests about the hub do not belong to a session and have no number.
        self.out.extend_from_slice(&lines);
    }

    /// The session that a request must name.
    fn named(input: &ClientInput<'_>) -> Result<SessionId, ErrorInfo> {
        let text = input.session_id.as_deref().ok_or_else(|| {
            Self::refuse(ErrorKind::Input, "missing_field", "`session_id` is missing")
                .with_param("session_id")
        })?;
        if text == "_new" {
            return Ok(SessionId::from_random(fastrand::u128(..)));
        }
        Self::parse_session_id(text)
    }

    fn status_request(&mut self, input: &ClientInput<'_>, request_id: &str) {
        let result = match input.session_id.as_deref() {
            None => Ok(Json::trusted(self.status().to_string())),
            Some(_) => Self::named(input).map(|id| self.follow_forks(id)).and_then(|id| {
                self.session_status(&id)
                    .map(|status| Json::trusted(status.to_string()))
                    .ok_or_else(|| unknown_session(&id))
            }),
        };
        self.reply(input, None, request_id, result);
    }

    fn open_request(&mut self, input: &ClientInput<'_>, request_id: &str) {
        let opened = Self::named(input).and_then(|id| {
            let options = session_options(input.body)?;
            if self.sessions.contains_key(&id) {
                let message = format!("the session '{id}' is open already");
                return Err(
                    Self::refuse(ErrorKind::Input, "duplicate_session", message).with_param("session_id")
                );
            }
            self.open_session(&id, input, &options)?;
            // The original is meant, and not the fork in which it continued.
            self.forks.remove(&id);
            Ok(id)
        });
        match opened {
            Ok(id) => {
                if let (Some(on), Some(session)) = (input.sequence, self.sessions.get_mut(&id)) {
                    session.numbering.on = on;
                }
                self.take_events_if_due(&id);
                let result = Json::trusted(format!("{{\"session_id\":\"{id}\"}}"));
                self.reply(input, Some(&id), request_id, Ok(result));
            }
            Err(error) => {
                self.note_refused_open(input);
                self.reply(input, None, request_id, Err(error));
            }
        }
    }

    /// Remembers that a session was not opened, unless it is open under these or other options.
    pub(super) fn note_refused_open(&mut self, input: &ClientInput<'_>) {
        let Some(id) = input.session_id.as_deref().and_then(|text| SessionId::parse(text).ok()) else {
            return;
        };
        if self.sessions.contains_key(&id) || self.refused_opens.contains(&id) {
            return;
        }
        self.refused_opens.push_back(id);
        if self.refused_opens.len() > CLOSED {
            self.refused_opens.pop_front();
        }
    }

    fn attach_request(&mut self, input: &ClientInput<'_>, request_id: &str) {
        let attached = Self::named(input).and_then(|id| {
            let after: u64 = input.after.unwrap_or("0").parse().map_err(|_| {
                let shown: String = input.after.unwrap_or_default().chars().take(40).collect();
                let message = format!("`after` is {shown}; it must be a number that was seen, or 0");
                Self::refuse(ErrorKind::Input, "invalid_after", message).with_param("after")
            })?;
            self.open_session(&id, input, &SessionOptions::default())?;
            self.forks.remove(&id);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.numbering.on = true;
                if session.numbering.epoch.is_none() {
                    // Whoever attaches drives the session from now on.
                    self.take_events(&id, true);
                }
            }
            self.actions.push(RouterAction::ReadEvents {
                session: id.clone(),
                after,
                request: ClientRequest { request_id: request_id.to_owned(), nested: input.nested },
            });
            Ok(())
        });
        if let Err(error) = attached {
            self.reply(input, None, request_id, Err(error));
        }
    }

    /// Pauses or resumes the output of one session, so that a client that reads it slowly stops no other.
    fn flow_request(&mut self, input: &ClientInput<'_>, request_id: &str) {
        #[derive(Deserialize)]
        struct Flow {
            paused: bool,
        }
        let flow = Self::named(input).and_then(|id| {
            let flow: Flow = serde_json::from_str(input.body).map_err(|error| {
                Self::refuse(ErrorKind::Input, "wrong_type", format!("`flow`: {error}")).with_param("paused")
            })?;
            if self.sessions.contains_key(&id) { Ok((id, flow.paused)) } else { Err(unknown_session(&id)) }
        });
        match flow {
            Ok((id, paused)) => {
                self.actions.push(RouterAction::SetPaused { session: id.clone(), paused });
                let result = Json::trusted(format!("{{\"paused\":{paused}}}"));
                self.reply(input, Some(&id), request_id, Ok(result));
            }
            Err(error) => self.reply(input, None, request_id, Err(error)),
        }
    }

    fn close_request(&mut self, input: &ClientInput<'_>, request_id: &str) {
        let id = match Self::named(input).map(|id| self.follow_forks(id)) {
            Ok(id) if self.sessions.contains_key(&id) => id,
            Ok(id) => return self.reply(input, Some(&id), request_id, Err(unknown_session(&id))),
            Err(error) => return self.reply(input, None, request_id, Err(error)),
        };
        self.actions.push(RouterAction::SetPaused { session: id.clone(), paused: false });
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.closing = Some(ClientRequest { request_id: request_id.to_owned(), nested: input.nested });
        self.queue.retain(|queued| *queued != id);
        session.queued_at = None;
        let runs = session.is_busy();
        let worker = session.worker;
        let session_rests = session.is_ready && session.is_idle();
        if runs && let Some(worker) = worker {
            let lines = cancel_all(&id, session);
            self.actions.push(RouterAction::Write { worker, lines });
        }
        // The client's `SessionEnd` hooks need its answers, so the worker ends by request and not by end of
        // input.
        let has_hooks = session.is_ready && session.initialize.as_deref().is_some_and(declares_hooks);
        match worker {
            Some(worker) if has_hooks => {
                self.probes += 1;
                let asks = format!(
                    "{{\"type\":\"control_request\",\"request_id\":\"hub.end.{}\",\"session_id\":\"{id}\",\"subtype\":\"end_session\"}}\n",
                    self.probes
                );
                self.actions.push(RouterAction::Write { worker, lines: asks.into_bytes() });
                self.pool.await_end(worker, self.now);
            }
            _ if session_rests => self.return_worker(&id),
            Some(worker) => self.pool.release(worker, self.now, &mut self.actions),
            None => {}
        }
        self.complete_close(&id);
    }

    /// Forgets a session. Its log remains, and `open` or `initialize` resumes it.
    pub(super) fn forget_session(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let tenant = session.tenant.clone();
        if session.numbering.waiting_bytes() > 0 {
            session.forgotten = true;
            session.backlog.clear();
        } else {
            self.sessions.remove(id);
        }
        self.queue.retain(|queued| queued != id);
        self.note_closed(id.clone(), &tenant);
        let forked: Vec<SessionId> =
            self.forks.extract_if(|_, fork| fork == id).map(|(original, _)| original).collect();
        for original in forked {
            self.note_closed(original, &tenant);
        }
    }

    fn note_closed(&mut self, id: SessionId, tenant: &str) {
        self.closed.push_back(ClosedSession { id, tenant: tenant.to_owned() });
        if self.closed.len() > CLOSED {
            self.closed.pop_front();
        }
    }

    /// Sends the stored lines that a client attached for, or the oldest number that is still stored.
    pub fn events_read(
        &mut self,
        id: &SessionId,
        request: &ClientRequest,
        after: u64,
        read: crate::store::Read,
    ) {
        use crate::store::Read;
        self.deadline_changed = true;
        match read {
            Read::Lines { first, lines, last } => {
                let result =
                    Json::trusted(format!("{{\"session_id\":\"{id}\",\"after\":{after},\"last\":{last}}}"));
                let reply = self.writer.control_reply(id, &request.request_id, request.nested, Ok(result));
                self.out.extend_from_slice(&reply);
                self.push_stored(first, &lines);
                let open: Vec<(u64, Vec<u8>)> = self
                    .sessions
                    .get(id)
                    .into_iter()
                    .flat_map(|session| session.questions.values())
                    .filter(|question| question.seq <= after)
                    .map(|question| (question.seq, question.line.clone()))
                    .collect();
                for (seq, line) in open {
                    crate::front::push_numbered(&mut self.out, seq, &line);
                }
            }
            Read::TooOld { oldest } => {
                let message = format!(
                    "The lines after {after} are not all kept; the oldest that is kept is {oldest}. Attach after {}.",
                    oldest.saturating_sub(1)
                );
                let error = Self::refuse(ErrorKind::Input, "after_too_old", message).with_param("after");
                let fields = [("oldest".to_owned(), oldest.into())].into_iter().collect();
                let reply = self.writer.control_reply(id, &request.request_id, request.nested, Err(error));
                self.out.extend_from_slice(&with_error_fields(&reply, "after_too_old", &fields));
            }
            Read::Future { last } => {
                let message = format!("`after` is {after}, but the last line of the session is {last}");
                self.refuse_attach(id, request, "after_in_future", message);
            }
            Read::Failed(why) => {
                self.refuse_attach(
                    id,
                    request,
                    "store_failed",
                    format!("the stored lines cannot be read: {why}"),
                );
            }
        }
    }

    fn refuse_attach(
        &mut self,
        id: &SessionId,
        request: &ClientRequest,
        code: &'static str,
        message: String,
    ) {
        let error = Self::refuse(ErrorKind::Input, code, message).with_param("after");
        let reply = self.writer.control_reply(id, &request.request_id, request.nested, Err(error));
        self.out.extend_from_slice(&reply);
    }
}

/// True if an `initialize` request declares hooks.
fn declares_hooks(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Initialize {
        #[serde(default)]
        hooks: serde_json::Map<String, serde_json::Value>,
    }
    serde_json::from_slice::<Initialize>(line).is_ok_and(|initialize| !initialize.hooks.is_empty())
}

/// Lines that withdraw every prompt that the worker has queued, and then cancel the running turn: in the other order the
/// worker would start the next prompt.
fn cancel_all(id: &SessionId, session: &Session) -> Vec<u8> {
    let named = session
        .pending
        .iter()
        .rev()
        .filter(|prompt| prompt.sent)
        .filter_map(|prompt| prompt.prompt_id.as_deref());
    let mut lines = String::new();
    for prompt_id in named.filter(|prompt_id| session.turn.as_deref() != Some(prompt_id)) {
        let line =
            serde_json::json!({"type": "control/cancel", "session_id": id.as_str(), "prompt_id": prompt_id});
        lines.push_str(&format!("{line}\n"));
    }
    lines.push_str(&format!("{{\"type\":\"control/cancel\",\"session_id\":\"{id}\"}}\n"));
    lines.into_bytes()
}

fn unknown_session(id: &SessionId) -> ErrorInfo {
    Router::refuse(ErrorKind::Input, "unknown_session", format!("there is no open session '{id}'"))
        .with_param("session_id")
}

/// Parses the options of `open`.
fn session_options(body: &str) -> Result<SessionOptions, ErrorInfo> {
    #[derive(Deserialize)]
    struct Open {
        on_crash: Option<serde_json::Value>,
        #[serde(flatten)]
        options: SessionOptions,
    }
    let mut read = serde_json::from_str::<Open>(body).map_err(|error| {
        Router::refuse(ErrorKind::Input, "wrong_type", format!("the options of the session: {error}"))
    })?;
    if let Some(policy) = read.on_crash {
        let named = policy.as_str().and_then(OnCrash::parse).ok_or_else(|| {
            let names = OnCrash::ALL.map(OnCrash::name).join(", ");
            let shown: String = policy.to_string().chars().take(80).collect();
            let message = format!("`on_crash` is {shown}; it must be one of {names}");
            Router::refuse(ErrorKind::Input, "invalid_on_crash", message).with_param("on_crash")
        })?;
        read.options.on_crash = Some(named);
    }
    let own = |arg: &String| {
        let name = arg.split('=').next().unwrap_or_default();
        OWN_FLAGS.contains(&name) || matches!(name, "-p" | "-r" | "-c" | "-o")
    };
    if let Some(flag) = read.options.args.iter().find(|arg| own(arg)) {
        let message: Arc<str> = format!("`args` has {flag}, which the hub sets itself").into();
        return Err(Router::refuse(ErrorKind::Input, "invalid_args", message).with_param("args"));
    }
    Ok(read.options)
}
