//! `stream-json`: one `chat.completion` line per assistant message.

use std::borrow::Cow;

use qwen_events::{Body, Event, MessageEnd, Timestamp, TurnEnd};

use super::frame::{Frame, created, empty_line};
use super::stream::{ChatStream, MetadataLine, StreamState};
use super::turn::{Last, message_finish, turn_finish, turn_metadata};
use super::wire::{
    AssistantMessage, AssistantRole, ChatCompletion, Choice, CompletionObject, FunctionCall, FunctionType,
    TokenUsage, WireToolCall,
};
use crate::line::push_line;
use crate::{Encoder, StreamInfo};

pub(super) struct MessageEncoder {
    state: StreamState,
}

impl MessageEncoder {
    pub(super) fn new(info: &StreamInfo) -> Self {
        Self::with_frame(Frame::new(info))
    }

    fn line(&self, at: Timestamp) -> ChatCompletion<'_> {
        empty_line!(ChatCompletion, CompletionObject::Word, self.state.frame, at)
    }

    /// Writes the held message, because another one follows.
    fn release(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        if let Some(message) = self.state.last.take_held() {
            self.message(at, &message, out);
        }
    }

    fn message(&self, at: Timestamp, message: &MessageEnd, out: &mut Vec<u8>) {
        let calls: Vec<WireToolCall<'_>> = message
            .calls
            .iter()
            .map(|call| WireToolCall {
                id: Cow::Borrowed(call.id.as_str()),
                kind: FunctionType::Word,
                function: FunctionCall {
                    name: Cow::Borrowed(&call.name),
                    arguments: Cow::Borrowed(call.arguments.as_str()),
                },
            })
            .collect();
        let silent = message.text.is_empty() && !calls.is_empty();
        let content = (!silent).then(|| Cow::Borrowed(&*message.text));
        let tool_calls = (!calls.is_empty()).then_some(calls);
        push_line(
            out,
            &ChatCompletion {
                model: Cow::Borrowed(&message.model),
                choices: vec![Choice {
                    index: 0,
                    message: AssistantMessage { role: AssistantRole::Word, content, tool_calls },
                    finish_reason: Cow::Borrowed(message_finish(message)),
                }],
                usage: Some(TokenUsage::from(&message.usage)),
                ..self.line(at)
            },
        );
    }
}

fn content_choice<'a>(content: &'a str, finish_reason: &'a str) -> Choice<'a> {
    let content = Some(Cow::Borrowed(content));
    Choice {
        index: 0,
        message: AssistantMessage { content, ..AssistantMessage::default() },
        finish_reason: Cow::Borrowed(finish_reason),
    }
}

impl ChatStream for MessageEncoder {
    fn with_frame(frame: Frame) -> Self {
        Self { state: StreamState::new(frame) }
    }

    fn state(&self) -> &StreamState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut StreamState {
        &mut self.state
    }

    fn push_metadata(&self, at: Timestamp, line: MetadataLine<'_>, out: &mut Vec<u8>) {
        let choice = line.finish_reason.map(|finish_reason| content_choice("", finish_reason));
        push_line(
            out,
            &ChatCompletion {
                choices: choice.into_iter().collect(),
                system_fingerprint: line.fingerprint,
                metadata: Some(line.metadata),
                ..self.line(at)
            },
        );
    }

    fn end_turn(&mut self, at: Timestamp, end: &TurnEnd, out: &mut Vec<u8>) {
        let closing = self.state.last.close(end);
        if let Some(message) = closing.before {
            self.message(at, &message, out);
        }
        self.state.annotator.end_turn(&self.state.frame, end, out);
        push_line(
            out,
            &ChatCompletion {
                choices: vec![content_choice(&closing.content, turn_finish(end))],
                usage: Some(TokenUsage::from(&end.usage)),
                metadata: Some(turn_metadata(end)),
                ..self.line(at)
            },
        );
        self.state.frame.end_turn();
    }
}

impl Encoder for MessageEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.encode_fatal(event, out) {
            return;
        }
        let main = event.scope.parent.is_none();
        if let Body::TurnStart(start) = &event.body
            && main
        {
            self.state.frame.start_turn(start);
        }
        // Hooks may be called before the turn that they concern starts.
        if let Body::ControlRequest { session_id, .. } = &event.body {
            self.state.frame.enter_session(session_id);
        }
        if let Body::TurnEnd(end) = &event.body
            && let Some(session_id) = &end.session_id
        {
            self.state.frame.enter_session(session_id);
        }
        if self.encode_common(event, out) || !main {
            return;
        }
        match &event.body {
            Body::MessageStart { model, .. } => {
                self.release(event.at, out);
                self.state.frame.set_model(model);
                self.state.last = Last::Open;
            }
            Body::MessageEnd(message) if message.calls.is_empty() => {
                self.release(event.at, out);
                self.state.last = Last::Held(message.clone());
            }
            Body::MessageEnd(message) => {
                self.release(event.at, out);
                self.message(event.at, message, out);
                self.state.last = Last::Calls;
            }
            _ => {}
        }
    }
}
