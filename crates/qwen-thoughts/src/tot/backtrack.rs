//! *backtrack*: after a branch has failed, returns to the nearest thought that has an untried child.

use futures_util::future::BoxFuture;
use qwen_events::{Body, Thinking};

use super::state::{Delta, Standing, TotState};
use qwen_engine::graph::{Next, Node, RunContext, Step};

pub(super) struct Backtrack;

impl Node<TotState> for Backtrack {
    fn run<'a>(&'a self, state: &'a TotState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            let Some(to) = nearest_untried(state) else {
                let shortfall = "The search tried every branch that seemed worth it.".to_owned();
                let delta = Delta::Halted { shortfall, limit: None };
                return Step { delta, next: Next::Goto("answer") };
            };
            let parent = state.thoughts.get(to).and_then(|thought| thought.parent);
            let step = Thinking::TotBacktrack {
                reason: reason(state).into(),
                to_depth: state.depth_of(parent) as u64,
            };
            cx.emit.emit(Body::Thinking(Box::new(step))).await;
            Step { delta: Delta::Backtracked { to }, next: Next::Goto("expand") }
        })
    }
}

/// The best untried child of the nearest ancestor that has one.
fn nearest_untried(state: &TotState) -> Option<usize> {
    let mut at = state.frontier.first().copied();
    loop {
        let children = (0..state.thoughts.len()).filter(|child| {
            let thought = &state.thoughts[*child];
            thought.parent == at && thought.standing == Standing::Open && thought.score.is_some()
        });
        let best = children.reduce(|a, b| if state.score(b) > state.score(a) { b } else { a });
        if best.is_some() {
            return best;
        }
        at = state.thoughts.get(at?)?.parent;
    }
}

fn reason(state: &TotState) -> String {
    let tip = state.frontier.first().copied();
    let children = state.thoughts.iter().filter(|thought| thought.parent == tip);
    match children.filter_map(|thought| thought.score).reduce(f64::max) {
        None => format!("no step was proposed at depth {}", state.depth_of(tip)),
        Some(best) => {
            let depth = state.depth_of(tip) + 1;
            format!("no candidate at depth {depth} is worth following: the best has {best:.2}")
        }
    }
}
