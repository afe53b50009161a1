//! The `qwen` dialect, spec 1: `chat.completion` lines or chunks, `result/*`, `x-qwen-*` and the flat control
//! channel.

pub(crate) mod annotate;
pub(crate) mod channel;
mod chunk;
mod encode;
pub(crate) mod frame;
mod stream;
mod terminal;
pub(crate) mod thought;
pub(crate) mod turn;
pub mod wire;

pub use frame::{CAPABILITIES, PROTOCOL_VERSION};

use crate::{Encoder, Format, StreamInfo};

/// The encoder for `info.format`: chunks for the chunk format, otherwise whole messages.
pub fn encoder(info: &StreamInfo) -> Box<dyn Encoder> {
    match info.format {
        Format::StreamChunkJson => Box::new(chunk::ChunkEncoder::new(info)),
        Format::StreamJson | Format::Json => Box::new(encode::MessageEncoder::new(info)),
    }
}
