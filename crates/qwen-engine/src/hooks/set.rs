//! The hooks of a session and their execution.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use qwen_events::{
    Body, ConsoleLevel, EndStatus, ErrorInfo, ErrorKind, HookMatcher, HookOutcome, Json, LogScope, Timeout,
    ToolCall, TraceContext,
};
use qwen_http::{Client, ClientConfig};
use qwen_tools::SessionResources;
use serde_json::{Map, Value};

use super::announce::{Announced, Announcement, Choice};
use super::answer::HookAnswer;
use super::capture::HookCapture;
use super::ruling::Ruling;
use super::{
    DEFAULT_TIMEOUT, HookAction, HookConfig, HookEvent, OnFailure, WorkspaceLimits, command, http, matcher,
};
use crate::{Cancel, Emitter, Host, HostHookCall, QuestionOrigin, Stop, subagent};

/// The interval at which a running hook's output is reported.
const PROGRESS: Duration = Duration::from_secs(1);

/// The hooks of a session. They may change while it runs.
#[derive(Default)]
pub struct HookSet {
    hooks: RwLock<Vec<HookConfig>>,
    transcript_path: RwLock<Arc<str>>,
    /// Where the conversations of sub-agents are stored; none if they are not.
    agent_transcripts: RwLock<Option<PathBuf>>,
    client: OnceLock<Client>,
    announced: Choice,
    workspace: RwLock<WorkspaceLimits>,
}

/// An event that hooks may observe.
pub(crate) struct HookRequest<'a> {
    pub event: HookEvent,
    pub origin: &'a QuestionOrigin,
    pub permission_mode: &'a str,
    pub resources: &'a SessionResources,
    pub host: &'a dyn Host,
    pub emit: &'a Emitter,
    pub cancel: &'a Cancel,
    /// The call that triggered the event.
    pub call: Option<&'a ToolCall>,
    /// What matchers are compared with if there is no call.
    pub target: &'a str,
    /// Fields of the hook input beyond those that all hooks get.
    pub fields: Vec<(&'static str, Value)>,
}

impl HookSet {
    pub fn new(hooks: Vec<HookConfig>) -> Self {
        Self { hooks: RwLock::new(hooks), ..Self::default() }
    }

    /// Replaces the host's hooks. Returns the names of unknown events; hooks for those are never called.
    pub fn set_host_hooks(&self, matchers: &[HookMatcher]) -> Vec<Arc<str>> {
        let mut hooks = self.hooks.write().unwrap_or_else(PoisonError::into_inner);
        hooks.retain(|hook| !matches!(hook.action, HookAction::Host(_)));
        let mut unknown = Vec::new();
        for given in matchers {
            let Some(event) = HookEvent::parse(&given.event) else {
                unknown.push(given.event.clone());
                continue;
            };
            hooks.extend(given.callback_ids.iter().map(|id| HookConfig {
                event,
                matcher: given.matcher.clone(),
                action: HookAction::Host(id.clone()),
                timeout: given.timeout_ms.filter(|timeout| *timeout > 0).map(Duration::from_millis),
                on_failure: if given.block_on_failure { OnFailure::Block } else { OnFailure::Continue },
                of_workspace: false,
            }));
        }
        unknown
    }

    /// Limits the hooks that the workspace configures.
    pub fn limit_workspace(&self, limits: WorkspaceLimits) {
        *self.workspace.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    fn workspace_limits(&self, hook: &HookConfig) -> Option<WorkspaceLimits> {
        hook.of_workspace.then(|| self.workspace.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Sets which hooks are reported to readers while they run.
    pub fn announce(&self, announced: Announced) {
        self.announced.set(announced);
    }

    /// Sets the directory in which hooks find the conversations of sub-agents.
    pub fn set_agent_transcripts(&self, folder: Option<PathBuf>) {
        *self.agent_transcripts.write().unwrap_or_else(PoisonError::into_inner) = folder;
    }

    /// Sets the transcript path that hooks get in their input.
    pub fn set_transcript_path(&self, path: impl Into<Arc<str>>) {
        *self.transcript_path.write().unwrap_or_else(PoisonError::into_inner) = path.into();
    }

    pub fn hooks(&self) -> Vec<HookConfig> {
        self.hooks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if any hook is registered for `event`.
    pub(crate) fn listens(&self, event: HookEvent) -> bool {
        self.hooks.read().unwrap_or_else(PoisonError::into_inner).iter().any(|hook| hook.event == event)
    }

    /// Runs the matching hooks concurrently and returns their combined answer.
    pub(crate) async fn fire(&self, request: HookRequest<'_>) -> Ruling {
        let mut ruling = Ruling::default();
        if !self.listens(request.event) {
            return ruling;
        }
        let target = request.call.map_or(request.target, |call| &*call.name);
        let mut hooks = self.hooks();
        hooks.retain(|hook| {
            hook.event == request.event && matcher::matches(hook.event, hook.matcher.as_deref(), target)
        });
        if hooks.is_empty() {
            return ruling;
        }
        let traced = request.emit.hooks_begin(request.event.name(), request.call.map(|call| &call.id));
        let input = self.input(&request);
        let context = traced.as_ref().map(|run| &run.context);
        let answers = join_all(hooks.iter().map(|hook| self.call(hook, &request, &input, context))).await;
        for (hook, (answer, announcement)) in hooks.iter().zip(answers) {
            match answer {
                Ok(answer) => {
                    if let Some(message) = answer.message.as_ref().filter(|_| !answer.quiet) {
                        emit_console(&request, ConsoleLevel::Info, message).await;
                        announcement.emit_message(message, false).await;
                    }
                    ruling.add(answer);
                }
                // The turn is ending, so the answer no longer matters.
                Err(_) if request.cancel.is_stopped() => {}
                Err(error) => {
                    let text = format!("the {} hook {} failed: {error}", hook.event.name(), name(hook));
                    announcement.emit_message(&text, true).await;
                    emit_console(&request, ConsoleLevel::Warn, &text).await;
                    if hook.on_failure == OnFailure::Block {
                        ruling.fail(&text);
                    }
                }
            }
        }
        ruling
    }

    /// Runs one hook and reports it to readers.
    async fn call<'a>(
        &self,
        hook: &HookConfig,
        request: &'a HookRequest<'a>,
        input: &Value,
        context: Option<&TraceContext>,
    ) -> (Result<HookAnswer, String>, Announcement<'a>) {
        let mut announcement = Announcement::new(request, &self.announced);
        let capture = HookCapture::default();
        announcement.started().await;
        let answer = self.attempt(hook, request, input, context, &capture, &mut announcement).await;
        let outcome = match &answer {
            Ok(_) if capture.failed() => HookOutcome::Error,
            Ok(_) => HookOutcome::Success,
            Err(_) if request.cancel.is_stopped() => HookOutcome::Cancelled,
            Err(_) => HookOutcome::Error,
        };
        announcement.ended(&capture, outcome).await;
        (answer, announcement)
    }

    /// Runs one hook within its timeout.
    async fn attempt(
        &self,
        hook: &HookConfig,
        request: &HookRequest<'_>,
        input: &Value,
        context: Option<&TraceContext>,
        capture: &HookCapture,
        announcement: &mut Announcement<'_>,
    ) -> Result<HookAnswer, String> {
        let time_limit = hook.timeout.unwrap_or(DEFAULT_TIMEOUT);
        // On a timeout a question to the host must be withdrawn, so it is cancelled rather than dropped.
        let cancel = request.cancel.token().child_token();
        let limits = self.workspace_limits(hook);
        let work = async {
            match &hook.action {
                HookAction::Command(line) => {
                    let withheld = limits.as_ref().map_or(&[][..], |limits| &limits.withheld);
                    let start = command::HookStart {
                        event: hook.event,
                        line,
                        resources: request.resources,
                        withheld,
                        is_confined: limits.is_some(),
                    };
                    command::run(start, &input.to_string(), context, capture).await
                }
                HookAction::Http { url, headers } => {
                    let client = match &limits {
                        Some(limits) => {
                            Client::new(ClientConfig::default().public_only(url, &limits.private_hosts))
                        }
                        None => self.client.get_or_init(|| Client::new(ClientConfig::default())).clone(),
                    };
                    http::run(&client, hook.event, url, headers, input.to_string(), capture).await
                }
                HookAction::Host(callback) => {
                    let input = Json::trusted(input.to_string());
                    let call_id = request.call.map(|call| &call.id);
                    let callback = HostHookCall { origin: request.origin, id: callback, input, call_id };
                    let answer = request.host.hook(callback, &cancel).await;
                    let answer = answer.map_err(|error| error.to_string())?;
                    capture.answered(answer.as_str());
                    HookAnswer::read(hook.event, answer.as_str())
                        .map_err(|error| format!("its answer cannot be used: {error}"))
                }
            }
        };
        tokio::pin!(work);
        let deadline = tokio::time::sleep(time_limit);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                answer = &mut work => return answer,
                () = request.cancel.token().cancelled() => {
                    if matches!(hook.action, HookAction::Host(_)) {
                        let _ = work.await;
                    }
                    return Err("the turn was cancelled".to_owned());
                }
                () = &mut deadline => {
                    if let HookAction::Host(callback) = &hook.action {
                        cancel.cancel();
                        let _ = work.await;
                        request.host.note_error(unanswered(callback, time_limit));
                    }
                    return Err(format!("it took longer than {} s", time_limit.as_secs_f64()));
                }
                () = tokio::time::sleep(PROGRESS) => announcement.progress(capture).await,
            }
        }
    }

    fn input(&self, request: &HookRequest<'_>) -> Value {
        let transcript = self.transcript_path.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut input = Map::new();
        let mut put = |name: &str, value: Value| input.insert(name.to_owned(), value);
        put("session_id", request.origin.session_id.as_str().into());
        put("transcript_path", (*transcript).into());
        put("cwd", request.resources.cwd.to_string_lossy().into());
        put("prompt_id", request.origin.prompt_id.as_str().into());
        put("permission_mode", request.permission_mode.into());
        put("hook_event_name", request.event.name().into());
        if let Some(parent) = &request.origin.parent {
            put("agent_id", parent.as_str().into());
            put("agent_type", (*request.origin.agent).into());
            let folder = self.agent_transcripts.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(folder) = folder.as_ref().filter(|_| request.event == HookEvent::SubagentStop) {
                let file = folder.join(format!("agent-{}.jsonl", subagent::file_id(parent)));
                put("agent_transcript_path", file.to_string_lossy().into());
            }
        }
        if let Some(call) = request.call {
            put("tool_name", (*call.name).into());
            put("tool_input", serde_json::from_str(call.arguments.as_str()).unwrap_or_default());
            put("tool_use_id", call.id.as_str().into());
        }
        for (name, value) in &request.fields {
            put(name, value.clone());
        }
        Value::Object(input)
    }
}

/// The stop of a turn that a hook ended.
pub(crate) fn hook_stop(event: HookEvent, why: &str) -> Stop {
    let why = if why.is_empty() { "it gave no reason" } else { why };
    let message = format!("a {} hook ended the turn: {why}", event.name());
    Stop {
        status: EndStatus::Cancelled,
        error: Some(ErrorInfo::new(ErrorKind::Input, "stopped_by_hook", message)),
    }
}

/// The error for a host hook that did not answer before its deadline.
fn unanswered(callback: &str, time_limit: Duration) -> ErrorInfo {
    let message = format!(
        "the hook '{callback}' was not answered within {} ms (the control time-out)",
        time_limit.as_millis()
    );
    let mut error = ErrorInfo::new(ErrorKind::Timeout(Timeout::Control), "control_timeout", message);
    error.retryable = true;
    error
}

fn name(hook: &HookConfig) -> String {
    match &hook.action {
        HookAction::Command(line) => format!("'{}'", line.chars().take(80).collect::<String>()),
        HookAction::Http { url, .. } => url.split('?').next().unwrap_or_default().to_owned(),
        HookAction::Host(callback) => format!("'{callback}' of the host"),
    }
}

async fn emit_console(request: &HookRequest<'_>, level: ConsoleLevel, text: &str) {
    let body = Body::Console { level, scope: LogScope::System, text: text.into() };
    request.emit.emit(body).await;
}
