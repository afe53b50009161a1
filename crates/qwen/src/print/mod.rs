//! Plain-text output for users, instead of JSON lines.

mod changed_files;
mod markdown;
mod reporter;
mod screen;
mod text;
mod thoughts;

pub use reporter::{ReportStyle, Reporter, json_line};
pub use screen::{is_dumb_terminal, screen};
pub use text::TextPrinter;
