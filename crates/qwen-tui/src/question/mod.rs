//! Open questions, oldest first.
//!
//! A question arrives as a banner. It opens by itself only when the composer is empty and no key was
//! pressed recently, and a key that follows immediately still belongs to the composer: typing can never
//! answer a question that the user has not read.

mod form;
mod panel;

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::{Command, Confirmation, ControlReply, Json, ToolCall};
use serde_json::{Value, json};

use self::form::Form;
use crate::Millis;
use crate::editor::Editor;
use crate::input::{KeyAction, KeyCode, Keymap, TerminalInput};
use crate::markdown::Rendered;
use crate::text::{StyledLine, clean_line};
use crate::view::{rule_for, subject};

/// A question does not open within this time after a key.
const QUIET: Millis = 700;

/// A question that opened by itself leaves keys to the composer for this time.
const GRACE: Millis = 300;

/// A question about a call.
#[derive(Debug)]
pub struct QuestionView {
    /// The request and the call that the session asks about; none for a question of the program itself.
    asked: Option<(Arc<str>, Arc<ToolCall>)>,
    pub title: String,
    /// The complete effect of the call.
    pub subject: Vec<Rendered>,
    /// The reason for the question.
    pub reason: String,
    /// True if a sub-agent asks.
    pub from_agent: bool,
    /// The rule that would answer it in the future.
    rule: Option<String>,
    /// True if the model asks for approval of its plan.
    is_plan: bool,
    form: Option<Form>,
}

/// The possible answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Once,
    Session,
    Always,
    No,
    Object,
}

impl Choice {
    const ALL: [Self; 5] = [Self::Once, Self::Session, Self::Always, Self::No, Self::Object];

    fn key(self) -> char {
        match self {
            Self::Once => 'y',
            Self::Session => 's',
            Self::Always => 'a',
            Self::No => 'n',
            Self::Object => 'e',
        }
    }

    /// The answers to a question of the program itself.
    const PROGRAM: [Self; 2] = [Self::Once, Self::No];

    /// The answers to a plan, for which there is no rule.
    const PLAN: [Self; 3] = [Self::Once, Self::No, Self::Object];

    fn label(self) -> &'static str {
        match self {
            Self::Once => "yes, once",
            Self::Session => "yes, this session",
            Self::Always => "always",
            Self::No => "no",
            Self::Object => "no, with a message",
        }
    }
}

#[derive(Debug)]
enum Mode {
    /// The user chooses an answer; Enter submits the selected one.
    Choosing(Choice),
    /// The user edits the rule before it is saved; `always` persists it beyond the session.
    Rule { editor: Editor, always: bool },
    /// The user writes a message for the model.
    Objecting(Editor),
    /// The user answers the model's questions.
    Form,
}

#[derive(Debug)]
enum Presentation {
    Banner,
    Open { since: Millis, by_itself: bool, scroll: usize, mode: Mode },
}

/// The result of an input.
#[derive(Debug)]
pub enum QuestionOutcome {
    /// The question does not handle the input.
    Passed,
    /// The question handled the input.
    Taken,
    /// The subject is shown on the whole screen.
    Shown(Vec<Rendered>),
    /// The question is answered.
    Answered {
        /// The answer for the session.
        command: Command,
        /// A rule to write to the settings.
        save_rule: Option<String>,
        /// A short form of the answer, for the transcript.
        words: String,
    },
    /// A question of the program itself is answered.
    Decided {
        is_yes: bool,
        /// A short form of the answer, for the transcript.
        words: String,
    },
}

/// The open questions.
#[derive(Debug)]
pub struct Questions {
    waiting: VecDeque<QuestionView>,
    presentation: Presentation,
}

impl Default for Questions {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), presentation: Presentation::Banner }
    }
}

impl Questions {
    /// Adds a question.
    pub fn add(
        &mut self,
        request_id: Arc<str>,
        call: Arc<ToolCall>,
        confirmation: &Confirmation,
        reason: &str,
        from_agent: bool,
    ) {
        let (title, lines) = subject(&call, confirmation);
        let form = Form::of(&call);
        self.waiting.push_back(QuestionView {
            title: if form.is_some() { "The model asks".to_owned() } else { title },
            subject: if form.is_some() { Vec::new() } else { lines },
            reason: clean_line(reason),
            from_agent,
            rule: rule_for(&call, confirmation).filter(|_| form.is_none()),
            is_plan: matches!(confirmation, Confirmation::Plan { .. }),
            asked: Some((request_id, call)),
            form,
        });
    }

    /// Adds a question of the program itself, which is answered with yes or no.
    pub fn add_own(&mut self, title: &str, reason: &str, subject: &[String]) {
        let lines = subject.iter().map(|line| Rendered::logical(StyledLine::plain(clean_line(line))));
        self.waiting.push_back(QuestionView {
            asked: None,
            title: clean_line(title),
            subject: lines.collect(),
            reason: clean_line(reason),
            from_agent: false,
            rule: None,
            is_plan: false,
            form: None,
        });
    }

    /// Removes a withdrawn question. Returns whether it was open.
    pub fn withdraw(&mut self, request_id: &str) -> bool {
        let Some(at) = self.waiting.iter().position(|question| question.has_request_id(request_id)) else {
            return false;
        };
        self.waiting.remove(at);
        if at == 0 {
            self.presentation = Presentation::Banner;
        }
        true
    }

    /// Removes those of the session.
    pub fn clear(&mut self) {
        let before = self.waiting.len();
        self.waiting.retain(|question| question.asked.is_none());
        if self.waiting.len() < before {
            self.presentation = Presentation::Banner;
        }
    }

    /// The number of open questions.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The oldest one.
    pub fn first(&self) -> Option<&QuestionView> {
        self.waiting.front()
    }

    /// True if the oldest one is fully shown and receives keys.
    pub fn is_open(&self) -> bool {
        matches!(self.presentation, Presentation::Open { .. })
    }

    /// Opens the oldest question if the user is not typing. Returns when to try again.
    pub fn consider(&mut self, now: Millis, last_key: Option<Millis>, has_draft: bool) -> Option<Millis> {
        // A question of the program itself can wait until the user turns to it.
        let is_pressing = self.waiting.front().is_some_and(|question| question.asked.is_some());
        if !is_pressing || self.is_open() || has_draft {
            return None;
        }
        match last_key.map(|last| last + QUIET).filter(|quiet| *quiet > now) {
            Some(quiet) => Some(quiet),
            None => {
                self.open(now, true);
                None
            }
        }
    }

    /// Switches between the oldest question and the composer.
    pub fn toggle(&mut self, now: Millis) {
        if self.is_open() {
            self.presentation = Presentation::Banner;
        } else if !self.waiting.is_empty() {
            self.open(now, false);
        }
    }

    fn open(&mut self, now: Millis, by_itself: bool) {
        let has_form = self.waiting.front().is_some_and(|question| question.form.is_some());
        let mode = if has_form { Mode::Form } else { Mode::Choosing(Choice::No) };
        self.presentation = Presentation::Open { since: now, by_itself, scroll: 0, mode };
    }

    /// Offers an input to the open question.
    pub fn input(&mut self, input: &TerminalInput, keymap: &Keymap, now: Millis) -> QuestionOutcome {
        let Presentation::Open { since, by_itself, .. } = &mut self.presentation else {
            return QuestionOutcome::Passed;
        };
        let is_turning =
            matches!(input, TerminalInput::Key(key) if keymap.action(*key) == Some(KeyAction::Question));
        if *by_itself && is_turning {
            // The user has interacted with it: from now on keys are answers.
            *by_itself = false;
            return QuestionOutcome::Taken;
        }
        if *by_itself && now < *since + GRACE {
            // Too fast to be an answer: the key was meant for the composer.
            self.presentation = Presentation::Banner;
            return QuestionOutcome::Passed;
        }
        let answer = self.answer(input, keymap);
        match answer {
            AnswerStep::Stay => QuestionOutcome::Taken,
            AnswerStep::Show(lines) => QuestionOutcome::Shown(lines),
            AnswerStep::Leave => {
                self.presentation = Presentation::Banner;
                QuestionOutcome::Taken
            }
            AnswerStep::Pass => QuestionOutcome::Passed,
            AnswerStep::Give(reply, save_rule, words) => {
                let answered = self.answer_with(&reply, save_rule, &words);
                // The user must read the next one before answering it.
                if self.waiting.is_empty() {
                    self.presentation = Presentation::Banner;
                } else {
                    self.open(now, true);
                }
                answered
            }
        }
    }

    /// The oldest question with numbered answers, for terminals that only append lines.
    pub fn numbered(&self) -> Vec<Rendered> {
        let Some(question) = self.waiting.front() else { return Vec::new() };
        let plain = |text: String| Rendered::prose(StyledLine::plain(text));
        let mut lines = vec![plain(format!("Question: {}", question.title))];
        if !question.reason.is_empty() {
            lines.push(plain(question.reason.clone()));
        }
        lines.extend(question.subject.iter().cloned());
        match &question.form {
            Some(form) => lines.extend(form.numbered().into_iter().map(plain)),
            None => {
                let choices = question.choices().iter().enumerate();
                lines.extend(
                    choices.map(|(n, choice)| plain(format!("{}. {}", n + 1, question.label(*choice)))),
                );
                if question.asked.is_none() {
                    lines.push(plain("Enter a number, or a prompt.".to_owned()));
                    return lines;
                }
                if let Some(rule) = &question.rule {
                    lines.push(plain(format!("The rule for 2 and 3: {rule}")));
                }
                let last = question.choices().len();
                lines.push(plain(format!("Enter a number; for {last}, a message may follow it.")));
            }
        }
        lines
    }

    /// Answers the oldest question with a line: a number, followed by text if the answer needs it.
    pub fn line(&mut self, text: &str) -> QuestionOutcome {
        let Some(question) = self.waiting.front_mut() else { return QuestionOutcome::Passed };
        let text = text.trim();
        if let Some(form) = &mut question.form {
            return match form.line(text) {
                Some(answers) => {
                    let reply = question.with_answers(answers);
                    self.answer_with(&reply, None, "answered")
                }
                None => QuestionOutcome::Taken,
            };
        }
        if question.asked.is_none() {
            return match text {
                "1" => self.answer_with(&json!({"behavior": "allow"}), None, "yes"),
                "2" => self.answer_with(&json!({"behavior": "deny"}), None, "no"),
                // It must not hold up prompts.
                _ => QuestionOutcome::Passed,
            };
        }
        let (number, words) = text.split_once(' ').unwrap_or((text, ""));
        let number = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        // Any other input is not an answer: the question remains open.
        let Some(choice) = number.and_then(|at| question.choices().get(at)) else {
            return QuestionOutcome::Taken;
        };
        let label = question.label(*choice);
        match (choice, question.rule.clone()) {
            (Choice::Once, _) => self.answer_with(&json!({"behavior": "allow"}), None, label),
            (Choice::Session, Some(rule)) => {
                self.answer_with(&allow_with(&rule), None, &format!("yes, this session: {rule}"))
            }
            (Choice::Always, Some(rule)) => {
                self.answer_with(&allow_with(&rule), Some(rule.clone()), &format!("always: {rule}"))
            }
            (Choice::Session | Choice::Always, None) => QuestionOutcome::Taken,
            (Choice::No, _) => self.answer_with(&json!({"behavior": "deny"}), None, label),
            (Choice::Object, _) => {
                let reply = json!({"behavior": "deny", "message": words});
                self.answer_with(&reply, None, &format!("no: {}", clean_line(words)))
            }
        }
    }

    fn answer_with(&mut self, reply: &Value, save_rule: Option<String>, words: &str) -> QuestionOutcome {
        let Some(question) = self.waiting.pop_front() else { return QuestionOutcome::Taken };
        let words = format!("{} {words}", question.title);
        let Some((request_id, _)) = question.asked else {
            return QuestionOutcome::Decided { is_yes: reply["behavior"] == "allow", words };
        };
        let reply = ControlReply { request_id, nested: false, result: Ok(Json::trusted(reply.to_string())) };
        let command = Command::Reply { reply: Box::new(reply), session_id: None };
        QuestionOutcome::Answered { command, save_rule, words }
    }

    fn answer(&mut self, input: &TerminalInput, keymap: &Keymap) -> AnswerStep {
        let (Presentation::Open { scroll, mode, .. }, Some(question)) =
            (&mut self.presentation, self.waiting.front_mut())
        else {
            return AnswerStep::Pass;
        };
        let action = match input {
            TerminalInput::Key(key) => keymap.action(*key),
            TerminalInput::Paste(_) | TerminalInput::Focus(_) => None,
        };
        match action {
            Some(KeyAction::Interrupt | KeyAction::Question) => {
                return match mode {
                    Mode::Rule { .. } | Mode::Objecting(_) => {
                        *mode = Mode::Choosing(Choice::No);
                        AnswerStep::Stay
                    }
                    Mode::Choosing(_) | Mode::Form => AnswerStep::Leave,
                };
            }
            // These keys always apply to the program.
            Some(
                KeyAction::Cancel
                | KeyAction::Quit
                | KeyAction::Suspend
                | KeyAction::Repaint
                | KeyAction::Transcript,
            ) => {
                return AnswerStep::Pass;
            }
            Some(KeyAction::PageUp) => {
                *scroll = scroll.saturating_sub(10);
                return AnswerStep::Stay;
            }
            Some(KeyAction::PageDown) => {
                *scroll = scroll.saturating_add(10);
                return AnswerStep::Stay;
            }
            _ => {}
        }
        match mode {
            Mode::Form => match question.form.as_mut().and_then(|form| form.input(input, action)) {
                Some(answers) => {
                    AnswerStep::Give(question.with_answers(answers), None, "answered".to_owned())
                }
                None => AnswerStep::Stay,
            },
            Mode::Rule { editor, always } => {
                if action != Some(KeyAction::Submit) {
                    crate::app::edit(editor, input, action);
                    return AnswerStep::Stay;
                }
                let rule = editor.text().trim().to_owned();
                if rule.is_empty() {
                    return AnswerStep::Stay;
                }
                let words = format!("{}: {rule}", if *always { "always" } else { "yes, this session" });
                AnswerStep::Give(allow_with(&rule), always.then_some(rule), words)
            }
            Mode::Objecting(editor) => {
                if action != Some(KeyAction::Submit) {
                    crate::app::edit(editor, input, action);
                    return AnswerStep::Stay;
                }
                let message = editor.take();
                let words = format!("no: {}", clean_line(&message));
                AnswerStep::Give(json!({"behavior": "deny", "message": message}), None, words)
            }
            Mode::Choosing(selected) => {
                let chosen = match (input, action) {
                    (_, Some(KeyAction::Submit)) => *selected,
                    (_, Some(KeyAction::Up)) => {
                        *scroll = scroll.saturating_sub(1);
                        return AnswerStep::Stay;
                    }
                    (_, Some(KeyAction::Down)) => {
                        *scroll = scroll.saturating_add(1);
                        return AnswerStep::Stay;
                    }
                    (_, Some(KeyAction::Left | KeyAction::Right | KeyAction::Complete)) => {
                        let choices = question.choices();
                        let step = if action == Some(KeyAction::Left) { choices.len() - 1 } else { 1 };
                        let at = choices.iter().position(|choice| choice == selected).unwrap_or_default();
                        *selected = choices[(at + step) % choices.len()];
                        return AnswerStep::Stay;
                    }
                    (TerminalInput::Key(key), None) if !key.ctrl && !key.alt => {
                        if key.code == KeyCode::Char('v') {
                            return AnswerStep::Show(question.subject.clone());
                        }
                        let known = |choice: &Choice| key.code == KeyCode::Char(choice.key());
                        match question.choices().iter().copied().find(known) {
                            Some(choice) => choice,
                            None => return AnswerStep::Stay,
                        }
                    }
                    _ => return AnswerStep::Stay,
                };
                let rule = question.rule.clone().unwrap_or_default();
                match chosen {
                    Choice::Once => {
                        let words = question.label(chosen).to_owned();
                        AnswerStep::Give(json!({"behavior": "allow"}), None, words)
                    }
                    Choice::No => {
                        let words = question.label(chosen).to_owned();
                        AnswerStep::Give(json!({"behavior": "deny"}), None, words)
                    }
                    Choice::Session if !rule.is_empty() => {
                        AnswerStep::Give(allow_with(&rule), None, format!("yes, this session: {rule}"))
                    }
                    Choice::Session | Choice::Always => {
                        let mut editor = Editor::default();
                        editor.set(&rule);
                        *mode = Mode::Rule { editor, always: chosen == Choice::Always };
                        AnswerStep::Stay
                    }
                    Choice::Object => {
                        *mode = Mode::Objecting(Editor::default());
                        AnswerStep::Stay
                    }
                }
            }
        }
    }
}

enum AnswerStep {
    Stay,
    Show(Vec<Rendered>),
    Leave,
    Pass,
    Give(Value, Option<String>, String),
}

impl QuestionView {
    fn has_request_id(&self, request_id: &str) -> bool {
        self.asked.as_ref().is_some_and(|(asked, _)| **asked == *request_id)
    }

    /// The possible answers.
    fn choices(&self) -> &'static [Choice] {
        match self.asked {
            None => &Choice::PROGRAM,
            Some(_) if self.is_plan => &Choice::PLAN,
            Some(_) => &Choice::ALL,
        }
    }

    /// What an answer means to this question.
    fn label(&self, choice: Choice) -> &'static str {
        match choice {
            Choice::Once if self.is_plan => "yes, go on",
            Choice::No if self.is_plan => "no, plan on",
            Choice::Once if self.asked.is_none() => "yes",
            other => other.label(),
        }
    }

    /// Allows the call, with the user's answers added to its arguments.
    fn with_answers(&self, answers: Value) -> Value {
        let arguments = self.asked.as_ref().map_or("", |(_, call)| call.arguments.as_str());
        let mut given: Value = serde_json::from_str(arguments).unwrap_or_default();
        given["answers"] = answers;
        json!({"behavior": "allow", "updatedInput": given})
    }
}

/// Allows the call, and future calls that match `rule`.
fn allow_with(rule: &str) -> Value {
    json!({
        "behavior": "allow",
        "updatedPermissions": [
            {"type": "addRules", "behavior": "allow", "destination": "session", "rules": [rule]},
        ],
    })
}
