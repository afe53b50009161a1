//! The server: accepts connections, lets requests through the gate, and ends in order.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use qwen_kernel::store::FileEvents;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::daemon::{self, Daemon};
use crate::gate::Gate;
use crate::listen::{IncomingConnection, Listener};
use crate::mcp::{AgentServer, McpLines, serve_lines};
use crate::openai::Responses;
use crate::options::{ServeError, ServeOptions};
use crate::respond::{HttpReply, Refusal, protect};
use crate::routes;
use crate::sessions::{Records, SessionHub, Sessions, StoredSessions, run_intake};
use crate::token::Tokens;

/// The maximum size of a request's head.
const MAX_HEAD: usize = 64 * 1024;

/// How long workers may take to end after an MCP client has gone.
const END_LIMIT: Duration = Duration::from_millis(1800);

/// The answer to a connection beyond the limit.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The components of the sessions.
pub struct SessionParts {
    pub hub: Rc<dyn SessionHub>,
    /// The store in which the hub keeps the lines.
    pub store: Rc<FileEvents>,
    pub stored: Box<dyn StoredSessions>,
    pub options: ServeOptions,
    /// Exit codes of signals: the first drains, the second ends at once.
    pub signals: mpsc::UnboundedReceiver<u8>,
}

/// The components of a server.
pub struct ServeParts {
    pub listener: Listener,
    pub tokens: Tokens,
    pub sessions: SessionParts,
}

/// The components of an MCP server on lines.
pub struct McpParts {
    pub lines: McpLines,
    pub sessions: SessionParts,
}

/// What requests are served from.
pub struct Server {
    pub gate: Gate,
    pub sessions: Rc<Sessions>,
    pub responses: Responses,
    pub mcp: Rc<AgentServer>,
    pub daemon: Daemon,
    connections: Cell<usize>,
}

/// Starts the sessions, ends the turns that a former server was killed in, and reads what the kernel writes.
fn start_sessions(
    hub: &Rc<dyn SessionHub>,
    store: Rc<FileEvents>,
    stored: Box<dyn StoredSessions>,
    options: &ServeOptions,
) -> Result<(Rc<Sessions>, JoinHandle<()>), ServeError> {
    let failed = |error| directory_failed(options, &error);
    let records = Records::open(&options.state.join("sessions")).map_err(failed)?;
    let (workspaces, limits) = (options.workspaces.clone(), options.limits.clone());
    let sessions =
        Sessions::start(hub.clone(), store, records, stored, workspaces, limits).map_err(failed)?;
    let intake = tokio::task::spawn_local(run_intake(hub.clone(), sessions.clone()));
    let recovering = sessions.clone();
    tokio::task::spawn_local(async move { recovering.recover().await });
    Ok((sessions, intake))
}

fn directory_failed(options: &ServeOptions, error: &std::io::Error) -> ServeError {
    ServeError(format!("The server's directory {} cannot be used: {error}.", options.state.display()))
}

/// Serves until a signal ends it, and returns the exit code.
pub async fn serve(parts: ServeParts) -> Result<u8, ServeError> {
    let ServeParts { listener, tokens, sessions } = parts;
    let SessionParts { hub, store, stored, options, mut signals } = sessions;
    let (sessions, mut intake) = start_sessions(&hub, store, stored, &options)?;
    let gate = Gate::new(&listener.address, listener.has_tls(), &options.origins, tokens);
    let responses = Responses::open(&options.state.join("responses"));
    let responses = responses.map_err(|error| directory_failed(&options, &error))?;
    let mcp = Rc::new(AgentServer::new(sessions.clone()));
    let connections = Cell::new(0);
    let daemon = Daemon::default();
    let server = Rc::new(Server { gate, sessions: sessions.clone(), responses, mcp, daemon, connections });
    let accepting = tokio::task::spawn_local(accept(server.clone(), listener));
    loop {
        tokio::select! {
            _ = &mut intake => break,
            Some(code) = signals.recv() => sessions.drain(code),
        }
    }
    accepting.abort();
    sessions.end();
    // Responses that are being written may finish.
    for _ in 0..100 {
        if server.connections.get() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    hub.kill_all();
    Ok(hub.exit_code().unwrap_or(0))
}

/// Serves an MCP client on lines until they end or a signal arrives, and returns the exit code.
pub async fn serve_mcp(parts: McpParts) -> Result<u8, ServeError> {
    let McpParts { lines, sessions } = parts;
    let SessionParts { hub, store, stored, options, mut signals } = sessions;
    let (sessions, mut intake) = start_sessions(&hub, store, stored, &options)?;
    let server = Rc::new(AgentServer::new(sessions.clone()));
    let code = tokio::select! {
        () = serve_lines(server, lines) => 0,
        _ = &mut intake => hub.exit_code().unwrap_or(1),
        Some(code) = signals.recv() => code,
    };
    for session in sessions.all() {
        sessions.cancel(&session);
    }
    sessions.drain(code);
    // Workers that do not end are killed, and their guardians end what they started.
    let _ = tokio::time::timeout(END_LIMIT, &mut intake).await;
    hub.kill_all();
    Ok(code)
}

async fn accept(server: Rc<Server>, listener: Listener) {
    loop {
        let Ok(accepted) = listener.accept().await else {
            // No descriptors are left; those of others will be closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        if server.connections.get() >= server.sessions.limits.connections {
            if let Some(mut connection) = accepted.into_plain() {
                tokio::task::spawn_local(async move {
                    let limit = Duration::from_secs(1);
                    // The client may be gone.
                    let _ = tokio::time::timeout(limit, connection.write_all(TOO_MANY)).await;
                });
            }
            continue;
        }
        server.connections.set(server.connections.get() + 1);
        tokio::task::spawn_local(serve_connection(server.clone(), accepted));
    }
}

async fn serve_connection(server: Rc<Server>, accepted: IncomingConnection) {
    let limits = &server.sessions.limits;
    if let Ok(Ok(connection)) = tokio::time::timeout(limits.header_time, accepted.establish()).await {
        let served = server.clone();
        let service = service_fn(move |request| {
            let server = served.clone();
            async move { Ok::<_, Infallible>(answer(&server, request).await) }
        });
        let http = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_time)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(connection), service)
            .with_upgrades();
        let mut http = std::pin::pin!(http);
        let mut closing = server.sessions.closing();
        tokio::select! {
            // What a client does wrong has been answered.
            _ = http.as_mut() => {}
            _ = closing.wait_for(|closing| *closing) => {
                http.as_mut().graceful_shutdown();
                let _ = http.await;
            }
        }
    }
    server.connections.set(server.connections.get() - 1);
}

/// A request that passed the gate.
pub struct Call {
    pub head: hyper::http::request::Parts,
    pub body: Incoming,
}

async fn answer(server: &Rc<Server>, request: Request<Incoming>) -> HttpReply {
    let (head, body) = request.into_parts();
    let mut listed = None;
    let is_daemon = daemon::is_path(head.uri.path());
    let answered = match server.gate.admit(&head, routes::is_public(&head)) {
        Ok(admission) => {
            listed.clone_from(&admission.origin);
            routes::route(server, Call { head, body }, admission).await
        }
        Err(refusal) => Err(refusal),
    };
    let refuse = if is_daemon { daemon::error_reply } else { Refusal::into_reply };
    let mut reply = answered.unwrap_or_else(refuse);
    protect(&mut reply);
    if let Some(origin) = listed.and_then(|origin| origin.parse().ok()) {
        let headers = reply.headers_mut();
        headers.insert("access-control-allow-origin", origin);
        headers.insert("vary", hyper::header::HeaderValue::from_static("origin"));
        headers
            .insert("cross-origin-resource-policy", hyper::header::HeaderValue::from_static("cross-origin"));
    }
    reply
}

impl Call {
    /// Reads the body, within the limits of size and time.
    pub async fn read_body(&mut self, server: &Server) -> Result<Bytes, Refusal> {
        let limits = &server.sessions.limits;
        let mut whole = Vec::new();
        loop {
            let frame = tokio::time::timeout(limits.header_time, self.body.frame()).await;
            let Ok(frame) = frame else {
                let message = "The body of the request did not arrive.";
                return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message));
            };
            match frame {
                None => return Ok(whole.into()),
                Some(Err(error)) => {
                    return Err(Refusal::bad_request(
                        "invalid_body",
                        format!("The body cannot be read: {error}."),
                    ));
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        whole.extend_from_slice(&data);
                    }
                }
            }
            if whole.len() > limits.body {
                let message = format!("The body is larger than {} MiB.", limits.body / 1024 / 1024);
                return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message));
            }
        }
    }

    /// Reads the body as JSON; an empty body has the type's default.
    pub async fn json<T: serde::de::DeserializeOwned + Default>(
        &mut self,
        server: &Server,
    ) -> Result<T, Refusal> {
        let body = self.read_body(server).await?;
        if body.is_empty() {
            return Ok(T::default());
        }
        let invalid = |error: serde_json::Error| {
            Refusal::bad_request("invalid_json", format!("The body is not valid: {error}."))
        };
        // A list would be read as the values of the fields.
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&body).map_err(invalid)?;
        serde_json::from_value(object.into()).map_err(invalid)
    }

    /// The value of a query parameter that needs no escapes.
    pub fn query(&self, name: &str) -> Option<&str> {
        let query = self.head.uri.query()?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The value of a header that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }
}
