//! The text of a file as `read_file` returns it: a header with range and total, then numbered lines.

use std::fmt::Write;

const HEADER: &str = "[lines ";

/// Lines of a file, read back from a result of `read_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLines {
    /// Number of the first line, counted from 1; 0 in an empty file.
    pub first: u64,
    /// Number of lines in `content`.
    pub count: u64,
    /// Number of lines in the whole file.
    pub total: u64,
    /// The lines without their numbers.
    pub content: String,
}

impl FileLines {
    /// Writes the header of the lines `first` to `last` of `total`, with further notes.
    pub fn write_header(first: usize, last: usize, total: usize, notes: &[String], out: &mut String) {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{HEADER}{first} to {last} of {total}");
        for note in notes {
            out.push_str("; ");
            out.push_str(note);
        }
        out.push_str("]\n");
    }

    /// Writes one line, given without its line end, after its number.
    pub fn write_line(number: usize, line: &str, out: &mut String) {
        let _ = writeln!(out, "{number}\t{line}");
    }

    /// Parses a result of `read_file`. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (header, body) = text.strip_prefix(HEADER)?.split_once("]\n")?;
        let range = header.split(';').next()?;
        let (first, rest) = range.split_once(" to ")?;
        let (_, total) = rest.split_once(" of ")?;
        let mut content = String::with_capacity(body.len());
        let mut count = 0;
        for line in body.lines() {
            let Some((number, line)) = line.split_once('\t') else { break };
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                break;
            }
            content.push_str(line);
            content.push('\n');
            count += 1;
        }
        if header.contains(NO_LAST_LINE_END) {
            content.pop();
        }
        Some(Self { first: first.parse().ok()?, count, total: total.parse().ok()?, content })
    }
}

/// The note about a file whose last line has no line end.
pub const NO_LAST_LINE_END: &str = "the last line has no line end";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_lines_are_read_back_as_they_were() {
        let mut text = String::new();
        FileLines::write_header(2, 3, 3, &[NO_LAST_LINE_END.to_owned()], &mut text);
        FileLines::write_line(2, "a\tb", &mut text);
        FileLines::write_line(3, "7\t", &mut text);
        assert_eq!(text, "[lines 2 to 3 of 3; the last line has no line end]\n2\ta\tb\n3\t7\t\n");
        let lines = FileLines { first: 2, count: 2, total: 3, content: "a\tb\n7\t".to_owned() };
        assert_eq!(FileLines::parse(&text), Some(lines));
        assert_eq!(FileLines::parse("[lines of code]\n1\tx"), None);
    }
}
