//! `stream-chunk-json`: a `chat.completion.chunk` line for every piece of an assistant message.

use std::borrow::Cow;

use qwen_events::{
    Body, CallId, Event, MessageEnd, Timestamp, TurnEnd, call_progress, graph_events, outside_turns,
    session_notices, turn_steps,
};

use super::frame::{Frame, created, empty_line};
use super::stream::{ChatStream, MetadataLine, StreamState};
use super::turn::{Last, message_finish, turn_finish, turn_metadata};
use super::wire::{
    AssistantRole, ChatCompletionChunk, ChunkChoice, ChunkObject, Delta, FunctionDelta, FunctionType,
    TokenUsage, ToolCallDelta,
};
use crate::line::{push_line, push_number, push_string, push_value};
use crate::{Encoder, StreamInfo};

/// The rest of a line that ends no message.
const UNFINISHED_SUFFIX: &[u8] = b",\"finish_reason\":null}]}\n";

/// Writes a stream piece by piece.
pub(super) struct ChunkEncoder {
    state: StreamState,
    /// The announced calls of the current message, by index.
    calls: Vec<CallId>,
    /// A line up to its delta, and the second it was rendered for.
    prefix: Vec<u8>,
    rendered: Option<u64>,
}

impl ChunkEncoder {
    pub(super) fn new(info: &StreamInfo) -> Self {
        Self::with_frame(Frame::new(info))
    }

    fn line(&self, at: Timestamp) -> ChatCompletionChunk<'_> {
        empty_line!(ChatCompletionChunk, ChunkObject::Word, self.state.frame, at)
    }

    /// Starts a line, up to the position of the delta. The prefix changes with the message and with the
    /// second, so thousands of pieces share one rendering.
    fn start_line(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        if self.rendered != Some(created(at)) {
            let mut prefix = std::mem::take(&mut self.prefix);
            prefix.clear();
            push_value(&mut prefix, &self.line(at));
            // The rendering ends in `"choices":[]}`; the choice replaces the last two bytes.
            prefix.truncate(prefix.len().saturating_sub(2));
            prefix.extend_from_slice(b"{\"index\":0,\"delta\":");
            self.prefix = prefix;
            self.rendered = Some(created(at));
        }
        out.extend_from_slice(&self.prefix);
    }

    fn delta(&mut self, at: Timestamp, delta: &Delta<'_>, out: &mut Vec<u8>) {
        self.start_line(at, out);
        push_value(out, delta);
        out.extend_from_slice(UNFINISHED_SUFFIX);
    }

    fn role(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        self.delta(at, &Delta { role: Some(AssistantRole::Word), ..Delta::default() }, out);
    }

    fn text(&mut self, at: Timestamp, text: &str, out: &mut Vec<u8>) {
        self.start_line(at, out);
        out.extend_from_slice(b"{\"content\":");
        push_string(out, text);
        out.push(b'}');
        out.extend_from_slice(UNFINISHED_SUFFIX);
    }

    /// The first piece of a call, which names it.
    fn call_start(
        &mut self,
        at: Timestamp,
        index: u32,
        id: &CallId,
        name: &str,
        arguments: &str,
        out: &mut Vec<u8>,
    ) {
        self.calls.push(id.clone());
        let call = ToolCallDelta {
            index,
            id: Some(Cow::Borrowed(id.as_str())),
            kind: Some(FunctionType::Word),
            function: FunctionDelta { name: Some(Cow::Borrowed(name)), arguments: Cow::Borrowed(arguments) },
        };
        self.delta(at, &Delta { tool_calls: Some(vec![call]), ..Delta::default() }, out);
    }

    /// A further piece of a call.
    fn call_piece(&mut self, at: Timestamp, index: u32, arguments: &str, out: &mut Vec<u8>) {
        self.start_line(at, out);
        out.extend_from_slice(b"{\"tool_calls\":[{\"index\":");
        push_number(out, u64::from(index));
        out.extend_from_slice(b",\"function\":{\"arguments\":");
        push_string(out, arguments);
        out.extend_from_slice(b"}}]}");
        out.extend_from_slice(UNFINISHED_SUFFIX);
    }

    /// The message that pieces belong to; it is announced now unless it was before.
    fn open(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        if !matches!(self.state.last, Last::Open) {
            self.release(at, out);
            self.state.last = Last::Open;
            self.calls.clear();
            self.role(at, out);
        }
    }

    /// Ends the held message, because another one follows.
    fn release(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        if let Some(message) = self.state.last.take_held() {
            self.finish(at, &message, out);
        }
    }

    fn finish(&self, at: Timestamp, message: &MessageEnd, out: &mut Vec<u8>) {
        push_line(
            out,
            &ChatCompletionChunk {
                model: Cow::Borrowed(&message.model),
                choices: vec![nothing_more(message_finish(message))],
                usage: Some(TokenUsage::from(&message.usage)),
                ..self.line(at)
            },
        );
    }

    /// Writes the pieces of a message, the most frequent lines.
    fn piece(&mut self, event: &Event, out: &mut Vec<u8>) {
        match &event.body {
            Body::MessageStart { model, .. } => {
                self.release(event.at, out);
                self.state.frame.set_model(model);
                self.rendered = None;
                self.state.last = Last::Nothing;
                self.open(event.at, out);
            }
            Body::TextDelta(text) if !text.is_empty() => {
                self.open(event.at, out);
                self.text(event.at, text, out);
            }
            Body::ToolCallDelta { index, call_id, name, arguments } => {
                self.open(event.at, out);
                if self.calls.contains(call_id) {
                    if !arguments.is_empty() {
                        self.call_piece(event.at, *index, arguments, out);
                    }
                } else {
                    self.call_start(event.at, *index, call_id, name, arguments, out);
                }
            }
            Body::ToolCall(call) if !self.calls.contains(&call.id) => {
                self.open(event.at, out);
                let index = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
                self.call_start(event.at, index, &call.id, &call.name, call.arguments.as_str(), out);
            }
            Body::MessageEnd(message) => {
                self.open(event.at, out);
                if message.calls.is_empty() {
                    self.state.last = Last::Held(message.clone());
                } else {
                    self.finish(event.at, message, out);
                    self.state.last = Last::Calls;
                }
            }
            Body::Ready
            | Body::TurnStart(..)
            | graph_events!()
            | Body::TextDelta(..)
            | Body::ThoughtDelta(..)
            | Body::ThoughtSignature(..)
            | Body::ToolCall(..)
            | call_progress!()
            | Body::ToolStart(..)
            | Body::ToolEnd(..)
            | Body::Thinking(..)
            | session_notices!()
            | Body::Error(..)
            | Body::TurnEnd(..)
            | outside_turns!()
            | Body::Fatal(..) => {}
        }
    }
}

fn nothing_more(finish_reason: &str) -> ChunkChoice<'_> {
    ChunkChoice { index: 0, delta: Delta::default(), finish_reason: Some(Cow::Borrowed(finish_reason)) }
}

impl ChatStream for ChunkEncoder {
    fn with_frame(frame: Frame) -> Self {
        Self { state: StreamState::new(frame), calls: Vec::new(), prefix: Vec::new(), rendered: None }
    }

    fn state(&self) -> &StreamState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut StreamState {
        &mut self.state
    }

    fn push_metadata(&self, at: Timestamp, line: MetadataLine<'_>, out: &mut Vec<u8>) {
        let choice = line.finish_reason.map(|finish_reason| nothing_more(finish_reason));
        push_line(
            out,
            &ChatCompletionChunk {
                choices: choice.into_iter().collect(),
                system_fingerprint: line.fingerprint,
                metadata: Some(line.metadata),
                ..self.line(at)
            },
        );
    }

    fn end_turn(&mut self, at: Timestamp, end: &TurnEnd, out: &mut Vec<u8>) {
        let follows_calls = matches!(self.state.last, Last::Calls);
        let closing = self.state.last.close(end);
        if let Some(message) = closing.before {
            self.finish(at, &message, out);
        }
        self.state.annotator.end_turn(&self.state.frame, end, out);
        // The last chunk belongs to a message, so there must be one.
        if follows_calls || !closing.streamed {
            self.role(at, out);
        }
        if !closing.streamed && !closing.content.is_empty() {
            self.text(at, &closing.content, out);
        }
        push_line(
            out,
            &ChatCompletionChunk {
                choices: vec![nothing_more(turn_finish(end))],
                usage: Some(TokenUsage::from(&end.usage)),
                metadata: Some(turn_metadata(end)),
                ..self.line(at)
            },
        );
        self.state.frame.end_turn();
        self.rendered = None;
    }
}

impl Encoder for ChunkEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let main = event.scope.parent.is_none();
        match &event.body {
            // Pieces are nearly all of the stream, so they take the shortest path.
            Body::TextDelta(_) if main && !self.state.annotator.owes_thought() => {
                self.piece(event, out);
                return;
            }
            Body::Fatal(..) => {
                self.encode_fatal(event, out);
                return;
            }
            Body::TurnStart(start) if main => {
                self.state.frame.start_turn(start);
                self.rendered = None;
            }
            // Hooks may be called before the turn that they concern starts.
            Body::ControlRequest { session_id, .. } => {
                self.state.frame.enter_session(session_id);
                self.rendered = None;
            }
            Body::TurnEnd(end) => {
                if let Some(session_id) = &end.session_id {
                    self.state.frame.enter_session(session_id);
                    self.rendered = None;
                }
            }
            Body::Ready
            | Body::TurnStart(..)
            | turn_steps!()
            | Body::Error(..)
            | Body::CommandResult(..)
            | Body::HintResult(..)
            | Body::Heartbeat(..)
            | Body::CancelResult(..)
            | Body::ControlReply(..)
            | Body::ControlCancel { .. } => {}
        }
        if !self.encode_common(event, out) && main {
            self.piece(event, out);
        }
    }
}
