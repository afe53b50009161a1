//! Requests that the hub answers itself: `hub/status`, `open`, `attach`, `close`, and `initialize` of a
//! whole connection.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, Json, SessionId};
use serde::Deserialize;

use super::session::{Lifecycle, Session};
use super::{ClientRequest, OnCrash, Router, SessionOptions};
use crate::action::RouterAction;
use crate::front::ClientInput;
use crate::worker_pool::WorkerId;

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
                self.client.sequence = input.sequence.unwrap_or(false) || self.stores.are_shared;
                let result = format!(
                    "{{\"hub\":true,\"sequence\":{},\"session_id\":\"{}\",\"protocol_version\":\"{}\"}}",
                    self.client.sequence,
                    self.client.default_session,
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
        // A refusal belongs to the session that was meant: other readers of the line find it by that.
        let named = || input.session_id.as_deref().and_then(|text| SessionId::parse(text).ok());
        let id = id.cloned().or_else(named).unwrap_or_else(|| self.client.default_session.clone());
        let lines = self.writer.control_reply(&id, request_id, input.nested, result);
        // Answers to requests about the hub do not belong to a session and have no number.
        self.out.extend_from_slice(&lines);
    }

    /// The session that a request must name.
    fn require_session(input: &ClientInput<'_>) -> Result<SessionId, ErrorInfo> {
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
            Some(_) => Self::require_session(input).map(|id| self.history.follow_forks(id)).and_then(|id| {
                self.session_status(&id)
                    .map(|status| Json::trusted(status.to_string()))
                    .ok_or_else(|| unknown_session(&id))
            }),
        };
        self.reply(input, None, request_id, result);
    }

    fn open_request(&mut self, input: &ClientInput<'_>, request_id: &str) {
        let opened = Self::require_session(input).and_then(|id| {
            let options = session_options(input.body)?;
            if self.sessions.contains_key(&id) {
                let message = format!("the session '{id}' is open already");
                return Err(
                    Self::refuse(ErrorKind::Input, "duplicate_session", message).with_param("session_id")
                );
            }
            self.open_session(&id, input, &options)?;
            // The original is meant, and not the fork in which it continued.
            self.history.forget_fork(&id);
            Ok(id)
        });
        match opened {
            Ok(id) => {
                if let (Some(on), Some(session)) = (input.sequence, self.sessions.get_mut(&id)) {
                    session.numbering.on = on || self.stores.are_shared;
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
        if !self.sessions.contains_key(&id) {
            self.history.note_refused(id);
        }
    }

    fn attach_request(&mut self, input: &ClientInput<'_>, request_id: &str) {
        let attached = Self::require_session(input).and_then(|id| {
            let after: u64 = input.after.unwrap_or("0").parse().map_err(|_| {
                let shown: String = input.after.unwrap_or_default().chars().take(40).collect();
                let message = format!("`after` is {shown}; it must be a number that was seen, or 0");
                Self::refuse(ErrorKind::Input, "invalid_after", message).with_param("after")
            })?;
            self.open_session(&id, input, &SessionOptions::default())?;
            self.history.forget_fork(&id);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.numbering.on = true;
                if session.numbering.epoch.is_none() {
                    // A session that another process has is followed, unless the client wants to take it over.
                    let is_ours = session.worker().is_some() && !session.numbering.is_driven_elsewhere();
                    self.take_events(&id, is_ours || takes_over(input.body));
                }
            }
            let request = ClientRequest { request_id: request_id.to_owned(), nested: input.nested };
            self.start_replay(&id, request, after);
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
        let flow = Self::require_session(input).and_then(|id| {
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
        let id = match Self::require_session(input).map(|id| self.history.follow_forks(id)) {
            Ok(id) if self.sessions.contains_key(&id) => id,
            Ok(id) => return self.reply(input, Some(&id), request_id, Err(unknown_session(&id))),
            Err(error) => return self.reply(input, None, request_id, Err(error)),
        };
        self.actions.push(RouterAction::SetPaused { session: id.clone(), paused: false });
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.lifecycle =
            Lifecycle::Closing(ClientRequest { request_id: request_id.to_owned(), nested: input.nested });
        self.admission.remove(&id);
        session.leave_queue();
        let runs = session.is_busy();
        let worker = session.worker();
        let session_rests = session.is_ready() && session.is_idle();
        let has_hooks = session.is_ready() && session.setup.initialize.as_deref().is_some_and(declares_hooks);
        let cancels = cancel_all(&id, session);
        if runs && let Some(worker) = worker {
            self.write_to_worker(worker, cancels);
        }
        // The client's `SessionEnd` hooks need its answers, so the worker ends by request and not by end of
        // input.
        match worker {
            Some(worker) if has_hooks => {
                self.own_requests += 1;
                let asks = format!(
                    "{{\"type\":\"control_request\",\"request_id\":\"hub.end.{}\",\"session_id\":\"{id}\",\"subtype\":\"end_session\"}}\n",
                    self.own_requests
                );
                self.write_to_worker(worker, asks.into_bytes());
                self.pool.await_end(worker, self.clock.now);
            }
            _ if session_rests => self.return_worker(&id),
            Some(worker) => self.pool.release(worker, self.clock.now, &mut self.actions),
            None => {}
        }
        self.complete_close(&id);
    }

    /// Writes whole lines to a worker's standard input.
    fn write_to_worker(&mut self, worker: WorkerId, lines: Vec<u8>) {
        self.links.entry(worker).or_default().count_inputs(&lines);
        self.actions.push(RouterAction::Write { worker, lines });
    }

    /// Forgets a session. Its log remains, and `open` or `initialize` resumes it.
    pub(super) fn forget_session(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let tenant = session.tenant.clone();
        if session.numbering.waiting_bytes() > 0 {
            session.lifecycle = Lifecycle::Closed;
            session.prompts.backlog.clear();
        } else {
            self.sessions.remove(id);
            self.actions.push(RouterAction::ReleaseEvents { session: id.clone() });
        }
        self.admission.remove(id);
        self.history.note_closed(id.clone(), &tenant);
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
        .prompts
        .pending
        .iter()
        .rev()
        .filter(|prompt| prompt.sent)
        .filter_map(|prompt| prompt.prompt_id.as_deref());
    let mut lines = String::new();
    for prompt_id in named.filter(|prompt_id| session.prompts.turn.as_deref() != Some(prompt_id)) {
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

/// Returns true if an `attach` takes the session even from an owner that is alive.
fn takes_over(body: &str) -> bool {
    #[derive(Deserialize)]
    struct Attach {
        #[serde(default)]
        takeover: bool,
    }
    serde_json::from_str(body).is_ok_and(|attach: Attach| attach.takeover)
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
