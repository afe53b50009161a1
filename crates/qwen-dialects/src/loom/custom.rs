//! The content of `custom` events, which cover what spec 2 has no event for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use qwen_events::{
    CommandCall, CommandKind, CommandResult, CommandResultBody, ConsoleLevel, Level, LogScope, SessionEvent,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::error_object::ErrorObject;
use crate::payload::Payload;

/// The value of a `custom` event.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CustomValue<'a> {
    /// A value defined by this program, identified by `kind`.
    Known(Box<Custom<'a>>),
    /// An event whose kind has no type here.
    Other(Payload<'a>),
}

/// A `custom` value defined by this program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Custom<'a> {
    /// A thought of the model.
    Thought {
        /// The subject of the thought.
        subject: Cow<'a, str>,
        /// The text of the thought.
        description: Cow<'a, str>,
    },
    /// A notice about the session.
    SessionEvent {
        /// The name of the notice.
        event: Cow<'a, str>,
        /// A message for users.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Cow<'a, str>>,
        /// Figures that belong to the notice.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metrics: BTreeMap<Cow<'a, str>, u64>,
    },
    /// A log message of the program.
    Console {
        /// `debug`, `info`, `warn` or `error`.
        level: Cow<'a, str>,
        /// `system`, `tool` or `debug`.
        log_scope: Cow<'a, str>,
        /// The text of the message.
        text: Cow<'a, str>,
    },
    /// An error of the turn or of a line.
    Error(ErrorObject<'a>),
    /// An event of a sub-agent.
    Subagent {
        /// The id of the tool call that started the sub-agent.
        parent: Cow<'a, str>,
        /// The event, with the sub-agent's `node_id`.
        event: Payload<'a>,
    },
    /// A slash command ended.
    Command {
        /// The command that the user entered.
        command: Command<'a>,
        /// The outcome of the command.
        result: CommandOutcome<'a>,
    },
    /// The run did not complete; the reply follows.
    RunEnd {
        /// The status of the run.
        status: Cow<'a, str>,
    },
}

/// A command with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Command<'a> {
    /// `slash`, `at` or `help`.
    pub kind: Cow<'a, str>,
    /// The command's name followed by the names of its subcommands.
    pub path: Vec<Cow<'a, str>>,
    /// The arguments as typed.
    pub args: Cow<'a, str>,
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CommandOutcome<'a> {
    /// A message for users.
    Message {
        /// `info`, `warning` or `error`.
        level: Cow<'a, str>,
        /// The text of the message.
        content: Cow<'a, str>,
    },
    /// A dialog that the host should show.
    Dialog {
        /// The name of the dialog.
        name: Cow<'a, str>,
        /// The content of the dialog.
        data: Payload<'a>,
    },
    /// A tool was run.
    Tool {
        /// The name of the tool.
        name: Cow<'a, str>,
        /// The arguments of the call, a JSON object.
        arguments: Payload<'a>,
    },
    /// A prompt was submitted to the model; its turn follows.
    SubmitPrompt {
        /// The prompt that the command submits.
        content: Cow<'a, str>,
    },
}

impl<'de> Deserialize<'de> for CustomValue<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A value that merely looks like one of ours must not lose what we do not know, so it is ours only if
        // writing it again gives it back whole.
        let value = Value::deserialize(deserializer)?;
        Ok(match Custom::deserialize(&value) {
            Ok(custom) if serde_json::to_value(&custom).is_ok_and(|again| again == value) => custom.into(),
            _ => Self::Other(Payload::from_value(&value)),
        })
    }
}

impl<'a> From<Custom<'a>> for CustomValue<'a> {
    fn from(custom: Custom<'a>) -> Self {
        Self::Known(Box::new(custom))
    }
}

/// A whole thought; none if there is nothing in it. Some models open one with a headline in bold; where there is
/// none, the beginning of the first line says what it is about.
pub(super) fn thought(text: &str) -> Option<Custom<'_>> {
    const LONGEST_SUBJECT: usize = 80;
    let text = text.trim();
    let headline = text.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    let (subject, description): (Cow<'_, str>, _) = match headline {
        Some((subject, rest)) if !subject.contains('\n') => (subject.trim().into(), rest.trim()),
        _ => {
            let line = text.lines().next()?;
            let subject = match line.char_indices().nth(LONGEST_SUBJECT) {
                Some((cut, _)) => format!("{}…", &line[..cut]).into(),
                None => line.trim_end().into(),
            };
            (subject, text)
        }
    };
    Some(Custom::Thought { subject, description: description.into() })
}

pub(super) fn session_event(notice: &SessionEvent) -> Custom<'_> {
    let mut metrics = BTreeMap::new();
    let mut measure = |name: &'static str, value: u64| metrics.insert(Cow::Borrowed(name), value);
    let (event, message): (&str, Option<Cow<'_, str>>) = match notice {
        SessionEvent::Finished => ("Finished", None),
        SessionEvent::Compressed { original_tokens, new_tokens, .. } => {
            measure("original_tokens", *original_tokens);
            measure("compressed_tokens", *new_tokens);
            ("ChatCompressed", None)
        }
        SessionEvent::MaxTokens { message } => ("MAX_TOKENS", Some(message.as_ref().into())),
        SessionEvent::MaxTurns { limit } => {
            measure("limit", *limit);
            ("MaxSessionTurns", None)
        }
        SessionEvent::Cancelled => ("USER_CANCELLED", None),
        SessionEvent::Retry { attempt, max_retries, delay_ms, status, error } => {
            measure("attempt", (*attempt).into());
            measure("max_retries", (*max_retries).into());
            measure("delay_ms", *delay_ms);
            if let Some(status) = status {
                measure("status", (*status).into());
            }
            ("Retry", Some(error.as_ref().into()))
        }
        SessionEvent::Waiting { reason, delay_ms, until, status } => {
            measure("delay_ms", *delay_ms);
            measure("until", *until);
            if let Some(status) = status {
                measure("status", (*status).into());
            }
            ("Waiting", Some(reason.as_ref().into()))
        }
        SessionEvent::ModelFallback { from, to, reason } => {
            ("ModelFallback", Some(format!("{from} failed and {to} goes on: {reason}").into()))
        }
        SessionEvent::LoopDetected { message } => ("LoopDetected", Some(message.as_ref().into())),
        SessionEvent::ModeChanged { mode } => ("ModeChanged", Some(mode.as_ref().into())),
        SessionEvent::Steered { prompt_id, .. } => ("Steered", Some(prompt_id.as_str().into())),
    };
    Custom::SessionEvent { event: event.into(), message, metrics }
}

pub(super) fn console(level: ConsoleLevel, scope: LogScope, text: &str) -> Custom<'_> {
    Custom::Console {
        level: match level {
            ConsoleLevel::Debug => "debug",
            ConsoleLevel::Info => "info",
            ConsoleLevel::Warn => "warn",
            ConsoleLevel::Error => "error",
        }
        .into(),
        log_scope: match scope {
            LogScope::System => "system",
            LogScope::Tool => "tool",
            LogScope::Debug => "debug",
        }
        .into(),
        text: text.into(),
    }
}

pub(super) fn command(result: &CommandResult) -> Custom<'_> {
    let CommandCall { kind, path, args } = &result.command;
    Custom::Command {
        command: Command {
            kind: match kind {
                CommandKind::Slash => "slash",
                CommandKind::At => "at",
                CommandKind::Help => "help",
            }
            .into(),
            path: path.iter().map(|name| Cow::Borrowed(name.as_ref())).collect(),
            args: args.as_ref().into(),
        },
        result: match &result.body {
            CommandResultBody::Message { level, content } => CommandOutcome::Message {
                level: match level {
                    Level::Info => "info",
                    Level::Warning => "warning",
                    Level::Error => "error",
                }
                .into(),
                content: content.as_ref().into(),
            },
            CommandResultBody::Dialog { name, data } => {
                CommandOutcome::Dialog { name: name.as_ref().into(), data: Payload::new(data) }
            }
            CommandResultBody::Tool { name, arguments } => {
                CommandOutcome::Tool { name: name.as_ref().into(), arguments: Payload::new(arguments) }
            }
            CommandResultBody::SubmitPrompt { content } => {
                CommandOutcome::SubmitPrompt { content: content.as_ref().into() }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_says_what_it_is_about() {
        let long = "x".repeat(81);
        let cut = format!("{}…", "x".repeat(80));
        for (text, subject, description) in [
            ("**Reading files** I look at main.rs.", "Reading files", "I look at main.rs."),
            ("just thinking\n", "just thinking", "just thinking"),
            ("first\nsecond", "first", "first\nsecond"),
            ("**bold\nover lines** x", "**bold", "**bold\nover lines** x"),
            ("**never closed", "**never closed", "**never closed"),
            (&long, &cut, &long),
        ] {
            let expected = Custom::Thought { subject: subject.into(), description: description.into() };
            assert_eq!(thought(text), Some(expected), "{text}");
        }
        assert_eq!(thought(" \n"), None);
    }
}
