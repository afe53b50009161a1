//! Which request is for whom.

use std::rc::Rc;

use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::json;

use crate::agui;
use crate::api;
use crate::daemon;
use crate::gate::AdmittedRequest;
use crate::mcp;
use crate::openai;
use crate::page;
use crate::respond::{HttpReply, Refusal, empty, json_reply};
use crate::server::{Call, Server};
use crate::token::Access;
use crate::websocket::{self, SocketProtocol};

/// True for what needs no token: nothing there depends on a session.
pub fn is_public(head: &Parts) -> bool {
    let is_health = matches!(head.method, Method::GET | Method::HEAD) && head.uri.path() == "/health";
    is_health || page::is_file(&head.method, head.uri.path())
}

/// Serves a request that passed the gate.
pub async fn route(
    server: &Rc<Server>,
    call: Call,
    admission: AdmittedRequest,
) -> Result<HttpReply, Refusal> {
    if call.head.method == Method::OPTIONS {
        return Ok(preflight());
    }
    let path = call.head.uri.path().to_owned();
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    if let Some(file) = page::file(&path).filter(|_| is_public(&call.head)) {
        return Ok(file);
    }
    if is_public(&call.head) {
        return Ok(json_reply(StatusCode::OK, &json!({"status": "ok"})));
    }
    if admission.access == Some(Access::Watch) && !(call.head.method == Method::GET && segments[0] == "api") {
        let message = "The token for watching may only read below /api.";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "read_only", message));
    }
    match segments[0] {
        "api" if segments == ["api", "ws"] && call.head.method == Method::GET => {
            websocket::open(server, call, admission.access, SocketProtocol::Hub)
        }
        "acp" if segments.len() == 1 && call.head.method == Method::GET => {
            websocket::open(server, call, admission.access, SocketProtocol::Acp)
        }
        "api" => api::route(server, call, &segments[1..]).await,
        "ag-ui" if segments.len() == 1 && call.head.method == Method::POST => agui::run(server, call).await,
        "mcp" if segments.len() == 1 => mcp::serve_http(server, call).await,
        _ if daemon::is_path(&path) => daemon::route(server, call, &segments).await,
        "v1" => openai::route(server, call, &segments[1..]).await,
        _ => Err(Refusal::not_found("route")),
    }
}

/// The answer to a browser that asks whether a page of a listed origin may send a request.
fn preflight() -> HttpReply {
    let mut reply = empty(StatusCode::NO_CONTENT);
    for (name, value) in [
        ("access-control-allow-methods", "GET, POST, PATCH, DELETE"),
        (
            "access-control-allow-headers",
            "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, x-qwen-client-id, x-qwen-event-epoch",
        ),
        ("access-control-max-age", "600"),
    ] {
        let value = hyper::header::HeaderValue::from_static(value);
        reply.headers_mut().insert(hyper::header::HeaderName::from_static(name), value);
    }
    reply
}
