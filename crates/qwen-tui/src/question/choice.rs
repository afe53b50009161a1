//! A question and its possible answers.

use std::sync::Arc;

use qwen_events::{Confirmation, ToolCall};
use serde_json::{Value, json};

use super::form::Form;
use crate::markdown::Rendered;
use crate::text::{StyledLine, visible_line};
use crate::view::{description, is_command, offer_reading_rule, subject};

/// A question about a call.
#[derive(Debug)]
pub struct QuestionView {
    /// The request and the call that the session asks about; none for a question of the program itself.
    pub(super) asked: Option<(Arc<str>, Arc<ToolCall>)>,
    pub title: String,
    /// The complete effect of the call.
    pub subject: Vec<Rendered>,
    /// The model's description of the call; may be empty.
    pub(super) description: String,
    /// The reason for the question.
    pub reason: String,
    /// True if a sub-agent asks.
    pub from_agent: bool,
    /// The rule that would answer it in the future.
    pub(super) rule: Option<String>,
    /// True if the model asks for approval of its plan.
    pub(super) is_plan: bool,
    pub(super) form: Option<Form>,
    /// True from the moment when the user closes it until the user opens it again.
    pub(super) is_closed_by_user: bool,
}

/// The possible answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Once,
    Session,
    Always,
    No,
    Object,
    /// Change the command, then run it.
    Change,
}

impl Choice {
    const ALL: [Self; 5] = [Self::Once, Self::Session, Self::Always, Self::No, Self::Object];

    /// The answers to a command, which can be changed.
    const COMMAND: [Self; 6] =
        [Self::Once, Self::Session, Self::Always, Self::No, Self::Object, Self::Change];

    /// The answers to a question of the program itself.
    const PROGRAM: [Self; 2] = [Self::Once, Self::No];

    /// The answers to a plan, for which there is no rule.
    const PLAN: [Self; 3] = [Self::Once, Self::No, Self::Object];

    pub(super) fn key(self) -> char {
        match self {
            Self::Once => 'y',
            Self::Session => 's',
            Self::Always => 'a',
            Self::No => 'n',
            Self::Object => 'e',
            Self::Change => 'c',
        }
    }

    /// True if the answer lets the call run, now or after a further step.
    pub(super) fn approves(self) -> bool {
        match self {
            Self::Once | Self::Session | Self::Always | Self::Change => true,
            Self::No | Self::Object => false,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Once => "yes, once",
            Self::Session => "yes, this session",
            Self::Always => "always",
            Self::No => "no",
            Self::Object => "no, with a message",
            Self::Change => "change it",
        }
    }
}

impl QuestionView {
    pub(super) fn new(
        request_id: Arc<str>,
        call: Arc<ToolCall>,
        confirmation: &Confirmation,
        reason: &str,
        from_agent: bool,
    ) -> Self {
        let (title, lines) = subject(&call, confirmation);
        let form = Form::read(&call);
        Self {
            title: if form.is_some() { "The model asks".to_owned() } else { title },
            subject: if form.is_some() { Vec::new() } else { lines },
            description: description(&call).unwrap_or_default(),
            reason: visible_line(reason),
            from_agent,
            rule: qwen_events::offer_rule(&call, confirmation)
                .or_else(|| offer_reading_rule(&call))
                .filter(|_| form.is_none()),
            is_plan: matches!(confirmation, Confirmation::Plan { .. }),
            asked: Some((request_id, call)),
            form,
            is_closed_by_user: false,
        }
    }

    pub(super) fn of_program(title: &str, reason: &str, subject: &[String]) -> Self {
        let lines = subject.iter().map(|line| Rendered::logical(StyledLine::plain(visible_line(line))));
        Self {
            asked: None,
            title: visible_line(title),
            subject: lines.collect(),
            description: String::new(),
            reason: visible_line(reason),
            from_agent: false,
            rule: None,
            is_plan: false,
            form: None,
            is_closed_by_user: false,
        }
    }

    /// The reason for the question and the model's description of the call, one paragraph each.
    pub(super) fn explanation(&self) -> Vec<String> {
        let who = if self.from_agent { "A sub-agent asks: " } else { "" };
        // A form needs no reason: it is a question of the model.
        let reason = if self.form.is_some() { String::new() } else { format!("{who}{}", self.reason) };
        let described = match &*self.description {
            "" => String::new(),
            text => format!("The model describes it as: {text}"),
        };
        [reason, described].into_iter().filter(|text| !text.is_empty()).collect()
    }

    /// True for a question of the program itself.
    pub(super) fn is_of_program(&self) -> bool {
        self.asked.is_none()
    }

    pub(super) fn has_request_id(&self, request_id: &str) -> bool {
        self.asked.as_ref().is_some_and(|(asked, _)| **asked == *request_id)
    }

    pub(super) fn choices(&self) -> &'static [Choice] {
        match self.asked {
            None => &Choice::PROGRAM,
            Some(_) if self.is_plan => &Choice::PLAN,
            Some(_) if self.command().is_some() => &Choice::COMMAND,
            Some(_) => &Choice::ALL,
        }
    }

    /// The meaning of an answer to this question.
    pub(super) fn label(&self, choice: Choice) -> &'static str {
        match choice {
            Choice::Once if self.is_plan => "yes, start",
            Choice::No if self.is_plan => "no, keep planning",
            Choice::Once if self.asked.is_none() => "yes",
            other => other.label(),
        }
    }

    /// The command as the model wrote it, if the call runs one and no part of it is hidden from the user.
    pub(super) fn command(&self) -> Option<String> {
        let (_, call) = self.asked.as_ref().filter(|(_, call)| is_command(call))?;
        let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
        Some(arguments.get("command")?.as_str()?.to_owned())
    }

    /// Allows the call with another command.
    pub(super) fn with_command(&self, command: &str) -> Value {
        let arguments = self.asked.as_ref().map_or("", |(_, call)| call.arguments.as_str());
        let mut given: Value = serde_json::from_str(arguments).unwrap_or_default();
        given["command"] = command.into();
        json!({"behavior": "allow", "updatedInput": given})
    }

    /// Allows the call, with the user's answers added to its arguments.
    pub(super) fn with_answers(&self, answers: Value) -> Value {
        let arguments = self.asked.as_ref().map_or("", |(_, call)| call.arguments.as_str());
        let mut given: Value = serde_json::from_str(arguments).unwrap_or_default();
        given["answers"] = answers;
        json!({"behavior": "allow", "updatedInput": given})
    }
}

/// Allows the call, and future calls that match `rule`.
pub(super) fn allow_with(rule: &str) -> Value {
    json!({
        "behavior": "allow",
        "updatedPermissions": [
            {"type": "addRules", "behavior": "allow", "destination": "session", "rules": [rule]},
        ],
    })
}
