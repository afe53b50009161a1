//! The encoder for a stream.

use crate::claude::ClaudeEncoder;
use crate::dialect::{Dialect, Encoder, StreamInfo};

/// The encoder for the stream that `info` describes.
pub fn encoder(info: &StreamInfo) -> Box<dyn Encoder> {
    match info.dialect {
        Dialect::Claude => Box::new(ClaudeEncoder::new(info)),
        _ => Box::new(ClaudeEncoder::new(info)),
    }
}
