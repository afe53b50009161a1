//! The live region below the finished output.
//!
//! The region tracks the cursor relative to its own first row, and nothing else about the screen: it never
//! queries the terminal and never uses absolute rows, scroll regions or a cleared screen. Finished output
//! replaces the region and the region is painted again below it, so the terminal's scrollback receives
//! every finished line exactly once.

use std::rc::Rc;

use crate::text::{Risk, Style, StyledLine, grapheme_width, graphemes};

const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// One grapheme cluster on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    cluster: Box<str>,
    width: usize,
    risk: Risk,
    style: Style,
}

/// Shared with the next picture if the line is the same.
type Row = Rc<Vec<Cell>>;

/// Where the caret is in the region: row and column from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caret {
    pub row: usize,
    pub column: usize,
}

/// The desired content of the region.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// Longer rows are truncated.
    pub rows: Vec<StyledLine>,
    /// The position of the real cursor; none hides it.
    pub caret: Option<Caret>,
}

/// The painted part of the screen.
#[derive(Debug)]
pub struct LiveRegion {
    columns: usize,
    colors: bool,
    rows: Vec<Row>,
    /// The lines that the rows were made of.
    lines: Vec<StyledLine>,
    /// The cursor, relative to the region's first row.
    cursor: Caret,
    hidden: bool,
    /// True if the terminal may have reflowed the rows since they were painted.
    resized: bool,
}

impl LiveRegion {
    /// An empty region; the cursor is at the start of a line.
    pub fn new(columns: usize, colors: bool) -> Self {
        Self {
            columns: columns.max(1),
            colors,
            rows: Vec::new(),
            lines: Vec::new(),
            cursor: Caret::default(),
            hidden: false,
            resized: false,
        }
    }

    /// Applies a new terminal width.
    pub fn resize(&mut self, columns: usize) {
        self.columns = columns.max(1);
        self.lines.clear();
        self.resized = true;
    }

    /// Forgets the region without changing the screen, because another program has written to it. The
    /// cursor must be at the start of a line.
    pub fn forget(&mut self) {
        self.rows.clear();
        self.lines.clear();
        self.cursor = Caret::default();
        self.hidden = false;
        self.resized = false;
    }

    /// The bytes that remove the region and leave the cursor at its start.
    pub fn erase(&mut self) -> String {
        let mut out = String::new();
        self.go_to_top(&mut out);
        if !self.rows.is_empty() {
            out.push_str("\x1b[J");
        }
        self.show_cursor(&mut out);
        self.forget();
        out
    }

    /// The bytes that print `finished` (whole encoded lines, each with its line feed as CR LF) and then show
    /// `picture`. Empty when nothing changes.
    pub fn paint(&mut self, finished: &str, picture: Picture) -> String {
        // Most lines of a frame are those of the last one.
        let row = |(at, line): (usize, &StyledLine)| match (self.lines.get(at), self.rows.get(at)) {
            (Some(old), Some(row)) if old == line => Rc::clone(row),
            _ => Rc::new(self.row(line)),
        };
        let rows: Vec<Row> = picture.rows.iter().enumerate().map(row).collect();
        self.lines = picture.rows;
        let mut out = String::new();
        if !finished.is_empty() || self.resized {
            self.go_to_top(&mut out);
            out.push_str("\x1b[J");
            self.rows.clear();
            out.push_str(finished);
            self.resized = false;
        }
        self.differences(&rows, &mut out);
        self.rows = rows;
        match picture.caret {
            Some(caret) => {
                let caret = Caret {
                    row: caret.row.min(self.rows.len().saturating_sub(1)),
                    column: caret.column.min(self.columns - 1),
                };
                self.go_to(caret, &mut out);
                self.show_cursor(&mut out);
            }
            None if !self.hidden => {
                out.push_str("\x1b[?25l");
                self.hidden = true;
            }
            None => {}
        }
        if out.is_empty() { out } else { format!("{BEGIN}{out}{END}") }
    }

    fn show_cursor(&mut self, out: &mut String) {
        if std::mem::take(&mut self.hidden) {
            out.push_str("\x1b[?25h");
        }
    }

    /// Paints the differences from the current content.
    fn differences(&mut self, rows: &[Row], out: &mut String) {
        for (at, row) in rows.iter().enumerate() {
            match self.rows.get(at) {
                Some(old) if Rc::ptr_eq(old, row) || old == row => {}
                Some(old) => {
                    let same = old.iter().zip(row.iter()).take_while(|(a, b)| a == b).count();
                    let shorter = cells(old) > cells(row);
                    // After a cluster of disputed width the column is uncertain: paint from the start.
                    let same =
                        if row[..same].iter().any(|cell| cell.risk == Risk::Disputed) { 0 } else { same };
                    let tail = if old.len() == row.len() {
                        old.iter().zip(row.iter()).skip(same).rev().take_while(|(a, b)| a == b).count()
                    } else {
                        0
                    };
                    let is_certain = |cell: &Cell| cell.risk == Risk::None;
                    let equal_widths = old.iter().zip(row.iter()).all(|(a, b)| a.width == b.width);
                    let end = if tail > 0 && equal_widths && old.iter().chain(row.iter()).all(is_certain) {
                        row.len() - tail
                    } else {
                        row.len()
                    };
                    let column = cells(&row[..same]);
                    self.go_to(Caret { row: at, column }, out);
                    self.write(&row[same..end], column, out);
                    if shorter {
                        out.push_str("\x1b[K");
                    }
                }
                None => {
                    if at > 0 {
                        self.go_to(Caret { row: at - 1, column: self.cursor.column }, out);
                        out.push_str("\r\n");
                    } else {
                        self.go_to(Caret::default(), out);
                    }
                    self.cursor = Caret { row: at, column: 0 };
                    self.write(row, 0, out);
                }
            }
        }
        if self.rows.len() > rows.len() {
            if rows.is_empty() {
                self.go_to(Caret::default(), out);
            } else {
                // The erasure starts at the cursor, so the cursor moves behind the last row's text.
                let last = rows.len() - 1;
                let column = cells(&rows[last]).min(self.columns - 1);
                self.go_to(Caret { row: last, column }, out);
            }
            out.push_str("\x1b[J");
        }
    }

    /// Writes cells at the cursor.
    fn write(&mut self, row: &[Cell], start: usize, out: &mut String) {
        let mut style = Style::PLAIN;
        let mut column = start;
        for cell in row {
            if cell.style != style {
                cell.style.select(self.colors, out);
                style = cell.style;
            }
            out.push_str(&cell.cluster);
            column += cell.width;
            if cell.risk == Risk::Disputed {
                out.push_str(&format!("\x1b[{}G", column + 1));
            }
        }
        if style != Style::PLAIN {
            out.push_str("\x1b[0m");
        }
        self.cursor.column = column;
    }

    fn go_to_top(&mut self, out: &mut String) {
        if self.resized {
            // Reflow: a former row now takes as many rows as its cells need.
            let taken = |row: &Row| reflowed_cells(row).div_ceil(self.columns).max(1);
            let above: usize = self.rows.iter().take(self.cursor.row).map(taken).sum();
            // Behind the last letter of a row terminals differ. A row too few leaves a stale row of the
            // region, a row too many would erase finished output.
            let last = self.rows.get(self.cursor.row).map_or(0, |row| reflowed_cells(row).saturating_sub(1));
            self.cursor.row = above + self.cursor.column.min(last) / self.columns;
        }
        if self.cursor.row > 0 {
            out.push_str(&format!("\x1b[{}A", self.cursor.row));
        }
        out.push('\r');
        self.cursor = Caret::default();
    }

    fn go_to(&mut self, target: Caret, out: &mut String) {
        let rows = target.row.abs_diff(self.cursor.row);
        if rows > 0 {
            let direction = if target.row < self.cursor.row { 'A' } else { 'B' };
            out.push_str(&format!("\x1b[{rows}{direction}"));
        }
        if target.column != self.cursor.column {
            out.push_str(&match target.column {
                0 => "\r".to_owned(),
                column => format!("\x1b[{}G", column + 1),
            });
        }
        self.cursor = target;
    }

    /// A line as cells, at most one less than fit, so that the cursor never stays behind the last column.
    fn row(&self, line: &StyledLine) -> Vec<Cell> {
        let limit = self.columns.saturating_sub(1).max(1);
        let mut row = Vec::new();
        let mut used = 0;
        for span in &line.spans {
            for cluster in graphemes(&span.text) {
                let (cluster, (width, risk)) = match cluster {
                    "\t" => (" ", (1, Risk::None)),
                    cluster => (cluster, grapheme_width(cluster)),
                };
                if used + width > limit {
                    return row;
                }
                used += width;
                row.push(Cell { cluster: cluster.into(), width, risk, style: span.style });
            }
        }
        row
    }
}

/// The cells that a row surely takes when the terminal reflows it: some drop blanks at its end.
fn reflowed_cells(row: &[Cell]) -> usize {
    let kept = row.iter().rposition(|cell| &*cell.cluster != " ").map_or(0, |at| at + 1);
    cells(&row[..kept])
}

fn cells(row: &[Cell]) -> usize {
    row.iter().map(|cell| cell.width).sum()
}

#[cfg(test)]
mod tests;
