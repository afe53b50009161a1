//! Who answers questions: a person at a terminal, a program on the control channel, a policy, a test. The engine
//! cannot tell them apart.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{
    Behavior, CallId, Confirmation, ErrorInfo, ErrorKind, Json, PermissionAnswer, PromptId, SessionId,
    ToolCall, ToolKind,
};
use qwen_mcp::HostLink;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Which turn a question belongs to.
#[derive(Debug, Clone)]
pub struct QuestionOrigin {
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub prompt_id: PromptId,
    /// The call whose sub-agent asks; none in the main agent.
    pub parent: Option<CallId>,
    /// That sub-agent's name; empty in the main agent.
    pub agent: Arc<str>,
}

/// May this call run?
#[derive(Debug, Clone)]
pub struct Question {
    /// Which turn asks.
    pub origin: QuestionOrigin,
    /// The call.
    pub call: Arc<ToolCall>,
    /// What a person is shown.
    pub confirmation: Confirmation,
    /// Why we ask.
    pub reason: Arc<str>,
    /// The path that is out of bounds, where that is the reason.
    pub blocked_path: Option<Arc<str>>,
}

/// Answers what the engine asks. When `cancel` fires the question no longer matters: the host takes it back from
/// whoever was asked, and what it then returns is not looked at.
pub trait Host: Send + Sync {
    /// Whether anyone listens; without a listener a question is a denial and is not even shown.
    fn listens(&self) -> bool;

    /// Answers a question about a call.
    fn ask<'a>(
        &'a self,
        question: Question,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionAnswer>;

    /// Calls a hook that lives in the host.
    fn hook<'a>(
        &'a self,
        origin: &'a QuestionOrigin,
        callback_id: &'a str,
        input: Json,
        call_id: Option<&'a CallId>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, ErrorInfo>>;

    /// Sends a message to an MCP server that lives in the host, and brings back its answer.
    fn mcp<'a>(
        &'a self,
        server: &'a str,
        message: Json,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, ErrorInfo>>;

    /// Keeps what went wrong with a question that was given up by whoever asked, for the end of the turn.
    fn note_error(&self, _: ErrorInfo) {}

    /// Whether a question about this call is left open for a later process: then the run ends, and can be gone on with
    /// once there is an answer.
    fn defers(&self, _: &ToolCall) -> bool {
        false
    }

    /// What went wrong with questions since this was last called, for the end of the turn.
    fn take_errors(&self) -> Vec<ErrorInfo> {
        Vec::new()
    }
}

/// The way to MCP servers that live in the host.
pub struct HostServers(Arc<dyn Host>);

impl HostServers {
    /// The servers of `host`.
    pub fn new(host: Arc<dyn Host>) -> Self {
        Self(host)
    }
}

impl HostLink for HostServers {
    fn message<'a>(
        &'a self,
        server: &'a str,
        message: Json,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, ErrorInfo>> {
        self.0.mcp(server, message, cancel)
    }
}

/// The host of a headless run: nobody is there, so the answer is no.
pub struct HeadlessHost;

impl Host for HeadlessHost {
    fn listens(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: Question, _: &'a CancellationToken) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async { denial(None) })
    }

    fn hook<'a>(
        &'a self,
        _: &'a QuestionOrigin,
        _: &'a str,
        _: Json,
        _: Option<&'a CallId>,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, ErrorInfo>> {
        Box::pin(async { Err(nobody()) })
    }

    fn mcp<'a>(
        &'a self,
        _: &'a str,
        _: Json,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, ErrorInfo>> {
        Box::pin(async { Err(nobody()) })
    }
}

/// The host of a run whose questions are answered by a later one. It knows the answers that were given so far.
pub struct DeferredAnswers {
    answers: Vec<(CallId, Arc<str>)>,
}

impl DeferredAnswers {
    /// The answers by call: `allow`, `deny`, words for whoever asked a question, or another input as a JSON object.
    pub fn new(answers: Vec<(CallId, Arc<str>)>) -> Self {
        Self { answers }
    }

    fn answer(&self, call: &ToolCall) -> Option<PermissionAnswer> {
        let (_, word) = self.answers.iter().find(|(id, _)| *id == call.id)?;
        let allowed = |updated_input| PermissionAnswer {
            behavior: Behavior::Allow,
            message: None,
            updated_input,
            updated_permissions: Vec::new(),
            interrupt: false,
        };
        let json = serde_json::from_str::<Value>(word);
        Some(match (&**word, crate::TOOLS.find(&call.name).map(|declared| declared.kind)) {
            ("allow" | "approve" | "yes", _) => allowed(None),
            ("deny" | "reject" | "no", _) => denial(None),
            (_, Some(ToolKind::Ask)) => {
                let given = match json {
                    Ok(given @ (Value::Object(_) | Value::Array(_))) => given,
                    _ => Value::Array(vec![Value::from(&**word)]),
                };
                let mut input: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
                input["answers"] = given;
                allowed(Some(Json::trusted(input.to_string())))
            }
            (word, _) if json.as_ref().is_ok_and(Value::is_object) => allowed(Some(Json::trusted(word))),
            // Whatever is no clear yes is a no, and its words are the reason.
            (word, _) => denial(Some(word.into())),
        })
    }
}

impl Host for DeferredAnswers {
    fn listens(&self) -> bool {
        true
    }

    fn defers(&self, call: &ToolCall) -> bool {
        !self.answers.iter().any(|(id, _)| *id == call.id)
    }

    fn ask<'a>(&'a self, question: Question, _: &'a CancellationToken) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async move { self.answer(&question.call).unwrap_or_else(|| denial(None)) })
    }

    fn hook<'a>(
        &'a self,
        origin: &'a QuestionOrigin,
        callback_id: &'a str,
        input: Json,
        call_id: Option<&'a CallId>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, ErrorInfo>> {
        HeadlessHost.hook(origin, callback_id, input, call_id, cancel)
    }

    fn mcp<'a>(
        &'a self,
        server: &'a str,
        message: Json,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, ErrorInfo>> {
        HeadlessHost.mcp(server, message, cancel)
    }
}

/// A no, with words or without.
pub fn denial(message: Option<Arc<str>>) -> PermissionAnswer {
    PermissionAnswer {
        behavior: Behavior::Deny,
        message,
        updated_input: None,
        updated_permissions: Vec::new(),
        interrupt: false,
    }
}

fn nobody() -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "no_host", "nobody listens on the control channel")
}
