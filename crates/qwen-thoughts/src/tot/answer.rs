//! *answer*: writes the reply from the best path.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::prompts;
use super::state::{Delta, TotState};
use crate::thinking::{Answering, Conclusion, ThoughtRunner, answer};
use qwen_engine::Stop;
use qwen_engine::graph::{Next, Node, RunContext, Step};

pub(super) struct Answer(pub Arc<ThoughtRunner>);

impl Node<TotState> for Answer {
    fn run<'a>(&'a self, state: &'a TotState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            let best = state.best();
            if let (None, Some(failure)) = (best, &state.failure) {
                let conclusion = Conclusion { denials: self.0.take_denials(), ..Conclusion::default() };
                let next = Next::Stop(Stop::failed(failure.clone()));
                return Step { delta: Delta::Answered(conclusion), next };
            }
            let answering = Answering {
                prompt: prompts::answer(state, best),
                best_so_far: state.path(best).join("\n"),
                limit: state.ending.limit.clone(),
            };
            let (conclusion, next) = answer(&self.0, answering, cx).await;
            Step { delta: Delta::Answered(conclusion), next }
        })
    }
}
