//! Opening, listing, closing and deleting sessions.

use std::path::{Path, PathBuf};

use qwen_dialects::acp::{one_line, push_prompt};
use qwen_dialects::loom::rfc3339;
use qwen_engine::log::Store;
use qwen_events::SessionId;
use serde_json::{Value, json};

use super::connection::{EditorConnection, PendingControl, session_id, unknown_session};
use super::kernel::{self, WorkerOptions};
use super::mcp_servers;
use super::replay;
use super::session::{Closing, Session, Turn};
use super::session_settings::{self, SessionSettings};
use qwen_dialects::acp::rpc::{
    AUTH_REQUIRED, INTERNAL_ERROR, INVALID_REQUEST, RpcError, RpcId, list, optional_text, text,
};

/// The number of sessions on one page of a list.
const PAGE: usize = 100;

/// What `session/new`, `load` and `resume` have in common.
struct Opening {
    settings: SessionSettings,
    options: WorkerOptions,
}

impl EditorConnection<'_> {
    pub(super) fn new_session(&mut self, params: &Value) -> Result<Value, RpcError> {
        let opening = self.opening(params, true)?;
        let id = SessionId::from_random(fastrand::u128(..));
        self.open(&id, opening);
        let session = self.sessions.get(&id).ok_or_else(|| unknown_session(id.as_str()))?;
        let mut result = session.state();
        result["sessionId"] = id.as_str().into();
        Ok(result)
    }

    /// Replays a session, then opens it.
    pub(super) fn load_session(&mut self, params: &Value) -> Result<Value, RpcError> {
        self.open_stored(params, true)
    }

    pub(super) fn resume_session(&mut self, params: &Value) -> Result<Value, RpcError> {
        self.open_stored(params, false)
    }

    fn open_stored(&mut self, params: &Value, with_history: bool) -> Result<Value, RpcError> {
        let id = session_id(params)?;
        let opening = self.opening(params, with_history)?;
        let open = self.sessions.get(&id);
        if open.is_some_and(|session| session.closing.is_some()) {
            let message = "the session is being closed; open it again once that request is answered";
            return Err(RpcError::new(INVALID_REQUEST, message));
        }
        let is_open = open.is_some();
        let store = opening.settings.store.clone();
        let stored = store.filter(|store| store.holds(&id));
        if stored.is_none() && !is_open {
            return Err(unknown_session(id.as_str()));
        }
        let mut lines = Vec::new();
        let mut spent = 0.0;
        if let Some(store) = &stored {
            if !is_open {
                // A session that another process holds cannot be continued here.
                drop(store.hold(&id).map_err(|error| RpcError::new(INVALID_REQUEST, error.to_string()))?);
            }
            let running = open.and_then(|session| session.turn.as_ref()).map(|turn| &*turn.prompt_id);
            spent = replay::replay(store, &id, self.client.unwrap_or_default(), running, &mut lines)
                .map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))?;
        }
        if with_history {
            if let Some(turn) = open.and_then(|session| session.turn.as_ref()) {
                push_running(&id, turn, &mut lines)?;
            }
            self.out().extend_from_slice(&lines);
        }
        if !is_open {
            self.open(&id, opening);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.spent = spent;
                // The client has the title from its list.
                session.title = Some(String::new());
            }
        }
        let session = self.sessions.get(&id).ok_or_else(|| unknown_session(id.as_str()))?;
        Ok(session.state())
    }

    fn opening(&self, params: &Value, needs_servers: bool) -> Result<Opening, RpcError> {
        let cwd = directory("cwd", text(params, "cwd")?)?;
        let mcp_servers = mcp_servers::convert(list(params, "mcpServers", needs_servers)?)?;
        let mut args = Vec::new();
        for directory_name in list(params, "additionalDirectories", false)? {
            let name = directory_name.as_str();
            let name = name.ok_or_else(|| RpcError::params("`additionalDirectories` must be strings"))?;
            let directory = directory("additionalDirectories", name)?;
            let shown = directory.display().to_string();
            args.push(format!("--include-directories={shown}"));
        }
        let client = self.client.unwrap_or_default();
        if !client.names().is_empty() {
            args.push(format!("--acp-client={}", client.names()));
        }
        if !client.forms {
            // Without forms the model asks in its answer.
            args.push("--exclude-tools=ask_user_question".to_owned());
        }
        let settings = session_settings::resolve(self.run, Some(&cwd))?;
        if let Err(error) = &settings.credentials {
            return Err(RpcError::new(AUTH_REQUIRED, &*error.message));
        }
        if let Some(timeout) =
            settings.permission_timeout.filter(|_| self.run.supervision.question_timeout.is_none())
        {
            args.push(format!("--question-timeout={}", timeout.as_secs_f64()));
        }
        Ok(Opening { settings, options: WorkerOptions { cwd, args, mcp_servers } })
    }

    fn open(&mut self, id: &SessionId, opening: Opening) {
        let Opening { settings, options } = opening;
        let session = Session::new(id.clone(), settings);
        self.sessions.insert(id.clone(), session);
        let request = self.mint_id("open");
        self.controls.insert(request.clone(), (id.clone(), PendingControl::Open));
        kernel::open(&self.hub, &request, id, &options);
        let request = self.mint_id("initialize");
        self.controls.insert(request.clone(), (id.clone(), PendingControl::Initialize));
        kernel::initialize(&self.hub, &request, id, &options);
    }

    pub(super) fn list_sessions(&self, params: &Value) -> Result<Value, RpcError> {
        let cwd = optional_text(params, "cwd")?.map(PathBuf::from);
        if cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
            return Err(RpcError::params("`cwd` is not an absolute path"));
        }
        let cursor = optional_text(params, "cursor")?;
        let settings = session_settings::resolve(self.run, None)?;
        // Logs have the directory without symbolic links; clients name it as they opened it.
        let resolved = cwd.as_ref().map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.clone()));
        let sessions = match &settings.store {
            Some(store) => store.list(resolved.as_deref()).map_err(|error| {
                RpcError::new(INTERNAL_ERROR, format!("the sessions cannot be listed: {error}"))
            })?,
            None => Vec::new(),
        };
        let start = match cursor {
            None => 0,
            // The last session of the page before.
            Some(last) => {
                let at = sessions.iter().position(|session| session.header.session_id.as_str() == last);
                at.ok_or_else(|| RpcError::params("`cursor` is not one that session/list returned"))? + 1
            }
        };
        let page: Vec<_> = sessions.iter().skip(start).take(PAGE).collect();
        let rows: Vec<Value> = page
            .iter()
            .map(|session| {
                let named = cwd.as_ref().map(|cwd| cwd.to_string_lossy());
                let cwd = named.as_deref().unwrap_or(&session.header.cwd);
                let mut row = json!({"sessionId": session.header.session_id.as_str(), "cwd": cwd,
                    "updatedAt": rfc3339(session.last_activity)});
                let title = one_line(&session.header.title);
                if !title.is_empty() {
                    row["title"] = title.into();
                }
                row
            })
            .collect();
        let mut result = json!({"sessions": rows});
        if start + page.len() < sessions.len()
            && let Some(last) = page.last()
        {
            result["nextCursor"] = last.header.session_id.as_str().into();
        }
        Ok(result)
    }

    pub(super) fn close_session(&mut self, request: &RpcId, params: &Value) -> Result<(), RpcError> {
        let session = self.named_session(params)?;
        let id = session.id.clone();
        session.closing = Some(Closing { closes: vec![request.clone()], deletes: Vec::new() });
        self.cancel_turn(&id);
        self.close_if_idle(&id);
        Ok(())
    }

    /// Deletes a session; an open one is closed first.
    pub(super) fn delete_session(
        &mut self,
        request: &RpcId,
        params: &Value,
    ) -> Result<Option<Value>, RpcError> {
        let text = text(params, "sessionId")?;
        // An id that no session can have is unknown, and deleting an unknown session succeeds.
        let Ok(id) = SessionId::parse(text) else { return Ok(Some(json!({}))) };
        if let Some(session) = self.sessions.get_mut(&id) {
            let is_closing = session.closing.is_some();
            session.closing.get_or_insert_default().deletes.push(request.clone());
            if !is_closing {
                self.cancel_turn(&id);
                self.close_if_idle(&id);
            }
            return Ok(None);
        }
        let settings = session_settings::resolve(self.run, None)?;
        delete(settings.store.as_ref(), &id).map(|()| Some(json!({})))
    }

    /// Closes a session that is to be closed, once its turn has ended.
    pub(super) fn close_if_idle(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get(id) else { return };
        if session.turn.is_some() || session.closing.is_none() {
            return;
        }
        let request = self.mint_id("close");
        self.controls.insert(request.clone(), (id.clone(), PendingControl::Close));
        kernel::control(&self.hub, &request, id, json!({"subtype": "close"}));
    }

    /// The worker of a session has ended.
    pub(super) fn closed(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.remove(id) else { return };
        let unanswered: Vec<_> = self.controls.extract_if(|_, (of, _)| of == id).collect();
        for (_, (_, pending)) in unanswered {
            if let PendingControl::SetMode { request, .. } | PendingControl::SetOption { request, .. } =
                pending
            {
                self.respond(&request, &Err(unknown_session(id.as_str())));
            }
        }
        self.withdraw_questions(id);
        let Closing { closes, deletes } = session.closing.unwrap_or_default();
        for request in closes {
            self.respond(&request, &Ok(json!({})));
        }
        for request in deletes {
            let deleted = delete(session.settings.store.as_ref(), id);
            self.respond(&request, &deleted.map(|()| json!({})));
        }
    }
}

/// Writes what the client has seen of a running turn.
fn push_running(id: &SessionId, turn: &Turn, lines: &mut Vec<u8>) -> Result<(), RpcError> {
    let message =
        "the running turn is too long to be shown again; load the session once its prompt is answered";
    let shown = turn.shown.lines().ok_or_else(|| RpcError::new(INVALID_REQUEST, message))?;
    push_prompt(id.as_str(), &turn.prompt_id, &turn.content, lines);
    lines.extend_from_slice(shown);
    Ok(())
}

fn delete(store: Option<&Store>, id: &SessionId) -> Result<(), RpcError> {
    match store.filter(|store| store.holds(id)) {
        Some(store) => {
            // A session that another process holds cannot be deleted.
            drop(store.hold(id).map_err(|error| RpcError::new(INVALID_REQUEST, error.to_string()))?);
            store.delete(id).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
        }
        None => Ok(()),
    }
}

/// A directory that exists, by its absolute path.
fn directory(field: &str, name: &str) -> Result<PathBuf, RpcError> {
    let path = Path::new(name);
    let shown: String = name.chars().take(200).collect();
    if !path.is_absolute() {
        return Err(RpcError::params(format!("`{field}`: {shown:?} is not an absolute path")));
    }
    if !path.is_dir() {
        return Err(RpcError::params(format!("`{field}`: there is no directory {shown}")));
    }
    Ok(path.to_owned())
}
