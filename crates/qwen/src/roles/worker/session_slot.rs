//! The session that a worker holds, and which session a request refers to.

use std::sync::Arc;

use qwen_dialects::Dialect;
use qwen_engine::Session;
use qwen_engine::log::Unfinished;
use qwen_events::{ErrorInfo, ErrorKind, Prompt, SessionId};

use super::host::ControlHost;
use crate::session::ProcessContext;
use crate::session::stored::{self, StoredSession};
use crate::settings::SessionStart;

pub(super) struct SessionSlot {
    /// None before the first turn, and while a turn runs.
    session: Option<Session>,
    /// The session that the command line resumes, until its first prompt arrives.
    claimed: Option<StoredSession>,
    id: SessionId,
    /// True if the host chose the session's id and therefore addresses the session by it.
    is_named_by_host: bool,
    /// True if the command line named the session: prompts of other sessions are refused (`_new` requests
    /// another one).
    is_bound: bool,
    /// The session that the command line named, if it can be resumed after `_new` or a command led to another
    /// one.
    own: Option<SessionId>,
    host: Arc<ControlHost>,
}

impl SessionSlot {
    pub fn new(process: &ProcessContext, host: Arc<ControlHost>) -> Self {
        let config = &process.config.session;
        Self {
            session: None,
            claimed: None,
            id: config.id.clone(),
            is_named_by_host: config.start != SessionStart::New,
            is_bound: config.start != SessionStart::New,
            own: matches!(config.start, SessionStart::Named | SessionStart::Resumed { at: None })
                .then(|| config.id.clone()),
            host,
        }
    }

    /// Locks the session that the command line resumes, if it resumes one.
    pub fn claim(&mut self, process: &ProcessContext) -> Result<(), ErrorInfo> {
        self.claimed = stored::claim(&process.config)?;
        Ok(())
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session, unless a turn runs in it.
    pub fn idle(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Removes the session permanently.
    pub fn take(&mut self) -> Option<Session> {
        self.session.take()
    }

    /// Returns the session that [`Self::session_for`] removed.
    pub fn put_back(&mut self, session: Session) {
        self.session = Some(session);
    }

    /// Returns the session unless another one has replaced it in the meantime.
    pub fn put_back_unless_replaced(&mut self, session: Session) {
        self.session.get_or_insert(session);
    }

    /// Holds `session` from now on.
    pub fn replace(&mut self, session: Session) {
        self.set_id(session.context().id.clone());
        self.session = Some(session);
    }

    /// The turn that an earlier process left unfinished, unless a turn runs.
    pub fn unfinished(&self) -> Option<&Unfinished> {
        match &self.session {
            Some(session) => session.unfinished(),
            None => self.claimed.as_ref().and_then(StoredSession::unfinished),
        }
    }

    /// The estimated tokens of the resumed session, before its first turn here.
    pub fn claimed_tokens(&self) -> Option<u64> {
        self.claimed.as_ref().filter(|_| self.session.is_none()).map(StoredSession::tokens)
    }

    /// The session id for an answer: the one that the request named, else the one that is held.
    pub fn addressed(&self, named: Option<&str>) -> SessionId {
        named.and_then(|name| SessionId::parse(name).ok()).unwrap_or_else(|| self.id.clone())
    }

    /// True if a request names a session other than the one that is held. Claude hosts send arbitrary ids.
    pub fn is_other(&self, named: Option<&str>, dialect: Dialect) -> bool {
        self.is_named_by_host
            && dialect != Dialect::Claude
            && named.is_some_and(|name| name != self.id.as_str())
    }

    /// Removes the session that a prompt belongs to. A worker that holds none adopts the first prompt's.
    pub fn session_for(&mut self, prompt: &Prompt, process: &ProcessContext) -> Result<Session, ErrorInfo> {
        let is_claude = process.config.stream.dialect == Dialect::Claude;
        let named = prompt.session_id.as_deref().filter(|_| !is_claude);
        let wanted = match named {
            None => None,
            Some("_new") => Some(SessionId::from_random(fastrand::u128(..))),
            Some(text) => Some(SessionId::parse(text).map_err(|error| {
                let message = format!("session_id '{text}': {error}");
                ErrorInfo::new(ErrorKind::Input, "invalid_session_id", message).with_param("session_id")
            })?),
        };
        let is_bound_to = |id: &SessionId| *id == self.id || self.own.as_ref() == Some(id);
        if let Some(id) =
            wanted.as_ref().filter(|id| self.is_bound && !is_bound_to(id) && named != Some("_new"))
        {
            let message =
                format!("session_id '{id}' is not the session '{}' that this worker is bound to", self.id);
            return Err(ErrorInfo::new(ErrorKind::Input, "unknown_session", message).with_param("session_id"));
        }
        match (self.session.take(), wanted) {
            (Some(held), None) => Ok(held),
            (Some(held), Some(id)) if held.context().id == id => Ok(held),
            (Some(held), Some(id)) if named != Some("_new") && !stored::is_stored(&process.config, &id) => {
                self.session = Some(held);
                let message = format!("session_id '{id}' is neither the session of this worker nor on disk");
                Err(ErrorInfo::new(ErrorKind::Input, "unknown_session", message).with_param("session_id"))
            }
            (held, wanted) => {
                let started = &process.config.session.id;
                let id = wanted.unwrap_or_else(|| started.clone());
                let claimed = self.claimed.take().filter(|_| id == *started);
                match stored::open(process, &id, claimed) {
                    Ok(session) => {
                        self.is_named_by_host |= named.is_some_and(|name| name != "_new");
                        self.set_id(id);
                        Ok(session)
                    }
                    Err(error) => {
                        self.session = held;
                        Err(error)
                    }
                }
            }
        }
    }

    fn set_id(&mut self, id: SessionId) {
        self.id = id.clone();
        self.host.set_session(id);
    }
}
