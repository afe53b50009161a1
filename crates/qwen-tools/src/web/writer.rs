//! Writes the text of a page: white space collapses, lines break at block ends, hidden characters are
//! removed.

use super::entities::decode;
use qwen_events::is_hidden;

#[derive(Default)]
pub(super) struct Writer {
    out: String,
    /// Line breaks to write before the next text.
    lines: usize,
    /// Write a space before the next text.
    space: bool,
    /// Inside preformatted text.
    code: bool,
    /// Inside a link: its URL, and whether its text has started.
    link: Option<(String, bool)>,
}

impl Writer {
    pub(super) fn text(&mut self, text: &str) {
        decode(text, |piece| {
            for character in piece.chars() {
                self.character(character);
            }
        });
    }

    fn character(&mut self, character: char) {
        if self.code && matches!(character, '\n' | '\t' | ' ') {
            self.begin();
            self.out.push(character);
        } else if character.is_whitespace() {
            self.space = true;
        } else if !is_hidden(character) || matches!(character, '\u{200c}' | '\u{200d}') {
            self.begin();
            self.out.push(character);
        }
    }

    /// Writes the pending line breaks or space.
    fn begin(&mut self) {
        let (lines, space) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.space));
        if lines > 0 && !self.out.is_empty() {
            self.out.extend(std::iter::repeat_n('\n', lines));
        } else if space && !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        if let Some((_, has_text @ false)) = &mut self.link {
            *has_text = true;
            self.out.push('[');
        }
    }

    pub(super) fn mark(&mut self, mark: &str) {
        self.begin();
        self.out.push_str(mark);
    }

    pub(super) fn break_lines(&mut self, lines: usize) {
        if self.code && lines > 0 {
            self.lines = self.lines.max(usize::from(!self.out.ends_with('\n')));
        } else {
            self.lines = self.lines.max(lines);
        }
    }

    /// Starts or ends inline code.
    pub(super) fn tick(&mut self) {
        if !self.code {
            // Write a pending space before the backtick; inside the code it would be lost.
            self.mark("`");
        }
    }

    pub(super) fn begin_code(&mut self) {
        if !self.code {
            self.break_lines(2);
            self.mark("```\n");
            self.code = true;
        }
    }

    pub(super) fn end_code(&mut self) {
        if self.code {
            self.code = false;
            self.lines = 0;
            if !self.out.ends_with('\n') {
                self.out.push('\n');
            }
            self.out.push_str("```");
            self.break_lines(2);
        }
    }

    pub(super) fn begin_link(&mut self, url: Option<String>) {
        self.end_link();
        self.link = url.map(|url| (url, false));
    }

    pub(super) fn end_link(&mut self) {
        if let Some((url, true)) = self.link.take() {
            self.out.push_str("](");
            self.out.push_str(&url);
            self.out.push(')');
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.end_link();
        self.end_code();
        self.out.truncate(self.out.trim_end().len());
        self.out
    }
}
