//! Keys for the open question.

use serde_json::{Value, json};

use super::choice::{Choice, QuestionView, allow_with};
use super::visibility::OpenQuestion;
use super::{Presentation, QuestionOutcome, Questions};
use crate::Millis;
use crate::editor::Editor;
use crate::input::{Key, KeyAction, KeyCode, Keymap, TerminalInput};
use crate::text::{clean_line, visible_line};

/// A character is an answer if no other character follows within this time; otherwise both are text for the
/// composer.
const ALONE: Millis = 250;

/// Why an answer is refused whose subject did not fit on the screen.
const NO_ROOM: &str = "The request does not fit on the screen: press v to view it, or enlarge the terminal.";

/// The user's position in the dialog.
#[derive(Debug)]
pub(super) enum Mode {
    /// The user chooses an answer; Enter submits the selected one.
    Choosing(Choice),
    /// The user edits the rule before it is saved; `always` persists it beyond the session.
    Rule { editor: Editor, always: bool, problem: Option<String> },
    /// The user changes the command before it runs.
    Changing(Editor),
    /// The user writes a message for the model.
    Objecting(Editor),
    /// The user answers the model's questions.
    Form,
}

impl Mode {
    /// The first step, with the harmless answer selected.
    pub(super) fn choosing() -> Self {
        Self::Choosing(Choice::No)
    }
}

/// A character that becomes an answer unless another one follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypedKey {
    character: char,
    at: Millis,
}

impl TypedKey {
    pub(super) fn deadline(self) -> Millis {
        self.at + ALONE
    }
}

enum AnswerStep {
    Stay,
    Show,
    /// The user closes the question.
    Leave,
    /// The input is for the program or the composer; the question stays open.
    Pass,
    /// The input is text for the composer.
    Compose,
    /// The answer must wait for its letter to stand alone.
    Wait(char),
    Refuse(&'static str),
    Give(Value, Option<String>, String),
}

impl Questions {
    /// Offers an input to the open question. It was pressed at `pressed` or later, and read at `now`.
    pub fn input(
        &mut self,
        input: &TerminalInput,
        keymap: &Keymap,
        pressed: Millis,
        now: Millis,
    ) -> QuestionOutcome {
        let action = match input {
            TerminalInput::Key(key) => keymap.action(*key),
            TerminalInput::Paste(_) | TerminalInput::Focus(_) => None,
        };
        let (Presentation::Open(open), Some(question)) = (&mut self.presentation, self.waiting.front_mut())
        else {
            return QuestionOutcome::Passed;
        };
        if !open.takes_key(pressed) {
            return self.leave_to_composer(action);
        }
        let typed = open.typed.take();
        if let Some(first) = typed
            && (character(input, action).is_some() || matches!(input, TerminalInput::Paste(_)))
        {
            self.presentation = Presentation::Banner;
            return QuestionOutcome::Typed(first.character.to_string());
        }
        let step = answer(open, question, input, action, self.check_rule);
        self.apply(step, now)
    }

    /// Handles an input that was pressed before the user could read the question.
    fn leave_to_composer(&mut self, action: Option<KeyAction>) -> QuestionOutcome {
        let is_on_screen = self.is_on_screen;
        let Presentation::Open(open) = &mut self.presentation else { return QuestionOutcome::Passed };
        match action {
            // Pressed to open it, which has happened in the meantime.
            Some(KeyAction::Question) if open.attend() => QuestionOutcome::Taken,
            Some(KeyAction::Question) => {
                self.close_by_user();
                QuestionOutcome::Taken
            }
            Some(KeyAction::Interrupt) if open.is_noticed() || is_on_screen => {
                self.close_by_user();
                QuestionOutcome::Taken
            }
            // Pressed twice, or too early: the draft must not be sent instead.
            Some(KeyAction::Submit) if open.is_opened_by_user() => QuestionOutcome::Taken,
            _ => {
                self.presentation = Presentation::Banner;
                QuestionOutcome::Passed
            }
        }
    }

    /// Gives the answer whose letter stands alone.
    pub fn settle(&mut self, now: Millis) -> QuestionOutcome {
        let (Presentation::Open(open), Some(question)) = (&mut self.presentation, self.waiting.front_mut())
        else {
            return QuestionOutcome::Passed;
        };
        let Some(typed) = open.typed.filter(|typed| typed.deadline() <= now) else {
            return QuestionOutcome::Passed;
        };
        open.typed = None;
        let step = if typed.character == 'v' && question.form.is_none() {
            open.measure();
            AnswerStep::Show
        } else if question.form.is_some() {
            let key = TerminalInput::Key(Key::plain(KeyCode::Char(typed.character)));
            if open.is_measured() { fill_in(open, question, &key, None) } else { AnswerStep::Refuse(NO_ROOM) }
        } else {
            match choice_of(question, typed.character) {
                Some(choice) => choose(open, question, choice),
                None => AnswerStep::Stay,
            }
        };
        self.apply(step, now)
    }

    fn apply(&mut self, step: AnswerStep, now: Millis) -> QuestionOutcome {
        match step {
            AnswerStep::Stay => QuestionOutcome::Taken,
            AnswerStep::Show => QuestionOutcome::Shown,
            AnswerStep::Leave => {
                self.close_by_user();
                QuestionOutcome::Taken
            }
            AnswerStep::Pass => QuestionOutcome::Passed,
            AnswerStep::Compose => {
                self.presentation = Presentation::Banner;
                QuestionOutcome::Passed
            }
            AnswerStep::Wait(character) => {
                if let Presentation::Open(open) = &mut self.presentation {
                    open.typed = Some(TypedKey { character, at: now });
                }
                QuestionOutcome::Taken
            }
            AnswerStep::Refuse(notice) => QuestionOutcome::Noticed(notice),
            AnswerStep::Give(reply, save_rule, words) => self.answer_with(&reply, save_rule, &words),
        }
    }
}

/// The character that an input types.
fn character(input: &TerminalInput, action: Option<KeyAction>) -> Option<char> {
    match (input, action) {
        (TerminalInput::Key(Key { code: KeyCode::Char(c), ctrl: false, alt: false, .. }), None) => Some(*c),
        _ => None,
    }
}

fn choice_of(question: &QuestionView, character: char) -> Option<Choice> {
    question.choices().iter().copied().find(|choice| choice.key() == character)
}

fn answer(
    open: &mut OpenQuestion,
    question: &mut QuestionView,
    input: &TerminalInput,
    action: Option<KeyAction>,
    check_rule: fn(&str) -> Result<(), String>,
) -> AnswerStep {
    if let Some(step) = answer_general_key(open, action) {
        return step;
    }
    match &mut open.mode {
        Mode::Form if open.is_measured => answer_form(open, question, input, action),
        Mode::Form => AnswerStep::Refuse(NO_ROOM),
        Mode::Rule { editor, always, problem } => {
            if action != Some(KeyAction::Submit) {
                crate::app::edit(editor, input, action);
                *problem = check_rule(&editor.text()).err();
                return AnswerStep::Stay;
            }
            let rule = editor.text().trim().to_owned();
            // A rule that cannot be used must not turn the approval into a denial.
            *problem = check_rule(&rule).err();
            if problem.is_some() {
                return AnswerStep::Stay;
            }
            let words = format!("{}: {rule}", if *always { "always" } else { "yes, this session" });
            AnswerStep::Give(allow_with(&rule), always.then_some(rule), words)
        }
        Mode::Changing(editor) => {
            if action != Some(KeyAction::Submit) {
                crate::app::edit(editor, input, action);
                return AnswerStep::Stay;
            }
            let command = editor.text();
            if command.trim().is_empty() {
                return AnswerStep::Stay;
            }
            let words = format!("yes, changed to: {}", visible_line(&command));
            AnswerStep::Give(question.with_command(&command), None, words)
        }
        Mode::Objecting(editor) => {
            if action != Some(KeyAction::Submit) {
                crate::app::edit(editor, input, action);
                return AnswerStep::Stay;
            }
            let (reply, words) = decline(&editor.take());
            AnswerStep::Give(reply, None, words)
        }
        Mode::Choosing(_) => answer_choosing(open, question, input, action),
    }
}

/// Handles the keys that mean the same in every step.
fn answer_general_key(open: &mut OpenQuestion, action: Option<KeyAction>) -> Option<AnswerStep> {
    match action {
        Some(KeyAction::Question) => Some(AnswerStep::Leave),
        Some(KeyAction::Interrupt) => Some(match &open.mode {
            Mode::Rule { .. } | Mode::Objecting(_) | Mode::Changing(_) => {
                open.mode = Mode::choosing();
                AnswerStep::Stay
            }
            Mode::Choosing(_) | Mode::Form => AnswerStep::Leave,
        }),
        // These keys always apply to the program.
        Some(
            KeyAction::Cancel
            | KeyAction::Quit
            | KeyAction::Suspend
            | KeyAction::Repaint
            | KeyAction::Transcript,
        ) => Some(AnswerStep::Pass),
        Some(KeyAction::PageUp) => {
            open.scroll = open.scroll.saturating_sub(10);
            Some(AnswerStep::Stay)
        }
        Some(KeyAction::PageDown) => {
            open.scroll = open.scroll.saturating_add(10);
            Some(AnswerStep::Stay)
        }
        _ => None,
    }
}

/// Handles a key while the user chooses an answer.
fn answer_choosing(
    open: &mut OpenQuestion,
    question: &QuestionView,
    input: &TerminalInput,
    action: Option<KeyAction>,
) -> AnswerStep {
    let Mode::Choosing(selected) = &mut open.mode else { return AnswerStep::Stay };
    match (action, character(input, action)) {
        (Some(KeyAction::Submit), _) => {
            let selected = *selected;
            choose(open, question, selected)
        }
        (Some(KeyAction::Up), _) => {
            open.scroll = open.scroll.saturating_sub(1);
            AnswerStep::Stay
        }
        (Some(KeyAction::Down), _) => {
            open.scroll = open.scroll.saturating_add(1);
            AnswerStep::Stay
        }
        (Some(KeyAction::Left | KeyAction::Right | KeyAction::Complete), _) => {
            let choices = question.choices();
            let step = if action == Some(KeyAction::Left) { choices.len() - 1 } else { 1 };
            let at = choices.iter().position(|choice| choice == selected).unwrap_or_default();
            *selected = choices[(at + step) % choices.len()];
            AnswerStep::Stay
        }
        (_, Some('v')) => AnswerStep::Wait('v'),
        (_, Some(typed)) => match choice_of(question, typed) {
            Some(choice) => {
                *selected = choice;
                AnswerStep::Wait(typed)
            }
            None => AnswerStep::Compose,
        },
        (None, None) if matches!(input, TerminalInput::Paste(_)) => AnswerStep::Compose,
        _ => AnswerStep::Stay,
    }
}

fn answer_form(
    open: &mut OpenQuestion,
    question: &mut QuestionView,
    input: &TerminalInput,
    action: Option<KeyAction>,
) -> AnswerStep {
    if let Some(form) = question.form.as_ref().filter(|form| !form.is_writing()) {
        let (asked, _) = form.current();
        match character(input, action) {
            Some(digit @ '1'..='9') => return AnswerStep::Wait(digit),
            Some(' ') if asked.several => {}
            Some(_) => return AnswerStep::Compose,
            None if matches!(input, TerminalInput::Paste(_)) => return AnswerStep::Compose,
            None => {}
        }
    }
    fill_in(open, question, input, action)
}

/// Passes an input to the form. The form's next question takes no key that was pressed before it was visible.
fn fill_in(
    open: &mut OpenQuestion,
    question: &mut QuestionView,
    input: &TerminalInput,
    action: Option<KeyAction>,
) -> AnswerStep {
    let Some(form) = &mut question.form else { return AnswerStep::Stay };
    let position = form.position();
    let answers = form.input(input, action);
    if form.position() != position {
        open.turn_page();
    }
    give_answers(question, answers)
}

/// The questions of a form and their answers, one line each.
pub(super) fn answers_in_words(answers: &Value) -> String {
    let lines = answers.as_object().into_iter().flatten().map(|(asked, answer)| {
        format!("\n{} {}", visible_line(asked), visible_line(answer.as_str().unwrap_or_default()))
    });
    lines.collect()
}

/// A refusal with a message, which may be empty, and its description.
pub(super) fn decline(message: &str) -> (Value, String) {
    if message.trim().is_empty() {
        return (json!({"behavior": "deny"}), "no".to_owned());
    }
    (json!({"behavior": "deny", "message": message}), format!("no: {}", clean_line(message)))
}

fn give_answers(question: &QuestionView, answers: Option<Value>) -> AnswerStep {
    match answers {
        Some(answers) => {
            let words = answers_in_words(&answers);
            AnswerStep::Give(question.with_answers(answers), None, words)
        }
        None => AnswerStep::Stay,
    }
}

/// Gives the answer, or continues with the step that it needs.
fn choose(open: &mut OpenQuestion, question: &QuestionView, choice: Choice) -> AnswerStep {
    if choice.approves() && !open.is_measured() {
        return AnswerStep::Refuse(NO_ROOM);
    }
    let rule = question.rule.clone().unwrap_or_default();
    let words = question.label(choice).to_owned();
    match choice {
        Choice::Once => AnswerStep::Give(json!({"behavior": "allow"}), None, words),
        Choice::No => AnswerStep::Give(json!({"behavior": "deny"}), None, words),
        Choice::Session if !rule.is_empty() => {
            AnswerStep::Give(allow_with(&rule), None, format!("{words}: {rule}"))
        }
        Choice::Session | Choice::Always => {
            let mut editor = Editor::default();
            editor.set(&rule);
            open.mode = Mode::Rule { editor, always: choice == Choice::Always, problem: None };
            AnswerStep::Stay
        }
        Choice::Change => {
            let mut editor = Editor::default();
            editor.set(&question.command().unwrap_or_default());
            open.mode = Mode::Changing(editor);
            AnswerStep::Stay
        }
        Choice::Object => {
            open.mode = Mode::Objecting(Editor::default());
            AnswerStep::Stay
        }
    }
}
