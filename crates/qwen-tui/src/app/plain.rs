//! The line mode, for screen readers and terminals that cannot move the cursor: nothing is repainted,
//! nothing ticks, and questions are answered by number.

use super::Terminal;
use crate::markdown::Rendered;
use crate::question::QuestionOutcome;
use crate::text::{Style, StyledLine};

impl Terminal {
    /// Handles a line of input, which the terminal has echoed. It was entered at `pressed` or later.
    pub fn line(&mut self, text: &str, pressed: crate::Millis, now: crate::Millis) {
        self.now = now;
        // The cursor is already at the start of a line.
        self.output.printed = false;
        let outcome = self.questions.line(text, pressed);
        let is_unanswered = matches!(outcome, QuestionOutcome::Taken);
        if let QuestionOutcome::Noticed(text) = outcome {
            self.print_activity(text);
            return;
        }
        if self.apply_answer(outcome) {
            if is_unanswered {
                self.print_question();
            }
        } else if !self.line_to_list(text) {
            self.picker = None;
            self.composer.editor.set(text);
            self.submit();
        }
    }

    /// Ctrl+C in line mode: ends the turn, or the program.
    pub fn line_interrupt(&mut self) {
        if self.phase.turn().is_some() {
            self.interrupt();
        } else {
            self.quit();
        }
    }

    /// Prints the oldest question with its numbered answers.
    pub(super) fn print_question(&mut self) {
        if !self.options.plain {
            return;
        }
        let lines = self.questions.print_numbered(self.now);
        self.print_block(lines);
    }

    /// Prints the current activity, because there is no status line.
    pub(super) fn print_activity(&mut self, text: &str) {
        if self.options.plain {
            self.print_block(vec![Rendered::logical(StyledLine::styled(text, Style::PLAIN))]);
        }
    }
}
