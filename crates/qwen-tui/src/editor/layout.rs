//! Lays the composer's text out in rows and locates the caret.

use unicode_segmentation::UnicodeSegmentation;

use super::Editor;
use crate::screen::Caret;
use crate::text::{Color, Style, StyledLine, grapheme_width};

#[derive(Debug)]
pub struct Layout {
    /// At most as many as requested, around the caret.
    pub rows: Vec<StyledLine>,
    /// Relative to the rows.
    pub caret: Caret,
}

/// Lays the text out in rows of `columns` cells after a prompt sign, and returns at most `max_rows` around
/// the caret.
pub fn layout(editor: &Editor, sign: &str, columns: usize, max_rows: usize) -> Layout {
    let indent = crate::text::width(sign);
    let columns = columns.saturating_sub(1).max(indent + 2);
    let mut rows = vec![StyledLine::styled(sign, Style::color(Color::Cyan))];
    let mut caret = Caret { row: 0, column: indent };
    let mut column = indent;
    let new_row = |rows: &mut Vec<StyledLine>| rows.push(StyledLine::plain(" ".repeat(indent)));
    for (at, cluster) in editor.raw().grapheme_indices(true) {
        if at == editor.caret() {
            caret = Caret { row: rows.len() - 1, column };
        }
        if cluster == "\n" || cluster == "\r\n" {
            new_row(&mut rows);
            column = indent;
            continue;
        }
        let label = cluster.chars().next().and_then(|c| editor.label(c));
        let (text, style) = match label {
            Some(label) => (label, Style::color(Color::Magenta)),
            None if cluster == "\t" => ("    ".to_owned(), Style::PLAIN),
            None => (qwen_events::visible_text(cluster), Style::PLAIN),
        };
        for piece in text.graphemes(true) {
            let cells = grapheme_width(piece).0;
            if column + cells > columns {
                new_row(&mut rows);
                column = indent;
                if at == editor.caret() && piece.len() == text.len() {
                    caret = Caret { row: rows.len() - 1, column };
                }
            }
            if let Some(row) = rows.last_mut() {
                row.push(piece, style);
            }
            column += cells;
        }
    }
    if editor.caret() == editor.raw().len() {
        if column >= columns {
            new_row(&mut rows);
            column = indent;
        }
        caret = Caret { row: rows.len() - 1, column };
    }
    let max_rows = max_rows.max(1);
    if rows.len() > max_rows {
        let first = (caret.row + 1).saturating_sub(max_rows).min(rows.len() - max_rows);
        rows = rows.drain(first..first + max_rows).collect();
        caret.row -= first;
    }
    Layout { rows, caret }
}
