//! *act*: runs the calls of one message; they take effect in their order, and the results keep it.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};

use qwen_events::ToolCall;

use super::call::{CallStart, Openness};
use super::{CallOrder, Delta, ReactState, call};
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
            let order = CallOrder::new(state.pending.len(), &state.results);
            let start = |index: usize, call: &ToolCall| CallStart {
                interrupted: state.interrupted.contains(&call.id),
                alone,
                place: order.place(index),
            };
            let calls = state.pending.iter().enumerate();
            let finished = calls.map(|(index, c)| call::run_call(&self.0, c, start(index, c), cx));
            let finished = join_all(finished).await;
            let mut results = Vec::with_capacity(finished.len());
            let mut denials = Vec::new();
            let mut limit = None;
            let mut hook_notes = Vec::new();
            let mut open = Vec::new();
            let mut unanswered = Vec::new();
            let mut postponed = false;
            for (done, call) in finished.into_iter().zip(&state.pending) {
                postponed |= done.openness == Openness::Postponed;
                if done.openness == Openness::Deferred {
                    unanswered.push(call.clone());
                }
                if done.openness != Openness::Ended {
                    open.push(call.clone());
                    continue;
                }
                hook_notes.extend(done.hook_notes);
                results.push(done.result);
                denials.extend(done.denial);
                limit = limit.or(done.limit);
            }
            // A cancelled run still passes through *observe*: every call needs a result in the conversation,
            // or the next turn would be invalid. A limit stops the run there in the same way.
            if let Some(stop) = limit {
                cx.cancel.stop(stop);
            }
            let next = if open.is_empty() || cx.cancel.is_stopped() {
                Next::Goto("observe")
            } else if postponed {
                Next::Stop(Stop::postponed())
            } else {
                Next::Stop(Stop::deferred(&unanswered))
            };
            Step { delta: Delta::CallsEnded { results, denials, open, hook_notes }, next }
        })
    }
}
