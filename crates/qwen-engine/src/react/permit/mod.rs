//! Decides whether a call may run: hooks, rules and the host's answer.

mod refusal;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{
    Behavior, Body, ConsoleLevel, Decision, Json, LogScope, PermissionAnswer, PermissionUpdate, ToolCall,
    ToolDeclaration, ToolKind, Verdict,
};
use qwen_permissions::{GitHardening, Judgement};
use qwen_tools::{CallContext, Tool};
use serde_json::{Map, Value};

use super::call::{CANCELLED, NotRun, Refusal};
use crate::context::{Audience, TurnContext};
use crate::graph::RunContext;
use crate::hooks::{HookEvent, Permission};
use crate::redact::restore_redacted;
use crate::{Question, Stop};

/// How long notified hooks may delay the answer to a question.
const HOOK_LIMIT: Duration = Duration::from_secs(2);

/// A call that may run, possibly changed by an answer.
pub(super) struct Permitted {
    pub call: Arc<ToolCall>,
    /// It runs without approval because it only reads, so nothing but reading may be possible while it runs.
    pub read_only: bool,
    pub harden_git: Option<GitHardening>,
    /// The directories outside the workspace that the decision or the approved question named. Only this call
    /// may use them.
    pub granted: Vec<PathBuf>,
    /// Additional context for the model, from hooks.
    pub context: Option<String>,
    /// What the model must know about the answer of a user.
    pub answer_note: Option<String>,
}

impl Permitted {
    /// The unchanged call without additional context.
    pub(super) fn as_it_is(call: Arc<ToolCall>) -> Self {
        Self {
            call,
            read_only: false,
            harden_git: None,
            granted: Vec::new(),
            context: None,
            answer_note: None,
        }
    }

    /// A call that the rules and the mode allow.
    fn by_rules(turn: &TurnContext, call: Arc<ToolCall>, judgement: Judgement) -> Self {
        let Judgement { read_only, harden_git, granted_paths, blocked_path, .. } = judgement;
        let granted = directories_of(turn, granted_paths.into_iter().chain(blocked_path));
        Self { call, read_only, harden_git, granted, context: None, answer_note: None }
    }
}

/// Runs the hooks on the call, then judges the call as they changed it. Hooks may postpone a call that is
/// `alone`.
pub(super) async fn consult(
    turn: &TurnContext,
    call: &Arc<ToolCall>,
    alone: bool,
    tool: &dyn Tool,
    call_context: &CallContext,
    cx: &RunContext,
) -> Result<Permitted, NotRun> {
    if !turn.session.process.hooks.listens(HookEvent::PreToolUse) {
        return permit(turn, call, None, tool, call_context, cx).await;
    }
    let ruling = turn.fire(HookEvent::PreToolUse, Some(call), "", Vec::new(), cx).await;
    if let Some(why) = &ruling.stop {
        let text =
            format!("Permission for {} was declined by a hook, which ended the turn: {why}", call.name);
        return Err(NotRun::Denied(Refusal { text, reason: why.as_ref().into() }));
    }
    if cx.cancel.is_stopped() {
        return Err(NotRun::Stopped(CANCELLED.into()));
    }
    let context = ruling.context_text();
    let word = match ruling.permission {
        // Sub-agents and thoughts end with their turn, so their calls cannot be resumed later.
        Some((Permission::Defer, _)) if alone && !cx.emit.is_in_call() => return Err(NotRun::Postponed),
        Some((Permission::Defer, _)) => {
            cannot_postpone(call, cx).await;
            None
        }
        word => word,
    };
    let call = match ruling.updated_input {
        Some(arguments) => changed(turn, call, &arguments)?,
        None => call.clone(),
    };
    let permitted = permit(turn, &call, word, tool, call_context, cx).await?;
    Ok(Permitted { context, ..permitted })
}

/// Reports that a hook's request to postpone a call is ignored.
async fn cannot_postpone(call: &ToolCall, cx: &RunContext) {
    let text = format!(
        "a hook wants to put off the call of {}, which is only possible for a call of the main agent that is the only \
         one of its message; it is judged as if the hook had said nothing",
        call.name
    );
    let body = Body::Console { level: ConsoleLevel::Warn, scope: LogScope::System, text: text.into() };
    cx.emit.emit(body).await;
}

/// Combines the verdicts of rules and hooks. A hook can skip or force a question, but never allow what the
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
    let reason = if why.is_empty() { "the hook gave no reason".into() } else { why };
    *decision = Decision { verdict, reason, rule: None };
}

/// Judges the call and asks for permission if needed.
async fn permit(
    turn: &TurnContext,
    call: &Arc<ToolCall>,
    word: Option<(Permission, Arc<str>)>,
    tool: &dyn Tool,
    call_context: &CallContext,
    cx: &RunContext,
) -> Result<Permitted, NotRun> {
    let mut judgement = turn.session.process.permissions.judge(call, tool.declaration());
    if judgement.decision.verdict == Verdict::Allow && turn.session.process.mcp.has_changed(&call.name) {
        judgement.decision.verdict = Verdict::Ask;
        judgement.decision.reason = "The tool describes itself differently than when it was allowed.".into();
    }
    if judgement.decision.verdict == Verdict::Ask && turn.host_tools.contains(&tool.spec().name) {
        // No question is asked about host tools, because the host decides itself. Deny rules still apply.
        judgement.decision.verdict = Verdict::Allow;
        judgement.decision.reason = "The host runs it.".into();
    }
    let mut denied_by_rules = judgement.decision.verdict == Verdict::Deny;
    // A question that a rule asks for is not the hook's to skip.
    let asked_by_rule = judgement.decision.rule.is_some();
    overrule(
        &mut judgement.decision,
        word.filter(|(word, _)| !(asked_by_rule && *word == Permission::Allow)),
    );
    let mut call = call.clone();
    if judgement.decision.verdict == Verdict::Ask
        && turn.session.process.hooks.listens(HookEvent::PermissionRequest)
    {
        let ruling = turn.fire(HookEvent::PermissionRequest, Some(&call), "", Vec::new(), cx).await;
        if let Some(arguments) = ruling.updated_input {
            call = changed(turn, &call, &arguments)?;
            judgement = turn.session.process.permissions.judge(&call, tool.declaration());
            denied_by_rules = judgement.decision.verdict == Verdict::Deny;
        }
        overrule(&mut judgement.decision, ruling.permission);
    }
    let decision = &judgement.decision;
    let by_hook = !denied_by_rules && decision.verdict == Verdict::Deny;
    cx.emit.emit(Body::Decision { call: call.clone(), decision: decision.clone() }).await;
    match decision.verdict {
        Verdict::Allow => Ok(Permitted::by_rules(turn, call, judgement)),
        Verdict::Deny => Err(NotRun::Denied(refusal::forbidden(turn, &call, tool, decision, by_hook))),
        Verdict::Ask
            if !turn.answering_host.listens()
                || turn.session.process.permissions.denies_instead_of_asking() =>
        {
            let blocked = judgement.blocked_path.as_deref();
            Err(NotRun::Denied(refusal::unanswerable(turn, &call, tool, decision, blocked)))
        }
        Verdict::Ask => {
            if let Some(failure) = tool.check(&call, call_context) {
                return Err(NotRun::Failed(failure.error_code.unwrap_or("invalid_arguments"), failure.text));
            }
            let question = Question {
                origin: turn.origin.clone(),
                call: call.clone(),
                confirmation: turn.session.process.permissions.confirmation(&call, tool, call_context),
                reason: decision.reason.clone(),
                blocked_path: judgement.blocked_path.as_ref().map(|path| path.to_string_lossy().into()),
            };
            let asked = call.clone();
            let mut permitted = ask(turn, question, tool.declaration(), cx).await?;
            if Arc::ptr_eq(&permitted.call, &asked) {
                permitted.granted = directories_of(turn, judgement.blocked_path);
            }
            Ok(permitted)
        }
    }
}

/// Each path itself if it is a directory, else its parent.
fn directories_of(turn: &TurnContext, paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let directory = |path: PathBuf| {
        let path = turn.session.resources.cwd.join(path);
        let holder = if path.is_dir() { &path } else { path.parent()? };
        holder.is_dir().then(|| holder.to_owned())
    };
    paths.into_iter().filter_map(directory).collect()
}

/// Asks the host for permission and judges the call again if the answer changes it.
async fn ask(
    turn: &TurnContext,
    question: Question,
    declaration: Option<&ToolDeclaration>,
    cx: &RunContext,
) -> Result<Permitted, NotRun> {
    let call = question.call.clone();
    let reason = question.reason.clone();
    let approval = Body::Approval {
        call: call.clone(),
        confirmation: Box::new(question.confirmation.clone()),
        reason: reason.clone(),
    };
    cx.emit.emit(approval).await;
    if turn.answering_host.defers(&call) {
        return Err(NotRun::Deferred);
    }
    let open = cx.cancel.token().child_token();
    let answer = {
        let mut asked = pin!(turn.answering_host.ask(question, &open));
        let mut notification = pin!(notify(turn, &call, &reason, cx));
        let mut settled = pin!(turn.session.process.permissions.wait_until_allowed(&call, declaration));
        let mut is_notified = false;
        loop {
            tokio::select! {
                biased;
                answer = &mut asked => {
                    if !is_notified {
                        // Once the answer has arrived, notification hooks need not finish.
                        let _ = tokio::time::timeout(HOOK_LIMIT, notification).await;
                    }
                    break answer;
                }
                // A rule that was added elsewhere covers the call: the question is withdrawn.
                judgement = &mut settled => {
                    open.cancel();
                    asked.await;
                    return Ok(Permitted::by_rules(turn, call.clone(), judgement));
                }
                () = &mut notification, if !is_notified => is_notified = true,
            }
        }
    };
    if cx.cancel.is_stopped() {
        return Err(NotRun::Stopped(CANCELLED.into()));
    }
    apply_answer(turn, call, &reason, answer, declaration, cx).await
}

/// Applies the host's answer to a question: its rules first, then its decision about the call.
async fn apply_answer(
    turn: &TurnContext,
    call: Arc<ToolCall>,
    reason: &Arc<str>,
    answer: PermissionAnswer,
    declaration: Option<&ToolDeclaration>,
    cx: &RunContext,
) -> Result<Permitted, NotRun> {
    let PermissionAnswer { behavior, message, updated_input, updated_permissions, interrupt } = answer;
    if interrupt {
        cx.cancel.stop(Stop::cancelled());
    }
    if behavior != Behavior::Allow {
        // A refusal can make the rules stricter, never wider.
        let is_stricter = |update: &PermissionUpdate| {
            matches!(update, PermissionUpdate::AddRules { behavior: Behavior::Deny, .. })
        };
        let stricter: Vec<PermissionUpdate> = updated_permissions.into_iter().filter(is_stricter).collect();
        if let Err(error) = turn.session.process.permissions.update_all(&stricter) {
            cx.emit.emit(Body::Error(Box::new(error))).await;
        }
        return Err(NotRun::Denied(refusal::declined(turn, &call, message, reason)));
    }
    if let Err(error) = turn.session.process.permissions.update_all(&updated_permissions) {
        // An answer that cannot be parsed completely never allows the call.
        let why = error.message.clone();
        cx.emit.emit(Body::Error(Box::new(error))).await;
        let text = format!("Permission for {} was declined: {why}", call.name);
        return Err(NotRun::Denied(Refusal { text, reason: why }));
    }
    turn.session.process.mcp.accept(&call.name);
    // An empty object and the unchanged arguments both mean no change: hosts send either when they agree.
    let read = |text: &Json| serde_json::from_str::<Map<String, Value>>(text.as_str()).unwrap_or_default();
    let changes = |input: &Json| {
        let wanted = read(input);
        !wanted.is_empty() && wanted != read(&call.arguments)
    };
    let Some(arguments) = updated_input.filter(changes) else {
        return Ok(Permitted::as_it_is(call));
    };
    let changed = changed(turn, &call, &arguments)?;
    // Changed input is judged again: deny rules apply regardless of who wrote it.
    let again = turn.session.process.permissions.judge(&changed, declaration);
    if again.decision.verdict == Verdict::Deny {
        let reason = again.decision.reason;
        let text = format!("The changed call of {} was declined: {reason}", call.name);
        return Err(NotRun::Denied(Refusal { text, reason }));
    }
    let answer_note = describe_change(turn, &changed, declaration);
    Ok(Permitted { answer_note, ..Permitted::as_it_is(changed) })
}

/// Tells the model which command ran instead of the one that it wrote. Programs that change a call decide themselves what
/// the model learns of it.
fn describe_change(
    turn: &TurnContext,
    changed: &ToolCall,
    declaration: Option<&ToolDeclaration>,
) -> Option<String> {
    let is_command = declaration.is_some_and(|declaration| declaration.kind == ToolKind::Execute);
    if turn.session.process.audience != Audience::Terminal || !is_command {
        return None;
    }
    let arguments: Value = serde_json::from_str(changed.arguments.as_str()).ok()?;
    let command = arguments.get("command")?.as_str()?;
    Some(format!("The user changed the command of the call {} before it ran. It ran: {command}", changed.id))
}

/// The call with the input that a host or a hook returned. They saw it redacted, so unchanged placeholders
/// are replaced by their secrets.
fn changed(turn: &TurnContext, call: &Arc<ToolCall>, wanted: &Json) -> Result<Arc<ToolCall>, NotRun> {
    match restore_redacted(&turn.session.resources.redactor, &call.arguments, wanted) {
        Ok(arguments) => Ok(Arc::new(ToolCall { arguments, ..(**call).clone() })),
        Err(blotted) => {
            let text = format!("The changed call of {} was declined: {blotted}", call.name);
            Err(NotRun::Denied(Refusal { text, reason: blotted.to_string().into() }))
        }
    }
}

/// Runs the notification hooks: the call needs attention.
async fn notify(turn: &TurnContext, call: &ToolCall, reason: &str, cx: &RunContext) {
    if turn.session.process.hooks.listens(HookEvent::Notification) {
        let message = format!("{} requires permission: {reason}", call.name);
        let fields = vec![("message", message.into()), ("notification_type", "permission_prompt".into())];
        turn.fire(HookEvent::Notification, None, "permission_prompt", fields, cx).await;
    }
}
