//! The host at the other end of the control channel: requests and answers are lines.

mod permission_tool;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use qwen_dialects::permission_answer;
use qwen_engine::{Emitter, Host, HostAnswer, HostHookCall, Question, QuestionOrigin, SyncPoint, denial};
use qwen_events::{
    Behavior, Body, ControlCall, ControlReply, ErrorInfo, ErrorKind, Json, PermissionAnswer, PromptId,
    SessionId, Timeout,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::permission_tool::PermissionTool;
use qwen_kernel::ipc::{Place, ReportedFact};

use super::parent::ParentProcess;

type Answer = Result<Json, ErrorInfo>;

/// Asks the host over the control channel. Any number of questions may be open at once.
pub struct ControlHost {
    emit: Emitter,
    /// True while the host answers permission questions.
    is_attached: AtomicBool,
    /// Standard input has ended, so no answer can arrive.
    is_closed: AtomicBool,
    /// Prefix of the request ids of this process. It ensures that an answer from before a crash does not
    /// match a request after the resume.
    request_prefix: String,
    next_request: AtomicU64,
    pending: Mutex<HashMap<Arc<str>, Pending>>,
    errors: Mutex<Vec<ErrorInfo>>,
    timeout_ms: AtomicU64,
    session: Mutex<SessionId>,
    /// Answers permission questions instead of the host.
    delegate: OnceLock<PermissionTool>,
    /// The parent process, if it supervises this worker.
    parent: OnceLock<Arc<ParentProcess>>,
}

/// The reason of a denial whose cause is a failure of the host. The failure itself is reported to the host.
const UNDECIDED: &str = "the host could not decide";

/// An open request.
struct Pending {
    session: SessionId,
    answer: oneshot::Sender<Answer>,
}

/// Why a request has no answer.
enum NoAnswer {
    /// The turn ended, so the request was withdrawn.
    Withdrawn,
    /// The host failed, timed out or disconnected.
    Failed(ErrorInfo),
}

impl ControlHost {
    /// A host that answers permission questions if `is_attached`; a request fails after `timeout`.
    pub fn new(emit: Emitter, session: SessionId, is_attached: bool, timeout: Duration) -> Self {
        Self {
            emit,
            is_attached: AtomicBool::new(is_attached),
            is_closed: AtomicBool::new(false),
            request_prefix: format!("req-{:016x}", fastrand::u64(..)),
            next_request: AtomicU64::new(0),
            pending: Mutex::default(),
            errors: Mutex::default(),
            timeout_ms: AtomicU64::new(millis(timeout)),
            session: Mutex::new(session),
            delegate: OnceLock::new(),
            parent: OnceLock::new(),
        }
    }

    /// Sends permission questions to a tool instead of the host.
    pub fn delegate(&self, tool: PermissionTool) {
        // The first one is used; there is only one command line.
        let _ = self.delegate.set(tool);
    }

    /// Waits until the parent process takes the session away.
    pub async fn discarding(&self) {
        match self.parent.get() {
            Some(parent) => parent.discarding().await,
            None => std::future::pending().await,
        }
    }

    /// True once the parent process has taken the session away.
    pub fn is_discarding(&self) -> bool {
        self.parent.get().is_some_and(|parent| parent.is_discarding())
    }

    /// Reports to the parent process that a prompt was read, as this line of input.
    pub fn report_prompt(&self, input: u64) {
        if let Some(parent) = self.parent.get() {
            parent.report(Place::Anywhere, ReportedFact::PromptRead { input });
        }
    }

    /// Lets the parent process commit the log and delay work.
    pub fn set_parent(&self, parent: Arc<ParentProcess>) {
        // There is only one command line.
        let _ = self.parent.set(parent);
    }

    /// Sets the time-out of further requests.
    pub fn set_timeout(&self, milliseconds: u64) {
        self.timeout_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// The session that questions outside a turn belong to.
    pub fn set_session(&self, session: SessionId) {
        *lock(&self.session) = session;
    }

    /// The session that the worker holds.
    pub fn session(&self) -> SessionId {
        lock(&self.session).clone()
    }

    /// Delivers an answer to the request that waits for it. An answer without a waiting request (late,
    /// duplicate, or for another session) changes nothing and is reported.
    pub fn answer(&self, reply: ControlReply, session: Option<&str>) -> Result<(), ErrorInfo> {
        let mut pending = lock(&self.pending);
        let Some(waiting) = pending.get(&reply.request_id) else {
            let id: String = reply.request_id.chars().take(80).collect();
            let message = format!("no question is open under the request_id '{id}'");
            return Err(
                ErrorInfo::new(ErrorKind::Input, "unknown_request_id", message).with_param("request_id")
            );
        };
        // The Claude SDKs send `default` for any session.
        if let Some(session) =
            session.filter(|id| !matches!(*id, "" | "default") && *id != waiting.session.as_str())
        {
            let session: String = session.chars().take(80).collect();
            let message =
                format!("the question '{}' is not one of the session '{session}'", reply.request_id);
            return Err(ErrorInfo::new(ErrorKind::Input, "foreign_session", message).with_param("session_id"));
        }
        if let Some(waiting) = pending.remove(&reply.request_id) {
            // The request may have stopped waiting at this moment; then the answer is not needed.
            let _ = waiting.answer.send(reply.result);
        }
        Ok(())
    }

    /// Fails all open requests: standard input has ended.
    pub fn close(&self) {
        self.is_attached.store(false, Ordering::Relaxed);
        self.is_closed.store(true, Ordering::Relaxed);
        // Dropping a sender fails the request that waits for it.
        lock(&self.pending).clear();
    }

    /// Sends a request and waits for its answer, its deadline or the end of the turn.
    async fn request(
        &self,
        origin: Option<&QuestionOrigin>,
        call: ControlCall,
        cancel: &CancellationToken,
    ) -> Result<Json, NoAnswer> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(NoAnswer::Failed(input_closed()));
        }
        let what = name(&call);
        let request_id: Arc<str> =
            format!("{}-{}", self.request_prefix, self.next_request.fetch_add(1, Ordering::Relaxed) + 1)
                .into();
        let (sender, receiver) = oneshot::channel();
        let (session_id, prompt_id): (SessionId, Option<PromptId>) = match origin {
            Some(origin) => (origin.session_id.clone(), Some(origin.prompt_id.clone())),
            None => (lock(&self.session).clone(), None),
        };
        let waiting = Pending { session: session_id.clone(), answer: sender };
        lock(&self.pending).insert(request_id.clone(), waiting);
        let question = Body::ControlRequest {
            request_id: request_id.clone(),
            session_id,
            prompt_id,
            call: Box::new(call),
        };
        self.emit.emit(question).await;
        let timeout = Duration::from_millis(self.timeout_ms.load(Ordering::Relaxed));
        let failure = tokio::select! {
            answer = receiver => match answer {
                Ok(answer) => return answer.map_err(NoAnswer::Failed),
                Err(_) => NoAnswer::Failed(input_closed()),
            },
            () = cancel.cancelled() => NoAnswer::Withdrawn,
            () = tokio::time::sleep(timeout) => {
                let message = format!("{what} was not answered within {} ms (the control time-out)", timeout.as_millis());
                let mut error = ErrorInfo::new(ErrorKind::Timeout(Timeout::Control), "control_timeout", message);
                error.retryable = true;
                NoAnswer::Failed(error)
            }
        };
        lock(&self.pending).remove(&request_id);
        self.emit.emit(Body::ControlCancel { request_id }).await;
        Err(failure)
    }

    /// Records an error for the turn's terminal record.
    fn record_error(&self, error: ErrorInfo) {
        lock(&self.errors).push(error);
    }

    async fn request_value(
        &self,
        origin: Option<&QuestionOrigin>,
        call: ControlCall,
        cancel: &CancellationToken,
    ) -> Result<Json, ErrorInfo> {
        match self.request(origin, call, cancel).await {
            Ok(json) => Ok(json),
            Err(NoAnswer::Failed(error)) => {
                self.record_error(error.clone());
                Err(error)
            }
            Err(NoAnswer::Withdrawn) => {
                Err(ErrorInfo::new(ErrorKind::Input, "cancelled", "the turn was cancelled"))
            }
        }
    }
}

impl Host for ControlHost {
    fn listens(&self) -> bool {
        // A permission tool answers even after the host closed standard input.
        self.is_attached.load(Ordering::Relaxed) || self.delegate.get().is_some()
    }

    fn ask<'a>(
        &'a self,
        question: Question,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async move {
            let asked = question.call.clone();
            let call = ControlCall::CanUseTool {
                call: question.call,
                confirmation: Box::new(question.confirmation),
                reason: question.reason,
                blocked_path: question.blocked_path,
                agent_id: question.origin.parent.as_ref().map(|call| call.as_str().into()),
            };
            let answered = match self.delegate.get() {
                Some(tool) => tool.ask(&asked, cancel).await.map_err(NoAnswer::Failed),
                None => self.request(Some(&question.origin), call, cancel).await,
            };
            let json = match answered {
                Ok(json) => json,
                Err(NoAnswer::Withdrawn) => return denial(None),
                Err(NoAnswer::Failed(error)) => {
                    self.record_error(error);
                    return denial(Some(UNDECIDED.into()));
                }
            };
            match permission_answer(&json) {
                Ok(answer) if answer.behavior == Behavior::Ask => {
                    denial(Some("the host answered \"ask\", and no one else can answer".into()))
                }
                Ok(answer) => answer,
                Err(error) => {
                    // A malformed answer to the right question is a denial at once.
                    self.record_error(error);
                    denial(Some(UNDECIDED.into()))
                }
            }
        })
    }

    fn hook<'a>(&'a self, callback: HostHookCall<'a>, cancel: &'a CancellationToken) -> HostAnswer<'a> {
        let call = ControlCall::HookCallback {
            callback_id: callback.id.into(),
            input: callback.input,
            tool_use_id: callback.call_id.map(|id| id.as_str().into()),
        };
        Box::pin(self.request_value(Some(callback.origin), call, cancel))
    }

    fn mcp<'a>(&'a self, server: &'a str, message: Json, cancel: &'a CancellationToken) -> HostAnswer<'a> {
        Box::pin(self.request_value(None, ControlCall::McpMessage { server: server.into(), message }, cancel))
    }

    fn may_start(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(parent) = self.parent.get() {
                parent.wait_for_contact().await;
            }
        })
    }

    fn commit(&self, point: SyncPoint) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(parent) = self.parent.get() {
                parent.commit(point).await;
            }
        })
    }

    fn commits(&self) -> bool {
        self.parent.get().is_some_and(|parent| parent.commits())
    }

    fn refusal(&self) -> Option<ErrorInfo> {
        self.parent.get().and_then(|parent| parent.refusal())
    }

    fn note_error(&self, error: ErrorInfo) {
        self.record_error(error);
    }

    fn take_errors(&self) -> Vec<ErrorInfo> {
        std::mem::take(&mut *lock(&self.errors))
    }
}

fn name(call: &ControlCall) -> &'static str {
    match call {
        ControlCall::CanUseTool { .. } => "the permission question",
        ControlCall::HookCallback { .. } => "the hook",
        ControlCall::McpMessage { .. } => "the message to an MCP server of the host",
    }
}

fn input_closed() -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "input_closed", "standard input was closed")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
