//! Wraps prose at a given width.

use super::{Flow, Rendered};
use crate::text::{StyledLine, wrap_words};

/// The printed lines: prose wrapped between words at `columns`, everything else unchanged.
pub fn wrap(rendered: Vec<Rendered>, columns: Option<usize>) -> Vec<StyledLine> {
    let mut lines = Vec::with_capacity(rendered.len());
    for Rendered { line, flow } in rendered {
        match columns.filter(|columns| flow == Flow::Prose && line.width() > *columns) {
            Some(columns) => wrap_line(&line, columns, &mut lines),
            None => lines.push(line),
        }
    }
    lines
}

fn wrap_line(line: &StyledLine, columns: usize, lines: &mut Vec<StyledLine>) {
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
}
