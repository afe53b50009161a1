//! One tool call: permission check, execution, and an end in every case.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use qwen_events::{
    Body, Channel, Denial, Display, PermissionUpdate, SessionEvent, ToolCall, ToolEnd, ToolKind, ToolResult,
    ToolStatus, Verdict,
};
use qwen_tools::{Arguments, CallContext, Outcome, OutputSink, Tool};

use super::call_order::{CallPlace, Missing, is_file_change, would_change};
use super::permit::{Permitted, consult};
use super::{argument_schema, guarded_call, host_tool, parse_arguments};
use crate::context::TurnContext;
use crate::graph::RunContext;
use crate::hooks::{HookEvent, tool_response};
use crate::log::INTERRUPTED;
use crate::permissions::RefusedCall;
use crate::{Emitter, Stop, TOOLS, structured};

/// The circumstances under which a call starts.
pub struct CallStart<'a> {
    /// It was running when an earlier process died: it only gets its end.
    pub interrupted: bool,
    /// It is the only call of its message: hooks may postpone it.
    pub alone: bool,
    /// Its place among the calls of its message.
    pub place: CallPlace<'a>,
}

/// The outcome of a call.
pub struct CallOutcome {
    pub result: ToolResult,
    pub denial: Option<Denial>,
    /// The limit that prevented it from running.
    pub limit: Option<Stop>,
    pub openness: Openness,
    /// What hooks and the user's answer add for the model. It is not part of the tool's result.
    pub hook_notes: Vec<String>,
}

/// Whether a call has ended. An open call has no result, and the log records no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Openness {
    Ended,
    /// It waits for an answer that a later process receives.
    Deferred,
    /// An earlier call of its message is deferred.
    Held,
    /// A hook postponed it until the session continues.
    Postponed,
}

/// The result of a call that an interrupt kept from running.
pub(super) const CANCELLED: &str = "not run: the turn was cancelled";

/// The error code of a call that a hook postponed.
const POSTPONED: &str = "tool_deferred";

/// Runs one call to its end, after the earlier calls of its message that it must not overlap. In every case
/// the model gets a result and readers get a `ToolEnd`.
pub async fn run_call(
    context: &TurnContext,
    call: &Arc<ToolCall>,
    start: CallStart<'_>,
    cx: &RunContext,
) -> CallOutcome {
    start.place.wait_for_changes().await;
    let started = Instant::now();
    let mut judged = call.clone();
    let mut hook_notes = Vec::new();
    let attempted = if start.interrupted {
        Err(NotRun::Interrupted)
    } else {
        attempt(context, &mut judged, &start, &mut hook_notes, cx).await
    };
    let openness = match &attempted {
        Err(NotRun::Deferred) => Openness::Deferred,
        Err(NotRun::Held) => Openness::Held,
        Err(NotRun::Postponed) => Openness::Postponed,
        Ok(_)
        | Err(
            NotRun::Failed(..)
            | NotRun::Denied(_)
            | NotRun::Stopped(_)
            | NotRun::Limit(_)
            | NotRun::Interrupted,
        ) => Openness::Ended,
    };
    if openness == Openness::Deferred {
        start.place.hold_later_calls();
    }
    note_missing(context, &judged, &attempted, &start.place);
    let reason = match &attempted {
        Err(NotRun::Denied(refusal)) => {
            Some(context.session.resources.redactor.redact(&refusal.reason).into())
        }
        _ => None,
    };
    let Ended { status, mut outcome, limit, takes_note } = end_of(attempted);
    if let Some(note) = start.place.missing_note().filter(|_| takes_note) {
        outcome.text = format!("{note}\n{}", outcome.text);
    }
    // Tool output goes to the model's server, a third party, so secrets are redacted.
    let text: Arc<str> = context.session.resources.redactor.redact(&outcome.text).into();
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
    let emit = if openness == Openness::Ended { &cx.emit } else { &cx.emit.logged(None) };
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
    for note in &mut hook_notes {
        *note = context.session.resources.redactor.redact(note).into_owned();
    }
    CallOutcome { result, denial, limit, openness, hook_notes }
}

/// How a call ended.
struct Ended {
    status: ToolStatus,
    outcome: Outcome,
    limit: Option<Stop>,
    /// True if the result begins with the note about earlier calls that did not take effect.
    takes_note: bool,
}

fn end_of(attempted: Result<Outcome, NotRun>) -> Ended {
    let stopped = |text: &str| (ToolStatus::Cancelled, Outcome::failure("cancelled", text));
    let takes_note = matches!(attempted, Ok(_) | Err(NotRun::Failed(..) | NotRun::Denied(_)));
    let mut limit = None;
    let (status, outcome) = match attempted {
        Ok(outcome) if outcome.cancelled => (ToolStatus::Cancelled, outcome),
        Ok(outcome) if outcome.error_code.is_some() => (ToolStatus::Error, outcome),
        Ok(outcome) => (ToolStatus::Success, outcome),
        Err(NotRun::Failed(code, text)) => (ToolStatus::Error, Outcome::failure(code, text)),
        Err(NotRun::Denied(refusal)) => {
            (ToolStatus::Denied, Outcome::failure("permission_denied", refusal.text))
        }
        Err(NotRun::Stopped(text)) => stopped(&text),
        Err(NotRun::Interrupted) => stopped(INTERRUPTED),
        Err(NotRun::Deferred) => stopped("not run: it waits for an answer in a later run"),
        Err(NotRun::Held) => {
            stopped("not run: an earlier call of the message waits for an answer in a later run")
        }
        Err(NotRun::Limit(stop)) => {
            limit = Some(stop);
            stopped("not run: the limit of tool calls is reached")
        }
        Err(NotRun::Postponed) => (
            ToolStatus::Cancelled,
            Outcome::failure(POSTPONED, "not run: a hook postponed it until the session continues"),
        ),
    };
    Ended { status, outcome, limit, takes_note }
}

/// Records a call that would have changed something and did not, for the results of later calls.
fn note_missing(
    context: &TurnContext,
    call: &ToolCall,
    attempted: &Result<Outcome, NotRun>,
    place: &CallPlace<'_>,
) {
    if matches!(attempted, Ok(outcome) if outcome.error_code.is_none()) {
        return;
    }
    let tool = context.tools.get(&call.name);
    let declaration = tool.map_or_else(|| TOOLS.find(&call.name), |tool| tool.declaration());
    let kind = match (tool, declaration) {
        (_, Some(declaration)) => declaration.kind,
        (Some(_), None) => ToolKind::Undeclared,
        (None, None) => return,
    };
    let starts_writer = || tool.is_some_and(|tool| kind == ToolKind::Session && !tool.only_reads(call));
    let why = match attempted {
        Ok(outcome) if is_file_change(kind) && !outcome.cancelled => Missing::Failed,
        // A command that ran and failed did happen.
        Ok(outcome) if kind == ToolKind::Execute && outcome.error_code == Some("spawn_failed") => {
            Missing::Failed
        }
        Err(NotRun::Failed(..)) if would_change(kind) => Missing::Failed,
        Err(NotRun::Denied(_)) if would_change(kind) || starts_writer() => Missing::Refused,
        Err(NotRun::Interrupted) if would_change(kind) => Missing::Interrupted,
        Ok(_)
        | Err(
            NotRun::Failed(..)
            | NotRun::Denied(_)
            | NotRun::Stopped(_)
            | NotRun::Limit(_)
            | NotRun::Deferred
            | NotRun::Held
            | NotRun::Postponed
            | NotRun::Interrupted,
        ) => return,
    };
    let refused = RefusedCall { call, declaration, blocked_path: None };
    let subject = context.session.process.permissions.subject(&refused).filter(|subject| !subject.is_empty());
    place.note_missing(call, subject.as_deref(), why);
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
    /// An earlier call of the message waits for an answer that will arrive in a later process.
    Held,
    /// An earlier process ended while the call ran.
    Interrupted,
    /// A hook postponed the decision until the session continues.
    Postponed,
}

/// Runs a call if it may run. Leaves in `judged` the call that rules, hooks and questions saw.
async fn attempt(
    context: &TurnContext,
    judged: &mut Arc<ToolCall>,
    start: &CallStart<'_>,
    hook_notes: &mut Vec<String>,
    cx: &RunContext,
) -> Result<Outcome, NotRun> {
    let tool = find_tool(context, judged)?;
    if tool.is_deferrable() {
        context.session.loaded_tools.load(&tool.spec().name);
    }
    let answers = context.structured.is_some() && structured::is_tool(&judged.name);
    let by_host = context.host_tools.contains(&tool.spec().name);
    check_arguments(judged, tool.as_ref(), answers, by_host)?;
    check_mode(context, judged, tool.as_ref())?;
    // Every command of a sub-agent starts in its working directory.
    let carries_directory = !cx.emit.is_in_call() && !context.in_background;
    guarded_call::set_directories(judged, tool.as_ref(), context, carries_directory)?;
    let call = &*judged;
    if start.place.overlaps() && !may_overlap(context, call, tool.as_ref()) {
        start.place.wait_for_earlier().await;
    }
    if cx.cancel.is_stopped() {
        return Err(NotRun::Stopped(CANCELLED.into()));
    }
    if !answers {
        cx.budget.tool_call().map_err(NotRun::Limit)?;
    }
    let output = Arc::new(CallOutput { call: call.clone(), emit: cx.emit.clone() });
    let mut call_context =
        CallContext::new(context.session.resources.clone(), cx.cancel.token().clone(), output);
    call_context.carries_directory = carries_directory;
    let permitted = if answers {
        // Answering needs no permission.
        Permitted::as_it_is(call.clone())
    } else {
        consult(context, call, start.alone, tool.as_ref(), &call_context, cx).await?
    };
    if start.place.is_held() {
        return Err(NotRun::Held);
    }
    let moves = carries_directory && guarded_call::may_change_directory(&permitted.call, tool.declaration());
    if !by_host && !moves && (permitted.read_only || tool.only_reads(&permitted.call)) {
        start.place.start_reading();
    } else {
        start.place.wait_for_earlier().await;
    }
    grant(context, &permitted, &mut call_context);
    announce(context, &permitted.call, cx).await?;
    call_context.trace = cx.emit.context_of(&call.id);
    let _asks = context.session.process.network.begin_call(&context.origin, &cx.cancel);
    let started = Instant::now();
    let mut outcome = if by_host {
        host_tool::wait(context, &permitted.call, cx).await
    } else {
        let _runs = (!context.in_background)
            .then(|| context.session.process.overrides.in_flight().track_running(call));
        tool.run(&permitted.call, &call_context).await
    };
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if tool.declaration().is_some_and(|declaration| declaration.kind == ToolKind::ExitPlan)
        && outcome.error_code.is_none()
        && context.session.process.permissions.mode() == "plan"
    {
        leave_plan_mode(context, cx).await;
    }
    if outcome.needs_write_access {
        context.session.process.permissions.note_failed_read_only(&permitted.call, tool.declaration());
    }
    hook_notes.extend(permitted.answer_note.clone());
    hook_notes.extend(permitted.context.as_deref().map(|text| label(HookEvent::PreToolUse, call, text)));
    hook_notes.extend(review(context, &permitted.call, &mut outcome, elapsed_ms, cx).await);
    Ok(outcome)
}

/// The tool of a call. From here on the call uses the alias target and the session's name for the tool, so
/// that rules, hooks and permission questions see the tool that runs.
fn find_tool<'a>(context: &'a TurnContext, judged: &mut Arc<ToolCall>) -> Result<&'a Arc<dyn Tool>, NotRun> {
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
    if let Some(name) = context.session.process.overrides.alias(&judged.name) {
        *judged = Arc::new(ToolCall { name, ..(**judged).clone() });
    }
    let answers = context.structured.is_some() && structured::is_tool(&judged.name);
    let name = if answers { structured::TOOL } else { &judged.name };
    let Some(tool) = context.tools.get(name) else {
        return Err(not_offered(context, judged));
    };
    if !answers {
        *judged = guarded_call::guard(judged, tool.as_ref(), context);
    }
    Ok(tool)
}

/// Fails for a plan outside plan mode: no one is asked to approve it.
fn check_mode(context: &TurnContext, call: &ToolCall, tool: &dyn Tool) -> Result<(), NotRun> {
    let is_exit = tool.declaration().is_some_and(|declaration| declaration.kind == ToolKind::ExitPlan);
    if !is_exit || context.session.process.permissions.mode() == "plan" {
        return Ok(());
    }
    let text = format!("{} is for plan mode only, and the session is not in plan mode.", call.name);
    Err(NotRun::Failed("not_in_plan_mode", text))
}

/// Fails if the arguments do not match the tool's schema: no permission question is asked about a call that
/// cannot run. The result tool validates its arguments itself and counts mismatches.
fn check_arguments(call: &ToolCall, tool: &dyn Tool, answers: bool, by_host: bool) -> Result<(), NotRun> {
    let is_foreign =
        by_host || tool.declaration().is_some_and(|declaration| declaration.kind == ToolKind::Mcp);
    let checked = if answers {
        Ok(())
    } else if is_foreign {
        argument_schema::check(call, tool.spec())
    } else {
        Arguments::check(call, tool.spec()).map_err(|error| error.to_string())
    };
    checked.map_err(|problem| NotRun::Failed("invalid_arguments", problem))
}

/// True if a call is expected to run without a question and to only read, before hooks have seen it.
fn may_overlap(context: &TurnContext, call: &ToolCall, tool: &dyn Tool) -> bool {
    let judgement = context.session.process.permissions.judge(call, tool.declaration());
    judgement.decision.verdict == Verdict::Allow && (judgement.read_only || tool.only_reads(call))
}

/// Gives a call the access that was decided for it.
fn grant(context: &TurnContext, permitted: &Permitted, call_context: &mut CallContext) {
    call_context.harden_git.clone_from(&permitted.harden_git);
    call_context.read_only = permitted.read_only;
    let mut added = context.session.process.permissions.added_directories();
    added.extend(permitted.granted.clone());
    if !added.is_empty() {
        call_context.granted_roots =
            context.session.resources.extra_roots.iter().cloned().chain(added).collect();
    }
}

/// Announces the start of a call, once the host lets work start. Fails if the turn ends first.
async fn announce(context: &TurnContext, call: &Arc<ToolCall>, cx: &RunContext) -> Result<(), NotRun> {
    tokio::select! {
        biased;
        _ = cx.cancel.stopped() => return Err(NotRun::Stopped(CANCELLED.into())),
        () = context.answering_host.may_start() => {}
    }
    cx.emit.emit(Body::ToolStart(call.clone())).await;
    if let Some(error) = context.answering_host.refusal() {
        let text = format!("not run: {error}");
        cx.cancel.stop(Stop::refused(error));
        return Err(NotRun::Stopped(text));
    }
    Ok(())
}

/// Why a call of a tool that the session does not offer does not run: a rule denies it, or there is no such
/// tool.
fn not_offered(context: &TurnContext, call: &ToolCall) -> NotRun {
    let names: Vec<String> = context.usable_tools().iter().map(|spec| spec.name.to_string()).collect();
    let offered = format!("The tools are: {}.", names.join(", "));
    let Some(declaration) = TOOLS.find(&call.name) else {
        let text = format!("There is no tool called '{}'. {offered}", call.name);
        return NotRun::Failed("unknown_tool", text);
    };
    let text = format!(
        "Permission for {} was declined by a permission rule: this session does not offer it. {offered}",
        call.name
    );
    match context.session.process.permissions.judge(call, Some(declaration)).decision.verdict {
        Verdict::Deny => {
            NotRun::Denied(Refusal { text, reason: "this session does not offer the tool".into() })
        }
        Verdict::Allow | Verdict::Ask => NotRun::Failed("unknown_tool", text),
    }
}

/// Leaves plan mode after the plan was approved; permission questions are asked as usual.
async fn leave_plan_mode(context: &TurnContext, cx: &RunContext) {
    let mode: Arc<str> = "default".into();
    if context.session.process.permissions.update(&PermissionUpdate::SetMode(mode.clone())).is_ok() {
        cx.emit.emit(Body::Session(Box::new(SessionEvent::ModeChanged { mode }))).await;
    }
}

/// Text of a hook about a call, labelled as the hook's.
fn label(event: HookEvent, call: &ToolCall, text: &str) -> String {
    format!("A {} hook adds to the call {} of {}:\n{text}", event.name(), call.id, call.name)
}

/// Runs the hooks on the result of a call and returns what they add for the model.
async fn review(
    context: &TurnContext,
    call: &ToolCall,
    outcome: &mut Outcome,
    elapsed_ms: u64,
    cx: &RunContext,
) -> Vec<String> {
    let failed = outcome.error_code.is_some();
    let event = if failed { HookEvent::PostToolUseFailure } else { HookEvent::PostToolUse };
    if outcome.cancelled || !context.session.process.hooks.listens(event) {
        return Vec::new();
    }
    let response = tool_response::build(call, outcome, elapsed_ms, context.tools.vocabulary());
    let mut fields = vec![("tool_response", response), ("duration_ms", elapsed_ms.into())];
    if failed {
        fields.extend([("error", outcome.text.as_str().into()), ("is_interrupt", false.into())]);
    }
    let ruling = context.fire(event, Some(call), "", fields, cx).await;
    if let Some(text) = &ruling.updated_output {
        outcome.text = text.to_string();
    }
    let objection = ruling.block.as_ref().filter(|why| !why.is_empty());
    let objection = objection.map(|why| label(event, call, &format!("It objects: {why}")));
    let added = ruling.context_text().map(|text| label(event, call, &text));
    objection.into_iter().chain(added).collect()
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
