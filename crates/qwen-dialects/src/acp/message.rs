//! Messages and thoughts, in pieces. The most frequent lines of a stream are written here.

use qwen_events::Part;

use super::content::media_block;
use super::sizes::{MAX_PART, split_at_size};
use super::wire::{Chunk, ContentBlock, SessionUpdate};
use crate::line::{push_string, push_value};

/// The message that is being written.
#[derive(Debug, Default)]
pub(super) struct OpenMessage {
    /// Everything before the text of a piece, rendered once.
    text_head: Vec<u8>,
    thought_head: Vec<u8>,
}

/// The end of a piece after its text.
const TAIL: &[u8] = b"}}}}\n";

impl OpenMessage {
    /// A message whose lines begin with `update_head`.
    pub(super) fn new(id: &str, update_head: &[u8]) -> Self {
        let head = |kind: &str, id: &str| {
            let mut head = update_head.to_vec();
            head.extend_from_slice(format!("{{\"sessionUpdate\":\"{kind}\",\"messageId\":").as_bytes());
            push_value(&mut head, &id);
            head.extend_from_slice(b",\"content\":{\"type\":\"text\",\"text\":");
            head
        };
        Self {
            text_head: head("agent_message_chunk", id),
            thought_head: head("agent_thought_chunk", &thought_id(id)),
        }
    }

    /// Writes a piece of the answer.
    pub(super) fn push_text(&self, text: &str, out: &mut Vec<u8>) {
        push_pieces(&self.text_head, text, out);
    }

    /// Writes a piece of the thinking.
    pub(super) fn push_thought(&self, text: &str, out: &mut Vec<u8>) {
        push_pieces(&self.thought_head, text, out);
    }
}

/// The id of the thinking before a message: for a client the two are different messages.
pub(super) fn thought_id(message_id: &str) -> String {
    format!("{message_id}-thought")
}

/// Writes a text after `head`, in as many lines as its size requires.
fn push_pieces(head: &[u8], text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = split_at_size(rest, MAX_PART);
        out.extend_from_slice(head);
        push_string(out, piece);
        out.extend_from_slice(TAIL);
        rest = after;
    }
}

/// Writes a message of the user as chunks with the prompt's id. `update_head` begins every update of the session.
pub(super) fn push_user_chunks<'p>(
    update_head: &[u8],
    id: &str,
    parts: impl Iterator<Item = &'p Part>,
    out: &mut Vec<u8>,
) {
    let mut push = |content: ContentBlock<'_>| {
        let chunk = Chunk { message_id: Some(id.into()), content, meta: None };
        out.extend_from_slice(update_head);
        push_value(out, &SessionUpdate::UserMessageChunk(chunk));
        out.extend_from_slice(b"}}\n");
    };
    for part in parts {
        match part {
            Part::Text(text) => {
                let mut rest: &str = text;
                while !rest.is_empty() {
                    let (piece, after) = split_at_size(rest, MAX_PART);
                    push(ContentBlock::Text { text: piece.into() });
                    rest = after;
                }
            }
            Part::Media(media) => push(media_block(media)),
            Part::Thought { .. } | Part::Call(_) | Part::Result(_) => {}
        }
    }
}
