//! Streaming Markdown: finished blocks are emitted one by one, and each block is rendered as lines.

mod code;
mod render;
mod stream;
mod table;
mod wrap;

pub use code::highlight;
pub use render::render;
pub use stream::{Block, Stream};
pub use wrap::wrap;

use std::sync::Arc;

use crate::text::StyledLine;

/// How a line may be wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    /// Prose: wrapped at words, or by the terminal if the user prefers that.
    Prose,
    /// A row of a table: where it is too long, each cell is wrapped within its column.
    Row(TableRow),
    /// The line below the heading of a table whose columns have these widths.
    Rule(Arc<[usize]>),
    /// Code, commands, output, diffs: one logical line, wrapped only by the terminal.
    Logical,
}

/// The cells of a row, and the widths that the columns of its table would like to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    pub cells: Vec<StyledLine>,
    pub widths: Arc<[usize]>,
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
