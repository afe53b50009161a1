//! Styles Markdown for a terminal as it streams.
//!
//! A model's text arrives in pieces of any size, so this is a small state machine over characters. It styles
//! headings, bold, code spans and fenced blocks, and buffers only what it needs to interpret a mark. Control
//! characters are dropped, so that a model cannot control the reader's terminal.

use qwen_events::{is_misleading, terminal_text};

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const CODE: &str = "\x1b[36m";

/// Styles Markdown as it streams.
#[derive(Default)]
pub struct Markdown {
    /// Marks that may still grow: asterisks, backticks or hashes at the end of the input so far.
    pending: String,
    in_line: bool,
    heading: bool,
    bold: bool,
    code: bool,
    fence: bool,
}

impl Markdown {
    /// Appends `text`, styled, to `out`.
    pub fn push(&mut self, text: &str, out: &mut Vec<u8>) {
        for c in text.chars() {
            self.push_char(c, out);
        }
    }

    /// Ends the text: writes the buffered marks and resets the styles.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.flush_marks(out);
        if self.heading || self.bold || self.code || self.fence {
            out.extend_from_slice(RESET.as_bytes());
        }
        *self = Self::default();
    }

    fn push_char(&mut self, c: char, out: &mut Vec<u8>) {
        let mark = matches!(c, '*' | '`') || (c == '#' && !self.in_line && !self.fence);
        if mark {
            if !self.pending.is_empty() && !self.pending.starts_with(c) {
                self.flush_marks(out);
            }
            self.pending.push(c);
            return;
        }
        self.flush_marks(out);
        match c {
            '\n' => {
                if self.heading {
                    self.heading = false;
                    out.extend_from_slice(RESET.as_bytes());
                }
                out.push(b'\n');
                self.in_line = false;
            }
            '\t' => {
                out.push(b'\t');
                self.in_line = true;
            }
            c if c.is_control() => {}
            c if is_misleading(c) => {
                out.extend_from_slice(terminal_text(c.encode_utf8(&mut [0; 4])).as_bytes());
                self.in_line = true;
            }
            c => {
                let mut bytes = [0; 4];
                out.extend_from_slice(c.encode_utf8(&mut bytes).as_bytes());
                self.in_line = true;
            }
        }
    }

    /// Interprets the marks seen so far.
    fn flush_marks(&mut self, out: &mut Vec<u8>) {
        let marks = std::mem::take(&mut self.pending);
        if marks.is_empty() {
            return;
        }
        let at_start = !self.in_line;
        self.in_line = true;
        match marks.as_str() {
            "```" if at_start => {
                self.fence = !self.fence;
                out.extend_from_slice(if self.fence { CODE } else { RESET }.as_bytes());
                out.extend_from_slice(marks.as_bytes());
            }
            "`" if !self.fence => {
                self.code = !self.code;
                self.restyle(out);
            }
            "**" if !self.fence && !self.code => {
                self.bold = !self.bold;
                self.restyle(out);
            }
            hashes if hashes.starts_with('#') && at_start && !self.code => {
                self.heading = true;
                out.extend_from_slice(BOLD.as_bytes());
                out.extend_from_slice(hashes.as_bytes());
            }
            other => out.extend_from_slice(other.as_bytes()),
        }
    }

    fn restyle(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(RESET.as_bytes());
        if self.bold || self.heading {
            out.extend_from_slice(BOLD.as_bytes());
        }
        if self.code {
            out.extend_from_slice(CODE.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(pieces: &[&str]) -> String {
        let mut markdown = Markdown::default();
        let mut out = Vec::new();
        for piece in pieces {
            markdown.push(piece, &mut out);
        }
        markdown.finish(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn marks_become_styles() {
        assert_eq!(render(&["a **b** `c` d\n"]), "a \x1b[0m\x1b[1mb\x1b[0m \x1b[0m\x1b[36mc\x1b[0m d\n");
        assert_eq!(render(&["# Title\ntext"]), "\x1b[1m# Title\x1b[0m\ntext");
        assert_eq!(render(&["```rs\nlet **x**;\n```\n"]), "\x1b[36m```rs\nlet **x**;\n\x1b[0m```\n");
    }

    #[test]
    fn any_split_renders_the_same() {
        let text = "# H\n**bold** and `code`\n```\nx\n```\n* item 2*3\n";
        let whole = render(&[text]);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(render(&[&text[..at], &text[at..]]), whole, "split at {at}");
        }
    }

    #[test]
    fn a_models_escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(render(&["a\x1b]52;c;eA==\x07b\x1b[2Jc\r"]), "a]52;c;eA==b[2Jc");
    }
}
