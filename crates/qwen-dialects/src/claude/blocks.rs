//! A model's message as blocks that open, grow and close, each becoming one `assistant` line.
//!
//! A block closes when the next one starts or the message ends, so the last one can carry what is known
//! only then: the stop reason and the tokens. Blocks never overlap: a call that the model begins before
//! another one's arguments are complete gets its block when it is complete itself. If text comes between
//! instead, the incomplete call waits for its `ToolCall`, and its line follows then.

use std::sync::Arc;

use qwen_events::{CallId, MessageEnd, ToolCall};
use serde::de::IgnoredAny;

use super::stream::delta::{DeltaFrame, DeltaKind};
use super::stream::limit::{pieces, text_limit};
use super::stream::{AssistantBlock, Stream};
use super::wire::message::{AssistantMessage, AssistantRole, Block, MessageKind, TokenUsage};
use super::wire::stream_event::{StopDelta, StreamEvent};
use super::words::{stop_reason, tokens};
use crate::payload::Payload;

/// The main agent or one sub-agent, and the message it is writing.
#[derive(Debug, Default)]
pub(super) struct Speaker {
    /// The call whose sub-agent this is.
    pub(super) parent: Option<CallId>,
    message: Option<OpenMessage>,
}

#[derive(Debug)]
struct OpenMessage {
    id: Arc<str>,
    model: Arc<str>,
    next_index: u32,
    open: Option<OpenBlock>,
    /// Calls whose block was closed before their arguments were complete.
    waiting: Vec<CallId>,
    /// Calls that began while another call's block was open and incomplete; they are written once they are
    /// complete.
    late: Vec<CallId>,
    /// The complete calls.
    calls: Vec<CallId>,
    wrote_text: bool,
}

#[derive(Debug)]
struct OpenBlock {
    index: u32,
    /// Where pieces are wanted, everything around them.
    frame: Option<DeltaFrame>,
    content: Growing,
}

#[derive(Debug)]
enum Growing {
    Text(String),
    Thinking { text: String, signature: Arc<str> },
    Tool { id: CallId, arguments: String, call: Option<Arc<ToolCall>> },
}

/// What is known at the end of a message.
#[derive(Clone, Copy, Default)]
struct Ending {
    stop_reason: Option<&'static str>,
    usage: TokenUsage,
    aborted: bool,
}

/// Appends the lines for one piece: one, unless the line would exceed the reader's limit.
fn push_pieces(frame: &DeltaFrame, stream: &mut Stream, out: &mut Vec<u8>, piece: &str) {
    // A thought occurs twice in its line, and a character takes at most six times its bytes.
    let room = text_limit(stream.longest) / 2;
    if piece.len() <= room / 6 {
        frame.push(out, &stream.uuids.next(), piece);
        return;
    }
    for part in pieces(piece, room) {
        frame.push(out, &stream.uuids.next(), part);
    }
}

impl OpenMessage {
    /// True if a piece of the call `id` cannot be written: its block was closed early, or would split
    /// another one's.
    fn must_wait(&mut self, id: &CallId) -> bool {
        if self.waiting.contains(id) || self.late.contains(id) {
            return true;
        }
        let late = matches!(&self.open, Some(OpenBlock { content: Growing::Tool { id: open, arguments, .. }, .. })
            if open != id && serde_json::from_str::<IgnoredAny>(arguments).is_err());
        if late {
            self.late.push(id.clone());
        }
        late
    }
}

impl Speaker {
    pub(super) fn new(parent: Option<CallId>) -> Self {
        Self { parent, message: None }
    }

    /// The model starts a message.
    pub(super) fn start(&mut self, stream: &mut Stream, out: &mut Vec<u8>, id: &Arc<str>, model: &Arc<str>) {
        if stream.partial {
            let message = AssistantMessage {
                id: id.as_ref().into(),
                kind: MessageKind::Message,
                role: AssistantRole::Assistant,
                model: model.as_ref().into(),
                content: Vec::new(),
                stop_reason: None,
                stop_sequence: None,
                usage: TokenUsage::default(),
            };
            stream.push_event(out, self.parent(), StreamEvent::MessageStart { message });
        }
        self.message = Some(OpenMessage {
            id: id.clone(),
            model: model.clone(),
            next_index: 0,
            open: None,
            waiting: Vec::new(),
            late: Vec::new(),
            calls: Vec::new(),
            wrote_text: false,
        });
    }

    /// A piece of the model's text.
    pub(super) fn text(&mut self, stream: &mut Stream, out: &mut Vec<u8>, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if !matches!(self.growing(), Some(Growing::Text(_))) {
            let block = Block::Text { text: "".into() };
            self.open(stream, out, DeltaKind::Text, block, Growing::Text(String::new()));
        }
        let Some(message) = &mut self.message else { return };
        message.wrote_text = true;
        if let Some(OpenBlock { frame, content: Growing::Text(text), .. }) = &mut message.open {
            text.push_str(piece);
            if let Some(frame) = frame {
                push_pieces(frame, stream, out, piece);
            }
        }
    }

    /// A piece of the model's thinking.
    pub(super) fn thought(&mut self, stream: &mut Stream, out: &mut Vec<u8>, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if !matches!(self.growing(), Some(Growing::Thinking { .. })) {
            let block = Block::Thinking { thinking: "".into(), signature: "".into() };
            self.open(
                stream,
                out,
                DeltaKind::Thinking,
                block,
                Growing::Thinking { text: String::new(), signature: "".into() },
            );
        }
        let open = self.message.as_mut().and_then(|message| message.open.as_mut());
        if let Some(OpenBlock { frame, content: Growing::Thinking { text, .. }, .. }) = open {
            text.push_str(piece);
            if let Some(frame) = frame {
                push_pieces(frame, stream, out, piece);
            }
        }
    }

    /// Signs the complete thought.
    pub(super) fn sign(&mut self, proof: &Arc<str>) {
        let open = self.message.as_mut().and_then(|message| message.open.as_mut());
        if let Some(OpenBlock { content: Growing::Thinking { signature, .. }, .. }) = open {
            signature.clone_from(proof);
        }
    }

    /// A piece of a call's arguments.
    pub(super) fn arguments(
        &mut self,
        stream: &mut Stream,
        out: &mut Vec<u8>,
        id: &CallId,
        name: &str,
        piece: &str,
    ) {
        // Without pieces on the wire there is nothing to do before the call is complete.
        if !stream.partial || self.message.as_mut().is_none_or(|message| message.must_wait(id)) {
            return;
        }
        self.open_call(stream, out, id, name);
        let open = self.message.as_mut().and_then(|message| message.open.as_mut());
        if let Some(OpenBlock { frame: Some(frame), content: Growing::Tool { arguments, .. }, .. }) = open
            && !piece.is_empty()
        {
            arguments.push_str(piece);
            push_pieces(frame, stream, out, piece);
        }
    }

    /// Handles a complete call.
    pub(super) fn call(&mut self, stream: &mut Stream, out: &mut Vec<u8>, call: &Arc<ToolCall>) {
        let Some(message) = &mut self.message else { return };
        message.calls.push(call.id.clone());
        if let Some(at) = message.waiting.iter().position(|id| *id == call.id) {
            message.waiting.swap_remove(at);
            self.push_block(stream, out, tool_use(call), Ending::default());
            return;
        }
        if self.open_call(stream, out, &call.id, &call.name) {
            let open = self.message.as_ref().and_then(|message| message.open.as_ref());
            if let Some(OpenBlock { frame: Some(frame), .. }) = open {
                push_pieces(frame, stream, out, Payload::new(&call.arguments).as_str());
            }
        }
        let open = self.message.as_mut().and_then(|message| message.open.as_mut());
        if let Some(OpenBlock { content: Growing::Tool { call: whole, .. }, .. }) = open {
            *whole = Some(call.clone());
        }
    }

    /// Handles the end of the message, complete or not.
    pub(super) fn end(&mut self, stream: &mut Stream, out: &mut Vec<u8>, end: &MessageEnd) {
        if self.message.is_none() {
            self.start(stream, out, &end.message_id, &end.model);
        }
        // A message that was not streamed has its content only here.
        let streamed = self.message.as_ref().is_some_and(|message| message.wrote_text);
        if !streamed && !end.text.is_empty() {
            self.text(stream, out, &end.text);
        }
        for call in &end.calls {
            if self.message.as_ref().is_some_and(|message| !message.calls.contains(&call.id)) {
                self.call(stream, out, call);
            }
        }
        let reason = match end.calls.is_empty() {
            _ if end.aborted => None,
            true => Some(stop_reason(end.finish)),
            false => Some("tool_use"),
        };
        let usage = tokens(&end.usage, stream.qwen_sdk);
        self.close(stream, out, Ending { stop_reason: reason, usage, aborted: end.aborted });
        if stream.partial {
            let delta = StopDelta { stop_reason: reason.map(Into::into), stop_sequence: None };
            stream.push_event(out, self.parent(), StreamEvent::MessageDelta { delta, usage });
            stream.push_event(out, self.parent(), StreamEvent::MessageStop);
        }
        self.message = None;
    }

    fn parent(&self) -> Option<&str> {
        self.parent.as_ref().map(CallId::as_str)
    }

    fn growing(&self) -> Option<&Growing> {
        Some(&self.message.as_ref()?.open.as_ref()?.content)
    }

    /// Makes the block of the call `id` the open one, and returns whether it had to be started.
    fn open_call(&mut self, stream: &mut Stream, out: &mut Vec<u8>, id: &CallId, name: &str) -> bool {
        if matches!(self.growing(), Some(Growing::Tool { id: open, .. }) if open == id) {
            return false;
        }
        let block =
            Block::ToolUse { id: id.as_str().into(), name: name.into(), input: Payload::from_text("{}") };
        self.open(
            stream,
            out,
            DeltaKind::InputJson,
            block,
            Growing::Tool { id: id.clone(), arguments: String::new(), call: None },
        );
        true
    }

    /// Closes the open block, if any, and opens another.
    fn open(
        &mut self,
        stream: &mut Stream,
        out: &mut Vec<u8>,
        kind: DeltaKind,
        block: Block<'_>,
        content: Growing,
    ) {
        self.close(stream, out, Ending::default());
        let Some(message) = &mut self.message else { return };
        let index = message.next_index;
        message.next_index += 1;
        let parent = self.parent.as_ref().map(CallId::as_str);
        let frame = stream.partial.then(|| {
            stream.push_event(out, parent, StreamEvent::ContentBlockStart { index, content_block: block });
            DeltaFrame::new(kind, stream.session_id.as_str(), parent, index)
        });
        message.open = Some(OpenBlock { index, frame, content });
    }

    /// Closes the open block, if any, and writes its line if it is complete.
    fn close(&mut self, stream: &mut Stream, out: &mut Vec<u8>, ending: Ending) {
        let Some(open) = self.message.as_mut().and_then(|message| message.open.take()) else { return };
        if open.frame.is_some() {
            stream.push_event(out, self.parent(), StreamEvent::ContentBlockStop { index: open.index });
        }
        match open.content {
            Growing::Text(text) => {
                self.push_text(stream, out, &text, ending, &|text| Block::Text { text: text.into() });
            }
            Growing::Thinking { text, signature } => {
                self.push_text(stream, out, &text, ending, &|text| Block::Thinking {
                    thinking: text.into(),
                    signature: signature.as_ref().into(),
                });
            }
            Growing::Tool { call: Some(call), .. } => self.push_block(stream, out, tool_use(&call), ending),
            Growing::Tool { id, call: None, .. } => {
                if let Some(message) = &mut self.message {
                    message.waiting.push(id);
                }
            }
        }
    }

    /// Writes a block of text, split into several if one line cannot hold it.
    fn push_text<'a>(
        &self,
        stream: &mut Stream,
        out: &mut Vec<u8>,
        text: &'a str,
        ending: Ending,
        block: &dyn Fn(&'a str) -> Block<'a>,
    ) {
        let pieces = pieces(text, text_limit(stream.longest));
        for (piece, left) in pieces.iter().zip((0..pieces.len()).rev()) {
            let known =
                if left == 0 { ending } else { Ending { aborted: ending.aborted, ..Ending::default() } };
            self.push_block(stream, out, block(piece), known);
        }
    }

    fn push_block(&self, stream: &mut Stream, out: &mut Vec<u8>, block: Block<'_>, ending: Ending) {
        let Some(message) = &self.message else { return };
        stream.push_assistant(
            out,
            AssistantBlock {
                parent: self.parent(),
                message_id: &message.id,
                model: &message.model,
                block,
                stop_reason: ending.stop_reason,
                usage: ending.usage,
                aborted: ending.aborted,
                error: None,
            },
        );
    }
}

fn tool_use(call: &ToolCall) -> Block<'_> {
    Block::ToolUse {
        id: call.id.as_str().into(),
        name: call.name.as_ref().into(),
        input: Payload::new(&call.arguments),
    }
}
