//! One tool call: judged, perhaps asked about, run, and always ended.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use qwen_events::{
    Behavior, Body, Channel, Denial, Display, PermissionAnswer, ToolCall, ToolEnd, ToolResult, ToolStatus,
    Verdict,
};
use qwen_tools::{Outcome, OutputSink, Tool, ToolCx};

use super::Kit;
use crate::graph::Cx;
use crate::log::INTERRUPTED;
use crate::{Emitter, Question, Stop};

/// What came of a call.
pub(crate) struct Done {
    pub result: ToolResult,
    pub denial: Option<Denial>,
    /// The limit that kept it from running.
    pub limit: Option<Stop>,
}

/// Runs one call to its end. Whatever happens, there is a result for the model and a `ToolEnd` for readers. A call that
/// was `interrupted` only gets its end.
pub(crate) async fn run(kit: &Kit, call: &Arc<ToolCall>, interrupted: bool, cx: &Cx) -> Done {
    let started = Instant::now();
    let attempted =
        if interrupted { Err(NotRun::Stopped(INTERRUPTED.into())) } else { attempt(kit, call, cx).await };
    let (ended, limit) = match attempted {
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
    };
    let text: Arc<str> = outcome.text.into();
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
    cx.emit.emit(Body::ToolEnd(Box::new(end))).await;
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
    Done { result, denial, limit }
}

enum Ended {
    Ran(Outcome),
    Denied(String),
    Stopped(String),
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
}

async fn attempt(kit: &Kit, call: &Arc<ToolCall>, cx: &Cx) -> Result<Outcome, NotRun> {
    if let Some(text) = &call.malformed {
        let shown: String = text.chars().take(200).collect();
        return Err(NotRun::Failed(
            "invalid_arguments",
            format!("The arguments of {} must be one JSON object, but they were: {shown}", call.name),
        ));
    }
    let Some(tool) = kit.tools.get(&call.name) else {
        let names: Vec<String> = kit.tools.specs().iter().map(|s| s.name.to_string()).collect();
        return Err(NotRun::Failed(
            "unknown_tool",
            format!("There is no tool called '{}'. The tools are: {}.", call.name, names.join(", ")),
        ));
    };
    if cx.cancel.is_stopped() {
        return Err(NotRun::Stopped("not run: the turn was cancelled".into()));
    }
    cx.budget.tool_call().map_err(NotRun::Limit)?;
    let mut tool_cx = ToolCx {
        cwd: kit.place.cwd.clone(),
        extra_roots: kit.place.extra_roots.clone(),
        cancel: cx.cancel.token().clone(),
        output: Arc::new(CallOutput { call: call.clone(), emit: cx.emit.clone() }),
        bench: kit.place.bench.clone(),
        harden_git: false,
    };
    let permitted = permit(kit, call, tool.as_ref(), &tool_cx, cx).await?;
    tool_cx.harden_git = permitted.harden_git;
    cx.emit.emit(Body::ToolStart(permitted.call.clone())).await;
    Ok(tool.run(&permitted.call, &tool_cx).await)
}

/// A call that may run, perhaps changed by an answer.
struct Permitted {
    call: Arc<ToolCall>,
    harden_git: bool,
}

/// Judges the call and asks where that is needed.
async fn permit(
    kit: &Kit,
    call: &Arc<ToolCall>,
    tool: &dyn Tool,
    tool_cx: &ToolCx,
    cx: &Cx,
) -> Result<Permitted, NotRun> {
    let judgement = kit.permissions.judge(call);
    let decision = &judgement.decision;
    cx.emit.emit(Body::Decision { call: call.clone(), decision: decision.clone() }).await;
    match decision.verdict {
        Verdict::Allow => Ok(Permitted { call: call.clone(), harden_git: judgement.harden_git }),
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
                confirmation: kit.permissions.confirmation(call, tool, tool_cx),
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
    let answer = kit.host.ask(question, cx.cancel.token()).await;
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
    for update in &updated_permissions {
        if let Err(error) = kit.permissions.update(update) {
            cx.emit.emit(Body::Error(Box::new(error))).await;
        }
    }
    let Some(arguments) = updated_input else { return Ok(Permitted { call, harden_git: false }) };
    let changed = Arc::new(ToolCall { arguments, ..(*call).clone() });
    // Changed input is judged again: what the rules forbid stays forbidden, whoever wrote it.
    let again = kit.permissions.judge(&changed);
    if again.decision.verdict == Verdict::Deny {
        let why = &again.decision.reason;
        return Err(NotRun::Denied(format!("The changed call of {} was declined: {why}", call.name)));
    }
    Ok(Permitted { call: changed, harden_git: false })
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
