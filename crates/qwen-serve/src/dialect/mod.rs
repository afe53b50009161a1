//! A session's lines in the other dialects.

mod event_reader;
mod record_values;

use qwen_dialects::acp::AcpClient;
use qwen_dialects::{Dialect, Encoder, Format, StreamInfo, encoder};
use serde_json::Value;

use self::event_reader::{EventReader, SessionFacts};
use crate::sessions::{Line, Session};

/// How a stream is written.
#[derive(Debug, Clone, Copy)]
pub struct StreamForm {
    pub dialect: Dialect,
    /// False to leave out the pieces of messages, where the dialect can.
    pub is_partial: bool,
    /// True to write the messages of users, too.
    pub shows_prompts: bool,
    pub acp: AcpClient,
}

/// Writes the lines of a session in another dialect. It must see every line from the session's beginning, or
/// from the oldest that is stored: the state of an encoder depends on all of them.
pub struct DialectStream {
    reader: EventReader,
    encoder: Box<dyn Encoder>,
}

impl DialectStream {
    pub fn new(session: &Session, form: StreamForm) -> Self {
        let record = session.record.borrow();
        let facts = SessionFacts {
            session: session.id.clone(),
            workspace: record.workspace.to_string_lossy().into(),
            mode: record.mode.as_deref().unwrap_or("default").into(),
        };
        let format = if form.is_partial { Format::StreamChunkJson } else { Format::StreamJson };
        let info = StreamInfo {
            model: record.model.as_deref().unwrap_or_default().into(),
            version: env!("CARGO_PKG_VERSION"),
            partial_messages: form.is_partial,
            replay_user_messages: form.shows_prompts,
            acp: form.acp,
            // The same for every reader, so that a reader that reconnects sees the same ids.
            seed: session.id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            }),
            ..StreamInfo::new(form.dialect, format, session.id.clone())
        };
        Self { reader: EventReader::new(facts), encoder: encoder(&info) }
    }

    /// Appends the lines that a line of the session becomes: none, one, or several.
    pub fn write(&mut self, line: &Line, out: &mut Vec<u8>) {
        let Ok(value) = serde_json::from_slice::<Value>(&line.text) else { return };
        for event in self.reader.read(line.number, &value) {
            self.encoder.encode(&event, out);
        }
    }
}
