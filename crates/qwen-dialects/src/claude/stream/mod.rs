//! State shared by all lines of a stream: the session, the uuids, and the kind of reader.

pub(in crate::claude) mod delta;
pub(in crate::claude) mod limit;
pub(in crate::claude) mod uuid;

use std::borrow::Cow;

use qwen_events::SessionId;

use self::limit::line_limit;
use self::uuid::UuidGenerator;
use crate::claude::wire::message::{AssistantMessage, AssistantRole, Block, MessageKind, TokenUsage};
use crate::claude::wire::stream_event::StreamEvent;
use crate::claude::wire::{AssistantLine, Message, Notice, StreamEventLine, SystemLine};
use crate::dialect::{ModelLimits, StreamInfo};
use crate::line::push_line;

/// The stream that lines are written to.
#[derive(Debug)]
pub(in crate::claude) struct Stream {
    pub(in crate::claude) session_id: SessionId,
    pub(in crate::claude) uuids: UuidGenerator,
    /// True to write `stream_event` lines.
    pub(in crate::claude) partial: bool,
    /// True if the reader is one of Qwen's SDKs.
    pub(in crate::claude) qwen_sdk: bool,
    /// True if the reader is a host of Claude's family.
    pub(in crate::claude) claude_host: bool,
    /// The longest line that the reader accepts.
    pub(in crate::claude) longest: usize,
    pub(in crate::claude) model_limits: ModelLimits,
}

/// One `assistant` line: a block and the known fields of its message.
pub(in crate::claude) struct AssistantBlock<'a> {
    pub(in crate::claude) parent: Option<&'a str>,
    pub(in crate::claude) message_id: &'a str,
    pub(in crate::claude) model: &'a str,
    pub(in crate::claude) block: Block<'a>,
    pub(in crate::claude) stop_reason: Option<&'a str>,
    pub(in crate::claude) usage: TokenUsage,
    pub(in crate::claude) aborted: bool,
    /// The kind of failure that the message reports.
    pub(in crate::claude) error: Option<&'static str>,
}

impl Stream {
    pub(in crate::claude) fn new(info: &StreamInfo) -> Self {
        Self {
            session_id: info.session_id.clone(),
            uuids: UuidGenerator::new(info.seed),
            partial: info.partial_messages,
            qwen_sdk: info.qwen_sdk,
            claude_host: info.claude_host,
            longest: line_limit(info),
            model_limits: info.model_limits,
        }
    }

    pub(in crate::claude) fn push_system(&mut self, out: &mut Vec<u8>, notice: Notice<'_>) {
        let uuid = self.uuids.next();
        self.push_system_as(out, notice, uuid.as_str());
    }

    /// Writes a system line under a given id.
    pub(in crate::claude) fn push_system_as(&self, out: &mut Vec<u8>, notice: Notice<'_>, uuid: &str) {
        push_line(
            out,
            &Message::System(SystemLine {
                notice,
                session_id: self.session_id.as_str().into(),
                uuid: uuid.into(),
            }),
        );
    }

    pub(in crate::claude) fn push_event(
        &mut self,
        out: &mut Vec<u8>,
        parent: Option<&str>,
        event: StreamEvent<'_>,
    ) {
        let uuid = self.uuids.next();
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

    pub(in crate::claude) fn push_assistant(&mut self, out: &mut Vec<u8>, line: AssistantBlock<'_>) {
        let uuid = self.uuids.next();
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
