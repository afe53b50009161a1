//! The most frequent line of a stream: one more piece of a block.

use super::uuid::Uuid;
use crate::line::{push_number, push_string};

/// The kind of a block, which determines the keys around each piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::claude) enum DeltaKind {
    Text,
    Thinking,
    InputJson,
}

/// A `content_block_delta` line without its uuid and its piece, rendered once when the block starts.
#[derive(Debug)]
pub(in crate::claude) struct DeltaFrame {
    kind: DeltaKind,
    /// The part between the uuid and the piece.
    middle: Vec<u8>,
}

impl DeltaFrame {
    pub(in crate::claude) fn new(
        kind: DeltaKind,
        session_id: &str,
        parent: Option<&str>,
        index: u32,
    ) -> Self {
        let mut middle = Vec::with_capacity(192);
        middle.extend_from_slice(br#"","session_id":"#);
        push_string(&mut middle, session_id);
        middle.extend_from_slice(br#","parent_tool_use_id":"#);
        match parent {
            Some(parent) => push_string(&mut middle, parent),
            None => middle.extend_from_slice(b"null"),
        }
        middle.extend_from_slice(br#","event":{"type":"content_block_delta","index":"#);
        push_number(&mut middle, index.into());
        middle.extend_from_slice(match kind {
            DeltaKind::Text => br#","delta":{"type":"text_delta","text":"#,
            DeltaKind::Thinking => br#","delta":{"type":"thinking_delta","thinking":"#,
            DeltaKind::InputJson => br#","delta":{"type":"input_json_delta","partial_json":"#,
        });
        Self { kind, middle }
    }

    /// Appends the line for one piece.
    pub(in crate::claude) fn push(&self, out: &mut Vec<u8>, uuid: &Uuid, piece: &str) {
        out.extend_from_slice(br#"{"type":"stream_event","uuid":""#);
        out.extend_from_slice(uuid.as_bytes());
        out.extend_from_slice(&self.middle);
        let start = out.len();
        push_string(out, piece);
        if self.kind == DeltaKind::Thinking {
            let end = out.len();
            out.extend_from_slice(br#","text":"#);
            out.extend_from_within(start..end);
        }
        out.extend_from_slice(b"}}}\n");
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;
    use crate::claude::stream::uuid::UuidGenerator;
    use crate::claude::wire::stream_event::{Delta, StreamEvent};
    use crate::claude::wire::{Line, Message, StreamEventLine};
    use crate::line::push_line;

    proptest! {
        #[test]
        fn a_frame_is_what_serde_writes(
            piece in any::<String>(), session in any::<String>(), parent in proptest::option::of(any::<String>()),
            index in any::<u32>(), seed in any::<u64>(),
        ) {
            let uuid = UuidGenerator::new(seed).next();
            let text = Cow::Borrowed(piece.as_str());
            for (kind, delta) in [
                (DeltaKind::Text, Delta::TextDelta { text: text.clone() }),
                (DeltaKind::Thinking, Delta::ThinkingDelta { thinking: text.clone(), text: text.clone() }),
                (DeltaKind::InputJson, Delta::InputJsonDelta { partial_json: text.clone() }),
            ] {
                let mut fast = Vec::new();
                DeltaFrame::new(kind, &session, parent.as_deref(), index).push(&mut fast, &uuid, &piece);
                let mut slow = Vec::new();
                push_line(&mut slow, &Line::Message(Message::StreamEvent(StreamEventLine {
                    uuid: uuid.as_str().into(),
                    session_id: session.as_str().into(),
                    parent_tool_use_id: parent.as_deref().map(Cow::Borrowed),
                    event: StreamEvent::ContentBlockDelta { index, delta },
                })));
                prop_assert_eq!(String::from_utf8(fast), String::from_utf8(slow));
            }
        }
    }
}
