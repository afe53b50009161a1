//! Hooks that run during and at the end of an agent's work.

use std::sync::Arc;

use qwen_events::{Body, HistoryChange, Message, Role, ToolCall};
use serde_json::Value;

use super::{ReactState, START, graph};
use crate::context::TurnContext;
use crate::graph::{BuildError, Graph, RunContext, RunOutcome};
use crate::hooks::{HookEvent, HookRequest, Ruling, hook_stop};
use crate::{steering, structured};

/// How often hooks may send an agent that considers itself done back to work.
const MAX_OBJECTIONS: usize = 8;

impl TurnContext {
    /// Runs the hooks of `event`. If one of them ends the turn, the turn is already stopping when this
    /// returns.
    pub(crate) async fn fire(
        &self,
        event: HookEvent,
        call: Option<&ToolCall>,
        target: &str,
        fields: Vec<(&'static str, Value)>,
        cx: &RunContext,
    ) -> Ruling {
        let request = HookRequest {
            event,
            origin: &self.origin,
            permission_mode: self.session.process.permissions.mode(),
            resources: &self.session.resources,
            host: self.answering_host.as_ref(),
            emit: &cx.emit,
            cancel: &cx.cancel,
            call,
            target,
            fields,
        };
        let ruling = self.session.process.hooks.fire(request).await;
        if let Some(why) = &ruling.stop {
            cx.cancel.stop(hook_stop(event, why));
        }
        ruling
    }
}

/// The watched agent and the event that reports its end.
pub(crate) struct StopHooks<'a> {
    /// `Stop` or `SubagentStop`.
    pub done: HookEvent,
    /// The sub-agent's name; empty for the main agent.
    pub agent: &'a str,
}

/// Runs the agent until it is done and no hook sends it back to work.
pub(crate) async fn run_with_stop_hooks(
    context: &Arc<TurnContext>,
    from: &'static str,
    state: &mut ReactState,
    cx: &RunContext,
    watch: &StopHooks<'_>,
) -> Result<RunOutcome, BuildError> {
    let StopHooks { done, agent } = *watch;
    let graph = graph(context)?;
    if from == START {
        let steered = steering::deliver(context, false, cx).await;
        Arc::make_mut(&mut state.messages).extend(steered);
    }
    let mut ran = graph.run_from(from, state, cx).await;
    finish(context, &graph, state, &mut ran, cx).await;
    for objections in 0..MAX_OBJECTIONS {
        if ran.stop.is_some() || !context.session.process.hooks.listens(done) {
            break;
        }
        let mut fields = vec![
            ("stop_hook_active", Value::Bool(objections > 0)),
            ("last_assistant_message", (*state.reply).into()),
        ];
        if !agent.is_empty() {
            fields.push(("agent_type", agent.into()));
        }
        let ruling = context.fire(done, None, agent, fields, cx).await;
        let Some(why) = ruling.block.filter(|_| ruling.stop.is_none()) else { break };
        let why = if why.is_empty() { "A hook reports unfinished work. Continue.".into() } else { why };
        if let Some(wanted) = &context.structured {
            wanted.discard_answer();
        }
        run_again_with(&graph, why, state, &mut ran, cx).await;
        finish(context, &graph, state, &mut ran, cx).await;
    }
    Ok(ran)
}

/// Continues the agent until its answer matches the required schema and no prompt waits to join the turn.
async fn finish(
    context: &TurnContext,
    graph: &Graph<ReactState>,
    state: &mut ReactState,
    ran: &mut RunOutcome,
    cx: &RunContext,
) {
    loop {
        structure(context, graph, state, ran, cx).await;
        if ran.stop.is_some() {
            return;
        }
        let steered = steering::deliver(context, true, cx).await;
        if steered.is_empty() {
            return;
        }
        if let Some(wanted) = &context.structured {
            wanted.discard_answer();
        }
        Arc::make_mut(&mut state.messages).extend(steered);
        run_again(graph, state, ran, cx).await;
    }
}

/// Sends an agent that considers itself done back to work.
async fn run_again_with(
    graph: &Graph<ReactState>,
    why: impl Into<Arc<str>>,
    state: &mut ReactState,
    ran: &mut RunOutcome,
    cx: &RunContext,
) {
    let message = Message::text(Role::User, why);
    cx.emit.emit(Body::History(Box::new(HistoryChange::Added(vec![message.clone()])))).await;
    Arc::make_mut(&mut state.messages).push(message);
    run_again(graph, state, ran, cx).await;
}

async fn run_again(graph: &Graph<ReactState>, state: &mut ReactState, ran: &mut RunOutcome, cx: &RunContext) {
    let steps = ran.steps;
    *ran = graph.run_from(START, state, cx).await;
    ran.steps += steps;
}

/// Sends the agent back until its answer matches the schema or the attempts are used up.
async fn structure(
    context: &TurnContext,
    graph: &Graph<ReactState>,
    state: &mut ReactState,
    ran: &mut RunOutcome,
    cx: &RunContext,
) {
    let Some(wanted) = &context.structured else { return };
    while ran.stop.is_none() {
        let Err(problem) = wanted.accept_text(&state.reply) else { return };
        match wanted.exhausted() {
            Some(stop) => ran.stop = Some(stop),
            None => {
                let name = context.tools.name_of(&structured::DECLARATION);
                run_again_with(graph, structured::reminder(&problem, name), state, ran, cx).await;
            }
        }
    }
}
