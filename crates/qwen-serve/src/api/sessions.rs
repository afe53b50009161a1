//! Sessions: list, create, show, change, delete, fork.

use std::rc::Rc;

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::respond::{HttpReply, Refusal, json_reply};
use crate::server::{Call, Server};
use crate::sessions::{NewSession, Session};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Create {
    workspace: Option<String>,
    model: Option<String>,
    mode: Option<String>,
    agent: Option<String>,
    title: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Change {
    title: Option<String>,
    model: Option<String>,
    mode: Option<String>,
}

/// A session as clients see it.
pub fn session_json(server: &Server, session: &Session) -> Value {
    let record = session.record.borrow();
    let running = session.running();
    let approvals = server.sessions.approvals.borrow().list(Some(&session.id)).len();
    let prompts = session.prompts.borrow();
    let status = match (approvals, prompts.is_empty()) {
        (1.., _) => "waiting",
        (0, false) => "running",
        (0, true) => "idle",
    };
    let queued: Vec<&String> = prompts.iter().filter(|prompt| running.as_ref() != Some(prompt)).collect();
    json!({
        "id": session.id.as_str(),
        "workspace": record.workspace.to_string_lossy(),
        "title": record.title,
        "model": record.model,
        "mode": record.mode,
        "agent": record.agent,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "status": status,
        "running": running,
        "queued": queued,
        "approvals": approvals,
        "last_event_id": session.last(),
    })
}

pub fn list(server: &Server) -> HttpReply {
    let sessions: Vec<Value> =
        server.sessions.all().iter().map(|session| session_json(server, session)).collect();
    json_reply(StatusCode::OK, &json!({"sessions": sessions}))
}

pub async fn create(server: &Rc<Server>, mut call: Call) -> Result<HttpReply, Refusal> {
    let Create { workspace, model, mode, agent, title } = call.json(server).await?;
    let new = NewSession { workspace, model, mode, agent, ..NewSession::default() };
    let session = server.sessions.create(new).await?;
    if let Some(title) = title {
        server.sessions.rename(&session, &title);
    }
    Ok(json_reply(StatusCode::CREATED, &json!({"id": session.id.as_str()})))
}

pub fn show(server: &Server, session: &Session) -> HttpReply {
    json_reply(StatusCode::OK, &session_json(server, session))
}

pub async fn change(
    server: &Rc<Server>,
    mut call: Call,
    session: &Rc<Session>,
) -> Result<HttpReply, Refusal> {
    let Change { title, model, mode } = call.json(server).await?;
    if title.is_none() && model.is_none() && mode.is_none() {
        return Err(Refusal::bad_request(
            "nothing_to_change",
            "The body must have `title`, `model` or `mode`.",
        ));
    }
    if let Some(title) = title {
        server.sessions.rename(session, &title);
    }
    for (key, value) in [("model", model), ("mode", mode)] {
        if let Some(value) = value {
            server.sessions.configure(session, key, &value).await?;
        }
    }
    Ok(show(server, session))
}

pub async fn delete(server: &Rc<Server>, session: &Rc<Session>) -> Result<HttpReply, Refusal> {
    server.sessions.delete(session).await?;
    Ok(crate::respond::empty(StatusCode::NO_CONTENT))
}

pub async fn fork(server: &Rc<Server>, session: &Rc<Session>) -> Result<HttpReply, Refusal> {
    let fork = server.sessions.fork(session).await?;
    Ok(json_reply(StatusCode::CREATED, &json!({"id": fork.id.as_str(), "forked_from": session.id.as_str()})))
}
