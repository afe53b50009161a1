//! *observe*: adds the tools' results to the conversation.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{Body, HistoryChange, Message, Part, Role};

use super::{Delta, ReactState, loop_detection};
use crate::context::TurnContext;
use crate::graph::{Next, Node, RunContext, Step};
use crate::{Stop, background_tasks, steering};

pub(super) struct Observe(pub Arc<TurnContext>);

impl Node<ReactState> for Observe {
    fn run<'a>(&'a self, state: &'a ReactState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            loop_detection::warn_on_repetition(state, cx).await;
            let parts = state.results.iter().cloned().map(Part::Result).collect();
            let mut messages = vec![Message { role: Role::Tool, parts }];
            if cx.cancel.is_stopped() {
                return Step { delta: Delta::ResultsAdded(messages), next: Next::Stop(cx.cancel.cause()) };
            }
            if self.0.only_calls {
                return Step { delta: Delta::ResultsAdded(messages), next: Next::Stop(Stop::done()) };
            }
            // Background tasks belong to the session, so their ends are reported to the main agent.
            let main = self.0.origin.parent.is_none();
            if let Some(words) =
                main.then(|| background_tasks::reminder(&self.0.resources, &self.0.tools)).flatten()
            {
                let message = Message::text(Role::User, words);
                cx.emit.emit(Body::History(Box::new(HistoryChange::Added(vec![message.clone()])))).await;
                messages.push(message);
            }
            // A prompt that has arrived is read first: it joins the turn before the next model call.
            tokio::task::yield_now().await;
            messages.extend(steering::deliver(&self.0, false, cx).await);
            Step { delta: Delta::ResultsAdded(messages), next: Next::Goto("think") }
        })
    }
}
