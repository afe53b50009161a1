//! Output of commands as the model gets it: without escape sequences, and without what a progress display has
//! drawn over.

/// Most bytes of an unfinished line that wait for its end. A longer line is passed on as it is.
const LONGEST_LINE: usize = 64 * 1024;

/// Cleans a stream of output, line by line.
#[derive(Debug, Default)]
pub(crate) struct PlainOutput {
    /// The line that has not ended yet.
    line: String,
}

impl PlainOutput {
    /// Adds a piece and returns the lines that are complete.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let Some(end) = piece.rfind('\n') else {
            self.line.push_str(piece);
            if self.line.len() > LONGEST_LINE {
                return self.finish();
            }
            return String::new();
        };
        let (lines, rest) = piece.split_at(end + 1);
        let mut whole = std::mem::take(&mut self.line);
        whole.push_str(lines);
        rest.clone_into(&mut self.line);
        plain(&whole)
    }

    /// Returns the line that never ended.
    pub(crate) fn finish(&mut self) -> String {
        plain(&std::mem::take(&mut self.line))
    }
}

/// Cleans a whole text.
pub(crate) fn plain(text: &str) -> String {
    if !text.bytes().any(|byte| matches!(byte, b'\r' | 0x08 | 0x1b)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line.trim_end_matches('\r'), "\n"),
            None => (line, ""),
        };
        // What was drawn last is what is left on a terminal. An empty redraw only clears the line.
        let mut drawn = line.rsplit('\r').map(without_escapes);
        let shown = drawn.find(|text| !text.is_empty()).unwrap_or_default();
        push_without_backspaces(&shown, &mut out);
        out.push_str(end);
    }
    out
}

/// Removes escape sequences. Other characters stay, so that the model sees them.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&rest[..at]);
        rest = after_sequence(&rest[at + 1..]);
    }
    out.push_str(rest);
    out
}

/// What follows an escape sequence, whose first character was removed.
fn after_sequence(text: &str) -> &str {
    let mut characters = text.chars();
    match characters.next() {
        // Parameters, then one final character.
        Some('[') => {
            let rest = characters.as_str().trim_start_matches(|c: char| (' '..='?').contains(&c));
            let mut rest = rest.chars();
            rest.next();
            rest.as_str()
        }
        // A text for the terminal, up to a bell or `ESC \`.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let rest = characters.as_str();
            match rest.find(['\u{7}', '\u{1b}']) {
                Some(end) => rest[end..].strip_prefix("\u{1b}\\").unwrap_or(&rest[end + 1..]),
                None => "",
            }
        }
        // Intermediate characters, then one final character.
        Some(' '..='/') => {
            let rest = text.trim_start_matches(|c: char| (' '..='/').contains(&c));
            let mut rest = rest.chars();
            rest.next();
            rest.as_str()
        }
        _ => characters.as_str(),
    }
}

fn push_without_backspaces(text: &str, out: &mut String) {
    let start = out.len();
    for character in text.chars() {
        if character == '\u{8}' {
            if out.len() > start {
                out.pop();
            }
        } else {
            out.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_show_is_left() {
        for (output, left) in [
            ("plain\n", "plain\n"),
            ("\u{1b}[31mred\u{1b}[0m\n", "red\n"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\y\n", "xy\n"),
            ("\u{1b}(Bx\u{1b}7y\n", "xy\n"),
            ("10%\r50%\r100%\ndone\n", "100%\ndone\n"),
            ("working\r\u{1b}[K\n", "working\n"),
            ("windows\r\nlines\r\n", "windows\nlines\n"),
            ("abc\u{8}\u{8}xy", "axy"),
            ("last 1\rlast 2", "last 2"),
        ] {
            assert_eq!(plain(output), left, "{output:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[a\r\n\u{8}]{0,40}", cuts in prop::collection::vec(0usize..40, 0..4)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut output = PlainOutput::default();
            let mut out = String::new();
            for pair in cuts.windows(2) {
                out.push_str(&output.push(&text[pair[0]..pair[1]]));
            }
            out.push_str(&output.finish());
            prop_assert_eq!(out, plain(&text));
        }
    }
}
