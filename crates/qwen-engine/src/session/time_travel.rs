//! Going back to an earlier place of a session, and on from there. The log keeps what came after that place.

use std::sync::Arc;

use qwen_events::{Body, Finish, HistoryChange, Journal, Message, MessageEnd, Part, PromptId, Role, Usage};

use super::Session;
use crate::Emitter;
use crate::graph::State;
use crate::log::{Answer, Folded, OpenCalls};
use crate::react::{self, ReactState};

/// An earlier place in the middle of a turn, which is gone on with as a new turn.
pub(super) struct ReturnPoint {
    /// The conversation there, with the calls that it leaves open.
    messages: Vec<Message>,
}

impl Session {
    /// Goes back to an earlier place. Where that is in the middle of a turn, the turn can be gone on with from there
    /// ([`go_on`](Self::go_on)), as a new turn with the same words; a new prompt goes on from there too.
    pub fn go_back(&mut self, mut earlier: Folded) {
        self.end_unfinished();
        let done = |answer: &Answer| !answer.aborted;
        match earlier.unfinished.take() {
            Some(turn) if !turn.answer.as_ref().is_some_and(done) => {
                self.returned = Some(ReturnPoint { messages: earlier.messages.clone() });
                self.history = earlier.messages;
                self.open_calls = earlier.open_calls;
                self.unfinished = Some(turn);
            }
            _ => {
                earlier.messages.extend(earlier.open_calls.settle());
                self.replace_history(earlier.messages);
            }
        }
    }

    /// Begins the turn again that was returned to: the log hears where, in one breath with its start. Returns the name
    /// of the new turn.
    pub(super) fn begin_again(&mut self, returned: &ReturnPoint, base: Option<Journal>) -> PromptId {
        let prompt_id = self.next_prompt_id();
        self.turns += 1;
        if let Some(log) = &self.log {
            let mut messages = returned.messages.clone();
            // A message whose calls are still to be made is told again, and so becomes part of the conversation again.
            messages.pop_if(|last| !OpenCalls::left_by(last).is_empty());
            let change = HistoryChange::Replaced(messages);
            let history = Body::History(Box::new(change));
            log.begin_with(
                [history].into_iter().chain(base.map(|base| Body::Journal(Box::new(base)))).collect(),
            );
        }
        prompt_id
    }

    /// Tells the message again whose calls are about to be made, as a step of its own: whoever reads this turn has not
    /// seen it.
    pub(super) async fn retell(&self, state: &ReactState, emit: &Emitter) {
        let Some(message) = state.messages.last().filter(|message| message.role == Role::Assistant) else {
            return;
        };
        let text: String = message
            .parts
            .iter()
            .filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None })
            .collect();
        let message_id: Arc<str> = format!("msg-{:016x}", fastrand::u64(..)).into();
        let model: Arc<str> = self.setup.model.name().into();
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

    /// Nobody goes on with the turn that was returned to: only its conversation counts.
    pub(super) fn stay_back(&mut self) {
        self.history.extend(self.open_calls.settle());
        self.note(HistoryChange::Replaced(self.history.clone()));
    }
}
