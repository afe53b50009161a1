//! One tool call: judged, perhaps asked about, run, and always ended.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use qwen_events::{
    Behavior, Body, Channel, ConsoleLevel, Decision, Denial, Display, Json, LogScope, PermissionAnswer,
    PermissionUpdate, SessionEvent, ToolCall, ToolEnd, ToolResult, ToolStatus, Verdict,
};
use qwen_tools::permissions::GitHardening;
use qwen_tools::{Arguments, Outcome, OutputSink, Tool, ToolCx};
use serde_json::json;

use super::{Kit, host_tool};
use crate::graph::Cx;
use crate::hooks::{HookEvent, Permission};
use crate::log::INTERRUPTED;
use crate::redact::unblotted;
use crate::{Emitter, Question, Stop, structured};

/// How long hooks that are told of a question may keep its answer waiting.
const FAREWELL: Duration = Duration::from_secs(2);

/// What came of a call.
pub(crate) struct Done {
    pub result: ToolResult,
    pub denial: Option<Denial>,
    /// The limit that kept it from running.
    pub limit: Option<Stop>,
    /// It waits for an answer that a later process brings: it has no result, and the log knows of no end.
    pub deferred: bool,
    /// A hook put it off until the session goes on; the same holds for it.
    pub put_off: bool,
}

/// The error code of a call that a hook put off.
const PUT_OFF: &str = "tool_deferred";

/// Runs one call to its end. Whatever happens, there is a result for the model and a `ToolEnd` for readers. A call that
/// was `interrupted` only gets its end. One that is the only one of its message stands `alone`: hooks may put it off.
pub(crate) async fn run(kit: &Kit, call: &Arc<ToolCall>, interrupted: bool, alone: bool, cx: &Cx) -> Done {
    let started = Instant::now();
    let attempted = if interrupted {
        Err(NotRun::Stopped(INTERRUPTED.into()))
    } else {
        attempt(kit, call, alone, cx).await
    };
    let deferred = matches!(attempted, Err(NotRun::Deferred));
    let put_off = matches!(attempted, Err(NotRun::PutOff));
    let (ended, limit) = match attempted {
        Err(NotRun::PutOff) => {
            (Ended::PutOff("not run: a hook put it off until the session goes on".into()), None)
        }
        Err(NotRun::Deferred) => {
            (Ended::Stopped("not run: it waits for an answer that a later run brings".into()), None)
        }
        Ok(outcome) => (Ended::Ran(outcome), None),
        Err(NotRun::Failed(code, text)) => (Ended::Ran(Outcome::failure(code, text)), None),
        Err(NotRun::Denied(text)) => (Ended::Denied(text), None),
        Err(NotRun::Stopped(text)) => (Ended::Stopped(text), None),
        Err(NotRun::Limit(stop)) => {
            (Ended::Stopped("not run: the limit of tool calls is reached".into()), Some(stop))
        }
    };
    let (status, outcome) = match ended {
        Ended::Ran(outcome) if outcome.cancelled => (ToolStatus::Cancelled, outcome),
        Ended::Ran(outcome) if outcome.error_code.is_some() => (ToolStatus::Error, outcome),
        Ended::Ran(outcome) => (ToolStatus::Success, outcome),
        Ended::Denied(text) => (ToolStatus::Denied, Outcome::failure("permission_denied", text)),
        Ended::Stopped(text) => (ToolStatus::Cancelled, Outcome::failure("cancelled", text)),
        Ended::PutOff(text) => (ToolStatus::Cancelled, Outcome::failure(PUT_OFF, text)),
    };
    // What a tool says goes to the model, whose server is not ours: secrets stay here.
    let text: Arc<str> = kit.place.bench.redactor.redact(&outcome.text).into();
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
    let emit = if deferred || put_off { &cx.emit.logged(None) } else { &cx.emit };
    emit.emit(Body::ToolEnd(Box::new(end))).await;
    let denial = (status == ToolStatus::Denied).then(|| Denial {
        tool_name: call.name.clone(),
        call_id: call.id.clone(),
        arguments: call.arguments.clone(),
        reason: text.clone(),
    });
    let result = ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        text,
        media: outcome.media,
        is_error: status != ToolStatus::Success,
    };
    Done { result, denial, limit, deferred, put_off }
}

enum Ended {
    Ran(Outcome),
    Denied(String),
    Stopped(String),
    PutOff(String),
}

/// Why a call did not run.
enum NotRun {
    /// It makes no sense.
    Failed(&'static str, String),
    /// It may not.
    Denied(String),
    /// The turn is ending.
    Stopped(String),
    /// A limit forbids it.
    Limit(Stop),
    /// Nobody answers now, but somebody will.
    Deferred,
    /// A hook wants it decided about when the session goes on.
    PutOff,
}

async fn attempt(kit: &Kit, call: &Arc<ToolCall>, alone: bool, cx: &Cx) -> Result<Outcome, NotRun> {
    if let Some(text) = &call.malformed {
        let shown: String = text.chars().take(200).collect();
        return Err(NotRun::Failed(
            "invalid_arguments",
            format!("The arguments of {} must be one JSON object, but they were: {shown}", call.name),
        ));
    }
    // From here on it is a call of that other tool: rules, hooks and whoever is asked see what runs.
    let call = &match kit.dials.alias(&call.name) {
        Some(name) => Arc::new(ToolCall { name, ..(**call).clone() }),
        None => call.clone(),
    };
    let wanted = kit.structured.as_ref().filter(|_| structured::is_tool(&call.name));
    let name = if wanted.is_some() { structured::TOOL } else { &call.name };
    let Some(tool) = kit.tools.get(name) else {
        let names: Vec<String> = kit.tools.specs().iter().map(|s| s.name.to_string()).collect();
        return Err(NotRun::Failed(
            "unknown_tool",
            format!("There is no tool called '{}'. The tools are: {}.", call.name, names.join(", ")),
        ));
    };
    // What an MCP server makes of its arguments is its own affair.
    if !call.name.starts_with("mcp__")
        && let Err(error) = Arguments::check_names(call, tool.spec())
    {
        return Err(NotRun::Failed("invalid_arguments", error.to_string()));
    }
    let by_host = kit.host_tools.contains(&tool.spec().name);
    // Nobody is asked about a call that cannot run. What a host's own tools need is its own affair too.
    if !by_host
        && !call.name.starts_with("mcp__")
        && let Err(error) = Arguments::check_required(call, tool.spec())
    {
        return Err(NotRun::Failed("invalid_arguments", error.to_string()));
    }
    if cx.cancel.is_stopped() {
        return Err(NotRun::Stopped("not run: the turn was cancelled".into()));
    }
    if wanted.is_none() {
        cx.budget.tool_call().map_err(NotRun::Limit)?;
    }
    let mut tool_cx = ToolCx {
        cwd: kit.place.cwd.clone(),
        extra_roots: kit.place.extra_roots.clone(),
        cancel: cx.cancel.token().clone(),
        output: Arc::new(CallOutput { call: call.clone(), emit: cx.emit.clone() }),
        bench: kit.place.bench.clone(),
        harden_git: None,
        trace: None,
    };
    let permitted = if wanted.is_some() {
        // To answer needs nobody's leave.
        Permitted { call: call.clone(), harden_git: None, context: None }
    } else {
        consult(kit, call, alone, tool.as_ref(), &tool_cx, cx).await?
    };
    tool_cx.harden_git.clone_from(&permitted.harden_git);
    let added = kit.permissions.added_directories();
    if !added.is_empty() {
        tool_cx.extra_roots = kit.place.extra_roots.iter().cloned().chain(added).collect();
    }
    cx.emit.emit(Body::ToolStart(permitted.call.clone())).await;
    tool_cx.trace = cx.emit.place_of(&call.id);
    let mut outcome = if by_host {
        host_tool::wait(kit, &permitted.call, cx).await
    } else {
        let _runs = (!kit.beside).then(|| kit.dials.bustle().runs(call));
        tool.run(&permitted.call, &tool_cx).await
    };
    // The model may have called it by another of its names.
    let is_exit = &*tool.spec().name == "exit_plan_mode";
    if is_exit && outcome.error_code.is_none() && kit.permissions.mode() == "plan" {
        leave_plan_mode(kit, cx).await;
    }
    if let Some(context) = &permitted.context {
        add(&mut outcome, context);
    }
    review(kit, &permitted.call, &mut outcome, cx).await;
    Ok(outcome)
}

/// Somebody agreed to the plan: work may begin, with questions as ever.
async fn leave_plan_mode(kit: &Kit, cx: &Cx) {
    let mode: Arc<str> = "default".into();
    if kit.permissions.update(&PermissionUpdate::SetMode(mode.clone())).is_ok() {
        cx.emit.emit(Body::Session(Box::new(SessionEvent::ModeChanged { mode }))).await;
    }
}

/// A call that may run, perhaps changed by an answer.
struct Permitted {
    call: Arc<ToolCall>,
    harden_git: Option<GitHardening>,
    /// What hooks want the model to know.
    context: Option<String>,
}

/// Asks the hooks about the call, then judges it as they left it.
async fn consult(
    kit: &Kit,
    call: &Arc<ToolCall>,
    alone: bool,
    tool: &dyn Tool,
    tool_cx: &ToolCx,
    cx: &Cx,
) -> Result<Permitted, NotRun> {
    if !kit.hooks.listens(HookEvent::PreToolUse) {
        return permit(kit, call, None, tool, tool_cx, cx).await;
    }
    let ruling = kit.fire(HookEvent::PreToolUse, Some(call), "", Vec::new(), cx).await;
    if let Some(why) = &ruling.stop {
        return Err(NotRun::Denied(format!(
            "The call of {} was declined: a hook ended the turn: {why}",
            call.name
        )));
    }
    if cx.cancel.is_stopped() {
        return Err(NotRun::Stopped("not run: the turn was cancelled".into()));
    }
    let context = ruling.context_text();
    let word = match ruling.permission {
        // A sub-agent and a thought end with their turn: nobody could come back to their calls.
        Some((Permission::Defer, _)) if alone && !cx.emit.is_in_call() => return Err(NotRun::PutOff),
        Some((Permission::Defer, _)) => {
            not_put_off(call, cx).await;
            None
        }
        word => word,
    };
    let call = match ruling.updated_input {
        Some(arguments) => changed(kit, call, &arguments)?,
        None => call.clone(),
    };
    let permitted = permit(kit, &call, word, tool, tool_cx, cx).await?;
    Ok(Permitted { context, ..permitted })
}

/// Tells that a hook's wish to put off a call is not heeded.
async fn not_put_off(call: &ToolCall, cx: &Cx) {
    let text = format!(
        "a hook wants to put off the call of {}, which is only possible for a call of the main agent that is the only \
         one of its message; it is judged as if the hook had said nothing",
        call.name
    );
    let body = Body::Console { level: ConsoleLevel::Warn, scope: LogScope::System, text: text.into() };
    cx.emit.emit(body).await;
}

/// Lets the hooks see what a call gave back.
async fn review(kit: &Kit, call: &ToolCall, outcome: &mut Outcome, cx: &Cx) {
    let failed = outcome.error_code.is_some();
    let event = if failed { HookEvent::PostToolUseFailure } else { HookEvent::PostToolUse };
    if outcome.cancelled || !kit.hooks.listens(event) {
        return;
    }
    let response = json!({"output": outcome.text, "is_error": failed, "exit_code": outcome.exit_code});
    let mut fields = vec![("tool_response", response)];
    if failed {
        fields.push(("error", outcome.text.as_str().into()));
    }
    let ruling = kit.fire(event, Some(call), "", fields, cx).await;
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

/// Adds to what the model is told of a call.
fn add(outcome: &mut Outcome, text: &str) {
    if !outcome.text.is_empty() {
        outcome.text.push_str("\n\n");
    }
    outcome.text.push_str(text);
}

/// What the rules and the hooks say together. A hook can spare a question and force one, but never allow what the
/// rules forbid.
fn overrule(decision: &mut Decision, word: Option<(Permission, Arc<str>)>) {
    let Some((word, why)) = word else { return };
    let verdict = match (decision.verdict, word) {
        (Verdict::Deny, _)
        | (_, Permission::Defer)
        | (Verdict::Allow, Permission::Allow)
        | (Verdict::Ask, Permission::Ask) => return,
        (_, Permission::Deny) => Verdict::Deny,
        (Verdict::Allow, Permission::Ask) => Verdict::Ask,
        (Verdict::Ask, Permission::Allow) => Verdict::Allow,
    };
    let reason = if why.is_empty() { "a hook says so".into() } else { why };
    *decision = Decision { verdict, reason, rule: None };
}

/// Judges the call and asks where that is needed.
async fn permit(
    kit: &Kit,
    call: &Arc<ToolCall>,
    word: Option<(Permission, Arc<str>)>,
    tool: &dyn Tool,
    tool_cx: &ToolCx,
    cx: &Cx,
) -> Result<Permitted, NotRun> {
    let mut judgement = kit.permissions.judge(call);
    if judgement.decision.verdict == Verdict::Allow && kit.mcp.has_changed(&call.name) {
        judgement.decision.verdict = Verdict::Ask;
        judgement.decision.reason = "The tool describes itself differently than when it was allowed.".into();
    }
    if judgement.decision.verdict == Verdict::Ask && kit.host_tools.contains(&tool.spec().name) {
        // Nobody is asked about what the host runs: it decides that itself. What the rules forbid stays forbidden.
        judgement.decision.verdict = Verdict::Allow;
        judgement.decision.reason = "The host runs it.".into();
    }
    overrule(&mut judgement.decision, word);
    let mut call = call.clone();
    if judgement.decision.verdict == Verdict::Ask && kit.hooks.listens(HookEvent::PermissionRequest) {
        let ruling = kit.fire(HookEvent::PermissionRequest, Some(&call), "", Vec::new(), cx).await;
        if let Some(arguments) = ruling.updated_input {
            call = changed(kit, &call, &arguments)?;
            judgement = kit.permissions.judge(&call);
        }
        overrule(&mut judgement.decision, ruling.permission);
    }
    let decision = &judgement.decision;
    cx.emit.emit(Body::Decision { call: call.clone(), decision: decision.clone() }).await;
    match decision.verdict {
        Verdict::Allow => Ok(Permitted { call, harden_git: judgement.harden_git, context: None }),
        Verdict::Deny => {
            Err(NotRun::Denied(format!("The call of {} was declined: {}", call.name, decision.reason)))
        }
        Verdict::Ask if !kit.host.listens() => Err(NotRun::Denied(format!(
            "{} requires permission, and nobody is there to give it: {}",
            call.name, decision.reason
        ))),
        Verdict::Ask => {
            let question = Question {
                asker: kit.asker.clone(),
                call: call.clone(),
                confirmation: kit.permissions.confirmation(&call, tool, tool_cx),
                reason: decision.reason.clone(),
                blocked_path: judgement.blocked_path.as_ref().map(|path| path.to_string_lossy().into()),
            };
            ask(kit, question, cx).await
        }
    }
}

async fn ask(kit: &Kit, question: Question, cx: &Cx) -> Result<Permitted, NotRun> {
    let call = question.call.clone();
    let reason = question.reason.clone();
    let approval = Body::Approval {
        call: call.clone(),
        confirmation: Box::new(question.confirmation.clone()),
        reason: reason.clone(),
    };
    cx.emit.emit(approval).await;
    if kit.host.defers(&call) {
        return Err(NotRun::Deferred);
    }
    let answer = {
        let mut asked = pin!(kit.host.ask(question, cx.cancel.token()));
        let mut told = pin!(notify(kit, &call, &reason, cx));
        tokio::select! {
            biased;
            answer = &mut asked => {
                // Who was told need not have heard the whole of it once the answer is there.
                let _ = tokio::time::timeout(FAREWELL, told).await;
                answer
            }
            () = &mut told => asked.await,
        }
    };
    if cx.cancel.is_stopped() {
        return Err(NotRun::Stopped("not run: the turn was cancelled".into()));
    }
    let PermissionAnswer { behavior, message, updated_input, updated_permissions, interrupt } = answer;
    if interrupt {
        cx.cancel.stop(Stop::cancelled());
    }
    if behavior != Behavior::Allow {
        let why = message.unwrap_or(reason);
        return Err(NotRun::Denied(format!("The call of {} was declined: {why}", call.name)));
    }
    if let Err(error) = kit.permissions.update_all(&updated_permissions) {
        // An answer that cannot be understood as a whole is none that allows.
        let why = error.message.clone();
        cx.emit.emit(Body::Error(Box::new(error))).await;
        return Err(NotRun::Denied(format!("The call of {} was declined: {why}", call.name)));
    }
    kit.mcp.accept(&call.name);
    let Some(arguments) = updated_input else {
        return Ok(Permitted { call, harden_git: None, context: None });
    };
    let changed = changed(kit, &call, &arguments)?;
    // Changed input is judged again: what the rules forbid stays forbidden, whoever wrote it.
    let again = kit.permissions.judge(&changed);
    if again.decision.verdict == Verdict::Deny {
        let why = &again.decision.reason;
        return Err(NotRun::Denied(format!("The changed call of {} was declined: {why}", call.name)));
    }
    Ok(Permitted { call: changed, harden_git: None, context: None })
}

/// The call with its input as a host or a hook wants it. They were shown it without its secrets, so what they give back
/// unchanged gets them back.
fn changed(kit: &Kit, call: &Arc<ToolCall>, wanted: &Json) -> Result<Arc<ToolCall>, NotRun> {
    match unblotted(&kit.place.bench.redactor, &call.arguments, wanted) {
        Ok(arguments) => Ok(Arc::new(ToolCall { arguments, ..(**call).clone() })),
        Err(blotted) => {
            Err(NotRun::Denied(format!("The changed call of {} was declined: {blotted}", call.name)))
        }
    }
}

/// Tells the hooks that someone's attention is wanted.
async fn notify(kit: &Kit, call: &ToolCall, reason: &str, cx: &Cx) {
    if kit.hooks.listens(HookEvent::Notification) {
        let message = format!("{} requires permission: {reason}", call.name);
        let fields = vec![("message", message.into()), ("notification_type", "permission_prompt".into())];
        kit.fire(HookEvent::Notification, None, "permission_prompt", fields, cx).await;
    }
}

/// Turns what a tool says into events.
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
