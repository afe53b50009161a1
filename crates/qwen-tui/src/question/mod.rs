//! Open questions, oldest first.
//!
//! A question arrives as a banner. It opens by itself only while the composer is empty and idle, and it takes
//! an answer only from a key that was pressed after the frame that shows it had been written. A question that
//! the user closes stays closed until the user opens it. Typing can therefore never answer a question that
//! the user has not read.

mod choice;
mod form;
mod keys;
mod lines;
mod panel;
mod visibility;

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::{CallId, Command, Confirmation, ControlReply, Json, ToolCall};
use serde_json::Value;

pub use self::choice::QuestionView;
use self::keys::Mode;
use self::visibility::{OpenQuestion, Opener};
use crate::Millis;

/// A question does not open by itself within this time after a key.
const QUIET: Millis = 700;

/// Whether the oldest question is shown as one line or in full.
#[derive(Debug)]
enum Presentation {
    Banner,
    Open(Box<OpenQuestion>),
}

/// The result of an input.
#[derive(Debug)]
pub enum QuestionOutcome {
    /// The question does not handle the input.
    Passed,
    /// These characters were typed for the composer. The input that follows them is passed, too.
    Typed(String),
    /// The question handled the input.
    Taken,
    /// The question handled the input and has something to report.
    Noticed(&'static str),
    /// The subject is shown on the whole screen.
    Shown,
    /// The question is answered.
    Answered {
        /// The answer for the session.
        command: Command,
        /// A rule to write to the settings.
        save_rule: Option<String>,
        /// A short form of the answer, for the transcript.
        words: String,
        /// The call that the user declined.
        declined: Option<CallId>,
    },
    /// A question of the program itself is answered.
    Decided {
        is_yes: bool,
        /// A short form of the answer, for the transcript.
        words: String,
    },
}

/// The questions that wait for an answer.
#[derive(Debug)]
pub struct Questions {
    waiting: VecDeque<QuestionView>,
    presentation: Presentation,
    /// True if the frame that was written last shows the oldest question. It may have been closed and opened again
    /// since then.
    is_on_screen: bool,
    /// True if the frame that was drawn last shows it.
    is_drawn: bool,
    check_rule: fn(&str) -> Result<(), String>,
}

impl Questions {
    /// No questions. `check_rule` judges the rules that the user edits.
    pub fn new(check_rule: fn(&str) -> Result<(), String>) -> Self {
        Self {
            waiting: VecDeque::new(),
            presentation: Presentation::Banner,
            is_on_screen: false,
            is_drawn: false,
            check_rule,
        }
    }

    /// Adds a question after the others.
    pub fn add(
        &mut self,
        request_id: Arc<str>,
        call: Arc<ToolCall>,
        confirmation: &Confirmation,
        reason: &str,
        from_agent: bool,
    ) {
        self.waiting.push_back(QuestionView::new(request_id, call, confirmation, reason, from_agent));
    }

    /// Adds a question of the program itself, which is answered with yes or no.
    pub fn add_own(&mut self, title: &str, reason: &str, subject: &[String]) {
        self.waiting.push_back(QuestionView::of_program(title, reason, subject));
    }

    /// Removes a withdrawn question. Returns whether it was open.
    pub fn withdraw(&mut self, request_id: &str) -> bool {
        let Some(at) = self.waiting.iter().position(|question| question.has_request_id(request_id)) else {
            return false;
        };
        self.waiting.remove(at);
        if at == 0 {
            self.presentation = Presentation::Banner;
            (self.is_on_screen, self.is_drawn) = (false, false);
        }
        true
    }

    /// Removes those of a turn that has ended. Sub-agents in the background continue without the turn, so
    /// their questions stay if there are such sub-agents.
    pub fn end_turn(&mut self, has_background_agents: bool) {
        let stays = |question: &QuestionView| {
            question.is_of_program() || (question.from_agent && has_background_agents)
        };
        if self.waiting.front().is_some_and(|question| !stays(question)) {
            self.presentation = Presentation::Banner;
            (self.is_on_screen, self.is_drawn) = (false, false);
        }
        self.waiting.retain(stays);
    }

    /// The number of open questions.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the oldest open question.
    pub fn first(&self) -> Option<&QuestionView> {
        self.waiting.front()
    }

    /// True if the oldest one is fully shown.
    pub fn is_open(&self) -> bool {
        matches!(self.presentation, Presentation::Open(_))
    }

    /// Opens the oldest question if the composer is empty and idle. Returns when to try again.
    pub fn open_when_idle(
        &mut self,
        now: Millis,
        last_key: Option<Millis>,
        is_composing: bool,
    ) -> Option<Millis> {
        if !self.may_open_by_itself() || is_composing {
            return None;
        }
        match last_key.map(|last| last + QUIET).filter(|quiet| *quiet > now) {
            Some(quiet) => Some(quiet),
            None => {
                self.open(Opener::Program);
                None
            }
        }
    }

    /// Opens the question after the one that was just answered.
    pub fn open_next(&mut self) {
        if self.may_open_by_itself() {
            self.open(Opener::Program);
        }
    }

    /// A question of the program itself waits until the user turns to it, and so does one that the user
    /// closed.
    fn may_open_by_itself(&self) -> bool {
        let waits = |question: &QuestionView| !question.is_of_program() && !question.is_closed_by_user;
        !self.is_open() && self.waiting.front().is_some_and(waits)
    }

    /// Switches between the oldest question and the composer.
    pub fn toggle(&mut self) {
        if self.is_open() {
            self.close_by_user();
        } else if !self.waiting.is_empty() {
            self.open(Opener::User);
        }
    }

    fn open(&mut self, opener: Opener) {
        let Some(question) = self.waiting.front_mut() else { return };
        question.is_closed_by_user = false;
        let mode = if question.form.is_some() { Mode::Form } else { Mode::choosing() };
        self.presentation = Presentation::Open(Box::new(OpenQuestion::new(opener, mode)));
    }

    fn close_by_user(&mut self) {
        self.presentation = Presentation::Banner;
        if let Some(question) = self.waiting.front_mut() {
            question.is_closed_by_user = true;
        }
    }

    /// True if the open question is not on the screen yet.
    pub fn awaits_frame(&self) -> bool {
        matches!(&self.presentation, Presentation::Open(open) if open.awaits_frame())
    }

    /// Records that the last frame was written. What it shows is visible from now on.
    pub fn frame_written(&mut self, now: Millis) {
        self.is_on_screen = self.is_drawn;
        if let Presentation::Open(open) = &mut self.presentation {
            open.frame_written(now);
        }
    }

    /// Records that a frame begins, which does not contain the question yet.
    pub fn begin_frame(&mut self) {
        self.is_drawn = false;
    }

    /// Records that something else is on the screen.
    pub fn hide(&mut self) {
        self.is_on_screen = false;
        if let Presentation::Open(open) = &mut self.presentation {
            open.hide();
        }
    }

    /// Returns when [`Questions::settle`] has something to do.
    pub fn deadline(&self) -> Option<Millis> {
        match &self.presentation {
            Presentation::Open(open) => open.deadline(),
            Presentation::Banner => None,
        }
    }

    fn answer_with(&mut self, reply: &Value, save_rule: Option<String>, words: &str) -> QuestionOutcome {
        self.presentation = Presentation::Banner;
        (self.is_on_screen, self.is_drawn) = (false, false);
        let Some(question) = self.waiting.pop_front() else { return QuestionOutcome::Taken };
        let words = format!("{} {words}", question.title);
        let Some((request_id, call)) = question.asked else {
            return QuestionOutcome::Decided { is_yes: reply["behavior"] == "allow", words };
        };
        let answer = reply["behavior"].as_str().unwrap_or_default();
        let reply = ControlReply { request_id, nested: false, result: Ok(Json::trusted(reply.to_string())) };
        let command = Command::Reply { reply: Box::new(reply), session_id: None };
        let declined = (answer != "allow").then(|| call.id.clone());
        QuestionOutcome::Answered { command, save_rule, words, declined }
    }
}
