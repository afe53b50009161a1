//! Streaming Markdown: finished blocks are emitted one by one, and each block is rendered as lines.

mod code;
mod render;
mod stream;
mod wrap;

pub use code::highlight;
pub use render::render;
pub use stream::{Block, Stream};
pub use wrap::wrap;

use crate::text::StyledLine;

/// How a line may be wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Prose: wrapped at words, or by the terminal if the user prefers that.
    Prose,
    /// A row of a table: like prose, but the last cell continues below its beginning, which is this many columns in.
    Row(usize),
    /// The line below a table's heading: never longer than one row of the screen.
    Rule,
    /// Code, commands, output, diffs: one logical line, wrapped only by the terminal.
    Logical,
}

/// A line that is ready to be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub line: StyledLine,
    pub flow: Flow,
}

impl Rendered {
    /// A line of prose.
    pub fn prose(line: StyledLine) -> Self {
        Self { line, flow: Flow::Prose }
    }

    /// A line that is not wrapped.
    pub fn logical(line: StyledLine) -> Self {
        Self { line, flow: Flow::Logical }
    }
}
