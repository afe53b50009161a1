//! Our own API, below `/api`.

mod approvals;
mod events;
mod openapi;
mod prompts;
mod sessions;
mod whole;

pub use self::events::SseWriter;
pub use self::sessions::session_json;
use std::rc::Rc;

use hyper::{Method, StatusCode};
use qwen_dialects::Dialect;
use serde_json::json;

use crate::respond::{HttpReply, Refusal, json_reply};
use crate::server::{Call, Server};

/// Serves a request below `/api`.
pub async fn route(server: &Rc<Server>, call: Call, path: &[&str]) -> Result<HttpReply, Refusal> {
    let method = call.head.method.clone();
    match (&method, path) {
        (&Method::GET, ["capabilities"]) => Ok(capabilities(server)),
        (&Method::GET, ["openapi.json"]) => Ok(json_reply(StatusCode::OK, &openapi::document())),
        (&Method::GET, ["events"]) => events::all(server, &call),
        (&Method::GET, ["nodes"]) => {
            let nodes = server.sessions.nodes();
            Ok(json_reply(
                StatusCode::OK,
                &json!({"has_bus": nodes.is_some(), "nodes": nodes.unwrap_or_default()}),
            ))
        }
        (&Method::GET, ["approvals"]) => Ok(approvals::list(server)),
        (&Method::POST, ["approvals", id]) => approvals::decide(server, call, id).await,
        (&Method::GET, ["sessions"]) => Ok(sessions::list(server)),
        (&Method::POST, ["sessions"]) => sessions::create(server, call).await,
        (_, ["sessions", id, rest @ ..]) => session_route(server, call, id, rest).await,
        _ => Err(unknown(&method, path)),
    }
}

async fn session_route(
    server: &Rc<Server>,
    call: Call,
    id: &str,
    rest: &[&str],
) -> Result<HttpReply, Refusal> {
    let method = call.head.method.clone();
    let session = server.sessions.get(id)?;
    match (&method, rest) {
        (&Method::GET, []) => Ok(sessions::show(server, &session)),
        (&Method::PATCH, []) => sessions::change(server, call, &session).await,
        (&Method::DELETE, []) => sessions::delete(server, &session).await,
        (&Method::POST, ["fork"]) => sessions::fork(server, &session).await,
        (&Method::GET, ["snapshot"]) => Ok(json_reply(StatusCode::OK, &server.sessions.snapshot(&session))),
        (&Method::GET, ["events"]) => events::session(server, &call, session),
        (&Method::POST, ["prompts"]) => prompts::submit(server, call, &session, false).await,
        (&Method::POST, ["steer"]) => prompts::submit(server, call, &session, true).await,
        (&Method::DELETE, ["prompts", prompt_id]) => prompts::withdraw(server, &session, prompt_id),
        (&Method::POST, ["cancel"]) => Ok(prompts::cancel(server, &session)),
        _ => Err(unknown(&method, rest)),
    }
}

fn unknown(method: &Method, path: &[&str]) -> Refusal {
    let known = matches!(
        path,
        ["capabilities"
            | "openapi.json"
            | "events"
            | "approvals"
            | "nodes"
            | "sessions"
            | "fork"
            | "snapshot"
            | "prompts"
            | "steer"
            | "cancel"]
    );
    if known {
        let message = format!("{method} is not possible here.");
        return Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    }
    Refusal::not_found("route")
}

/// What this server can do.
fn capabilities(server: &Server) -> HttpReply {
    let limits = &server.sessions.limits;
    let workspaces: Vec<_> =
        server.sessions.workspaces().iter().map(|workspace| workspace.to_string_lossy()).collect();
    json_reply(
        StatusCode::OK,
        &json!({
            "draining": server.sessions.is_draining(),
            "version": env!("CARGO_PKG_VERSION"),
            "api": "1.0",
            "dialects": Dialect::ALL.map(Dialect::name),
            "protocols": ["page", "api", "websocket", "acp", "openai-chat-completions", "openai-responses", "ag-ui", "mcp", "qwen-code-daemon"],
            "workspaces": workspaces,
            "agents": ["react", "tot", "got", "agot"],
            "modes": ["plan", "default", "auto-edit", "yolo"],
            "limits": {
                "sessions": limits.sessions, "queued_prompts": limits.queued_prompts,
                "connections": limits.connections, "body_bytes": limits.body,
            },
        }),
    )
}
