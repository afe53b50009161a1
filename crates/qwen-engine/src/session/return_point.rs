//! Returning to an earlier point of a session and continuing from there. The log keeps the entries after that
//! point.

use std::sync::Arc;

use qwen_events::{Body, Finish, HistoryChange, Journal, Message, MessageEnd, Part, PromptId, Role, Usage};

use super::Session;
use crate::Emitter;
use crate::graph::State;
use crate::log::{FinalAnswer, Folded, OpenCalls};
use crate::react::{self, ReactState};

/// An earlier point in the middle of a turn, which continues as a new turn.
pub(super) struct ReturnPoint {
    /// The conversation at that point, including its open calls.
    messages: Vec<Message>,
}

impl Session {
    /// Returns to an earlier point. If it is in the middle of a turn,
    /// [`continue_unfinished`](Self::continue_unfinished) continues from there as a new turn with the same
    /// prompt; a new prompt continues from there too.
    pub fn return_to(&mut self, mut earlier: Folded) {
        self.end_unfinished();
        let done = |answer: &FinalAnswer| !answer.aborted;
        match earlier.unfinished.take() {
            Some(turn) if !turn.answer.as_ref().is_some_and(done) => {
                self.returned = Some(ReturnPoint { messages: earlier.messages.clone() });
                self.history = earlier.messages;
                self.unanswered.calls = earlier.unanswered.calls;
                self.unfinished = Some(turn);
            }
            _ => {
                earlier.messages.extend(earlier.unanswered.calls.take_results());
                self.replace_history(earlier.messages);
            }
        }
    }

    /// Starts the returned-to turn again. The point is logged together with the turn's start. Returns the id
    /// of the new turn.
    pub(super) fn begin_again(&mut self, returned: &ReturnPoint, base: Option<Journal>) -> PromptId {
        let prompt_id = self.next_prompt_id();
        self.turns += 1;
        if let Some(log) = &self.log {
            let mut messages = returned.messages.clone();
            // A message with calls still to be made is emitted again, which adds it to the conversation
            // again.
            messages.pop_if(|last| !OpenCalls::left_by(last).is_empty());
            let change = HistoryChange::Replaced(messages);
            let history = Body::History(Box::new(change));
            log.begin_with(
                [history].into_iter().chain(base.map(|base| Body::Journal(Box::new(base)))).collect(),
            );
        }
        prompt_id
    }

    /// Emits the message whose calls are about to run, as a separate step, because readers of this turn have
    /// not seen it.
    pub(super) async fn emit_pending_message(&self, state: &ReactState, emit: &Emitter) {
        let Some(message) = state.messages.last().filter(|message| message.role == Role::Assistant) else {
            return;
        };
        let text: String = message
            .parts
            .iter()
            .filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None })
            .collect();
        let message_id: Arc<str> = format!("msg-{:016x}", fastrand::u64(..)).into();
        let model: Arc<str> = self.context.model.name().into();
        let emit = emit.in_node(self.runs.next(react::START));
        emit.emit(Body::NodeEnter).await;
        emit.emit(Body::MessageStart { message_id: message_id.clone(), model: model.clone() }).await;
        if !text.is_empty() {
            emit.emit(Body::TextDelta(text.as_str().into())).await;
        }
        for call in &state.pending {
            emit.emit(Body::ToolCall(call.clone())).await;
        }
        let end = MessageEnd {
            message_id,
            model,
            text: text.into(),
            thought: Arc::default(),
            signature: None,
            thoughts: Vec::new(),
            calls: state.pending.clone(),
            finish: Finish::ToolCalls,
            usage: Usage::default(),
            aborted: false,
        };
        emit.emit(Body::MessageEnd(Box::new(end))).await;
        emit.emit(Body::NodeExit { error: None }).await;
        if emit.wants_state() {
            emit.emit(Body::State(state.to_json())).await;
        }
    }

    /// Drops the turn that the session returned to, and keeps only its conversation.
    pub(super) fn discard_restored_turn(&mut self) {
        self.history.extend(self.unanswered.calls.take_results());
        self.note(HistoryChange::Replaced(self.history.clone()));
    }
}
