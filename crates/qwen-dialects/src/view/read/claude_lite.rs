//! The flat stream of spec 3.

use super::super::event::{End, Tokens, ViewEvent, ViewLine};
use super::super::words;
use super::{Reader, channel_of};
use crate::check::claude_lite::frame;
use crate::check::syntax::Object;
use crate::claude_lite::Frame;

/// Reads the stream; only its first line names the session.
#[derive(Default)]
pub(super) struct LiteReader {
    session: Option<Box<str>>,
}

impl Reader for LiteReader {
    fn read(&mut self, object: &Object<'_>) -> Option<Vec<ViewLine>> {
        let Ok(frame) = frame(object) else {
            return channel_of(self.session.as_deref(), object);
        };
        let seen = match frame {
            Frame::MessageStart { message, session_id } => {
                self.session = session_id.map(|id| id.as_ref().into());
                ViewEvent::TurnStart { message: None, by: Some(message.model.into()) }
            }
            Frame::ContentBlockDelta { text } => ViewEvent::Text(text.into()),
            Frame::ThinkingDelta { text } => words::of_sentence(&text)
                .map_or_else(|| ViewEvent::ThoughtPiece(text.into()), ViewEvent::Step),
            Frame::ToolCall { id, name, arguments } => ViewEvent::Call {
                id: id.map_or_else(|| name.to_string(), Into::into),
                arguments: arguments.as_str().to_owned(),
                name: name.into(),
            },
            Frame::ToolResult { id, name, is_error, content } => {
                ViewEvent::CallEnd { id: id.into(), name: name.into(), ok: !is_error, text: content.into() }
            }
            Frame::Error { error } => ViewEvent::Error(error.message.into()),
            Frame::MessageStop { stop_reason, usage, .. } => ViewEvent::TurnEnd(End {
                status: if stop_reason == "stop_turn" { "done".to_owned() } else { stop_reason.into() },
                tokens: Some(Tokens { read: usage.input_tokens, written: usage.output_tokens }),
                ..End::default()
            }),
        };
        Some(vec![ViewLine { session: self.session.clone(), ..ViewLine::new(seen) }])
    }
}
