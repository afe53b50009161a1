//! The session that a line of the client addresses.

use qwen_events::{ErrorInfo, ErrorKind, SessionId};

use super::session::Session;
use super::{Router, SessionOptions};
use crate::front::{ClientInput, InputKind, session_id_of, with_session_id};

impl Router {
    /// Represents one worker: every line goes to the same session, whatever id it names, and that session's
    /// worker judges the id. The worker's handshake and exit code become the hub's, and a signal ends it at
    /// once.
    pub fn represent_worker(&mut self) {
        self.client.represents_worker = true;
        self.client.drives_default = true;
    }

    /// Serves only this tenant: every session is its, whether the client names it or not.
    pub fn serve_tenant(&mut self, tenant: &str) {
        self.client.tenant = Some(tenant.to_owned());
    }

    /// Returns the error for a line that names another tenant than the only one.
    pub(super) fn check_only_tenant(&self, input: &ClientInput<'_>) -> Option<ErrorInfo> {
        let only = self.client.tenant.as_deref()?;
        input.tenant.as_deref().filter(|named| *named != only)?;
        let message = format!("only the tenant '{only}' is served here");
        Some(Self::refuse(ErrorKind::Input, "unknown_tenant", message).with_param("tenant"))
    }

    /// Starts the worker that it represents, so that a worker that refuses its flags reports it before any
    /// handshake.
    pub(super) fn start_only_session(&mut self) {
        let id = self.client.default_session.clone();
        match self.register_session(&id, "", &SessionOptions::default()) {
            Ok(()) => drop(self.claim(&id)),
            Err(error) => self.end_with(error),
        }
    }

    /// The session of the worker that it represents.
    pub(super) fn only_session(&self) -> SessionId {
        self.sessions.keys().next().unwrap_or(&self.client.default_session).clone()
    }

    /// Passes the handshake of the worker that it represents on.
    pub(super) fn pass_handshake(&mut self, id: &SessionId, line: &[u8]) {
        if !self.client.represents_worker
            || line.is_empty()
            || std::mem::replace(&mut self.client.has_passed_handshake, true)
        {
            return;
        }
        if let Some(named) = session_id_of(line) {
            self.rename_session(id, &named);
            self.client.default_session = named;
        }
        self.out.extend_from_slice(line);
        self.out.push(b'\n');
    }

    /// The error for a line that names a session of another tenant, whatever it wants from it.
    pub(super) fn check_tenant(&self, input: &ClientInput<'_>) -> Option<ErrorInfo> {
        self.check_tenant_of(input, &SessionId::parse(input.session_id.as_deref()?).ok()?)
    }

    /// The error for a line that names a tenant and addresses a session of another one.
    pub(super) fn check_tenant_of(&self, input: &ClientInput<'_>, id: &SessionId) -> Option<ErrorInfo> {
        let tenant = input.tenant.as_deref()?;
        let open = self.sessions.get(id).map(|session| session.tenant.as_str());
        // The id of a closed session stays with its tenant.
        open.or_else(|| self.history.closed_tenant(id)).filter(|owner| *owner != tenant)?;
        let message = format!("the session '{id}' belongs to another tenant");
        Some(Self::refuse(ErrorKind::Input, "foreign_session", message).with_param("session_id"))
    }

    /// The session that a line addresses, and the line as its worker receives it.
    pub(super) fn resolve_session(
        &mut self,
        input: &ClientInput<'_>,
        line: &[u8],
    ) -> Result<(SessionId, Vec<u8>), ErrorInfo> {
        if self.client.represents_worker {
            return Ok((self.only_session(), line.to_vec()));
        }
        let (id, line) = self.named_session(input, line)?;
        let last = self.history.follow_forks(id.clone());
        let names_fork = last != id && session_id_of(&line).as_ref() == Some(&id);
        let line = if names_fork { with_session_id(&line, &last) } else { line };
        Ok((last, line))
    }

    fn named_session(
        &mut self,
        input: &ClientInput<'_>,
        line: &[u8],
    ) -> Result<(SessionId, Vec<u8>), ErrorInfo> {
        match input.session_id.as_deref() {
            None => {
                let id = self.implied_session(input)?;
                let line = self.complete_line(input, line, &id);
                Ok((id, line))
            }
            Some("_new") => {
                let id = SessionId::from_random(fastrand::u128(..));
                Ok((id.clone(), with_session_id(line, &id)))
            }
            Some(text) if self.addresses_default(input, text) => {
                Ok((self.client.default_session.clone(), line.to_vec()))
            }
            Some(text) => Ok((Self::parse_session_id(text)?, line.to_vec())),
        }
    }

    /// The session id of a line or a request.
    pub(super) fn parse_session_id(text: &str) -> Result<SessionId, ErrorInfo> {
        if text.is_empty() {
            let message = "`session_id` is empty; leave it out, or name a session";
            return Err(Self::refuse(ErrorKind::Input, "empty_session_id", message).with_param("session_id"));
        }
        SessionId::parse(text).map_err(|error| {
            let shown: String = text.chars().take(80).collect();
            let message = format!("session_id {shown:?}: {error}");
            Self::refuse(ErrorKind::Input, "invalid_session_id", message).with_param("session_id")
        })
    }

    /// The line with the id of its session, if it names none. An answer stays as it is: its request id says
    /// whose it is, and its session's worker may not know the name of its session yet.
    fn complete_line(&self, input: &ClientInput<'_>, line: &[u8], id: &SessionId) -> Vec<u8> {
        if self.front.adopts_sessions() && input.session_id.is_none() && input.kind != InputKind::Answer {
            with_session_id(line, id)
        } else {
            line.to_vec()
        }
    }

    /// The session of a line that names none: the handshake's, unless that one had no prompt and the client
    /// drives exactly one other, as it would with a worker that adopted its session.
    fn implied_session(&self, input: &ClientInput<'_>) -> Result<SessionId, ErrorInfo> {
        let default = &self.client.default_session;
        let is_driven = self.sessions.get(default).is_some_and(|session| session.prompts.count > 0);
        if is_driven || !self.front.adopts_sessions() {
            return Ok(default.clone());
        }
        let is_of_tenant =
            |session: &Session| input.tenant.as_ref().is_none_or(|name| session.tenant == **name);
        let mut others = self
            .sessions
            .values()
            .filter(|session| session.id != *default && !session.is_closed() && is_of_tenant(session));
        match (others.next(), others.next()) {
            (None, _) => Ok(default.clone()),
            (Some(only), None) => Ok(only.id.clone()),
            (Some(_), Some(_)) => {
                let is_initialize = input.subtype.as_deref() == Some("initialize");
                match input.kind {
                    InputKind::Prompt | InputKind::Heartbeat | InputKind::Answer => Ok(default.clone()),
                    InputKind::Control if is_initialize => Ok(default.clone()),
                    InputKind::Control
                    | InputKind::Addition
                    | InputKind::Steer
                    | InputKind::Cancel
                    | InputKind::Other => {
                        let message = "several sessions are open; name the `session_id` that is meant";
                        Err(Self::refuse(ErrorKind::Input, "ambiguous_session", message)
                            .with_param("session_id"))
                    }
                }
            }
        }
    }

    /// Clients of one worker send arbitrary ids with their prompts, which a worker of such a wire ignores.
    fn addresses_default(&self, input: &ClientInput<'_>, session: &str) -> bool {
        let is_prompt = matches!(input.kind, InputKind::Prompt | InputKind::Addition | InputKind::Steer);
        let is_open = || SessionId::parse(session).is_ok_and(|id| self.sessions.contains_key(&id));
        !self.front.adopts_sessions() && self.client.drives_default && is_prompt && !is_open()
    }

    /// Gives the worker of the default session to the first session that is named, if the default one was
    /// only configured so far: a worker adopts the first prompt's session too, with what was set before. True
    /// if so.
    pub(super) fn adopt_default(&mut self, id: &SessionId, tenant: &str, options: &SessionOptions) -> bool {
        let default = self.client.default_session.clone();
        let fits = self.sessions.get(&default).is_some_and(|session| {
            let is_configured_only = session.prompts.count == 0 && session.prompts.turn.is_none();
            is_configured_only && !session.numbering.on && !session.is_leaving() && !session.is_closing()
        });
        let is_plain = tenant.is_empty() && *options == SessionOptions::default();
        let adopts = fits && is_plain && self.front.adopts_sessions() && *id != default;
        if adopts {
            self.rename_session(&default, id);
        }
        adopts
    }

    /// Calls a session by another id, which no other session has.
    pub(super) fn rename_session(&mut self, from: &SessionId, to: &SessionId) {
        if from == to || self.sessions.contains_key(to) {
            return;
        }
        let Some(mut session) = self.sessions.remove(from) else { return };
        session.id = to.clone();
        if let Some(worker) = session.linked_worker() {
            self.links.entry(worker).or_default().session = Some(to.clone());
        }
        self.pool.rename_session(from, to);
        let sessions = self.questions.values_mut().flatten();
        for id in sessions.filter(|id| *id == from) {
            *id = to.clone();
        }
        self.admission.rename(from, to);
        self.sessions.insert(to.clone(), session);
    }
}
