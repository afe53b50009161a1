//! The agent as an MCP server with one tool, `run`: on standard input and output, and at `/mcp`.
//!
//! Two kinds of clients are served. Those of revision 2026-07-28 send everything with each request; questions are
//! results that they answer with another attempt, and long runs become tasks. Older ones begin with a
//! handshake; questions are requests to them (elicitation), and long runs report progress.

mod http;
mod lines;
mod message;
mod peer;
mod run;
mod task;
mod tool;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

pub use self::http::serve as serve_http;
pub use self::lines::{McpLines, serve_lines};
use self::message::{
    INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, McpMessage, McpRequest,
    ProtocolError, UNSUPPORTED_VERSION, notification,
};
use self::peer::{Outbox, Peer, RunningRequest};
use self::run::{AgentRun, RunUpdate};
use self::task::Tasks;
use self::tool::RunArguments;
use crate::sessions::Sessions;
use crate::token::random_id;

/// The revision without a handshake.
const STATELESS: &str = "2026-07-28";

/// The revisions with a handshake, the latest first.
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A run that takes longer becomes a task, if the client declared tasks.
const LONG_RUN: Duration = Duration::from_secs(1);

/// How often a run without news reports progress: clients give up after a silence.
const PROGRESS: Duration = Duration::from_secs(10);

/// How many runs may wait for an answer of a stateless client.
const WAITING: usize = 256;

/// The MCP server of a set of sessions.
pub struct AgentServer {
    sessions: Rc<Sessions>,
    tasks: Tasks,
    /// Runs that wait for another attempt of their client, by its state.
    waiting: RefCell<VecDeque<WaitingRun>>,
    peers: http::Peers,
}

/// A run that waits for another attempt of its client.
struct WaitingRun {
    /// Cannot be guessed, and is valid once.
    state: String,
    arguments: Value,
    run: AgentRun,
}

/// What a client can do.
#[derive(Debug, Clone, Copy)]
struct ClientTraits {
    is_stateless: bool,
    can_elicit: bool,
    has_tasks: bool,
}

impl ClientTraits {
    fn read(capabilities: &Value, is_stateless: bool) -> Self {
        let elicitation = &capabilities["elicitation"];
        // A client that names modes must name forms.
        let can_elicit =
            elicitation.is_object() && (elicitation["url"].is_null() || elicitation["form"].is_object());
        let has_tasks = is_stateless && capabilities["extensions"][task::EXTENSION].is_object();
        Self { is_stateless, can_elicit, has_tasks }
    }
}

impl AgentServer {
    pub fn new(sessions: Rc<Sessions>) -> Self {
        let (tasks, waiting) = (Tasks::default(), RefCell::default());
        Self { sessions, tasks, waiting, peers: http::Peers::default() }
    }

    /// Serves a request and sends its response, unless the client cancels it.
    async fn serve(&self, peer: &Rc<Peer>, request: McpRequest, out: &Outbox) {
        let response = match peer.begin(&request.id) {
            None => Some(Err(ProtocolError::new(INVALID_REQUEST, "A request with this id runs already."))),
            Some(running) => self.respond(peer, &request, out, running).await.transpose(),
        };
        let response = match response {
            None => return,
            Some(Ok(result)) => json!({"jsonrpc": "2.0", "id": request.id, "result": result}),
            Some(Err(error)) => error.response(&request.id),
        };
        // A client that is gone needs no response.
        let _ = out.send(response).await;
    }

    async fn respond(
        &self,
        peer: &Rc<Peer>,
        request: &McpRequest,
        out: &Outbox,
        running: RunningRequest,
    ) -> Result<Option<Value>, ProtocolError> {
        let version = request.meta("protocolVersion");
        let client = match version.as_str() {
            Some(STATELESS) => ClientTraits::read(request.meta("clientCapabilities"), true),
            _ if !version.is_null() => {
                let supported: Vec<&str> = std::iter::once(STATELESS).chain(HANDSHAKE).collect();
                let error = ProtocolError::new(UNSUPPORTED_VERSION, "The protocol version is not supported.");
                return Err(error.with_data(json!({"supported": supported, "requested": version})));
            }
            _ if request.method == "initialize" => return Ok(Some(initialize(peer, &request.params))),
            _ if request.method == "ping" => return Ok(Some(json!({}))),
            _ => match peer.capabilities() {
                Some(capabilities) => ClientTraits::read(&capabilities, false),
                None => {
                    let message =
                        "The request has no protocol version in `_meta`, and there was no `initialize`.";
                    return Err(ProtocolError::new(INVALID_REQUEST, message));
                }
            },
        };
        let mut result = match request.method.as_str() {
            "server/discover" if client.is_stateless => discovery(),
            "tools/list" => json!({"tools": [tool::declaration(&self.workspaces())]}),
            "tools/call" => match self.call(peer, request, client, out, running).await? {
                Some(result) => result,
                None => return Ok(None),
            },
            "tasks/get" | "tasks/update" | "tasks/cancel" if client.is_stateless => {
                if !client.has_tasks {
                    let data = json!({"requiredCapabilities": {"extensions": {task::EXTENSION: {}}}});
                    let error = ProtocolError::new(MISSING_CAPABILITY, "The client did not declare tasks.");
                    return Err(error.with_data(data));
                }
                self.tasks.serve(&request.method, &request.params)?
            }
            method => {
                return Err(ProtocolError::new(METHOD_NOT_FOUND, format!("There is no method '{method}'.")));
            }
        };
        if client.is_stateless {
            complete(&mut result, &request.method);
        }
        Ok(Some(result))
    }

    /// Calls the tool. None if the client cancelled the call.
    async fn call(
        &self,
        peer: &Rc<Peer>,
        request: &McpRequest,
        client: ClientTraits,
        out: &Outbox,
        mut running: RunningRequest,
    ) -> Result<Option<Value>, ProtocolError> {
        let params = &request.params;
        if params["name"] != tool::NAME {
            let message = format!("There is no tool '{}'.", params["name"].as_str().unwrap_or_default());
            return Err(ProtocolError::new(INVALID_PARAMS, message));
        }
        let arguments = if params["arguments"].is_null() { json!({}) } else { params["arguments"].clone() };
        let mut run = match params["requestState"].as_str().filter(|_| client.is_stateless) {
            Some(state) => {
                let mut run = self.take_waiting(state, &arguments)?;
                run.answer(&params["inputResponses"]);
                run
            }
            None => {
                let parsed = match RunArguments::parse(&arguments) {
                    Ok(parsed) => parsed,
                    Err(message) => return Ok(Some(tool::failed(&message))),
                };
                match AgentRun::start(&self.sessions, parsed, client.can_elicit, client.is_stateless).await {
                    Ok(run) => run,
                    Err(refusal) => return Ok(Some(tool::failed(&refusal.message))),
                }
            }
        };
        let mut progress = Progress { token: params["_meta"]["progressToken"].clone(), count: 0 };
        let mut questions =
            Questions { sessions: self.sessions.clone(), peer: peer.clone(), asked: Vec::new() };
        let long = tokio::time::sleep(LONG_RUN);
        let mut long = std::pin::pin!(long);
        loop {
            if client.is_stateless && !client.has_tasks && !run.open_questions().is_empty() {
                return self.hold(run, arguments).map(Some);
            }
            let update = tokio::select! {
                update = run.next() => update,
                _ = running.cancelled.wait_for(|cancelled| *cancelled) => {
                    run.stop();
                    return Ok(None);
                }
                () = long.as_mut(), if client.has_tasks => return self.tasks.create(run).map(Some),
                () = tokio::time::sleep(PROGRESS) => RunUpdate::Progress("Working".to_owned()),
            };
            match update {
                RunUpdate::Progress(message) => progress.report(&message, out).await,
                RunUpdate::Question(_) if client.has_tasks => return self.tasks.create(run).map(Some),
                RunUpdate::Question(_) if client.is_stateless => {}
                RunUpdate::Question(id) => {
                    let params = run.open_questions().get(&id).cloned();
                    questions.ask(&id, params.unwrap_or_default(), out).await;
                }
                RunUpdate::End(result) => {
                    questions.withdraw_all(out).await;
                    return Ok(Some(result));
                }
            }
            questions.withdraw_decided(out).await;
        }
    }

    /// Keeps a run for the next attempt of its client, and returns the questions.
    fn hold(&self, mut run: AgentRun, arguments: Value) -> Result<Value, ProtocolError> {
        let random = random_id().map_err(|error| ProtocolError::new(-32603, error.to_string()))?;
        let state = format!("{random:032x}");
        let open = run.open_questions().iter();
        let requests: serde_json::Map<String, Value> = open
            .map(|(id, params)| (id.clone(), json!({"method": "elicitation/create", "params": params})))
            .collect();
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= WAITING
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.run.stop();
        }
        waiting.push_back(WaitingRun { state: state.clone(), arguments, run });
        Ok(json!({"resultType": "input_required", "inputRequests": requests, "requestState": state}))
    }

    /// The run that waits for this attempt.
    fn take_waiting(&self, state: &str, arguments: &Value) -> Result<AgentRun, ProtocolError> {
        let mut waiting = self.waiting.borrow_mut();
        let at = waiting.iter().position(|held| held.state == state && held.arguments == *arguments);
        let held = at.and_then(|at| waiting.remove(at));
        held.map(|held| held.run).ok_or_else(|| {
            let message = "`requestState` is not one of an open request with these arguments.";
            ProtocolError::new(INVALID_PARAMS, message)
        })
    }

    fn workspaces(&self) -> Vec<String> {
        self.sessions.workspaces().iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// Takes a message that is not a request.
    fn note(peer: &Peer, message: McpMessage) {
        match message {
            McpMessage::Notification { method, params } if method == "notifications/cancelled" => {
                peer.cancel(&params["requestId"]);
            }
            McpMessage::Response { id, result } => peer.answer(&id, result),
            McpMessage::Notification { .. } | McpMessage::Request(_) => {}
        }
    }
}

/// Reports progress to a client that gave a token.
struct Progress {
    token: Value,
    count: u64,
}

impl Progress {
    async fn report(&mut self, message: &str, out: &Outbox) {
        if self.token.is_null() {
            return;
        }
        self.count += 1;
        let params = json!({"progressToken": self.token, "progress": self.count, "message": message});
        // A client that is gone needs no progress.
        let _ = out.send(notification("notifications/progress", &params)).await;
    }
}

/// The questions that a client with a handshake is asked during a call.
struct Questions {
    sessions: Rc<Sessions>,
    peer: Rc<Peer>,
    /// The ids of the approval and of the request.
    asked: Vec<(String, String)>,
}

impl Questions {
    async fn ask(&mut self, approval: &str, params: Value, out: &Outbox) {
        let (id, answer) = self.peer.ask(out, "elicitation/create", params).await;
        self.asked.push((approval.to_owned(), id));
        let (sessions, approval) = (self.sessions.clone(), approval.to_owned());
        tokio::task::spawn_local(async move {
            // A question that was taken back, or whose client is gone, decides nothing.
            if let Ok(answer) = answer.await {
                let (decision, response) = tool::decision(answer.as_ref());
                // Another client may have been faster.
                let _ = sessions.decide(&approval, decision, response);
            }
        });
    }

    /// Takes back the questions that another client answered.
    async fn withdraw_decided(&mut self, out: &Outbox) {
        let is_open = |approval: &str| self.sessions.approvals.borrow().get(approval).is_some();
        let (open, decided) = std::mem::take(&mut self.asked).into_iter().partition(|(id, _)| is_open(id));
        self.asked = open;
        let decided: Vec<(String, String)> = decided;
        for (_, id) in decided {
            self.peer.withdraw(out, &id).await;
        }
    }

    async fn withdraw_all(&mut self, out: &Outbox) {
        for (_, id) in std::mem::take(&mut self.asked) {
            self.peer.withdraw(out, &id).await;
        }
    }
}

fn server_info() -> Value {
    json!({"name": "qwen", "title": "qwen", "version": env!("CARGO_PKG_VERSION")})
}

/// Answers the handshake of the older revisions, with the version that the client asked for if it is known.
fn initialize(peer: &Peer, params: &Value) -> Value {
    let wanted = params["protocolVersion"].as_str().unwrap_or_default();
    let version = HANDSHAKE.into_iter().find(|version| *version == wanted).unwrap_or(HANDSHAKE[0]);
    peer.initialize(params["capabilities"].clone());
    json!({
        "protocolVersion": version, "capabilities": {"tools": {}},
        "serverInfo": server_info(), "instructions": INSTRUCTIONS,
    })
}

const INSTRUCTIONS: &str = "The tool `run` gives a task to a coding agent. Continue a conversation with the `session` of its result.";

fn discovery() -> Value {
    let versions: Vec<&str> = std::iter::once(STATELESS).chain(HANDSHAKE).collect();
    json!({
        "supportedVersions": versions,
        "capabilities": {"tools": {}, "extensions": {task::EXTENSION: {}}},
        "instructions": INSTRUCTIONS,
    })
}

/// Adds what every result of the stateless revision has.
fn complete(result: &mut Value, method: &str) {
    if result["resultType"].is_null() {
        result["resultType"] = "complete".into();
    }
    result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server_info()});
    if matches!(method, "tools/list" | "server/discover") {
        result["ttlMs"] = 3_600_000.into();
        result["cacheScope"] = "private".into();
    }
}
