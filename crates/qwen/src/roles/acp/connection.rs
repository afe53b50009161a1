//! The connection with the client: dispatches its messages.

use std::collections::HashMap;

use qwen_dialects::acp::wire::SessionUpdate;
use qwen_dialects::acp::{AcpClient, SubAgents, push_update};
use qwen_events::SessionId;
use qwen_kernel::Hub;
use serde_json::{Value, json};

use super::questions::ClientQuestion;
use super::session::Session;
use super::session_settings;
use crate::cli::Run;
use qwen_dialects::acp::rpc::{
    self, AUTH_REQUIRED, ClientMessage, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND, RpcError, RpcId,
};

/// The version of the protocol.
const PROTOCOL_VERSION: u64 = 1;

/// The ids of the authentication methods.
const KEY_METHOD: &str = "model-key";
const TERMINAL_METHOD: &str = "terminal-status";

/// A control request to a worker that the client waits for.
pub(super) enum PendingControl {
    /// The worker's report about itself, after its start.
    Initialize,
    Open,
    SetMode {
        request: RpcId,
        mode: String,
    },
    SetOption {
        request: RpcId,
        option: String,
        value: String,
    },
    /// The model and the thought level in force, after a command.
    Settings,
    Close,
}

/// The answer to a request: now, or later by the one who got the request's id.
pub(super) enum Reply {
    Now(Result<Value, RpcError>),
    Later,
}

/// The connection to one client, with its sessions and unanswered requests.
pub struct EditorConnection<'a> {
    pub(super) run: &'a Run,
    pub(super) hub: Hub,
    /// What the client advertised; none before `initialize`.
    pub(super) client: Option<AcpClient>,
    pub(super) sessions: HashMap<SessionId, Session>,
    /// The sessions of the prompts that have no answer, by our prompt id.
    pub(super) prompts: HashMap<String, SessionId>,
    /// The questions that the client has not answered, by request id.
    pub(super) questions: HashMap<String, ClientQuestion>,
    /// The control requests without an answer, by request id.
    pub(super) controls: HashMap<String, (SessionId, PendingControl)>,
    /// Makes our ids differ from those of other connections, which the session's log may hold.
    id_prefix: String,
    next_id: u64,
    /// Lines for the client.
    out: Vec<u8>,
}

impl<'a> EditorConnection<'a> {
    pub fn new(run: &'a Run, hub: Hub) -> Self {
        Self {
            run,
            hub,
            client: None,
            sessions: HashMap::new(),
            prompts: HashMap::new(),
            questions: HashMap::new(),
            controls: HashMap::new(),
            id_prefix: format!("{:016x}", fastrand::u64(..)),
            next_id: 0,
            out: Vec::new(),
        }
    }

    /// Removes and returns the lines for the client.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// An id that no other request of this connection has.
    pub(super) fn mint_id(&mut self, prefix: &str) -> String {
        self.next_id += 1;
        format!("{prefix}-{}-{}", self.id_prefix, self.next_id)
    }

    pub(super) fn respond(&mut self, id: &RpcId, result: &Result<Value, RpcError>) {
        rpc::push_response(id, result, &mut self.out);
    }

    pub(super) fn update(&mut self, id: &SessionId, update: &SessionUpdate<'_>) {
        push_update(id.as_str(), update, &mut self.out);
    }

    /// Reports that a line of the client was longer than any reader takes.
    pub fn line_too_long(&mut self) {
        let (id, error) = rpc::too_long();
        self.respond(&id, &Err(error));
    }

    /// Processes one line of the client.
    pub fn client_line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match rpc::read(line) {
            Ok(ClientMessage::Request { id, method, params }) => {
                if let Reply::Now(result) = self.request(&id, &method, &params) {
                    self.respond(&id, &result);
                }
            }
            Ok(ClientMessage::Notification { method, params }) => self.notification(&method, &params),
            Ok(ClientMessage::Response { id, result }) => self.answer(&id, result.as_ref().ok()),
            Err((id, error)) => self.respond(&id, &Err(error)),
        }
    }

    fn request(&mut self, id: &RpcId, method: &str, params: &Value) -> Reply {
        if method == "initialize" {
            return Reply::Now(self.initialize(params));
        }
        if self.client.is_none() {
            let message = format!("send `initialize` before `{method}`");
            return Reply::Now(Err(RpcError::new(INVALID_REQUEST, message)));
        }
        let reply = match method {
            "authenticate" => self.authenticate(params).map(Some),
            "session/new" => self.new_session(params).map(Some),
            "session/load" => self.load_session(params).map(Some),
            "session/resume" => self.resume_session(params).map(Some),
            "session/list" => self.list_sessions(params).map(Some),
            "session/delete" => self.delete_session(id, params),
            "session/close" => self.close_session(id, params).map(|()| None),
            "session/prompt" => self.prompt(id, params).map(|()| None),
            "session/set_mode" => self.set_mode(id, params),
            "session/set_config_option" => self.set_config_option(id, params),
            "_session/steering" => self.steer(id, params),
            "session/cancel" | "$/cancel_request" => {
                let message = format!("`{method}` is a notification; send it without an id");
                Err(RpcError::new(INVALID_REQUEST, message))
            }
            _ => {
                let shown: String = method.chars().take(80).collect();
                Err(RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{shown}`")))
            }
        };
        match reply {
            Ok(Some(result)) => Reply::Now(Ok(result)),
            Ok(None) => Reply::Later,
            Err(error) => Reply::Now(Err(error)),
        }
    }

    fn notification(&mut self, method: &str, params: &Value) {
        match method {
            "session/cancel" => {
                let id = params.get("sessionId").and_then(Value::as_str);
                if let Some(id) = id.and_then(|id| SessionId::parse(id).ok()) {
                    self.cancel_turn(&id);
                }
            }
            "$/cancel_request" => {
                let Some(request) = params.get("requestId") else { return };
                let running = self
                    .sessions
                    .values()
                    .find(|session| session.turn.as_ref().is_some_and(|turn| turn.request.is(request)));
                if let Some(id) = running.map(|session| session.id.clone()) {
                    self.cancel_turn(&id);
                }
            }
            // Unknown notifications are ignored.
            _ => {}
        }
    }

    fn initialize(&mut self, params: &Value) -> Result<Value, RpcError> {
        if self.client.is_some() {
            return Err(RpcError::new(INVALID_REQUEST, "the connection is already initialized"));
        }
        match params.get("protocolVersion") {
            Some(Value::Number(version)) if version.is_u64() => {}
            Some(_) => return Err(RpcError::params("`protocolVersion` must be a whole number")),
            None => return Err(RpcError::params("`protocolVersion` is missing")),
        }
        let capabilities = params.get("clientCapabilities").unwrap_or(&Value::Null);
        if !matches!(capabilities, Value::Null | Value::Object(_)) {
            return Err(RpcError::params("`clientCapabilities` must be an object"));
        }
        let info = params.get("clientInfo").unwrap_or(&Value::Null);
        if !matches!(info, Value::Null | Value::Object(_)) {
            return Err(RpcError::params("`clientInfo` must be an object"));
        }
        self.client = Some(AcpClient {
            unstable_usage: self.run.acp.acp_unstable.iter().any(|name| name == "usage"),
            ..AcpClient::advertised(capabilities)
        });
        let mut methods = vec![json!({"id": KEY_METHOD, "name": "Model API key",
            "description": "Uses the key of OPENAI_API_KEY, DASHSCOPE_API_KEY or ANTHROPIC_API_KEY, or of the settings"})];
        if capabilities.pointer("/auth/terminal") == Some(&Value::Bool(true)) {
            methods.push(
                json!({"type": "terminal", "id": TERMINAL_METHOD, "name": "Check the key in a terminal",
                "description": "Shows where the model's key comes from, or what is missing",
                "args": ["auth", "status", "--text"]}),
            );
        }
        let mut meta = json!({"steering": {"supported": true}});
        if self.client.is_some_and(|client| client.agents == SubAgents::Sessions) {
            meta["jetbrains"] = json!({"air": {"version": 1, "capabilities": ["nativeSubagentSessions"]}});
        }
        Ok(json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "qwen", "title": "Qwen", "version": env!("CARGO_PKG_VERSION")},
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": {"list": {}, "delete": {}, "resume": {}, "close": {},
                    "additionalDirectories": {}},
            },
            "authMethods": methods,
            "_meta": meta,
        }))
    }

    fn authenticate(&self, params: &Value) -> Result<Value, RpcError> {
        let method = rpc::text(params, "methodId")?;
        if method != KEY_METHOD && method != TERMINAL_METHOD {
            return Err(RpcError::params(format!("there is no authentication method `{method}`")));
        }
        match session_settings::resolve(self.run, None)?.credentials {
            Ok(()) => Ok(json!({})),
            Err(error) => Err(RpcError::new(AUTH_REQUIRED, &*error.message)),
        }
    }

    /// The session that a request names.
    pub(super) fn named_session(&mut self, params: &Value) -> Result<&mut Session, RpcError> {
        let id = session_id(params)?;
        let unknown = || unknown_session(id.as_str());
        self.sessions.get_mut(&id).filter(|session| session.closing.is_none()).ok_or_else(unknown)
    }
}

/// The session id of a request.
pub(super) fn session_id(params: &Value) -> Result<SessionId, RpcError> {
    let text = rpc::text(params, "sessionId")?;
    SessionId::parse(text).map_err(|_| unknown_session(text))
}

pub(super) fn unknown_session(id: &str) -> RpcError {
    let shown: String = id.chars().take(80).collect();
    let message =
        format!("there is no session `{shown}`; open one with session/new, session/load or session/resume");
    RpcError::new(NOT_FOUND, message)
}
