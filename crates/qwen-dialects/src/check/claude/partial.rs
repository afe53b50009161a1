//! A message that is written piece by piece.

use std::collections::BTreeMap;

use super::super::digest::Digest;
use super::super::report::Report;
use crate::claude::wire::message::Block;
use crate::claude::wire::stream_event::{Delta, StreamEvent};
use crate::decode::scan;

/// Where in its message an agent is.
#[derive(Default)]
pub(super) struct Partial {
    /// True while the stream may be in a message whose beginning it does not have.
    is_cut: bool,
    /// A message is open, and this is the index that its next block has.
    next: Option<u32>,
    /// The block that is open.
    block: Option<Growing>,
    /// The joined pieces of a text whose whole is still to come.
    closed: Option<Digest>,
    /// The joined pieces of the inputs whose wholes are still to come, by call.
    closed_inputs: BTreeMap<String, String>,
}

/// The longest input that is compared with its pieces.
const MAX_INPUT: usize = 1 << 20;

/// The most calls of a message whose inputs are compared with their pieces.
const MAX_CALLS: usize = 64;

struct Growing {
    index: u32,
    kind: Kind,
    /// The call's id, for a call.
    call: Option<String>,
    text: Digest,
    /// The joined pieces of an input; none where it is too long to be kept.
    input: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Tool,
    Other,
}

impl Kind {
    fn from_block(block: &Block<'_>) -> Self {
        match block {
            Block::Text { .. } => Self::Text,
            Block::Thinking { .. } => Self::Thinking,
            Block::ToolUse { .. } => Self::Tool,
            _ => Self::Other,
        }
    }

    fn accepts(self, delta: &Delta<'_>) -> bool {
        matches!(
            (self, delta),
            (Self::Text, Delta::TextDelta { .. })
                | (Self::Thinking, Delta::ThinkingDelta { .. })
                | (Self::Tool, Delta::InputJsonDelta { .. })
        )
    }
}

impl Partial {
    /// A message whose beginning the stream may not have.
    pub(super) fn cut() -> Self {
        Self { is_cut: true, ..Self::default() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.next.is_some()
    }

    pub(super) fn event(&mut self, event: &StreamEvent<'_>, report: &mut Report) {
        match event {
            StreamEvent::MessageStart { .. } => {
                if self.is_open() {
                    report.error(
                        "message",
                        "a `message_start` before the `message_stop` of the message before",
                    );
                }
                *self = Self { next: Some(0), ..Self::default() };
            }
            StreamEvent::ToolProgress { .. } => {}
            StreamEvent::MessageStop if self.is_cut => self.is_cut = false,
            _ if self.is_cut => {}
            _ if !self.is_open() => {
                report.error("message", "a piece of a message outside of `message_start` and `message_stop`");
            }
            StreamEvent::ContentBlockStart { index, content_block } => {
                self.start(*index, content_block, report);
            }
            StreamEvent::ContentBlockDelta { index, delta } => self.delta(*index, delta, report),
            StreamEvent::ContentBlockStop { index } => self.stop(*index, report),
            StreamEvent::MessageDelta { .. } => self.no_block("`message_delta`", report),
            StreamEvent::MessageStop => {
                self.no_block("`message_stop`", report);
                self.next = None;
            }
        }
    }

    /// Judges the whole of a text block, which comes after its last piece.
    pub(super) fn whole_text(&mut self, text: &str, report: &mut Report) {
        if let Some(joined) = self.closed.take()
            && joined != Digest::compute(text)
        {
            report.error("pieces", "the text of this block is not what its pieces joined are");
        }
    }

    /// Judges the whole input of a call, which comes after its last piece.
    pub(super) fn whole_input(&mut self, call: &str, input: &str, report: &mut Report) {
        let Some(joined) = self.closed_inputs.remove(call) else { return };
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        let pieces = if joined.trim().is_empty() { value("{}") } else { value(&joined) };
        // Arguments that are no JSON object, or one with a key twice, reach the reader as an empty one.
        if !joined.trim().is_empty() && scan::check(&joined).is_err() {
            return;
        }
        if pieces.as_ref().is_some_and(serde_json::Value::is_object) && pieces != value(input) {
            report.error("pieces", "the input of this call is not what its pieces joined are");
        }
    }

    fn start(&mut self, index: u32, block: &Block<'_>, report: &mut Report) {
        self.no_block("the start of another block", report);
        let expected = self.next.unwrap_or_default();
        if index != expected {
            report.error("block", format!("the block has index {index}, but the next one is {expected}"));
        }
        self.next = Some(index.saturating_add(1));
        let text = if let Block::Text { text } = block { Digest::compute(text) } else { Digest::default() };
        let call = if let Block::ToolUse { id, .. } = block { Some(id.to_string()) } else { None };
        self.block =
            Some(Growing { index, kind: Kind::from_block(block), call, text, input: Some(String::new()) });
    }

    fn delta(&mut self, index: u32, delta: &Delta<'_>, report: &mut Report) {
        let Some(block) = self.block.as_mut().filter(|block| block.index == index) else {
            report.error("block", format!("a piece of block {index}, which is not open"));
            return;
        };
        if !block.kind.accepts(delta) {
            report.error("block", format!("a piece of another kind than block {index} is made of"));
        }
        match delta {
            Delta::TextDelta { text } => block.text.add(text),
            Delta::InputJsonDelta { partial_json } => {
                if let Some(input) = &mut block.input {
                    input.push_str(partial_json);
                }
                block.input.take_if(|input| input.len() > MAX_INPUT);
            }
            Delta::ThinkingDelta { .. } => {}
        }
    }

    fn stop(&mut self, index: u32, report: &mut Report) {
        match self.block.take() {
            Some(block) if block.index == index => {
                self.closed = (block.kind == Kind::Text).then_some(block.text);
                if let (Some(call), Some(input)) = (block.call, block.input)
                    && self.closed_inputs.len() < MAX_CALLS
                {
                    self.closed_inputs.insert(call, input);
                }
            }
            other => {
                report.error("block", format!("the end of block {index}, which is not open"));
                self.block = other;
            }
        }
    }

    fn no_block(&self, before: &str, report: &mut Report) {
        if let Some(block) = &self.block {
            report
                .error("block", format!("block {} has no `content_block_stop` before {before}", block.index));
        }
    }
}
