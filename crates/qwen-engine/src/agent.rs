//! The agents: which graph a turn runs, and what it leaves behind.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, Finish, Json, Message, Part};

use crate::graph::{BuildError, Cx, Graph, Ran, State};
use crate::hooks::HookEvent;
use crate::react::{self, Kit, ReactState};
use crate::thinking::{Desk, ThinkingOptions};
use crate::{got, graph, tot};

/// The names of the agents.
pub const AGENTS: [&str; 3] = ["react", "tot", "got"];

/// A run that is over.
pub(crate) struct Finished {
    pub ran: Ran,
    /// The conversation, with all that the run added to it.
    pub conversation: ReactState,
    /// The agent's own state, where readers want to see it.
    pub state: Option<Json>,
}

/// Runs the agent `name` on a conversation that ends with what the user said.
pub(crate) async fn run(
    name: &str,
    options: &ThinkingOptions,
    kit: &Arc<Kit>,
    mut conversation: ReactState,
    from: &'static str,
    cx: &Cx,
) -> Finished {
    match name {
        "tot" => {
            let desk = Arc::new(Desk::new(kit.clone(), &conversation.messages, options.parallel));
            let problem = problem(&conversation);
            let state = tot::TotState { problem, options: options.tot.clone(), ..tot::TotState::default() };
            think(tot::graph(&desk), state, conversation, tot::START, cx, |state, conversation| {
                said(conversation, state.message, state.reply, state.finish);
                conversation.denials.extend(state.denials);
            })
            .await
        }
        "got" => {
            let desk = Arc::new(Desk::new(kit.clone(), &conversation.messages, options.parallel));
            let problem = problem(&conversation);
            let state = got::GotState { problem, options: options.got.clone(), ..got::GotState::default() };
            think(got::graph(&desk), state, conversation, got::START, cx, |state, conversation| {
                said(conversation, state.message, state.reply, state.finish);
                conversation.denials.extend(state.denials);
            })
            .await
        }
        _ => {
            let ran = react::run_watched(kit, from, &mut conversation, cx, HookEvent::Stop).await;
            let ran = ran.unwrap_or_else(|error| Ran::failed(&error));
            let state = cx.emit.wants_state().then(|| conversation.to_json());
            Finished { ran, conversation, state }
        }
    }
}

/// Runs a graph on a state of its own; `leave` brings what it came to into the conversation.
async fn think<S: State>(
    graph: Result<Graph<S>, BuildError>,
    mut state: S,
    mut conversation: ReactState,
    from: &'static str,
    cx: &Cx,
    leave: impl FnOnce(S, &mut ReactState),
) -> Finished {
    let ran = match graph {
        Ok(graph) => graph.run_from(from, &mut state, cx).await,
        Err(error) => Ran::failed(&error),
    };
    let shown = cx.emit.wants_state().then(|| state.to_json());
    leave(state, &mut conversation);
    Finished { ran, conversation, state: shown }
}

fn said(
    conversation: &mut ReactState,
    message: Option<Message>,
    reply: Option<Arc<str>>,
    finish: Option<Finish>,
) {
    conversation.messages.extend(message);
    conversation.reply = reply.unwrap_or_default();
    conversation.finish = finish;
}

/// What the user said.
fn problem(conversation: &ReactState) -> String {
    let parts = conversation.messages.last().map(|message| message.parts.as_slice()).unwrap_or_default();
    let texts =
        parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None });
    texts.collect()
}

/// The graph of the agent `name`, as a Mermaid flow chart.
pub fn mermaid(name: &str) -> Result<String, ErrorInfo> {
    Ok(match name {
        "react" => graph::mermaid(react::START, &react::EDGES),
        "tot" => graph::mermaid(tot::START, &tot::EDGES),
        "got" => graph::mermaid(got::START, &got::EDGES),
        _ => return Err(unknown_agent(name)),
    })
}

/// An error for an agent that is not there.
pub fn unknown_agent(name: &str) -> ErrorInfo {
    let message = format!("there is no agent '{name}'; the agents are {}", AGENTS.join(", "));
    ErrorInfo::new(ErrorKind::Usage, "unknown_agent", message)
}
