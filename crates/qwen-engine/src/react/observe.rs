//! *observe*: adds the tools' results to the conversation.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{Body, HistoryChange, Message, Part, Role};

use super::{Delta, ReactState, loop_detection};
use crate::context::TurnContext;
use crate::graph::{Next, Node, RunContext, Step};
use crate::{Stop, background_tasks, steering};

pub(super) struct Observe(pub Arc<TurnContext>);

impl Observe {
    /// A message about what changed in the situation of the main agent during the turn.
    async fn report_changes(&self, cx: &RunContext) -> Option<Message> {
        if self.0.origin.parent.is_some() {
            return None;
        }
        let model = self.0.model_name.as_ref();
        let update = self.0.situation.refresh(&self.0.session, &self.0.tools, model);
        if let Some(text) = update.log {
            cx.emit.emit(Body::History(Box::new(HistoryChange::Situation(text)))).await;
        }
        Some(add_message(update.news?, cx).await)
    }
}

/// Adds a message with the user's role to the log and returns it.
async fn add_message(text: String, cx: &RunContext) -> Message {
    let message = Message::text(Role::User, text);
    // A sub-agent's conversation is private: the log has only its report.
    if !cx.emit.is_in_call() {
        cx.emit.emit(Body::History(Box::new(HistoryChange::Added(vec![message.clone()])))).await;
    }
    message
}

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
            if !state.hook_notes.is_empty() {
                let text = format!("<system-reminder>\n{}\n</system-reminder>", state.hook_notes.join("\n"));
                messages.push(add_message(text, cx).await);
            }
            // Background tasks belong to the session, so their ends are reported to the main agent.
            let main = self.0.origin.parent.is_none();
            if let Some(words) =
                main.then(|| background_tasks::reminder(&self.0.session.resources, &self.0.tools)).flatten()
            {
                messages.push(add_message(words, cx).await);
            }
            if let Some(message) = self.report_changes(cx).await {
                messages.push(message);
            }
            // A prompt that has arrived is read first: it joins the turn before the next model call.
            tokio::task::yield_now().await;
            messages.extend(steering::deliver(&self.0, false, cx).await);
            Step { delta: Delta::ResultsAdded(messages), next: Next::Goto("think") }
        })
    }
}
