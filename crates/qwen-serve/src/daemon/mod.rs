//! The core of the protocol of Qwen Code's `qwen serve`, so that its clients work unchanged.
//!
//! That protocol numbers the events of a session and not its lines, and lets the numbers begin anew in another
//! epoch. So each session that such a client has open has a log of projected events in memory.

mod events;
mod log;
mod project;
mod sessions;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use hyper::{Method, StatusCode};
use qwen_events::SessionId;
use serde_json::{Value, json};

use self::log::EventLog;
use crate::respond::{HttpReply, Refusal, json_reply};
use crate::server::{Call, Server};
use crate::sessions::Session;
use crate::token::random_id;

/// What of the protocol is served, under the names that its clients look for.
const FEATURES: [&str; 21] = [
    "health",
    "capabilities",
    "session_create",
    "session_scope_override",
    "session_id_override",
    "session_load",
    "session_resume",
    "session_list",
    "session_prompt",
    "non_blocking_prompt",
    "prompt_absolute_deadline",
    "session_cancel",
    "session_events",
    "session_set_model",
    "session_approval_mode_control",
    "session_metadata",
    "session_close",
    "client_identity",
    "client_heartbeat",
    "permission_vote",
    "session_permission_vote",
];

/// The sessions that clients of this protocol have open.
#[derive(Default)]
pub struct Daemon {
    logs: RefCell<HashMap<SessionId, Rc<EventLog>>>,
    /// Held while a session is created, so that two clients share one.
    creating: tokio::sync::Mutex<()>,
}

impl Daemon {
    fn get(&self, session: &SessionId) -> Option<Rc<EventLog>> {
        self.logs.borrow().get(session).filter(|log| !log.is_closed.get()).cloned()
    }

    /// The log of a session, which begins now if it has none.
    fn open(&self, server: &Server, session: &Rc<Session>) -> Result<Rc<EventLog>, Refusal> {
        if let Some(log) = self.get(&session.id) {
            return Ok(log);
        }
        let mut logs = self.logs.borrow_mut();
        logs.retain(|_, log| !log.is_closed.get());
        let limit = server.sessions.limits.sessions;
        if logs.len() >= limit {
            let is_idle =
                |id: &&SessionId| server.sessions.get(id.as_str()).is_ok_and(|session| !session.is_busy());
            let Some(idle) = logs.keys().find(is_idle).cloned() else {
                let refusal = refuse(503, "session_limit_exceeded", "Too many sessions are open.");
                return Err(Refusal { retry_after: Some(5), ..refusal }
                    .with("limit", limit)
                    .with("scope", "total"));
            };
            if let Some(log) = logs.remove(&idle) {
                log.close();
            }
        }
        let random = random_id().map_err(|error| Refusal::internal(error.to_string()))?;
        let log = Rc::new(EventLog::new(format!("{random:032x}")));
        let reader = server.sessions.follow(session, session.last());
        tokio::task::spawn_local(project::pump(reader, session.clone(), log.clone()));
        logs.insert(session.id.clone(), log.clone());
        Ok(log)
    }

    fn close(&self, session: &SessionId) -> Option<Rc<EventLog>> {
        self.logs.borrow_mut().remove(session)
    }
}

/// True if a path belongs to this protocol. `/health` is shared.
pub fn is_path(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    matches!(first, "capabilities" | "session" | "permission" | "workspace")
}

/// Serves a request of this protocol.
pub async fn route(server: &Rc<Server>, call: Call, path: &[&str]) -> Result<HttpReply, Refusal> {
    let method = call.head.method.clone();
    match (&method, path) {
        (&Method::GET, ["capabilities"]) => Ok(capabilities(server)),
        (&Method::POST, ["session"]) => sessions::create(server, call).await,
        (&Method::GET, ["workspace", workspace, "sessions"]) => sessions::list(server, &call, workspace),
        (&Method::POST, ["permission", id]) => sessions::vote(server, call, None, id).await,
        (&Method::POST, ["session", id, "load"]) => sessions::restore(server, call, id, true).await,
        (&Method::POST, ["session", id, "resume"]) => sessions::restore(server, call, id, false).await,
        (_, ["session", id, rest @ ..]) => {
            let session = server.sessions.get(id).ok();
            let found = session.and_then(|session| Some((server.daemon.get(&session.id)?, session)));
            let (log, session) = found.ok_or_else(|| {
                refuse(404, "session_not_found", "There is no such session here. Load it first.")
                    .with("sessionId", *id)
            })?;
            match (&method, rest) {
                (&Method::GET, ["events"]) => events::stream(server, &call, &log),
                (&Method::POST, ["permission", request]) => {
                    sessions::vote(server, call, Some(&session.id), request).await
                }
                _ => sessions::serve(server, call, &session, &log, rest).await,
            }
        }
        _ => Err(Refusal::not_found("route")),
    }
}

/// A refusal of this protocol.
fn refuse(status: u16, code: &'static str, message: &str) -> Refusal {
    Refusal::new(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), code, message)
}

/// A refusal as this protocol writes it.
pub fn error_reply(refusal: Refusal) -> HttpReply {
    let (status, retry_after) = (refusal.status, refusal.retry_after);
    let body = match refusal.code {
        "unauthorized" => json!({"error": "Unauthorized"}),
        "host" => json!({"error": "Invalid Host header"}),
        "origin" => json!({"error": "Request denied by CORS policy"}),
        code => {
            let mut body = json!({"error": refusal.message, "code": code});
            for (name, value) in refusal.fields {
                body[name] = value;
            }
            body
        }
    };
    let mut reply = json_reply(status, &body);
    if let Some(seconds) = retry_after {
        reply.headers_mut().insert(hyper::header::RETRY_AFTER, seconds.into());
    }
    reply
}

fn capabilities(server: &Server) -> HttpReply {
    let limits = &server.sessions.limits;
    let paths: Vec<String> =
        server.sessions.workspaces().iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let workspaces: Vec<Value> = paths
        .iter()
        .enumerate()
        .map(|(at, cwd)| json!({"id": cwd, "cwd": cwd, "primary": at == 0, "trusted": true}))
        .collect();
    json_reply(
        StatusCode::OK,
        &json!({
            "v": 1,
            "protocolVersions": {"current": "v1", "supported": ["v1"]},
            "qwenCodeVersion": env!("CARGO_PKG_VERSION"),
            "mode": "native",
            "features": FEATURES,
            "transports": ["rest"],
            "modelServices": [],
            "workspaceCwd": paths.first(),
            "workspaces": workspaces,
            "limits": {
                "maxPendingPromptsPerSession": limits.queued_prompts,
                "maxTotalSessions": limits.sessions,
                "sessionRestoreTimeoutMs": 30_000,
            },
            "policy": {"permission": "first_responder"},
        }),
    )
}
