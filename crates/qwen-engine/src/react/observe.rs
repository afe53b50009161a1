//! *observe*: what the tools gave back becomes part of the conversation.

use futures_util::future::BoxFuture;
use qwen_events::{Message, Part, Role};

use super::{Delta, ReactState, looping};
use crate::graph::{Cx, Next, Node, Step};

/// The node.
pub(super) struct Observe;

impl Node<ReactState> for Observe {
    fn run<'a>(&'a self, state: &'a ReactState, cx: &'a Cx) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            looping::tell(state, cx).await;
            let parts = state.results.iter().cloned().map(Part::Result).collect();
            let next =
                if cx.cancel.is_stopped() { Next::Stop(cx.cancel.cause()) } else { Next::Goto("think") };
            Step { delta: Delta::Observed(Message { role: Role::Tool, parts }), next }
        })
    }
}
