//! `GET /acp`: the Agent Client Protocol in WebSocket messages, about the sessions of this server.
//!
//! The sessions are those of every other client: their turns continue when the connection ends, anyone may
//! answer their questions, and a question that was answered elsewhere is withdrawn here.

mod follow;
mod questions;
mod sessions;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use hyper::StatusCode;
use qwen_dialects::acp::rpc::{
    self, ClientMessage, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND,
    RpcError, RpcId,
};
use qwen_dialects::acp::{AcpClient, prompt_parts};
use qwen_events::SessionId;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::questions::PendingQuestion;
use crate::respond::Refusal;
use crate::server::Server;
use crate::sessions::{NewPrompt, Session};
use crate::token::random_id;

/// The version of the protocol.
const PROTOCOL_VERSION: u64 = 1;

/// One client and the sessions that it follows.
pub struct AcpConnection {
    server: Rc<Server>,
    /// Takes the lines of sessions.
    out: mpsc::Sender<Bytes>,
    /// What the client can show; none before `initialize`.
    client: Option<AcpClient>,
    open: Rc<OpenRequests>,
    followed: HashMap<SessionId, JoinHandle<()>>,
}

/// The requests without an answer, in both directions. The tasks that follow sessions share them.
#[derive(Default)]
struct OpenRequests {
    /// The client's prompts, by our prompt id.
    prompts: RefCell<HashMap<String, OpenPrompt>>,
    /// The questions that the client was asked, by approval.
    questions: RefCell<HashMap<String, PendingQuestion>>,
}

/// A prompt of the client whose end answers its request.
struct OpenPrompt {
    session: SessionId,
    request: RpcId,
    /// True if the client cancelled it: its answer is `cancelled` whatever happens.
    is_cancelled: bool,
    /// True if it is to join a running turn.
    steers: bool,
}

/// The answer to a request: now, or later by a task.
enum Reply {
    Now(Value),
    Later,
}

impl Drop for AcpConnection {
    fn drop(&mut self) {
        for (_, task) in self.followed.drain() {
            task.abort();
        }
    }
}

/// A line that answers a request.
fn response(id: &RpcId, result: &Result<Value, RpcError>) -> Bytes {
    let mut line = Vec::new();
    rpc::push_response(id, result, &mut line);
    line.pop();
    line.into()
}

/// A refusal of the server as an error of the protocol.
fn rpc_error(refusal: &Refusal) -> RpcError {
    let code = match refusal.status {
        StatusCode::NOT_FOUND => NOT_FOUND,
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => INVALID_PARAMS,
        StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => INVALID_REQUEST,
        _ => INTERNAL_ERROR,
    };
    RpcError::new(code, &refusal.message)
}

impl AcpConnection {
    pub fn new(server: Rc<Server>, out: mpsc::Sender<Bytes>) -> Self {
        Self { server, out, client: None, open: Rc::default(), followed: HashMap::new() }
    }

    /// Carries out a message and returns what answers it at once.
    pub async fn run(&mut self, line: &[u8]) -> Option<Bytes> {
        match rpc::read(line) {
            Ok(ClientMessage::Request { id, method, params }) => {
                match self.request(&id, &method, &params).await {
                    Ok(Reply::Now(result)) => Some(response(&id, &Ok(result))),
                    Ok(Reply::Later) => None,
                    Err(error) => Some(response(&id, &Err(error))),
                }
            }
            Ok(ClientMessage::Notification { method, params }) => {
                if method == "session/cancel"
                    && let Ok(session) = self.session(&params)
                {
                    self.cancel(&session);
                }
                None
            }
            Ok(ClientMessage::Response { id, result }) => {
                self.answer(&id, result.as_ref().ok());
                None
            }
            Err((id, error)) => Some(response(&id, &Err(error))),
        }
    }

    async fn request(&mut self, id: &RpcId, method: &str, params: &Value) -> Result<Reply, RpcError> {
        if method == "initialize" {
            return self.initialize(params).map(Reply::Now);
        }
        if self.client.is_none() {
            let message = format!("send `initialize` before `{method}`");
            return Err(RpcError::new(INVALID_REQUEST, message));
        }
        match method {
            "authenticate" => Ok(Reply::Now(json!({}))),
            "session/new" => self.create_session(params).await.map(Reply::Now),
            "session/load" => self.load_session(id, params).map(|()| Reply::Later),
            "session/resume" => self.resume_session(params).map(Reply::Now),
            "session/list" => self.list_sessions(params).map(Reply::Now),
            "session/close" => self.close_session(params).map(Reply::Now),
            "session/delete" => self.delete_session(params).await.map(Reply::Now),
            "session/set_mode" => self.set_mode(params).await.map(Reply::Now),
            "session/prompt" => self.prompt(id, params, false).await,
            "_session/steering" => self.prompt(id, params, true).await,
            "session/cancel" => {
                let message = "`session/cancel` is a notification; send it without an id";
                Err(RpcError::new(INVALID_REQUEST, message))
            }
            _ => {
                let shown: String = method.chars().take(80).collect();
                Err(RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{shown}`")))
            }
        }
    }

    fn initialize(&mut self, params: &Value) -> Result<Value, RpcError> {
        if self.client.is_some() {
            return Err(RpcError::new(INVALID_REQUEST, "the connection is already initialized"));
        }
        if !params["protocolVersion"].is_u64() {
            return Err(RpcError::params("`protocolVersion` must be a whole number"));
        }
        self.client = Some(AcpClient::advertised(&params["clientCapabilities"]));
        Ok(json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "qwen", "title": "Qwen", "version": env!("CARGO_PKG_VERSION")},
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                // Servers are configured on this side: a client cannot start programs here.
                "mcpCapabilities": {"http": false, "sse": false},
                "sessionCapabilities": {"list": {}, "delete": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
            "_meta": {"steering": {"supported": true}},
        }))
    }

    /// The session that a message names.
    fn session(&self, params: &Value) -> Result<Rc<Session>, RpcError> {
        let id = rpc::text(params, "sessionId")?;
        self.server.sessions.get(id).map_err(|refusal| rpc_error(&refusal))
    }

    /// Submits a prompt. The end of its turn answers the request.
    async fn prompt(&mut self, request: &RpcId, params: &Value, steers: bool) -> Result<Reply, RpcError> {
        let session = self.session(params)?;
        let content = prompt_parts(rpc::list(params, "prompt", true)?)?;
        if steers && !session.is_busy() {
            return Ok(Reply::Now(json!({"outcome": "promptRequired"})));
        }
        let random = random_id().map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))?;
        let prompt_id = format!("p-{random:032x}");
        if !self.followed.contains_key(&session.id) {
            self.follow(&session, None, false);
        }
        let open =
            OpenPrompt { session: session.id.clone(), request: request.clone(), is_cancelled: false, steers };
        self.open.prompts.borrow_mut().insert(prompt_id.clone(), open);
        let parts = Value::Array(content.request_parts());
        let prompt = NewPrompt { prompt_id: Some(prompt_id.clone()), steers, ..NewPrompt::parts(parts) };
        let accepted = self.server.sessions.submit(&session, prompt).await;
        accepted.map(|_| Reply::Later).map_err(|refusal| {
            self.open.prompts.borrow_mut().remove(&prompt_id);
            rpc_error(&refusal)
        })
    }

    /// Cancels the client's prompts in a session: the one that runs, and those that wait.
    fn cancel(&self, session: &Session) {
        let mut own = Vec::new();
        for (prompt_id, prompt) in self.open.prompts.borrow_mut().iter_mut() {
            if prompt.session == session.id {
                prompt.is_cancelled = true;
                own.push(prompt_id.clone());
            }
        }
        let running = session.running();
        for prompt_id in own {
            if running.as_deref() == Some(&prompt_id) {
                self.server.sessions.cancel(session);
            } else {
                // A prompt that has just ended is answered by its end.
                let _ = self.server.sessions.withdraw(session, &prompt_id);
            }
        }
    }
}
