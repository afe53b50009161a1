//! The piece of a text that is most like another: what a model probably meant.

use crate::output::boundary::shorten_line;

/// How many lines of a text are looked through.
const MAX_LINES: usize = 20_000;
/// How many lines of the nearest piece are shown.
const SHOWN_LINES: usize = 12;
/// How alike two lines must be, out of 100, to be worth showing.
const ALIKE: usize = 50;

/// A piece of a text that is like the one that was looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nearest {
    /// Where it starts, counted from 1.
    pub line: usize,
    /// Its lines, as they are.
    pub piece: String,
    /// True if it is the same but for white space.
    pub only_white_space: bool,
    pub first_difference: Option<LineDifference>,
}

/// The first difference between a file and the text that was looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineDifference {
    /// The line's number in the file, counted from 1.
    pub line: usize,
    pub kind: DifferenceKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum DifferenceKind {
    Text {
        /// The file's line; none if the file ends before it.
        file: Option<String>,
        /// The line that was looked for.
        wanted: String,
    },
    /// The lines are the same up to their ends. `file` is that of the file's line, empty if it has none.
    LineEnd { file: &'static str },
}

/// Finds the lines of `text` that are most like the lines of `wanted`.
pub(super) fn nearest(text: &str, written_text: &str) -> Option<Nearest> {
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let written: Vec<&str> = written_text.lines().collect();
    let ends_with_line_end = written_text.ends_with('\n');
    let wanted: Vec<&str> = written.iter().map(|line| line.trim()).collect();
    // Lines without a letter or digit (braces, blank lines) are too common to locate the text.
    let anchor = wanted.iter().position(|line| line.contains(char::is_alphanumeric))?;
    let pairs = Pairs::collect(wanted[anchor]);
    let (_, at) = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (likeness(line.trim(), wanted[anchor], &pairs), at))
        .filter(|&(likeness, _)| likeness >= ALIKE)
        .map(|(likeness, at)| {
            let start = at.saturating_sub(anchor);
            let same = wanted.iter().zip(lines.iter().skip(start)).filter(|(a, b)| **a == b.trim()).count();
            ((likeness + 100 * same, std::cmp::Reverse(start)), start)
        })
        .max()?;
    let piece: Vec<&str> = lines.iter().skip(at).take(wanted.len()).copied().collect();
    let bare = |lines: &[&str]| -> String { lines.iter().flat_map(|line| line.split_whitespace()).collect() };
    let only_white_space = bare(&piece) == bare(&wanted);
    let first_difference = find_difference(&lines, &written, at, ends_with_line_end)
        .or_else(|| find_line_end_difference(text, written_text, at));
    let mut shown =
        piece.iter().take(SHOWN_LINES).map(|line| shorten_line(line)).collect::<Vec<_>>().join("\n");
    if piece.len() > SHOWN_LINES {
        shown.push_str("\n…");
    }
    Some(Nearest { line: at + 1, piece: shown, only_white_space, first_difference })
}

/// Finds the first line in which `wanted` differs from the lines of the file at `start`. A text that was
/// looked for need not begin at the start of a line, nor end at the end of one unless it `ends_with_line_end`.
fn find_difference(
    lines: &[&str],
    wanted: &[&str],
    start: usize,
    ends_with_line_end: bool,
) -> Option<LineDifference> {
    let last = wanted.len().saturating_sub(1);
    let differs = |(at, line): &(usize, &&str)| {
        let Some(found) = lines.get(start + at) else { return true };
        let is_same = match (*at == 0, *at == last && !ends_with_line_end) {
            (true, true) => found.contains(**line),
            (true, false) => found.ends_with(**line),
            (false, true) => found.starts_with(**line),
            (false, false) => found == *line,
        };
        !is_same
    };
    let (at, line) = wanted.iter().enumerate().find(differs)?;
    let file = lines.get(start + at).map(|line| (*line).to_owned());
    let kind = DifferenceKind::Text { file, wanted: (*line).to_owned() };
    Some(LineDifference { line: start + at + 1, kind })
}

/// Finds the first line whose end differs from that of the line in `wanted`.
fn find_line_end_difference(text: &str, wanted: &str, start: usize) -> Option<LineDifference> {
    let end_of = |line: &str| match line {
        line if line.ends_with("\r\n") => "\r\n",
        line if line.ends_with('\n') => "\n",
        _ => "",
    };
    let ends = text.split_inclusive('\n').skip(start).map(end_of);
    let mut pairs = ends.zip(wanted.split_inclusive('\n').map(end_of)).enumerate();
    // The last line of `wanted` may be a part of the file's line.
    let (at, (file, _)) = pairs.find(|(_, (file, wanted))| !wanted.is_empty() && file != wanted)?;
    Some(LineDifference { line: start + at + 1, kind: DifferenceKind::LineEnd { file } })
}

/// The pairs of neighbouring bytes in a line, used to compare lines: cheap, and insensitive to small shifts.
struct Pairs(Vec<[u8; 2]>);

impl Pairs {
    fn collect(line: &str) -> Self {
        let bytes: Vec<u8> = line.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let mut pairs: Vec<[u8; 2]> = bytes.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    /// Number of common pairs.
    fn shared(&self, other: &Self) -> usize {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut shared = 0;
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => drop(ours.next()),
                std::cmp::Ordering::Greater => drop(theirs.next()),
                std::cmp::Ordering::Equal => {
                    shared += 1;
                    ours.next();
                    theirs.next();
                }
            }
        }
        shared
    }
}

/// Similarity of two lines, 0 to 100.
fn likeness(line: &str, wanted: &str, pairs: &Pairs) -> usize {
    if line == wanted {
        return 100;
    }
    // Skip lines of very different lengths: they cannot be similar, and there are many.
    if line.len() > wanted.len().saturating_mul(3) || wanted.len() > line.len().saturating_mul(3) {
        return 0;
    }
    let line = Pairs::collect(line);
    let total = line.0.len() + pairs.0.len();
    (200 * pairs.shared(&line)).checked_div(total).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, wanted: &str) -> Option<usize> {
        nearest(text, wanted).map(|nearest| nearest.line)
    }

    #[test]
    fn the_place_with_most_lines_in_common_is_nearest() {
        let text = "if x {\n  a();\n}\nif x {\n  b();\n}\n";
        assert_eq!(line(text, "if x {\n    b();\n}"), Some(4));
        assert_eq!(line(text, "if x {\n    a();\n}"), Some(1));
        assert_eq!(line(text, "}\nif x {\n\tb();"), Some(3));
        assert_eq!(line(text, "zzzz"), None);
        assert_eq!(line(text, "\n}\n"), None);
        assert_eq!(line("", "x"), None);
    }

    #[test]
    fn a_long_piece_is_shown_by_its_beginning() {
        let text = (0..40).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let found = nearest(&text, &text.replace("line 7\n", "line seven\n")).unwrap();
        assert_eq!(found.line, 1);
        assert!(found.piece.ends_with("line 11\n…"), "{}", found.piece);
        assert!(!found.only_white_space);
    }
}
