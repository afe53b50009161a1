//! A changed file, with line numbers.

use qwen_events::{FileDiff, visible_text};

use crate::markdown::Rendered;
use crate::text::{Color, Style, StyledLine};

/// The changed lines and their context: number, sign, text.
pub fn diff(change: &FileDiff) -> Vec<Rendered> {
    let mut lines = Vec::new();
    let (mut old, mut new) = (0usize, 0usize);
    let mut inside = false;
    // A carriage return at the end of a line is a part of it: `^M`.
    for line in change.diff.strip_suffix('\n').unwrap_or(&change.diff).split('\n') {
        if let Some(header) = line.strip_prefix("@@") {
            (old, new) = hunk(header).unwrap_or((1, 1));
            if inside {
                lines.push(Rendered::logical(StyledLine::styled("...", Style::DIM)));
            }
            inside = true;
            continue;
        }
        if !inside {
            continue;
        }
        let (number, style) = match line.as_bytes().first() {
            Some(b'+') => {
                new += 1;
                (new - 1, Style::color(Color::Green))
            }
            Some(b'-') => {
                old += 1;
                (old - 1, Style::color(Color::Red))
            }
            Some(b'\\') => continue,
            _ => {
                old += 1;
                new += 1;
                (new - 1, Style::PLAIN)
            }
        };
        lines.push(Rendered::logical(
            StyledLine::styled(format!("{number:>4} "), Style::DIM).with(visible_text(line), style),
        ));
    }
    lines
}

/// The first lines of a hunk: ` -12,7 +12,9 @@ …`.
fn hunk(header: &str) -> Option<(usize, usize)> {
    let mut words = header.split_whitespace();
    let mut number = |sign: char| words.next()?.strip_prefix(sign)?.split(',').next()?.parse().ok();
    Some((number('-')?, number('+')?))
}

#[cfg(test)]
mod tests {
    use qwen_events::DiffStat;

    use super::*;

    #[test]
    fn lines_are_numbered_on_their_own_side() {
        let change = FileDiff {
            file_name: "a".into(),
            file_path: "/a".into(),
            diff: "--- a\n+++ a\n@@ -9,3 +9,3 @@\n same\n-old\n+new\n end\n".into(),
            original: None,
            modified: "".into(),
            stat: DiffStat::default(),
        };
        let lines: Vec<String> = diff(&change).iter().map(|line| line.line.text()).collect();
        assert_eq!(lines, ["   9  same", "  10 -old", "  10 +new", "  11  end"]);
        let hidden = FileDiff { diff: "@@ -1 +1 @@\n+a\u{202e}b\x1b[8mc\n".into(), ..change };
        assert_eq!(diff(&hidden)[0].line.text(), "   1 +a⟨U+202E⟩b^[[8mc");
    }
}
