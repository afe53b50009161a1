//! *act*: runs the calls of one message concurrently; the results keep the order of the calls.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};

use super::{Delta, ReactState, call};
use crate::Stop;
use crate::context::TurnContext;
use crate::graph::{Next, Node, RunContext, Step};

pub(super) struct Act(pub Arc<TurnContext>);

impl Node<ReactState> for Act {
    fn run<'a>(&'a self, state: &'a ReactState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            if let Some(steps) = &self.0.steps {
                steps.report(&cx.budget, state.pending.last().map(|call| &call.name)).await;
            }
            let alone = state.pending.len() == 1 && state.results.is_empty();
            let run = |c| call::run(&self.0, c, state.interrupted.contains(&c.id), alone, cx);
            let finished = join_all(state.pending.iter().map(run)).await;
            let mut results = Vec::with_capacity(finished.len());
            let mut denials = Vec::new();
            let mut limit = None;
            let mut deferred = Vec::new();
            let mut postponed = false;
            for (done, call) in finished.into_iter().zip(&state.pending) {
                postponed |= done.postponed;
                if done.deferred || done.postponed {
                    deferred.push(call.clone());
                    continue;
                }
                results.push(done.result);
                denials.extend(done.denial);
                limit = limit.or(done.limit);
            }
            // A cancelled run still passes through *observe*: every call needs a result in the conversation,
            // or the next turn would be invalid. A limit stops the run there in the same way.
            if let Some(stop) = limit {
                cx.cancel.stop(stop);
            }
            let next = match deferred.as_slice() {
                _ if cx.cancel.is_stopped() => Next::Goto("observe"),
                [] => Next::Goto("observe"),
                _ if postponed => Next::Stop(Stop::postponed()),
                open => Next::Stop(Stop::deferred(open)),
            };
            Step { delta: Delta::CallsEnded { results, denials, deferred }, next }
        })
    }
}
