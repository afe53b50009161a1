//! Wraps prose at a given width.

use super::table::{fit_widths, rule, table_width, wrap_row};
use super::{Flow, Rendered, TableRow};
use crate::text::{StyledLine, cut, wrap_words};

/// The printed lines: prose wrapped between words at `columns`, everything else unchanged.
pub fn wrap(rendered: Vec<Rendered>, columns: Option<usize>) -> Vec<StyledLine> {
    let mut lines = Vec::with_capacity(rendered.len());
    for Rendered { line, flow } in rendered {
        let width = match &flow {
            // All rows of a table are laid out alike, the short ones too.
            Flow::Row(TableRow { widths, .. }) | Flow::Rule(widths) => table_width(widths),
            Flow::Prose | Flow::Logical => line.width(),
        };
        let Some(columns) = columns.filter(|columns| width > *columns) else {
            lines.push(line);
            continue;
        };
        match flow {
            Flow::Prose => wrap_line(&line, columns, &mut lines),
            Flow::Row(row) => match fit_widths(&row.widths, columns) {
                Some(widths) => lines.extend(wrap_row(&row, &widths)),
                None => wrap_line(&line, columns, &mut lines),
            },
            Flow::Rule(widths) => match fit_widths(&widths, columns) {
                Some(widths) => lines.push(rule(&widths)),
                None => lines.extend(cut(&line, columns).into_iter().next()),
            },
            Flow::Logical => lines.push(line),
        }
    }
    lines
}

/// Appends the parts of a line, wrapped at words.
pub(super) fn wrap_line(line: &StyledLine, columns: usize, lines: &mut Vec<StyledLine>) {
    let text = line.text();
    let mut spans = line.spans.iter().map(|span| (span.text.as_str(), span.style));
    let mut current = spans.next();
    let mut at = 0;
    for piece in wrap_words(&text, columns) {
        // `piece` is a slice of `text`; the gap between two pieces is the space at which the line was
        // wrapped.
        let start = piece.as_ptr() as usize - text.as_ptr() as usize;
        let mut out = StyledLine::default();
        let end = start + piece.len();
        while let Some((rest, style)) = current {
            let skip = start.saturating_sub(at).min(rest.len());
            let take = end.saturating_sub(at).min(rest.len());
            if skip < take {
                out.push(&rest[skip..take], style);
            }
            if at + rest.len() > end {
                current = Some((&rest[take..], style));
                at += take;
                break;
            }
            at += rest.len();
            current = spans.next();
        }
        lines.push(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::render;
    use crate::text::Style;

    #[test]
    fn styles_survive_the_break() {
        let line = StyledLine::plain("one ").with("two three", Style::BOLD).with(" four", Style::PLAIN);
        let lines = wrap(vec![Rendered::prose(line)], Some(8));
        let texts: Vec<String> = lines.iter().map(StyledLine::text).collect();
        assert_eq!(texts, ["one two", "three", "four"]);
        assert_eq!(lines[1].spans[0].style, Style::BOLD);
    }

    #[test]
    fn code_stays_whole() {
        let lines = wrap(vec![Rendered::logical(StyledLine::plain("a b c d e f"))], Some(3));
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn the_cells_of_a_wide_table_are_wrapped_within_their_columns() {
        let table =
            "| file | what it does here | ok |\n|---|---|---|\n| a.rs | reads the whole file | no |\n";
        let texts = |columns| -> Vec<String> {
            wrap(render(table), Some(columns)).iter().map(|line| line.text().trim_end().to_owned()).collect()
        };
        assert_eq!(
            texts(40),
            [
                "file | what it does here    | ok",
                "-----|----------------------|---",
                "a.rs | reads the whole file | no"
            ]
        );
        assert_eq!(
            texts(22),
            [
                "file | what it    | ok",
                "     | does here  |",
                "-----|------------|---",
                "a.rs | reads the  | no",
                "     | whole file |"
            ]
        );
        assert!(texts(8).iter().all(|line| line.len() <= 8), "{:?}", texts(8));
    }
}
