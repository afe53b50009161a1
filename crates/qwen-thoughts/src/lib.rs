//! Agents that search: trees of thoughts ([`TotOptions`]) and graphs of thoughts ([`GotOptions`]).
//!
//! Each is a graph of a few nodes on `qwen-engine`'s [`graph`](qwen_engine::graph), with a state that the session
//! log stores. Thoughts are model calls outside the conversation; only the final reply joins it.

mod got;
mod journaled_state;
mod thinking;
mod tot;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_engine::agent::{SearchAgents, SearchInput, SearchOutcome, StoredRun, unknown_agent};
use qwen_engine::graph::{RunContext, mermaid};
use qwen_events::{AgentName, ErrorInfo, Journal, Json, Message, Part};

pub use got::GotOptions;
pub use thinking::ThinkingOptions;
pub use tot::{Search, TotOptions};

use got::GotState;
use journaled_state::{RestoredState, run};
use thinking::ThoughtRunner;
use tot::TotState;

/// The agents `tot`, `got` and `agot`. `agot` is `got` in adaptive mode, in which thoughts may become nested
/// graphs.
#[derive(Debug, Clone, Default)]
pub struct ThoughtAgents {
    pub options: ThinkingOptions,
}

impl SearchAgents for ThoughtAgents {
    fn run<'a>(
        &'a self,
        agent: AgentName,
        input: SearchInput,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, SearchOutcome> {
        let runner = Arc::new(ThoughtRunner::new(input.context, &input.messages, &self.options));
        let problem = read_problem(&input.messages);
        let stored_run = input.stored_run;
        Box::pin(async move {
            match agent {
                AgentName::React => SearchOutcome::failed(unknown_agent(agent.name())),
                AgentName::Tot => {
                    let options = self.options.tot.clone();
                    let state = TotState { problem, options, ..TotState::default() };
                    run(tot::graph(&runner), state, stored_run, cx).await
                }
                AgentName::Got | AgentName::Agot => {
                    let mut options = self.options.got.clone();
                    options.adaptive |= agent == AgentName::Agot;
                    let state = GotState { problem, options, ..GotState::default() };
                    run(got::graph(&runner), state, stored_run, cx).await
                }
            }
        })
    }

    fn restore_state(&self, agent: AgentName, stored: &StoredRun) -> Result<Json, ErrorInfo> {
        match agent {
            AgentName::React => Err(unknown_agent(agent.name())),
            AgentName::Tot => RestoredState::<TotState>::show(stored),
            AgentName::Got | AgentName::Agot => RestoredState::<GotState>::show(stored),
        }
    }

    fn rebase(&self, agent: AgentName, stored: &StoredRun) -> Result<Journal, ErrorInfo> {
        match agent {
            AgentName::React => Err(unknown_agent(agent.name())),
            AgentName::Tot => RestoredState::<TotState>::rebase(stored),
            AgentName::Got | AgentName::Agot => RestoredState::<GotState>::rebase(stored),
        }
    }
}

/// The text of the user's message.
fn read_problem(messages: &[Message]) -> String {
    let parts = messages.last().map(|message| message.parts.as_slice()).unwrap_or_default();
    parts.iter().filter_map(Part::as_text).collect()
}

/// Draws the graph of `agent` as a Mermaid flow chart.
pub fn draw_graph(agent: AgentName) -> String {
    match agent {
        AgentName::React => qwen_engine::agent::draw_react(),
        AgentName::Tot => mermaid(tot::START, &tot::EDGES),
        AgentName::Got | AgentName::Agot => mermaid(got::START, &got::EDGES),
    }
}
