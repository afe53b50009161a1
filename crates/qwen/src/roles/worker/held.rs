//! The session that a worker holds, and which one a prompt means.

use qwen_dialects::Dialect;
use qwen_engine::Session;
use qwen_engine::log::Unfinished;
use qwen_events::{Body, ErrorInfo, ErrorKind, Prompt, PromptId, SessionId};

use super::serve::{Queued, Worker};
use crate::session::stored::{self, Past};

impl Worker {
    /// The session of a prompt whose turn has come; none where the prompt is refused, which is told.
    pub(super) async fn begin(&mut self, queued: &Queued) -> Option<Session> {
        let prompt = &queued.prompt;
        let refusal = match self.session_for(prompt) {
            Ok(session) => match &prompt.prompt_id {
                // It was used by the process that had the session before us.
                Some(id) if session.has_prompt(id) && !prompt.continuation => {
                    self.session = Some(session);
                    used_before(id)
                }
                _ => return Some(session),
            },
            Err(error) => {
                if let Some(claim) = &queued.claim {
                    self.prompt_ids.remove(claim);
                }
                error
            }
        };
        self.emit.emit(Body::Error(Box::new(refusal))).await;
        None
    }

    /// The turn that an earlier process left unfinished, unless a turn runs.
    pub(super) fn unfinished(&self) -> Option<&Unfinished> {
        match &self.session {
            Some(session) => session.unfinished(),
            None => self.claimed.as_ref().and_then(Past::unfinished),
        }
    }

    /// About how many tokens the session has that the command line named, before its first turn here.
    pub(super) fn claimed_tokens(&self) -> Option<u64> {
        self.claimed.as_ref().filter(|_| self.session.is_none()).map(Past::tokens)
    }

    /// The session, unless a turn runs in it.
    pub(super) fn idle_session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// The session that a prompt belongs to. A worker that holds none adopts the first prompt's.
    pub(super) fn session_for(&mut self, prompt: &Prompt) -> Result<Session, ErrorInfo> {
        // Claude's SDKs send what they like there, and mean the session that they started us with.
        let claude = self.config.dialect == Dialect::Claude;
        let named = prompt.session_id.as_deref().filter(|_| !claude);
        let wanted = match named {
            None => None,
            Some("_new") => Some(SessionId::from_random(fastrand::u128(..))),
            Some(text) => Some(SessionId::parse(text).map_err(|error| {
                ErrorInfo::new(
                    ErrorKind::Input,
                    "invalid_session_id",
                    format!("session_id '{text}': {error}"),
                )
                .with_param("session_id")
            })?),
        };
        match (self.session.take(), wanted) {
            (Some(held), None) => Ok(held),
            (Some(held), Some(id)) if held.setup().id == id => Ok(held),
            (Some(held), Some(id)) if named != Some("_new") && !stored::is_kept(&self.config, &id) => {
                self.session = Some(held);
                let message = format!("session_id '{id}' is neither the session of this worker nor on disk");
                Err(ErrorInfo::new(ErrorKind::Input, "unknown_session", message).with_param("session_id"))
            }
            (held, wanted) => {
                let id = wanted.unwrap_or_else(|| self.config.session_id.clone());
                let claimed = self.claimed.take().filter(|_| id == self.config.session_id);
                match stored::open(&self.config, &id, &self.parts, claimed) {
                    Ok(session) => {
                        self.named |= named.is_some_and(|name| name != "_new");
                        self.session_id = id.clone();
                        self.host.set_session(id);
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

    /// Holds a session again that was borrowed.
    pub(super) fn give_back(&mut self, session: Session) {
        self.session = Some(session);
    }

    /// Holds `session` from here on.
    pub(super) fn hold(&mut self, session: Session, id: SessionId) {
        self.session_id = id.clone();
        self.host.set_session(id);
        self.session = Some(session);
    }

    /// The session that a request is about, in the words of whoever asked.
    pub(super) fn addressed(&self, named: Option<&str>) -> SessionId {
        named.and_then(|name| SessionId::parse(name).ok()).unwrap_or_else(|| self.session_id.clone())
    }
}

pub(super) fn used_before(id: &PromptId) -> ErrorInfo {
    let message =
        format!("prompt_id '{id}' was used before; a continuation says so with \"continuation\":true");
    ErrorInfo::new(ErrorKind::Input, "duplicate_prompt_id", message).with_param("prompt_id")
}
