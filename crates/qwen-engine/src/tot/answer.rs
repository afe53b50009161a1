//! *answer*: writes the reply from the best path.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::prompts;
use super::state::{Delta, TotState};
use crate::Stop;
use crate::graph::{Next, Node, RunContext, Step};
use crate::thinking::{Answering, ThoughtRunner, answer};

pub(super) struct Answer(pub Arc<ThoughtRunner>);

impl Node<TotState> for Answer {
    fn run<'a>(&'a self, state: &'a TotState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            let best = state.best();
            if let (None, Some(failure)) = (best, &state.failure) {
                let delta = Delta::Answered {
                    reply: "".into(),
                    message: None,
                    finish: None,
                    denials: self.0.take_denials(),
                };
                return Step { delta, next: Next::Stop(Stop::failed(failure.clone())) };
            }
            let answering = Answering {
                prompt: prompts::answer(state, best),
                best_so_far: state.path(best).join("\n"),
                limit: state.limit.clone(),
            };
            let (answered, next) = answer(&self.0, answering, cx).await;
            let delta = Delta::Answered {
                reply: answered.reply,
                message: answered.message,
                finish: Some(answered.finish),
                denials: self.0.take_denials(),
            };
            Step { delta, next }
        })
    }
}
