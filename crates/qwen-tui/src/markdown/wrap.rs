//! Wraps prose at a given width.

use super::{Flow, Rendered};
use crate::text::{Style, StyledLine, cut, wrap_words};

/// The printed lines: prose wrapped between words at `columns`, everything else unchanged.
pub fn wrap(rendered: Vec<Rendered>, columns: Option<usize>) -> Vec<StyledLine> {
    let mut lines = Vec::with_capacity(rendered.len());
    for Rendered { line, flow } in rendered {
        let Some(columns) = columns.filter(|columns| line.width() > *columns) else {
            lines.push(line);
            continue;
        };
        match flow {
            Flow::Prose => wrap_line(&line, columns, 0, &mut lines),
            // A narrow last cell would be hard to read.
            Flow::Row(indent) if indent > columns / 2 => wrap_line(&line, columns, 0, &mut lines),
            Flow::Row(indent) => wrap_line(&line, columns, indent, &mut lines),
            Flow::Rule => lines.extend(cut(&line, columns).into_iter().next()),
            Flow::Logical => lines.push(line),
        }
    }
    lines
}

/// The pieces of a text, wrapped at words. All but the first leave room for an indent.
fn wrap_pieces(text: &str, columns: usize, indent: usize) -> Vec<&str> {
    if indent == 0 {
        return wrap_words(text, columns);
    }
    let Some(first) = wrap_words(text, columns).into_iter().next() else { return Vec::new() };
    let rest = text[first.len()..].trim_start_matches(' ');
    let mut pieces = vec![first];
    pieces.extend(wrap_words(rest, columns - indent));
    pieces
}

fn wrap_line(line: &StyledLine, columns: usize, indent: usize, lines: &mut Vec<StyledLine>) {
    let text = line.text();
    let mut spans = line.spans.iter().map(|span| (span.text.as_str(), span.style));
    let mut current = spans.next();
    let mut at = 0;
    for (n, piece) in wrap_pieces(&text, columns, indent).into_iter().enumerate() {
        // `piece` is a slice of `text`; the gap between two pieces is the space at which the line was
        // wrapped.
        let start = piece.as_ptr() as usize - text.as_ptr() as usize;
        let mut out = StyledLine::default();
        if n > 0 && indent > 0 {
            out.push(" ".repeat(indent), Style::PLAIN);
        }
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
    fn the_last_cell_of_a_row_continues_below_its_beginning_and_the_rule_takes_one_line() {
        let row = Rendered { line: StyledLine::plain("file  | what it does here"), flow: Flow::Row(8) };
        let rule = Rendered { line: StyledLine::plain("------|-----------------"), flow: Flow::Rule };
        let lines = wrap(vec![row, rule], Some(18));
        let texts: Vec<String> = lines.iter().map(StyledLine::text).collect();
        assert_eq!(texts, ["file  | what it", "        does here", "------|-----------"]);
    }
}
