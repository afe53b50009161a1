//! Prints finished output, which leaves the live region permanently.

use qwen_events::ToolEnd;

use super::Terminal;
use crate::input::KeyAction;
use crate::markdown::{Block, Rendered, highlight, render, wrap};
use crate::text::{StyledLine, clean};
use crate::view::OutputLimit;

impl Terminal {
    /// Prints a block, separated from the one before by an empty line.
    pub(super) fn print_block(&mut self, rendered: Vec<Rendered>) {
        if rendered.is_empty() {
            return;
        }
        self.print_separator();
        self.print_rendered(rendered);
    }

    pub(super) fn print_separator(&mut self) {
        if self.output.printed {
            self.output.finished.push_str("\r\n");
        }
    }

    /// Prints a text that is wrapped at words, without an empty line before it.
    pub(super) fn print_paragraph(&mut self, text: String) {
        self.print_rendered(vec![Rendered::prose(StyledLine::plain(text))]);
    }

    fn print_rendered(&mut self, rendered: Vec<Rendered>) {
        let columns = self.options.wrap_prose.then_some(self.options.columns.saturating_sub(1).max(1));
        for line in wrap(rendered, columns) {
            self.print_line(&line);
        }
    }

    /// How much is printed of a call's output. The output of a command that the user typed is printed whole.
    pub(super) fn output_limit(&self, end: &ToolEnd) -> OutputLimit {
        let is_typed = end.call.id.as_str().starts_with("typed-");
        let lines = if is_typed { usize::MAX } else { self.options.output_lines };
        OutputLimit { lines, rest: self.shows_all() }
    }

    /// The key that shows what was left out; empty in line mode, which has no keys, and if no key is bound to
    /// it.
    pub(super) fn shows_all(&self) -> String {
        let keys = self.options.keymap.keys(KeyAction::Transcript);
        let key = keys.first().filter(|_| !self.options.plain);
        key.map(|key| format!("; {key} shows all")).unwrap_or_default()
    }

    pub(super) fn print_line(&mut self, line: &StyledLine) {
        if self.options.plain {
            self.output.finished.push_str(&line.text());
        } else {
            line.encode(self.options.colors, &mut self.output.finished);
        }
        self.output.finished.push_str("\r\n");
        self.output.printed = true;
    }

    /// Handles a piece of the answer.
    pub(super) fn answer_delta(&mut self, text: &str) {
        self.output.last_answer.push_str(text);
        let blocks = self.output.answer.push(text);
        self.print_answer(blocks);
    }

    /// Handles the end of the answer.
    pub(super) fn answer_end(&mut self) {
        let blocks = self.output.answer.finish();
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
                    self.print_separator();
                    self.output.in_code = true;
                }
                Block::Code { language, line } => self.print_line(&highlight(&language, &clean(&line))),
                Block::CodeEnd => self.output.in_code = false,
            }
        }
    }
}
