//! Lays out the rows of tables.

use super::TableRow;
use super::wrap::wrap_line;
use crate::text::{Style, StyledLine};

/// Between two cells.
const SEPARATOR: &str = " | ";

/// The least columns of a cell that can still be read.
const LEAST: usize = 6;

/// One line with the cells of a row. All but the last are padded to the widths of their columns.
pub fn join_cells(cells: &[StyledLine], widths: &[usize]) -> StyledLine {
    let mut line = StyledLine::default();
    for (column, cell) in cells.iter().enumerate() {
        if column > 0 {
            let is_last = column + 1 == cells.len();
            let ends_here = is_last && cell.spans.is_empty();
            line.push(if ends_here { SEPARATOR.trim_end() } else { SEPARATOR }, Style::DIM);
        }
        for span in &cell.spans {
            line.push(span.text.clone(), span.style);
        }
        if column + 1 < cells.len() {
            line.push(" ".repeat(widths[column].saturating_sub(cell.width())), Style::PLAIN);
        }
    }
    line
}

/// The line below the heading.
pub fn rule(widths: &[usize]) -> StyledLine {
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat((*width).max(1))).collect();
    StyledLine::styled(rule.join("-|-"), Style::DIM)
}

/// The width of a table whose columns have these widths.
pub fn table_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + SEPARATOR.len() * widths.len().saturating_sub(1)
}

/// The widths of a table's columns on a screen with `columns`. Wide ones are narrowed, and narrow ones stay as
/// they are. `None` if too little would be left of them.
pub fn fit_widths(widths: &[usize], columns: usize) -> Option<Vec<usize>> {
    let room = columns.checked_sub(SEPARATOR.len() * widths.len().saturating_sub(1))?;
    let narrowed = |most: usize| widths.iter().map(move |width| (*width).min(most));
    let most = (LEAST..=columns).rev().find(|most| narrowed(*most).sum::<usize>() <= room)?;
    let mut fitted: Vec<usize> = narrowed(most).collect();
    // What the division left over goes to the first of the narrowed ones.
    let mut left = room - fitted.iter().sum::<usize>();
    for (fitted, width) in fitted.iter_mut().zip(widths).filter(|(fitted, width)| **fitted < **width) {
        let more = left.min(width - *fitted).min(1);
        *fitted += more;
        left -= more;
    }
    Some(fitted)
}

/// A row whose cells are wrapped within columns of these widths.
pub fn wrap_row(row: &TableRow, widths: &[usize]) -> Vec<StyledLine> {
    let cells: Vec<Vec<StyledLine>> = (row.cells.iter().zip(widths))
        .map(|(cell, width)| {
            let mut lines = Vec::new();
            wrap_line(cell, (*width).max(1), &mut lines);
            lines
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let line = |n: usize| -> Vec<StyledLine> {
        cells.iter().map(|lines| lines.get(n).cloned().unwrap_or_default()).collect()
    };
    (0..height).map(|n| join_cells(&line(n), widths)).collect()
}
