//! Questions in line mode: numbered answers, given as a line.

use serde_json::json;

use super::choice::{Choice, allow_with};
use super::keys::{answers_in_words, decline};
use super::visibility::{OpenQuestion, Opener};
use super::{Mode, Presentation, QuestionOutcome, Questions};
use crate::Millis;
use crate::markdown::Rendered;
use crate::text::{StyledLine, visible_line};

/// Why a rule cannot be added in line mode.
const NO_RULE: &str = "No rule is offered for this call; answer it with another number.";

impl Questions {
    /// Returns the oldest question with numbered answers, to be printed. It can be answered once the frame
    /// with it is written.
    pub fn print_numbered(&mut self, now: Millis) -> Vec<Rendered> {
        let Some(question) = self.waiting.front() else { return Vec::new() };
        let mut open = OpenQuestion::new(Opener::User, Mode::choosing());
        open.draw(now, true);
        self.presentation = Presentation::Open(Box::new(open));
        let plain = |text: String| Rendered::prose(StyledLine::plain(text));
        let mut lines = vec![plain(format!("Question: {}", question.title))];
        lines.extend(question.explanation().into_iter().map(plain));
        lines.extend(question.subject.iter().cloned());
        if let Some(form) = &question.form {
            lines.extend(form.numbered().into_iter().map(plain));
            return lines;
        }
        let choices = question.choices().iter().enumerate();
        lines.extend(choices.map(|(n, choice)| plain(format!("{}. {}", n + 1, question.label(*choice)))));
        if question.is_of_program() {
            lines.push(plain("Enter a number, or a prompt.".to_owned()));
            return lines;
        }
        if let Some(rule) = &question.rule {
            lines.push(plain(format!("The rule for 2 and 3: {rule}")));
        }
        let changes = question.choices().contains(&Choice::Change);
        let then = if changes { "; after 6, the changed command" } else { "" };
        let object =
            question.choices().iter().position(|choice| *choice == Choice::Object).map_or(0, |at| at + 1);
        lines.push(plain(format!(
            "Enter a number; after {object}, a message may follow{then}. Other text is sent to the model."
        )));
        lines
    }

    /// Answers the oldest question with a line: a number, followed by a message if the answer takes one. A
    /// line that was entered before the question was visible, or that is not an answer, is passed.
    pub fn line(&mut self, text: &str, pressed: Millis) -> QuestionOutcome {
        let is_visible = matches!(&self.presentation, Presentation::Open(open) if open.takes_key(pressed));
        let Some(question) = self.waiting.front_mut().filter(|_| is_visible) else {
            return QuestionOutcome::Passed;
        };
        let text = text.trim();
        if let Some(form) = &mut question.form {
            return match form.line(text) {
                Some(answers) => {
                    let words = answers_in_words(&answers);
                    let reply = question.with_answers(answers);
                    self.answer_with(&reply, None, &words)
                }
                None => QuestionOutcome::Taken,
            };
        }
        let (number, words) = text.split_once(' ').unwrap_or((text, ""));
        let Ok(number) = number.parse::<usize>() else { return QuestionOutcome::Passed };
        let choice = number.checked_sub(1).and_then(|at| question.choices().get(at)).copied();
        let label = choice.map(|choice| question.label(choice)).unwrap_or_default();
        match (choice, question.rule.clone()) {
            // A sentence that begins with a number is not an answer.
            (Some(Choice::Once | Choice::Session | Choice::Always | Choice::No) | None, _)
                if !words.is_empty() =>
            {
                QuestionOutcome::Passed
            }
            (Some(Choice::Once), _) => self.answer_with(&json!({"behavior": "allow"}), None, label),
            (Some(Choice::Session), Some(rule)) => {
                self.answer_with(&allow_with(&rule), None, &format!("yes, this session: {rule}"))
            }
            (Some(Choice::Always), Some(rule)) => {
                self.answer_with(&allow_with(&rule), Some(rule.clone()), &format!("always: {rule}"))
            }
            // It must not hold up prompts.
            (None, _) if question.is_of_program() => QuestionOutcome::Passed,
            (Some(Choice::Session | Choice::Always), None) => QuestionOutcome::Noticed(NO_RULE),
            (None, _) => QuestionOutcome::Taken,
            (Some(Choice::No), _) => self.answer_with(&json!({"behavior": "deny"}), None, label),
            (Some(Choice::Change), _) if words.trim().is_empty() => QuestionOutcome::Taken,
            (Some(Choice::Change), _) => {
                let reply = question.with_command(words);
                self.answer_with(&reply, None, &format!("yes, changed to: {}", visible_line(words)))
            }
            (Some(Choice::Object), _) => {
                let (reply, words) = decline(words);
                self.answer_with(&reply, None, &words)
            }
        }
    }
}
