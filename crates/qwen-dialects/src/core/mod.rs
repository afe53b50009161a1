//! The `core` dialect, spec 4 §1–3: every line is `{"type","value"}`. Requests are answered and the control
//! channel is spoken as in `qwen`.

mod encode;
pub mod tool;
pub mod wire;

use crate::{Encoder, StreamInfo};

/// The encoder; the dialect has one format.
pub fn encoder(info: &StreamInfo) -> Box<dyn Encoder> {
    Box::new(encode::CoreEncoder::new(info))
}
