//! The encoder for a stream.

use crate::claude::ClaudeEncoder;
use crate::claude_lite::LiteEncoder;
use crate::dialect::{Dialect, Encoder, Format, StreamInfo};
use crate::document::Document;
use crate::loom::{ExportEncoder, LoomEncoder};

/// The encoder for the stream that `info` describes.
pub fn encoder(info: &StreamInfo) -> Box<dyn Encoder> {
    if info.format == Format::Json {
        // The lines between the start and the end of a turn would only be discarded.
        let whole = StreamInfo { partial_messages: false, session_state: false, ..info.clone() };
        return Box::new(Document::new(info.dialect, stream_encoder(&whole)));
    }
    stream_encoder(info)
}

fn stream_encoder(info: &StreamInfo) -> Box<dyn Encoder> {
    match info.dialect {
        Dialect::Claude => Box::new(ClaudeEncoder::new(info)),
        Dialect::ClaudeLite => Box::new(LiteEncoder::new(info)),
        Dialect::Loom => Box::new(LoomEncoder::new(info)),
        Dialect::LoomExport => Box::new(ExportEncoder::new(info)),
        Dialect::Qwen => crate::qwen::encoder(info),
        Dialect::Core => crate::core::encoder(info),
        Dialect::Acp => crate::acp::encoder(info),
    }
}
