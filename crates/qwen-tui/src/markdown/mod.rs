//! Markdown as it streams: what is finished leaves block by block, and each block becomes lines.

mod code;
mod render;
mod stream;
mod wrap;

pub use code::highlight;
pub use render::render;
pub use stream::{Block, Stream};
pub use wrap::wrap;

use crate::text::Line;

/// How a line may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Prose: by words, or by the terminal where the user wishes so.
    Prose,
    /// Code, commands, output, diffs, tables: one logical line, wrapped by the terminal alone.
    Logical,
}

/// A line that is ready to be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The line.
    pub line: Line,
    /// How it may be broken.
    pub flow: Flow,
}

impl Rendered {
    /// A line of prose.
    pub fn prose(line: Line) -> Self {
        Self { line, flow: Flow::Prose }
    }

    /// A line that stays whole.
    pub fn logical(line: Line) -> Self {
        Self { line, flow: Flow::Logical }
    }
}
