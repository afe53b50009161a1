//! *expand*: proposes next steps for each thought that the search continues from.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{Body, ErrorInfo, ErrorKind, Thinking};

use super::state::{Delta, Standing, Thought, TotState};
use super::{Search, prompts};
use crate::thinking::{ThoughtFailure, ThoughtRequest, ThoughtRunner};
use qwen_engine::Stop;
use qwen_engine::graph::{Next, Node, RunContext, Step, fan_out};

pub(super) struct Expand(pub Arc<ThoughtRunner>);

impl Node<TotState> for Expand {
    fn run<'a>(&'a self, state: &'a TotState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            let room = state.options.max_thoughts.saturating_sub(state.thoughts.len());
            if room == 0 {
                let most = state.options.max_thoughts;
                return halt(format!("The search ended at its limit of {most} thoughts."), None);
            }
            if state.options.depth == 0 || state.options.proposals == 0 {
                return halt("There was nothing to search: depth or proposals is 0.".to_owned(), None);
            }
            // A thought that completes the solution has no next steps; it waits for the others.
            let from: Vec<Option<usize>> = match state.frontier.as_slice() {
                [] => vec![None],
                beam => beam.iter().copied().filter(|at| !state.is_leaf(*at)).map(Some).collect(),
            };
            let asked = fan_out(from.iter().map(|at| self.propose(state, *at, cx))).await;
            let mut thoughts = Vec::new();
            let mut error = None;
            for (parent, answer) in from.into_iter().zip(asked) {
                match answer {
                    Ok(answer) => collect(state, parent, &answer, &mut thoughts),
                    Err(ThoughtFailure::Run(stop)) if stop.status.is_limit() => {
                        return halt("A limit ended the search.".to_owned(), Some(stop));
                    }
                    Err(ThoughtFailure::Run(stop)) => return end(stop),
                    Err(ThoughtFailure::Thought(failure)) => error = Some(failure),
                }
            }
            thoughts.truncate(room);
            match error {
                // Without a single proposal the search cannot continue.
                Some(error) if thoughts.is_empty() && state.thoughts.is_empty() => {
                    return end(Stop::failed(error));
                }
                Some(error) => cx.emit.emit(Body::Error(Box::new(error))).await,
                None => {}
            }
            if thoughts.is_empty() {
                if state.thoughts.is_empty() {
                    cx.emit.emit(Body::Error(Box::new(no_step()))).await;
                }
                return match state.options.search {
                    Search::Dfs if !state.frontier.is_empty() => {
                        Step { delta: Delta::Proposed { thoughts }, next: Next::Goto("backtrack") }
                    }
                    _ => halt("No further step was proposed.".to_owned(), None),
                };
            }
            let candidates = thoughts.iter().map(|thought| thought.text.as_str().into()).collect();
            cx.emit.emit(Body::Thinking(Box::new(Thinking::TotExpand { candidates }))).await;
            Step { delta: Delta::Proposed { thoughts }, next: Next::Goto("evaluate") }
        })
    }
}

impl Expand {
    async fn propose(
        &self,
        state: &TotState,
        at: Option<usize>,
        cx: &RunContext,
    ) -> Result<String, ThoughtFailure> {
        let name = at.map_or_else(|| "root".to_owned(), |at| format!("t{at}"));
        let prompt = prompts::propose(state, at);
        self.0
            .ask(ThoughtRequest { key: &format!("propose/{name}"), thought: &name, prompt, tools: true }, cx)
            .await
    }
}

/// Adds the steps that an answer proposes, without duplicates.
fn collect(state: &TotState, parent: Option<usize>, answer: &str, thoughts: &mut Vec<Thought>) {
    let depth = state.depth_of(parent) + 1;
    let mut known: HashSet<String> = thoughts
        .iter()
        .filter(|thought| thought.parent == parent)
        .map(|thought| thought.text.clone())
        .collect();
    for (complete, step) in prompts::read_steps(answer) {
        if known.len() >= state.options.proposals {
            break;
        }
        if known.insert(step.to_owned()) {
            let text = step.to_owned();
            let standing = Standing::Open;
            thoughts.push(Thought { parent, depth, text, complete, score: None, standing });
        }
    }
}

fn no_step() -> ErrorInfo {
    let message =
        "the model was asked for next steps and proposed no step; it is asked for the answer at once";
    ErrorInfo::new(ErrorKind::Model, "no_proposals", message)
}

fn halt(shortfall: String, limit: Option<Stop>) -> Step<Delta> {
    Step { delta: Delta::Halted { shortfall, limit }, next: Next::Goto("answer") }
}

fn end(stop: Stop) -> Step<Delta> {
    let shortfall = "The search was ended.".to_owned();
    Step { delta: Delta::Halted { shortfall, limit: None }, next: Next::Stop(stop) }
}
