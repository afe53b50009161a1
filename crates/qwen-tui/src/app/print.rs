//! Prints finished output, which leaves the live region permanently.

use qwen_events::ToolEnd;

use super::Terminal;
use crate::markdown::{Block, Rendered, highlight, render, wrap};
use crate::text::{StyledLine, clean};

impl Terminal {
    /// Prints a block, separated from the one before by an empty line.
    pub(super) fn print_block(&mut self, rendered: Vec<Rendered>) {
        if rendered.is_empty() {
            return;
        }
        self.set_apart();
        self.print_rendered(rendered);
    }

    pub(super) fn set_apart(&mut self) {
        if self.printed {
            self.finished.push_str("\r\n");
        }
    }

    fn print_rendered(&mut self, rendered: Vec<Rendered>) {
        let columns = self.options.wrap_prose.then_some(self.options.columns.saturating_sub(1).max(1));
        for line in wrap(rendered, columns) {
            self.print_line(&line);
        }
    }

    /// The number of output lines printed of a call. The output of a command that the user typed is printed whole.
    pub(super) fn output_lines(&self, end: &ToolEnd) -> usize {
        if end.call.id.as_str().starts_with("typed-") { usize::MAX } else { self.options.output_lines }
    }

    /// Prints one line.
    pub(super) fn print_line(&mut self, line: &StyledLine) {
        if self.options.plain {
            self.finished.push_str(&line.text());
        } else {
            line.encode(self.options.colors, &mut self.finished);
        }
        self.finished.push_str("\r\n");
        self.printed = true;
    }

    /// Handles a piece of the answer.
    pub(super) fn answer_delta(&mut self, text: &str) {
        self.last_answer.push_str(text);
        let blocks = self.answer.push(text);
        self.print_answer(blocks);
    }

    /// Handles the end of the answer.
    pub(super) fn answer_end(&mut self) {
        let blocks = self.answer.finish();
        self.print_answer(blocks);
    }

    pub(super) fn print_answer(&mut self, blocks: Vec<Block>) {
        for block in blocks {
            match block {
                Block::Markdown(text) => {
                    let rendered = render(&text);
                    self.print_block(rendered);
                }
                Block::CodeStart => {
                    self.set_apart();
                    self.in_code = true;
                }
                Block::Code { language, line } => self.print_line(&highlight(&language, &clean(&line))),
                Block::CodeEnd => self.in_code = false,
            }
        }
    }
}
