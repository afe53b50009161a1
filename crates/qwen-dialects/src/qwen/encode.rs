//! `stream-json`: one `chat.completion` line per assistant message.

use std::borrow::Cow;

use qwen_events::{Body, Event, MessageEnd, Timestamp, TurnEnd};

use super::annotate::Annotator;
use super::channel;
use super::frame::{Fatal, Frame, created, empty_line, fatal, push_fatal};
use super::turn::{Last, message_finish, turn_finish, turn_metadata};
use super::wire::{
    AssistantMessage, AssistantRole, ChatCompletion, Choice, CompletionObject, ErrorBody, FunctionCall,
    FunctionType, Metadata, TokenUsage, WireToolCall,
};
use crate::line::push_line;
use crate::{Encoder, StreamInfo};

pub(super) struct MessageEncoder {
    frame: Frame,
    annotator: Annotator,
    last: Last,
}

impl MessageEncoder {
    pub(super) fn new(info: &StreamInfo) -> Self {
        Self::on(Frame::new(info))
    }

    fn on(frame: Frame) -> Self {
        Self { frame, annotator: Annotator::default(), last: Last::default() }
    }

    fn line(&self, at: Timestamp) -> ChatCompletion<'_> {
        empty_line!(ChatCompletion, CompletionObject::Word, self.frame, at)
    }

    fn greet(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        if self.frame.greets() {
            let metadata = Some(self.frame.announcement());
            let system_fingerprint = Some(self.frame.fingerprint());
            push_line(out, &ChatCompletion { system_fingerprint, metadata, ..self.line(at) });
        }
    }

    /// Writes the held message, because another one follows.
    fn release(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        if let Some(message) = self.last.take_held() {
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

    /// Writes a remark about the stream in `metadata`, without model output.
    fn remark(&self, at: Timestamp, finish_reason: &'static str, error: ErrorBody<'_>, out: &mut Vec<u8>) {
        push_line(
            out,
            &ChatCompletion {
                choices: vec![said("", finish_reason)],
                metadata: Some(Metadata { error: Some(error), ..Metadata::default() }),
                ..self.line(at)
            },
        );
    }

    fn end_turn(&mut self, at: Timestamp, end: &TurnEnd, out: &mut Vec<u8>) {
        let closing = self.last.close(end);
        if let Some(message) = closing.before {
            self.message(at, &message, out);
        }
        self.annotator.end_turn(&self.frame, end, out);
        push_line(
            out,
            &ChatCompletion {
                choices: vec![said(&closing.content, turn_finish(end))],
                usage: Some(TokenUsage::from(&end.usage)),
                metadata: Some(turn_metadata(end)),
                ..self.line(at)
            },
        );
        self.frame.end_turn();
    }
}

fn said<'a>(content: &'a str, finish_reason: &'a str) -> Choice<'a> {
    let content = Some(Cow::Borrowed(content));
    Choice {
        index: 0,
        message: AssistantMessage { content, ..AssistantMessage::default() },
        finish_reason: Cow::Borrowed(finish_reason),
    }
}

impl Encoder for MessageEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        if let Body::Fatal(error) = &event.body {
            match fatal(error) {
                Fatal::Message(body) => self.remark(event.at, "error", body, out),
                Fatal::Bare => push_fatal(out, error),
            }
            return;
        }
        let main = event.scope.parent.is_none();
        if let Body::TurnStart(start) = &event.body
            && main
        {
            self.frame.start_turn(start);
        }
        // Hooks may be called before the turn that they concern starts.
        if let Body::ControlRequest { session_id, .. } = &event.body {
            self.frame.enter_session(session_id);
        }
        self.greet(event.at, out);
        match &event.body {
            Body::TurnEnd(end) if main && self.frame.runs(&end.prompt_id) => {
                self.end_turn(event.at, end, out);
            }
            // A prompt that was withdrawn before its turn started.
            Body::TurnEnd(end) if main => {
                Self::on(self.frame.of_prompt(&end.prompt_id)).end_turn(event.at, end, out);
            }
            Body::Error(error) => {
                let body = ErrorBody::from(&**error);
                match &error.refused {
                    Some(refused) => {
                        Self::on(self.frame.of_refused(refused)).remark(event.at, "stop", body, out);
                    }
                    None => self.remark(event.at, "stop", body, out),
                }
            }
            _ => {
                self.annotator.encode(&self.frame, event, out);
                channel::encode(self.frame.stamp(), event, out);
            }
        }
        if !main {
            return;
        }
        match &event.body {
            Body::MessageStart { model, .. } => {
                self.release(event.at, out);
                self.frame.set_model(model);
                self.last = Last::Open;
            }
            Body::MessageEnd(message) if message.calls.is_empty() => {
                self.release(event.at, out);
                self.last = Last::Held(message.clone());
            }
            Body::MessageEnd(message) => {
                self.release(event.at, out);
                self.message(event.at, message, out);
                self.last = Last::Calls;
            }
            _ => {}
        }
    }
}
