//! Encodes Loom events as lines with the envelope.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{Event, NodeRun, SessionId};

use super::modes;
use super::project::{Projector, Sink, node_id, node_name};
use super::wire::{Body, Frame, ReplyFrame};
use crate::dialect::{Encoder, StreamInfo, StreamMode};
use crate::flat::push_flat;
use crate::line::{push_line, push_number, push_string};

/// Writes the `loom` dialect.
#[derive(Debug)]
pub struct LoomEncoder {
    projector: Projector,
    envelope: Envelope,
}

/// The envelope of every line.
#[derive(Debug)]
struct Envelope {
    session_id: SessionId,
    /// The number of the last line written.
    event_id: u64,
    /// The families to write; empty means all.
    modes: Vec<StreamMode>,
    chunk: ChunkFrame,
}

/// A `message_chunk` line without its number and its piece, rendered once per node run.
#[derive(Debug, Default)]
struct ChunkFrame {
    /// The node run that it was rendered for.
    node: Option<Arc<NodeRun>>,
    /// The part before the number; empty before the first rendering.
    before: Vec<u8>,
    /// The part after the piece.
    after: Vec<u8>,
}

/// The envelope, writing.
struct Writer<'a> {
    envelope: &'a mut Envelope,
    out: &'a mut Vec<u8>,
}

impl LoomEncoder {
    /// An encoder for the stream that `info` describes.
    pub fn new(info: &StreamInfo) -> Self {
        Self {
            projector: Projector::default(),
            envelope: Envelope {
                session_id: info.session_id.clone(),
                event_id: 0,
                modes: info.stream_modes.clone(),
                chunk: ChunkFrame::default(),
            },
        }
    }
}

impl Encoder for LoomEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        if let qwen_events::Body::TurnStart(start) = &event.body
            && event.scope.parent.is_none()
        {
            self.envelope.session_id = start.session_id.clone();
            self.envelope.chunk = ChunkFrame::default();
        }
        if !push_flat(event, out) {
            self.projector.project(event, &mut Writer { envelope: &mut self.envelope, out });
        }
    }
}

impl Sink for Writer<'_> {
    fn event(&mut self, node_id: Option<&str>, body: Body<'_>) {
        if !modes::includes(&self.envelope.modes, &body) {
            return;
        }
        self.envelope.event_id += 1;
        push_line(
            self.out,
            &Frame {
                session_id: Some(self.envelope.session_id.as_str().into()),
                node_id: node_id.map(Cow::Borrowed),
                event_id: Some(self.envelope.event_id),
                body,
            },
        );
    }

    fn chunk(&mut self, node: Option<&Arc<NodeRun>>, content: &str) {
        if !modes::wants_chunks(&self.envelope.modes) {
            return;
        }
        self.envelope.event_id += 1;
        let frame = &mut self.envelope.chunk;
        let current = match (&frame.node, node) {
            (Some(known), Some(node)) => Arc::ptr_eq(known, node),
            (None, None) => !frame.before.is_empty(),
            _ => false,
        };
        if !current {
            frame.render(self.envelope.session_id.as_str(), node);
        }
        self.out.extend_from_slice(&frame.before);
        push_number(self.out, self.envelope.event_id);
        self.out.extend_from_slice(br#","type":"message_chunk","content":"#);
        push_string(self.out, content);
        self.out.extend_from_slice(&frame.after);
    }

    fn reply(&mut self, node_id: Option<&str>, reply: &str) {
        self.envelope.event_id += 1;
        push_line(
            self.out,
            &ReplyFrame {
                session_id: Some(self.envelope.session_id.as_str().into()),
                node_id: node_id.map(Cow::Borrowed),
                event_id: Some(self.envelope.event_id),
                reply: reply.into(),
            },
        );
    }
}

impl ChunkFrame {
    fn render(&mut self, session_id: &str, node: Option<&Arc<NodeRun>>) {
        self.node = node.cloned();
        self.before.clear();
        self.before.extend_from_slice(br#"{"session_id":"#);
        push_string(&mut self.before, session_id);
        if let Some(id) = node_id(node) {
            self.before.extend_from_slice(br#","node_id":"#);
            push_string(&mut self.before, id);
        }
        self.before.extend_from_slice(br#","event_id":"#);
        self.after.clear();
        self.after.extend_from_slice(br#","id":"#);
        push_string(&mut self.after, node_name(node));
        self.after.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_chunk_is_what_serde_writes(
            pieces in proptest::collection::vec(any::<String>(), 1..4), name in proptest::option::of(any::<String>()),
        ) {
            let node = name.map(|name| Arc::new(NodeRun::new(&name, 1)));
            let mut envelope = Envelope {
                session_id: SessionId::parse("sess-001").unwrap(),
                event_id: 41,
                modes: Vec::new(),
                chunk: ChunkFrame::default(),
            };
            for (piece, event_id) in pieces.iter().zip(42..) {
                let (mut fast, mut slow) = (Vec::new(), Vec::new());
                Writer { envelope: &mut envelope, out: &mut fast }.chunk(node.as_ref(), piece);
                push_line(&mut slow, &Frame {
                    session_id: Some("sess-001".into()),
                    node_id: node_id(node.as_ref()).map(Cow::Borrowed),
                    event_id: Some(event_id),
                    body: Body::MessageChunk {
                        content: piece.into(),
                        id: node_name(node.as_ref()).into(),
                    },
                });
                prop_assert_eq!(String::from_utf8(fast), String::from_utf8(slow));
            }
        }
    }
}
