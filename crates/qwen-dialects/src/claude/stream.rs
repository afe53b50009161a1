//! What every line of a stream needs: the session, a fresh name, and whose client reads it.

use std::borrow::Cow;

use qwen_events::SessionId;

use super::limit::line_limit;
use super::message::{AssistantMessage, AssistantRole, Block, MessageKind, TokenUsage};
use super::stream_event::StreamEvent;
use super::uuid::Mint;
use super::wire::{AssistantLine, Message, Notice, StreamEventLine, SystemLine};
use crate::dialect::{ModelLimits, StreamInfo};
use crate::line::push_line;

/// The stream that lines are written to.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) session_id: SessionId,
    pub(super) mint: Mint,
    /// `stream_event` lines are wanted.
    pub(super) partial: bool,
    /// One of Qwen's SDKs reads.
    pub(super) qwen_sdk: bool,
    /// The longest line that the reader takes.
    pub(super) longest: usize,
    /// What is known of the model.
    pub(super) model_limits: ModelLimits,
}

/// One `assistant` line: a block and what is known of its message.
pub(super) struct AssistantBlock<'a> {
    pub(super) parent: Option<&'a str>,
    pub(super) message_id: &'a str,
    pub(super) model: &'a str,
    pub(super) block: Block<'a>,
    pub(super) stop_reason: Option<&'a str>,
    pub(super) usage: TokenUsage,
    pub(super) aborted: bool,
    /// The kind of failure that the message reports.
    pub(super) error: Option<&'static str>,
}

impl Stream {
    pub(super) fn new(info: &StreamInfo) -> Self {
        Self {
            session_id: info.session_id.clone(),
            mint: Mint::new(info.seed),
            partial: info.partial_messages,
            qwen_sdk: info.qwen_sdk,
            longest: line_limit(info),
            model_limits: info.model_limits,
        }
    }

    pub(super) fn push_system(&mut self, out: &mut Vec<u8>, notice: Notice<'_>) {
        let uuid = self.mint.next();
        push_line(
            out,
            &Message::System(SystemLine {
                notice,
                session_id: self.session_id.as_str().into(),
                uuid: uuid.as_str().into(),
            }),
        );
    }

    pub(super) fn push_event(&mut self, out: &mut Vec<u8>, parent: Option<&str>, event: StreamEvent<'_>) {
        let uuid = self.mint.next();
        push_line(
            out,
            &Message::StreamEvent(StreamEventLine {
                uuid: uuid.as_str().into(),
                session_id: self.session_id.as_str().into(),
                parent_tool_use_id: parent.map(Cow::Borrowed),
                event,
            }),
        );
    }

    pub(super) fn push_assistant(&mut self, out: &mut Vec<u8>, line: AssistantBlock<'_>) {
        let uuid = self.mint.next();
        push_line(
            out,
            &Message::Assistant(AssistantLine {
                uuid: uuid.as_str().into(),
                session_id: self.session_id.as_str().into(),
                parent_tool_use_id: line.parent.map(Cow::Borrowed),
                message: AssistantMessage {
                    id: line.message_id.into(),
                    kind: MessageKind::Message,
                    role: AssistantRole::Assistant,
                    model: line.model.into(),
                    content: vec![line.block],
                    stop_reason: line.stop_reason.map(Cow::Borrowed),
                    stop_sequence: None,
                    usage: line.usage,
                },
                error: line.error.map(Cow::Borrowed),
                aborted: line.aborted,
            }),
        );
    }
}
