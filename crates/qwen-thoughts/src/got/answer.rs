//! *answer*: writes the reply from the results of the graph.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{ErrorInfo, ErrorKind};

use super::prompts;
use super::state::{Delta, GotState};
use crate::thinking::{Answering, Conclusion, ThoughtRunner, answer};
use qwen_engine::Stop;
use qwen_engine::graph::{Next, Node, RunContext, Step};

pub(super) struct Answer(pub Arc<ThoughtRunner>);

impl Node<GotState> for Answer {
    fn run<'a>(&'a self, state: &'a GotState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            let found = state.findings();
            if found.is_empty() && state.ending.limit.is_none() {
                return nothing(state);
            }
            let texts: Vec<&str> =
                found.iter().filter_map(|thought| Some(thought.best()?.text.as_ref())).collect();
            let answering = Answering {
                prompt: prompts::answer(state),
                best_so_far: texts.join("\n\n"),
                limit: state.ending.limit.clone(),
            };
            let (conclusion, next) = answer(&self.0, answering, cx).await;
            Step { delta: Delta::Answered(conclusion), next }
        })
    }
}

/// Every thought failed, so there is nothing to make a reply from.
fn nothing(state: &GotState) -> Step<Delta> {
    let first = state.thoughts.iter().find_map(|thought| Some((&thought.id, thought.error.as_ref()?)));
    let message = match first {
        Some((id, error)) => format!("no thought produced a result; the first to fail was '{id}': {error}"),
        None => "no thought produced a result".to_owned(),
    };
    let error = ErrorInfo::new(ErrorKind::Model, "no_result", message);
    Step { delta: Delta::Answered(Conclusion::default()), next: Next::Stop(Stop::failed(error)) }
}
