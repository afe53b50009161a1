//! The wires. Every dialect is a pure projection of the events: an [`Encoder`] is a state machine from an
//! event to the lines it becomes, a decoder turns a line into commands, and neither does I/O, waits, or reads
//! a clock.

pub mod acp;
pub mod atif;
pub mod check;
pub mod claude;
pub mod claude_lite;
pub mod core;
mod decode;
mod dialect;
mod document;
mod encoder;
pub mod error_object;
pub mod flat;
mod line;
pub mod loom;
pub mod payload;
pub mod qwen;
mod schema;
mod task;
mod tool_records;
pub mod view;

pub use decode::{decode, permission_answer};
pub use dialect::{Dialect, Encoder, Format, ModelLimits, StreamInfo, StreamMode};
pub use document::Document;
pub use encoder::encoder;
pub use schema::schemas;
