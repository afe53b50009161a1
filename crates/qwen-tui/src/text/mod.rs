//! Text on a terminal: made safe, measured, styled.

mod clean;
mod style;
mod width;

pub use clean::{clean, clean_line, colored, visible_line};
pub use style::{Color, Span, Style, StyledLine, cut};
pub use width::{Risk, grapheme_width, graphemes, last_bytes, width, wrap_words};
