//! Which streams each trace becomes.

use qwen_dialects::{Dialect, Format, StreamInfo, encoder};
use qwen_events::{Event, SessionId};

use crate::builder::{MODEL, SESSION};

/// One of the streams that a trace becomes.
#[derive(Clone, Copy)]
pub struct Variant {
    pub dialect: Dialect,
    pub format: Format,
    /// `claude`: every piece of a message too.
    pub partial: bool,
}

impl Variant {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let plain = |dialect, format| Self { dialect, format, partial: false };
        let mut variants = Vec::new();
        for dialect in Dialect::ALL {
            variants.push(plain(dialect, Format::StreamJson));
            match dialect {
                Dialect::Qwen => variants.push(plain(dialect, Format::StreamChunkJson)),
                Dialect::Claude => {
                    variants.push(Self { partial: true, ..plain(dialect, Format::StreamJson) });
                }
                _ => {}
            }
            variants.push(plain(dialect, Format::Json));
        }
        variants
    }

    /// The name of its file, without the folder.
    pub fn file_name(self) -> String {
        let dialect = self.dialect.name();
        match self.format {
            Format::StreamJson if self.partial => format!("{dialect}.partial.jsonl"),
            Format::StreamJson => format!("{dialect}.jsonl"),
            other => format!("{dialect}.{}.jsonl", other.name()),
        }
    }

    /// What the encoder writes for `events`.
    pub fn encode(self, events: &[Event]) -> Vec<u8> {
        let mut encoder = encoder(&info(self));
        let mut out = Vec::new();
        for event in events {
            encoder.encode(event, &mut out);
        }
        out
    }
}

/// What the encoder of a variant is told.
pub fn info(variant: Variant) -> StreamInfo {
    StreamInfo {
        model: MODEL.into(),
        version: "1.2.3",
        partial_messages: variant.partial,
        session_state: variant.partial,
        seed: 1,
        ..StreamInfo::new(variant.dialect, variant.format, SessionId::parse(SESSION).unwrap())
    }
}
