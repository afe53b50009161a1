//! The line mode, for screen readers and terminals that cannot move the cursor: nothing is repainted,
//! nothing ticks, and questions are answered by number.

use super::{Effect, Terminal};
use crate::markdown::Rendered;
use crate::question::QuestionOutcome;
use crate::text::{Style, StyledLine};

impl Terminal {
    /// Handles a line of input, which the terminal has echoed.
    pub fn line(&mut self, text: &str, now: crate::Millis) {
        self.now = now;
        // The cursor is already at the start of a line.
        self.printed = false;
        match self.questions.line(text) {
            QuestionOutcome::Answered { command, save_rule, words } => {
                self.command(command);
                self.effects.extend(save_rule.map(Effect::SaveRule));
                self.note(&words);
                self.print_question();
            }
            QuestionOutcome::Decided { is_yes, words } => self.decided(is_yes, &words),
            QuestionOutcome::Taken | QuestionOutcome::Shown(_) => self.print_question(),
            QuestionOutcome::Passed if self.line_to_list(text) => {}
            QuestionOutcome::Passed => {
                self.picker = None;
                self.editor.set(text);
                self.submit();
            }
        }
    }

    /// Ctrl+C in line mode: ends the turn, or the program.
    pub fn line_interrupt(&mut self) {
        if self.turn.is_some() {
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
        let lines = self.questions.numbered();
        self.print_block(lines);
    }

    /// Prints the current activity, because there is no status line.
    pub(super) fn print_activity(&mut self, text: &str) {
        if self.options.plain {
            self.print_block(vec![Rendered::logical(StyledLine::styled(text, Style::PLAIN))]);
        }
    }
}
