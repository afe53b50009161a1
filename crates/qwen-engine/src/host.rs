//! The host answers questions: a user at a terminal, a program on the control channel, a policy or a test.
//! The engine cannot tell them apart.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{
    Behavior, CallId, Confirmation, ErrorInfo, ErrorKind, Json, PermissionAnswer, PromptId, SessionId,
    ToolCall, ToolKind,
};
pub use qwen_mcp::HostAnswer;
use qwen_mcp::HostLink;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The turn and agent that a question belongs to.
#[derive(Debug, Clone)]
pub struct QuestionOrigin {
    pub session_id: SessionId,
    pub prompt_id: PromptId,
    /// The call whose sub-agent asks; `None` for the main agent.
    pub parent: Option<CallId>,
    /// The sub-agent's name; empty for the main agent.
    pub agent: Arc<str>,
}

/// A permission question about a call.
#[derive(Debug, Clone)]
pub struct Question {
    pub origin: QuestionOrigin,
    pub call: Arc<ToolCall>,
    /// The text that the user sees.
    pub confirmation: Confirmation,
    /// Why the question is asked.
    pub reason: Arc<str>,
    /// The path outside the allowed directories, if that is the reason.
    pub blocked_path: Option<Arc<str>>,
}

/// Why the session's log must be durable before the work continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncReason {
    /// A turn started: its prompt must survive a crash.
    Start { prompt_id: PromptId },
    /// A tool is about to run.
    Effect { tool: Arc<str>, call_id: CallId },
    /// A turn ended; its terminal record follows.
    End { prompt_id: PromptId },
}

/// A position in a session's log that must be durable before the work continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncPoint {
    pub session_id: SessionId,
    /// The length of the log in bytes; 0 if the session is not stored.
    pub bytes: u64,
    pub reason: SyncReason,
}

/// A hook that is implemented in the host, and what it is called with.
pub struct HostHookCall<'a> {
    pub origin: &'a QuestionOrigin,
    /// The name that the host gave the hook.
    pub id: &'a str,
    pub input: Json,
    /// The tool call that the hook is about.
    pub call_id: Option<&'a CallId>,
}

/// Answers the engine's questions. When `cancel` fires the question is obsolete: the host withdraws it, and
/// the returned answer is ignored.
pub trait Host: Send + Sync {
    /// True if the host can answer. If not, questions are denied without being shown.
    fn listens(&self) -> bool;

    /// Answers a permission question.
    fn ask<'a>(
        &'a self,
        question: Question,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionAnswer>;

    /// Calls a hook that is implemented in the host.
    fn hook<'a>(&'a self, callback: HostHookCall<'a>, cancel: &'a CancellationToken) -> HostAnswer<'a>;

    /// Sends a message to an MCP server in the host and returns its answer.
    fn mcp<'a>(&'a self, server: &'a str, message: Json, cancel: &'a CancellationToken) -> HostAnswer<'a>;

    /// Waits until work may start: at once, unless the host must show a sign of life first. Returns early if
    /// the process is ending.
    fn may_start(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Asks the host whether the log is durable up to a point, and waits for its answer. A refusal is final:
    /// [`Host::refusal`] returns it from then on.
    fn commit(&self, _: SyncPoint) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// True if [`Host::commit`] must be called at sync points.
    fn commits(&self) -> bool {
        false
    }

    /// The reason why nothing may have an effect any more, if the host refused a commit.
    fn refusal(&self) -> Option<ErrorInfo> {
        None
    }

    /// Records the error of a question whose asker stopped waiting, for the end of the turn.
    fn note_error(&self, _: ErrorInfo) {}

    /// True if a question about this call is left open for a later process: then the run ends, and can be
    /// continued once there is an answer.
    fn defers(&self, _: &ToolCall) -> bool {
        false
    }

    /// The errors of questions since the last call, for the end of the turn.
    fn take_errors(&self) -> Vec<ErrorInfo> {
        Vec::new()
    }
}

/// The transport to MCP servers in the host.
pub struct HostServers(Arc<dyn Host>);

impl HostServers {
    pub fn new(host: Arc<dyn Host>) -> Self {
        Self(host)
    }
}

impl HostLink for HostServers {
    fn message<'a>(&'a self, to: &'a str, message: Json, cancel: &'a CancellationToken) -> HostAnswer<'a> {
        self.0.mcp(to, message, cancel)
    }
}

/// The host of a headless run: it denies every question, because no one can answer.
pub struct HeadlessHost;

impl Host for HeadlessHost {
    fn listens(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: Question, _: &'a CancellationToken) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async { denial(None) })
    }

    fn hook<'a>(&'a self, _: HostHookCall<'a>, _: &'a CancellationToken) -> HostAnswer<'a> {
        Box::pin(async { Err(no_listener()) })
    }

    fn mcp<'a>(&'a self, _: &'a str, _: Json, _: &'a CancellationToken) -> HostAnswer<'a> {
        Box::pin(async { Err(no_listener()) })
    }
}

/// The host of a run whose questions are answered in a later run. It holds the answers given so far.
pub struct DeferredAnswers {
    answers: Vec<(CallId, Arc<str>)>,
}

impl DeferredAnswers {
    /// The answers by call: `allow`, `deny`, a text that answers a question, or a changed input as a JSON
    /// object.
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
            // Anything but a clear approval is a denial with the text as its reason.
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

    fn hook<'a>(&'a self, callback: HostHookCall<'a>, cancel: &'a CancellationToken) -> HostAnswer<'a> {
        HeadlessHost.hook(callback, cancel)
    }

    fn mcp<'a>(&'a self, server: &'a str, message: Json, cancel: &'a CancellationToken) -> HostAnswer<'a> {
        HeadlessHost.mcp(server, message, cancel)
    }
}

/// A denial, with or without a message.
pub fn denial(message: Option<Arc<str>>) -> PermissionAnswer {
    PermissionAnswer {
        behavior: Behavior::Deny,
        message,
        updated_input: None,
        updated_permissions: Vec::new(),
        interrupt: false,
    }
}

fn no_listener() -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "no_host", "no host is attached to the control channel")
}
