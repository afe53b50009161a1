//! The wires. Every dialect is a pure projection of the events: an [`Encoder`] is a state machine from an event to
//! the lines it becomes, a decoder turns a line into commands, and neither does I/O, waits, or reads a clock.

pub mod core;
mod decode;
mod dialect;
mod line;
pub mod qwen;
mod schema;

pub use decode::{canonical_tool_name, decode, permission_answer};
pub use dialect::{Dialect, Encoder, Format, StreamInfo, StreamMode};
pub use schema::schemas;
