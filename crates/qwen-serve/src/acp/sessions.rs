//! Requests about sessions: create, load, resume, list, close, delete, and the approval mode.

use std::path::Path;
use std::rc::Rc;

use qwen_dialects::acp::rpc::{self, RpcError, RpcId};
use qwen_dialects::acp::{APPROVAL_MODES, one_line};
use qwen_dialects::loom::rfc3339;
use qwen_events::Timestamp;
use serde_json::{Value, json};

use super::{AcpConnection, rpc_error};
use crate::sessions::{NewSession, Session};

/// The number of sessions on one page of a list.
const PAGE: usize = 100;

impl AcpConnection {
    pub(super) async fn create_session(&mut self, params: &Value) -> Result<Value, RpcError> {
        let workspace = rpc::text(params, "cwd")?.to_owned();
        refuse_servers(params)?;
        let new = NewSession { workspace: Some(workspace), ..NewSession::default() };
        let created = self.server.sessions.create(new).await;
        let session = created.map_err(|refusal| rpc_error(&refusal))?;
        self.follow(&session, None, false);
        let mut state = session_state(&session);
        state["sessionId"] = session.id.as_str().into();
        Ok(state)
    }

    /// Sends the history of a session, then the answer, then what happens.
    pub(super) fn load_session(&mut self, request: &RpcId, params: &Value) -> Result<(), RpcError> {
        let session = self.stored_session(params)?;
        self.follow(&session, Some(request.clone()), true);
        Ok(())
    }

    pub(super) fn resume_session(&mut self, params: &Value) -> Result<Value, RpcError> {
        let session = self.stored_session(params)?;
        self.follow(&session, None, false);
        Ok(session_state(&session))
    }

    /// The session that a request names. Its directory must be the one that the request has, if any.
    fn stored_session(&self, params: &Value) -> Result<Rc<Session>, RpcError> {
        let session = self.session(params)?;
        refuse_servers(params)?;
        let own = session.record.borrow().workspace.clone();
        match rpc::optional_text(params, "cwd")? {
            Some(cwd) if Path::new(cwd).canonicalize().ok() != Some(own) => {
                Err(RpcError::params("`cwd` is not the directory of this session; session/list has it"))
            }
            _ => Ok(session),
        }
    }

    pub(super) fn list_sessions(&self, params: &Value) -> Result<Value, RpcError> {
        let cwd = rpc::optional_text(params, "cwd")?.map(Path::new);
        let all = self.server.sessions.all();
        let start = match rpc::optional_text(params, "cursor")? {
            None => 0,
            // The last session of the page before.
            Some(last) => {
                let at = all.iter().position(|session| session.id.as_str() == last);
                at.ok_or_else(|| RpcError::params("`cursor` is not one that session/list returned"))? + 1
            }
        };
        let is_wanted =
            |session: &&Rc<Session>| cwd.is_none_or(|cwd| session.record.borrow().workspace == cwd);
        let mut wanted = all.iter().skip(start).filter(is_wanted);
        let page: Vec<&Rc<Session>> = wanted.by_ref().take(PAGE).collect();
        let rows: Vec<Value> = page
            .iter()
            .map(|session| {
                let record = session.record.borrow();
                let mut row = json!({"sessionId": session.id.as_str(), "cwd": record.workspace.to_string_lossy(),
                    "updatedAt": rfc3339(Timestamp(record.updated_at))});
                let title = one_line(&record.title);
                if !title.is_empty() {
                    row["title"] = title.into();
                }
                row
            })
            .collect();
        let mut result = json!({"sessions": rows});
        if let (Some(last), Some(_)) = (page.last(), wanted.next()) {
            result["nextCursor"] = last.id.as_str().into();
        }
        Ok(result)
    }

    /// Ends the client's part in a session, which other clients may still use.
    pub(super) fn close_session(&mut self, params: &Value) -> Result<Value, RpcError> {
        let session = self.session(params)?;
        self.cancel(&session);
        if let Some(task) = self.followed.remove(&session.id) {
            task.abort();
        }
        let lines = self.open.cancel_prompts(&session.id);
        let out = self.out.clone();
        tokio::task::spawn_local(async move {
            for line in lines {
                if out.send(line).await.is_err() {
                    return;
                }
            }
        });
        Ok(json!({}))
    }

    pub(super) async fn delete_session(&mut self, params: &Value) -> Result<Value, RpcError> {
        // Deleting an unknown session succeeds.
        let Ok(session) = self.session(params) else { return Ok(json!({})) };
        self.close_session(params)?;
        let deleted = self.server.sessions.delete(&session).await;
        deleted.map(|()| json!({})).map_err(|refusal| rpc_error(&refusal))
    }

    pub(super) async fn set_mode(&self, params: &Value) -> Result<Value, RpcError> {
        let session = self.session(params)?;
        let mode = rpc::text(params, "modeId")?;
        if !APPROVAL_MODES.iter().any(|(id, ..)| *id == mode) {
            let names: Vec<&str> = APPROVAL_MODES.iter().map(|(id, ..)| *id).collect();
            return Err(RpcError::params(format!("the modes are {}", names.join(", "))));
        }
        let changed = self.server.sessions.configure(&session, "mode", mode).await;
        changed.map(|()| json!({})).map_err(|refusal| rpc_error(&refusal))
    }
}

/// Servers of the client would be programs that a route starts.
fn refuse_servers(params: &Value) -> Result<(), RpcError> {
    if rpc::list(params, "mcpServers", false)?.is_empty() {
        return Ok(());
    }
    Err(RpcError::params("`mcpServers` must be empty: the sessions here have the servers of their settings"))
}

/// The modes of a session with the one in force.
pub(super) fn session_state(session: &Session) -> Value {
    let record = session.record.borrow();
    let modes = APPROVAL_MODES
        .map(|(id, name, description)| json!({"id": id, "name": name, "description": description}));
    let current = record.mode.as_deref().unwrap_or("default");
    json!({"modes": {"currentModeId": current, "availableModes": modes}})
}
