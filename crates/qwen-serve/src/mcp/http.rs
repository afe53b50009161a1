//! MCP over HTTP, at `/mcp`. A message of the client is a POST; the response is one JSON document or a stream.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

use super::message::{
    HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, McpMessage, McpRequest,
    ProtocolError, UNSUPPORTED_VERSION, parse,
};
use super::peer::Peer;
use super::{AgentServer, HANDSHAKE, STATELESS};
use crate::api::SseWriter;
use crate::respond::{HttpReply, Refusal, empty, event_stream, json_reply};
use crate::server::{Call, Server};
use crate::token::random_id;

/// The session of a client with a handshake.
const SESSION: &str = "mcp-session-id";

/// How many clients with a handshake are remembered; the one that was idle longest goes first.
const PEERS: usize = 1000;

/// A response that takes longer is streamed, so that its client sees that the server works.
const SOON: Duration = Duration::from_millis(500);

/// How many messages of a request may wait for the client.
const QUEUED: usize = 4;

/// The clients that did a handshake, the one that was used last at the end.
#[derive(Default)]
pub struct Peers {
    known: RefCell<VecDeque<(String, Rc<Peer>)>>,
}

impl Peers {
    fn create(&self) -> Result<(String, Rc<Peer>), Refusal> {
        let random = random_id().map_err(|error| Refusal::internal(error.to_string()))?;
        let (id, peer) = (format!("{random:032x}"), Rc::new(Peer::default()));
        let mut known = self.known.borrow_mut();
        known.push_back((id.clone(), peer.clone()));
        if known.len() > PEERS {
            known.pop_front();
        }
        Ok((id, peer))
    }

    fn remove(&self, id: &str) -> Option<Rc<Peer>> {
        let mut known = self.known.borrow_mut();
        let at = known.iter().position(|(name, _)| name == id)?;
        known.remove(at).map(|(_, peer)| peer)
    }

    fn get(&self, id: &str) -> Option<Rc<Peer>> {
        let peer = self.remove(id)?;
        self.known.borrow_mut().push_back((id.to_owned(), peer.clone()));
        Some(peer)
    }
}

/// Serves a request to `/mcp`.
pub async fn serve(server: &Rc<Server>, mut call: Call) -> Result<HttpReply, Refusal> {
    match call.head.method {
        Method::POST => {}
        Method::DELETE => {
            let ended = call.header(SESSION).and_then(|id| server.mcp.peers.remove(id));
            let ended = ended.ok_or_else(|| Refusal::not_found("MCP session"))?;
            ended.cancel_all();
            return Ok(empty(StatusCode::NO_CONTENT));
        }
        _ => {
            let message = "/mcp accepts POST. It offers no stream.";
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message));
        }
    }
    let body = call.read_body(server).await?;
    let message = match parse(&body) {
        Ok(message) => message,
        Err(response) => return Ok(json_reply(StatusCode::BAD_REQUEST, &response)),
    };
    let request = match message {
        McpMessage::Request(request) => request,
        message => {
            if let Some(peer) = call.header(SESSION).and_then(|id| server.mcp.peers.get(id)) {
                AgentServer::note(&peer, message);
            }
            return Ok(empty(StatusCode::ACCEPTED));
        }
    };
    if let Err(error) = check_headers(&call, &request) {
        return Ok(json_reply(StatusCode::BAD_REQUEST, &error.response(&request.id)));
    }
    let is_stateless = !request.meta("protocolVersion").is_null();
    let (session, peer) = match call.header(SESSION).filter(|_| !is_stateless) {
        // An unknown session tells the client to begin anew.
        Some(id) => {
            let peer = server.mcp.peers.get(id).ok_or_else(|| Refusal::not_found("MCP session"))?;
            (None, peer)
        }
        None if request.method == "initialize" => {
            let (id, peer) = server.mcp.peers.create()?;
            (Some(id), peer)
        }
        None => (None, Rc::new(Peer::default())),
    };
    let mut reply = respond(server, &peer, request, is_stateless).await;
    if let Some(id) = session.and_then(|id| HeaderValue::try_from(id).ok()) {
        reply.headers_mut().insert(HeaderName::from_static(SESSION), id);
    }
    Ok(reply)
}

/// Checks the headers that repeat the body, for programs between client and server that read only those.
fn check_headers(call: &Call, request: &McpRequest) -> Result<(), ProtocolError> {
    let version = call.header("mcp-protocol-version");
    let in_body = request.meta("protocolVersion");
    let mismatch = |what: &str| {
        Err(ProtocolError::new(
            HEADER_MISMATCH,
            format!("The header {what} is missing or differs from the body."),
        ))
    };
    if in_body.is_null() {
        return match version {
            Some(version) if !HANDSHAKE.contains(&version) => {
                let message = format!("The protocol version '{version}' is not supported here.");
                Err(ProtocolError::new(INVALID_REQUEST, message))
            }
            _ => Ok(()),
        };
    }
    if in_body.as_str() != version {
        return mismatch("MCP-Protocol-Version");
    }
    if version != Some(STATELESS) {
        // Reported with the supported versions when the request is served.
        return Ok(());
    }
    if call.header("mcp-method") != Some(&request.method) {
        return mismatch("Mcp-Method");
    }
    let named = match request.method.as_str() {
        "tools/call" => &request.params["name"],
        "tasks/get" | "tasks/update" | "tasks/cancel" => &request.params["taskId"],
        _ => return Ok(()),
    };
    if call.header("mcp-name") != named.as_str() {
        return mismatch("Mcp-Name");
    }
    Ok(())
}

/// The HTTP status of a response that is not streamed.
fn status(response: &Value, is_stateless: bool) -> StatusCode {
    match response["error"]["code"].as_i64() {
        Some(UNSUPPORTED_VERSION | MISSING_CAPABILITY | INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        Some(METHOD_NOT_FOUND) if is_stateless => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

async fn respond(server: &Rc<Server>, peer: &Rc<Peer>, request: McpRequest, is_stateless: bool) -> HttpReply {
    let (out, mut messages) = mpsc::channel::<Value>(QUEUED);
    let (mcp, serving) = (server.mcp.clone(), peer.clone());
    // A client with a handshake may lose a connection without cancelling its request.
    let guard = CancelOnDrop { peer: is_stateless.then(|| peer.clone()) };
    tokio::task::spawn_local(async move { mcp.serve(&serving, request, &out).await });
    let is_response = |message: &Value| message["method"].is_null();
    let first = tokio::time::timeout(SOON, messages.recv()).await;
    let first = match first {
        Ok(Some(message)) if is_response(&message) => {
            return json_reply(status(&message, is_stateless), &message);
        }
        Ok(Some(message)) => Some(message),
        Ok(None) => return empty(StatusCode::ACCEPTED),
        Err(_) => None,
    };
    let (mut writer, pieces) = SseWriter::new(&server.sessions);
    tokio::task::spawn_local(async move {
        let _guard = guard;
        let mut next = first;
        loop {
            if let Some(message) = next.take() {
                let piece = format!("event: message\ndata: {message}\n\n");
                if !writer.write(piece.into()).await || is_response(&message) {
                    return;
                }
            }
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => next = Some(message),
                    None => return,
                },
                () = tokio::time::sleep(writer.keep_alive) => {
                    if !writer.write(": keep-alive\n\n".into()).await { return }
                }
                () = writer.closed() => return,
            }
        }
    });
    event_stream(pieces)
}

/// Cancels the requests of a client whose connection ends: in the stateless revision, that is how it cancels.
struct CancelOnDrop {
    peer: Option<Rc<Peer>>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(peer) = &self.peer {
            peer.cancel_all();
        }
    }
}
