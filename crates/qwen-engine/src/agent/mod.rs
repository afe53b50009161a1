//! The agents: selects the graph that a turn runs, and returns its results to the conversation.

mod restored_state;

use std::sync::Arc;

use qwen_events::{Body, Denial, ErrorInfo, ErrorKind, Finish, Journal, Json, Message, Part};

pub(crate) use restored_state::{JournaledState, RestoredState, rebased, shown};

use crate::context::TurnContext;
use crate::graph::{BuildError, Effects, Graph, RunContext, RunOutcome, State};
use crate::hooks::HookEvent;
use crate::log::StoredRun;
use crate::react::{self, ReactState};
use crate::thinking::{ThinkingOptions, ThoughtRunner};
use crate::{Stop, got, graph, tot};

/// The names of the agents. `agot` is `got` in adaptive mode, in which thoughts may become nested graphs,
/// without a separate flag.
pub const AGENTS: [&str; 4] = [REACT, "tot", "got", ADAPTIVE];

/// The default agent. Only it decides about postponed calls, and only its runs need no journal.
pub const REACT: &str = "react";

const ADAPTIVE: &str = "agot";

/// The input of an agent run.
pub(crate) struct AgentRun<'a> {
    pub agent: &'a str,
    pub options: &'a ThinkingOptions,
    pub context: &'a Arc<TurnContext>,
    /// A conversation that ends with the user's message.
    pub conversation: ReactState,
    /// The node where ReAct starts.
    pub from: &'static str,
    /// The stored state of an earlier process's run.
    pub stored_run: Option<StoredRun>,
}

pub(crate) struct AgentOutcome {
    pub ran: RunOutcome,
    /// The conversation, including everything that the run added.
    pub conversation: ReactState,
    /// The agent's internal state, if readers want it.
    pub state: Option<Json>,
}

/// What a `tot` or `got` run adds to the conversation.
pub(crate) struct AgentResult {
    pub message: Option<Message>,
    pub reply: Arc<str>,
    pub finish: Option<Finish>,
    pub denials: Vec<Denial>,
}

pub(crate) async fn run(work: AgentRun<'_>, cx: &RunContext) -> AgentOutcome {
    let runner =
        || Arc::new(ThoughtRunner::new(work.context.clone(), &work.conversation.messages, work.options));
    match work.agent {
        "tot" => {
            let graph = tot::graph(&runner());
            let problem = problem(&work.conversation);
            let state =
                tot::TotState { problem, options: work.options.tot.clone(), ..tot::TotState::default() };
            think(work, graph, state, cx).await
        }
        "got" | ADAPTIVE => {
            let graph = got::graph(&runner());
            let problem = problem(&work.conversation);
            let mut options = work.options.got.clone();
            options.adaptive |= work.agent == ADAPTIVE;
            let state = got::GotState { problem, options, ..got::GotState::default() };
            think(work, graph, state, cx).await
        }
        _ => {
            let AgentRun { context, mut conversation, from, .. } = work;
            let ran = react::run_with_stop_hooks(
                context,
                from,
                &mut conversation,
                cx,
                &react::StopHooks { done: HookEvent::Stop, agent: "" },
            )
            .await;
            let ran = ran.unwrap_or_else(|error| RunOutcome::failed(&error));
            let state = cx.emit.wants_state().then(|| conversation.to_json());
            AgentOutcome { ran, conversation, state }
        }
    }
}

/// Runs a graph with separate state, from its start or from the stored state of an earlier process. Stop
/// hooks are notified, but cannot send the agent back to work, because a completed search has no point to
/// continue from.
async fn think<S: JournaledState>(
    work: AgentRun<'_>,
    graph: Result<Graph<S>, BuildError>,
    state: S,
    cx: &RunContext,
) -> AgentOutcome {
    let AgentRun { context, mut conversation, stored_run, .. } = work;
    let graph = match graph {
        Ok(graph) => graph,
        Err(error) => return AgentOutcome { ran: RunOutcome::failed(&error), conversation, state: None },
    };
    let (mut state, from, effects) = match begin(state, stored_run, &graph, cx) {
        Ok(beginning) => beginning,
        Err(error) => {
            let ran = RunOutcome { stop: Some(Stop::failed(error)), last: None, steps: 0 };
            return AgentOutcome { ran, conversation, state: None };
        }
    };
    let cx = &RunContext { effects, ..cx.clone() };
    let ran = graph.run_from(from, &mut state, cx).await;
    let shown = cx.emit.wants_state().then(|| state.to_json());
    let AgentResult { message, reply, finish, denials } = state.into_result();
    Arc::make_mut(&mut conversation.messages).extend(message);
    conversation.reply = reply;
    conversation.finish = finish;
    conversation.denials.extend(denials);
    if ran.stop.is_none() && context.hooks.listens(HookEvent::Stop) {
        let fields =
            vec![("stop_hook_active", true.into()), ("last_assistant_message", (*conversation.reply).into())];
        context.fire(HookEvent::Stop, None, "", fields, cx).await;
    }
    AgentOutcome { ran, conversation, state: shown }
}

/// The state and node to continue from, and the effects already performed there.
fn begin<S: JournaledState>(
    fresh: S,
    stored_run: Option<StoredRun>,
    graph: &Graph<S>,
    cx: &RunContext,
) -> Result<(S, &'static str, Effects), ErrorInfo> {
    let Some(stored_run) = stored_run else {
        if cx.emit.is_logged() {
            let base = Journal::Base { version: S::VERSION, next: S::START.into(), state: fresh.to_json() };
            cx.emit.record_only(Body::Journal(Box::new(base)));
        }
        return Ok((fresh, S::START, Effects::default()));
    };
    let state = RestoredState::<S>::of(&stored_run)?;
    let next = stored_run.next.as_deref().unwrap_or(S::LAST);
    let from = graph.name(next).ok_or_else(|| {
        let message =
            format!("the session's log continues with the node '{next}', which this agent does not have");
        ErrorInfo::new(ErrorKind::Input, "unusable_checkpoint", message)
    })?;
    Ok((state.0, from, Effects::of(stored_run.effects)))
}

/// The text of the user's message.
fn problem(conversation: &ReactState) -> String {
    let parts = conversation.messages.last().map(|message| message.parts.as_slice()).unwrap_or_default();
    let texts =
        parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None });
    texts.collect()
}

/// The graph of the agent `name`, as a Mermaid flow chart.
pub fn mermaid(name: &str) -> Result<String, ErrorInfo> {
    Ok(match name {
        REACT => graph::mermaid(react::START, &react::EDGES),
        "tot" => graph::mermaid(tot::START, &tot::EDGES),
        "got" | ADAPTIVE => graph::mermaid(got::START, &got::EDGES),
        _ => return Err(unknown_agent(name)),
    })
}

/// The error for an unknown agent name.
pub fn unknown_agent(name: &str) -> ErrorInfo {
    let message = format!("there is no agent '{name}'; the agents are {}", AGENTS.join(", "));
    ErrorInfo::new(ErrorKind::Usage, "unknown_agent", message)
}
