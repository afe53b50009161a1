//! One tool call: permission check, execution, and an end in every case.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use qwen_events::{
    Body, Channel, Denial, Display, PermissionUpdate, SessionEvent, ToolCall, ToolEnd, ToolKind, ToolResult,
    ToolStatus, Verdict,
};
use qwen_tools::{Arguments, CallContext, Outcome, OutputSink};

use super::permit::{Permitted, consult};
use super::{argument_schema, guarded_call, host_tool, parse_arguments};
use crate::context::TurnContext;
use crate::graph::RunContext;
use crate::hooks::{HookEvent, tool_response};
use crate::log::INTERRUPTED;
use crate::{Emitter, Stop, TOOLS, structured};

/// The outcome of a call.
pub(crate) struct Done {
    pub result: ToolResult,
    pub denial: Option<Denial>,
    /// The limit that prevented it from running.
    pub limit: Option<Stop>,
    /// It waits for an answer that a later process receives: it has no result, and the log records no end.
    pub deferred: bool,
    /// A hook postponed it until the session continues; it also has no result and no recorded end.
    pub postponed: bool,
}

/// The error code of a call that a hook postponed.
const POSTPONED: &str = "tool_deferred";

/// Runs one call to its end. In every case the model gets a result and readers get a `ToolEnd`. An
/// `interrupted` call only gets its end. `alone` is true for the only call of its message: hooks may postpone
/// it.
pub(crate) async fn run(
    context: &TurnContext,
    call: &Arc<ToolCall>,
    interrupted: bool,
    alone: bool,
    cx: &RunContext,
) -> Done {
    let started = Instant::now();
    let mut judged = call.clone();
    let attempted = if interrupted {
        Err(NotRun::Stopped(INTERRUPTED.into()))
    } else {
        attempt(context, &mut judged, alone, cx).await
    };
    let deferred = matches!(attempted, Err(NotRun::Deferred));
    let postponed = matches!(attempted, Err(NotRun::Postponed));
    let mut reason: Option<Arc<str>> = None;
    let (ended, limit) = match attempted {
        Err(NotRun::Postponed) => {
            (Ended::Postponed("not run: a hook postponed it until the session continues".into()), None)
        }
        Err(NotRun::Deferred) => {
            (Ended::Stopped("not run: it waits for an answer in a later run".into()), None)
        }
        Ok(outcome) => (Ended::Completed(outcome), None),
        Err(NotRun::Failed(code, text)) => (Ended::Completed(Outcome::failure(code, text)), None),
        Err(NotRun::Denied(refusal)) => {
            reason = Some(context.resources.redactor.redact(&refusal.reason).into());
            (Ended::Denied(refusal.text), None)
        }
        Err(NotRun::Stopped(text)) => (Ended::Stopped(text), None),
        Err(NotRun::Limit(stop)) => {
            (Ended::Stopped("not run: the limit of tool calls is reached".into()), Some(stop))
        }
    };
    let (status, outcome) = match ended {
        Ended::Completed(outcome) if outcome.cancelled => (ToolStatus::Cancelled, outcome),
        Ended::Completed(outcome) if outcome.error_code.is_some() => (ToolStatus::Error, outcome),
        Ended::Completed(outcome) => (ToolStatus::Success, outcome),
        Ended::Denied(text) => (ToolStatus::Denied, Outcome::failure("permission_denied", text)),
        Ended::Stopped(text) => (ToolStatus::Cancelled, Outcome::failure("cancelled", text)),
        Ended::Postponed(text) => (ToolStatus::Cancelled, Outcome::failure(POSTPONED, text)),
    };
    // Tool output goes to the model's server, a third party, so secrets are redacted.
    let text: Arc<str> = context.resources.redactor.redact(&outcome.text).into();
    let end = ToolEnd {
        call: call.clone(),
        status,
        text: text.clone(),
        media: outcome.media.clone(),
        display: outcome.display,
        error_code: outcome.error_code,
        output_file: outcome.output_file,
        exit_code: outcome.exit_code,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    let emit = if deferred || postponed { &cx.emit.logged(None) } else { &cx.emit };
    emit.emit(Body::ToolEnd(Box::new(end))).await;
    let denial = (status == ToolStatus::Denied).then(|| Denial {
        tool_name: judged.name.clone(),
        call_id: call.id.clone(),
        arguments: judged.arguments.clone(),
        reason: reason.unwrap_or_else(|| text.clone()),
    });
    let result = ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        text,
        media: outcome.media,
        is_error: status != ToolStatus::Success,
    };
    Done { result, denial, limit, deferred, postponed }
}

enum Ended {
    Completed(Outcome),
    Denied(String),
    Stopped(String),
    Postponed(String),
}

/// A refused call: the model receives `text`, the turn's list of denials the refuser's `reason` alone.
pub(super) struct Refusal {
    pub text: String,
    pub reason: Arc<str>,
}

pub(super) enum NotRun {
    /// Invalid call: an error code and a message.
    Failed(&'static str, String),
    /// Not permitted.
    Denied(Refusal),
    /// The turn is ending.
    Stopped(String),
    /// A limit was reached.
    Limit(Stop),
    /// The answer will arrive in a later process.
    Deferred,
    /// A hook postponed the decision until the session continues.
    Postponed,
}

/// Runs a call if it may run. Leaves in `judged` the call that rules, hooks and questions saw.
async fn attempt(
    context: &TurnContext,
    judged: &mut Arc<ToolCall>,
    alone: bool,
    cx: &RunContext,
) -> Result<Outcome, NotRun> {
    if let Some(text) = &judged.malformed {
        let problem = parse_arguments(text).err().unwrap_or_default();
        if let Some(answer) = context.structured.as_ref().filter(|_| structured::is_tool(&judged.name)) {
            answer.reject(&problem);
        }
        let shown: String = text.chars().take(200).collect();
        let message = format!(
            "The arguments of {} must be one JSON object ({problem}), but they were: {shown}",
            judged.name
        );
        return Err(NotRun::Failed("invalid_arguments", message));
    }
    // From here on the call uses the alias target, so rules, hooks and permission questions see the tool that
    // runs.
    if let Some(name) = context.overrides.alias(&judged.name) {
        *judged = Arc::new(ToolCall { name, ..(**judged).clone() });
    }
    let wanted = context.structured.as_ref().filter(|_| structured::is_tool(&judged.name));
    let name = if wanted.is_some() { structured::TOOL } else { &judged.name };
    let Some(tool) = context.tools.get(name) else {
        return Err(not_offered(context, judged));
    };
    if wanted.is_none() {
        *judged = guarded_call::of(judged, tool.as_ref(), context);
    }
    let call = &*judged;
    let kind = tool.declaration().map_or(ToolKind::Undeclared, |declaration| declaration.kind);
    let by_host = context.host_tools.contains(&tool.spec().name);
    // No permission question is asked about a call that cannot run. The result tool validates its arguments
    // itself and counts mismatches.
    let fits = if wanted.is_some() {
        Ok(())
    } else if by_host || kind == ToolKind::Mcp {
        argument_schema::check(call, tool.spec())
    } else {
        Arguments::check(call, tool.spec()).map_err(|error| error.to_string())
    };
    if let Err(problem) = fits {
        return Err(NotRun::Failed("invalid_arguments", problem));
    }
    if cx.cancel.is_stopped() {
        return Err(NotRun::Stopped("not run: the turn was cancelled".into()));
    }
    if wanted.is_none() {
        cx.budget.tool_call().map_err(NotRun::Limit)?;
    }
    let output = Arc::new(CallOutput { call: call.clone(), emit: cx.emit.clone() });
    let mut call_context = CallContext::new(context.resources.clone(), cx.cancel.token().clone(), output);
    let permitted = if wanted.is_some() {
        // Answering needs no permission.
        Permitted::as_it_is(call.clone())
    } else {
        consult(context, call, alone, tool.as_ref(), &call_context, cx).await?
    };
    call_context.harden_git.clone_from(&permitted.harden_git);
    call_context.read_only = permitted.read_only;
    let mut added = context.permissions.added_directories();
    added.extend(permitted.granted.clone());
    if !added.is_empty() {
        call_context.extra_roots = context.resources.extra_roots.iter().cloned().chain(added).collect();
    }
    tokio::select! {
        () = context.host.may_start() => {}
        _ = cx.cancel.stopped() => return Err(NotRun::Stopped("not run: the turn was cancelled".into())),
    }
    cx.emit.emit(Body::ToolStart(permitted.call.clone())).await;
    if let Some(error) = context.host.refusal() {
        let text = format!("not run: {error}");
        cx.cancel.stop(Stop::refused(error));
        return Err(NotRun::Stopped(text));
    }
    call_context.trace = cx.emit.context_of(&call.id);
    let started = Instant::now();
    let mut outcome = if by_host {
        host_tool::wait(context, &permitted.call, cx).await
    } else {
        let _runs = (!context.in_background).then(|| context.overrides.in_flight().track_running(call));
        tool.run(&permitted.call, &call_context).await
    };
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if kind == ToolKind::ExitPlan && outcome.error_code.is_none() && context.permissions.mode() == "plan" {
        leave_plan_mode(context, cx).await;
    }
    if outcome.needs_write_access {
        context.permissions.note_failed_read_only(&permitted.call, tool.declaration());
    }
    if let Some(context) = &permitted.context {
        add(&mut outcome, context);
    }
    review(context, &permitted.call, &mut outcome, elapsed_ms, cx).await;
    Ok(outcome)
}

/// Why a call of a tool that the session does not offer does not run: a rule denies it, or there is no such
/// tool.
fn not_offered(context: &TurnContext, call: &ToolCall) -> NotRun {
    let names: Vec<String> = context.tools.specs().iter().map(|spec| spec.name.to_string()).collect();
    let offered = format!("The tools are: {}.", names.join(", "));
    let Some(declaration) = TOOLS.find(&call.name) else {
        let text = format!("There is no tool called '{}'. {offered}", call.name);
        return NotRun::Failed("unknown_tool", text);
    };
    let text =
        format!("Permission for {} was declined: this session does not offer it. {offered}", call.name);
    match context.permissions.judge(call, Some(declaration)).decision.verdict {
        Verdict::Deny => {
            NotRun::Denied(Refusal { text, reason: "this session does not offer the tool".into() })
        }
        Verdict::Allow | Verdict::Ask => NotRun::Failed("unknown_tool", text),
    }
}

/// Leaves plan mode after the plan was approved; permission questions are asked as usual.
async fn leave_plan_mode(context: &TurnContext, cx: &RunContext) {
    let mode: Arc<str> = "default".into();
    if context.permissions.update(&PermissionUpdate::SetMode(mode.clone())).is_ok() {
        cx.emit.emit(Body::Session(Box::new(SessionEvent::ModeChanged { mode }))).await;
    }
}

/// Runs the hooks on the result of a call.
async fn review(
    context: &TurnContext,
    call: &ToolCall,
    outcome: &mut Outcome,
    elapsed_ms: u64,
    cx: &RunContext,
) {
    let failed = outcome.error_code.is_some();
    let event = if failed { HookEvent::PostToolUseFailure } else { HookEvent::PostToolUse };
    if outcome.cancelled || !context.hooks.listens(event) {
        return;
    }
    let response = tool_response::of(call, outcome, context.tools.vocabulary());
    let mut fields = vec![("tool_response", response), ("duration_ms", elapsed_ms.into())];
    if failed {
        fields.extend([("error", outcome.text.as_str().into()), ("is_interrupt", false.into())]);
    }
    let ruling = context.fire(event, Some(call), "", fields, cx).await;
    if let Some(text) = &ruling.updated_output {
        outcome.text = text.to_string();
    }
    if let Some(why) = ruling.block.as_ref().filter(|why| !why.is_empty()) {
        add(outcome, &format!("A hook objects: {why}"));
    }
    if let Some(context) = ruling.context_text() {
        add(outcome, &context);
    }
}

/// Appends to the text that the model gets for a call.
fn add(outcome: &mut Outcome, text: &str) {
    if !outcome.text.is_empty() {
        outcome.text.push_str("\n\n");
    }
    outcome.text.push_str(text);
}

/// Converts a tool's output into events.
struct CallOutput {
    call: Arc<ToolCall>,
    emit: Emitter,
}

impl OutputSink for CallOutput {
    fn output<'a>(
        &'a self,
        channel: Channel,
        text: Box<str>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.emit.emit(Body::ToolOutput { call: self.call.clone(), channel, text }))
    }

    fn display<'a>(&'a self, display: Display) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.emit.emit(Body::ToolDisplay { call: self.call.clone(), display: Box::new(display) }))
    }
}
