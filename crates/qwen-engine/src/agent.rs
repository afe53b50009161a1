//! The agents: which graph runs a turn, and what a graph outside this crate may use.
//!
//! ReAct is part of the engine. Agents with their own state ([`SearchAgents`]) come from other crates: they
//! run on [`graph`](crate::graph), and the session log stores their state and every change of it, so that a later
//! process continues the run, and readers can show it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{AgentName, Denial, ErrorInfo, ErrorKind, Finish, Journal, Json, Message};

pub use crate::context::TurnContext;
pub use crate::emitter::unix_seconds_after;
pub use crate::log::StoredRun;
pub use crate::react::{
    CallOrder, CallOutcome, CallPlace, CallStart, Openness, announce_limit, emit_message, run_call,
    silent_end, written_call,
};
pub use crate::structured::StructuredAnswer;

use crate::Stop;
use crate::graph::{Next, RunContext, RunOutcome, Step};
use crate::hooks::HookEvent;
use crate::react::{self, Delta, ReactState};

/// The agents besides ReAct.
pub trait SearchAgents: Send + Sync {
    /// Runs a turn with `agent`, from its start or from the stored state of an earlier process.
    fn run<'a>(
        &'a self,
        agent: AgentName,
        input: SearchInput,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, SearchOutcome>;

    /// The state computed from `stored`, in the form readers get.
    fn restore_state(&self, agent: AgentName, stored: &StoredRun) -> Result<Json, ErrorInfo>;

    /// The state computed from `stored`, as the start of a new run.
    fn rebase(&self, agent: AgentName, stored: &StoredRun) -> Result<Journal, ErrorInfo>;
}

/// The input of a search.
pub struct SearchInput {
    pub context: Arc<TurnContext>,
    /// The conversation; it ends with the user's message.
    pub messages: Arc<Vec<Message>>,
    /// The run that an earlier process did not complete.
    pub stored_run: Option<StoredRun>,
}

/// How a search ended.
pub struct SearchOutcome {
    pub ran: RunOutcome,
    pub reply: Reply,
    /// Calls that were denied in thoughts.
    pub denials: Vec<Denial>,
    /// The agent's state, if readers want it.
    pub state: Option<Json>,
}

impl SearchOutcome {
    /// A search that could not start.
    pub fn failed(error: ErrorInfo) -> Self {
        let ran = RunOutcome { stop: Some(Stop::failed(error)), last: None, steps: 0 };
        Self { ran, reply: Reply::default(), denials: Vec::new(), state: None }
    }
}

/// The answer of a search, and the message with which it joins the conversation.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub text: Arc<str>,
    pub message: Option<Message>,
    pub finish: Option<Finish>,
}

/// Streams a reply of the model to `messages`, without tools. `None` if a limit left no call for it.
pub async fn stream_reply(
    context: &TurnContext,
    messages: Arc<Vec<Message>>,
    cx: &RunContext,
) -> (Option<Reply>, Next) {
    let Step { delta, next } = react::stream_message(context, messages, None, cx).await;
    let reply = match delta {
        Delta::MessageAdded { message, reply, finish, .. } => {
            Some(Reply { text: reply, message, finish: Some(finish) })
        }
        Delta::CallsEnded { .. } | Delta::ResultsAdded(_) | Delta::Compacted { .. } | Delta::None => None,
    };
    (reply, next)
}

/// No agents besides ReAct, for programs that need no others.
pub struct ReactOnly;

impl SearchAgents for ReactOnly {
    fn run<'a>(
        &'a self,
        agent: AgentName,
        _: SearchInput,
        _: &'a RunContext,
    ) -> BoxFuture<'a, SearchOutcome> {
        Box::pin(async move { SearchOutcome::failed(unavailable(agent)) })
    }

    fn restore_state(&self, agent: AgentName, _: &StoredRun) -> Result<Json, ErrorInfo> {
        Err(unavailable(agent))
    }

    fn rebase(&self, agent: AgentName, _: &StoredRun) -> Result<Journal, ErrorInfo> {
        Err(unavailable(agent))
    }
}

fn unavailable(agent: AgentName) -> ErrorInfo {
    let message = format!("this program does not contain the agent '{}'", agent.name());
    ErrorInfo::new(ErrorKind::Usage, "unknown_agent", message)
}

/// The input of an agent run.
pub(crate) struct AgentRun<'a> {
    pub agent: AgentName,
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

/// Runs a turn with its agent.
pub(crate) async fn run(work: AgentRun<'_>, cx: &RunContext) -> AgentOutcome {
    match work.agent {
        AgentName::React => run_react(work, cx).await,
        AgentName::Tot | AgentName::Got | AgentName::Agot => run_search(work, cx).await,
    }
}

async fn run_react(work: AgentRun<'_>, cx: &RunContext) -> AgentOutcome {
    let AgentRun { context, mut conversation, from, .. } = work;
    let hooks = react::StopHooks { done: HookEvent::Stop, agent: "" };
    let ran = react::run_with_stop_hooks(context, from, &mut conversation, cx, &hooks).await;
    let ran = ran.unwrap_or_else(|error| RunOutcome::failed(&error));
    let state = cx.emit.wants_state().then(|| crate::graph::State::to_json(&conversation));
    AgentOutcome { ran, conversation, state }
}

/// Runs a search and adds its reply to the conversation. Stop hooks are notified, but cannot send the agent back
/// to work, because a completed search has no point to continue from.
async fn run_search(work: AgentRun<'_>, cx: &RunContext) -> AgentOutcome {
    let AgentRun { agent, context, mut conversation, stored_run, .. } = work;
    let messages = conversation.messages.clone();
    let input = SearchInput { context: context.clone(), messages, stored_run };
    let SearchOutcome { ran, reply, denials, state } =
        context.session.search_agents.run(agent, input, cx).await;
    Arc::make_mut(&mut conversation.messages).extend(reply.message);
    conversation.reply = reply.text;
    conversation.finish = reply.finish;
    conversation.denials.extend(denials);
    if ran.stop.is_none() && context.session.process.hooks.listens(HookEvent::Stop) {
        let fields =
            vec![("stop_hook_active", true.into()), ("last_assistant_message", (*conversation.reply).into())];
        context.fire(HookEvent::Stop, None, "", fields, cx).await;
    }
    AgentOutcome { ran, conversation, state }
}

/// Draws the graph of ReAct as a Mermaid flow chart.
pub fn draw_react() -> String {
    crate::graph::mermaid(react::START, &react::EDGES)
}

/// The error for an unknown agent name.
pub fn unknown_agent(name: &str) -> ErrorInfo {
    let names = AgentName::ALL.map(AgentName::name).join(", ");
    let message = format!("there is no agent '{name}'; the agents are {names}");
    ErrorInfo::new(ErrorKind::Usage, "unknown_agent", message)
}
