//! The four `x-qwen-*` records.

use super::super::report::Report;
use super::super::restart::moves_turn;
use super::super::syntax::{Object, Violation, word};
use crate::qwen::wire::record::{SessionEventRecord, TerminalRecord, ThoughtRecord, ToolDisplayRecord};

pub(super) enum Record<'a> {
    Terminal(TerminalRecord<'a>),
    ToolDisplay(ToolDisplayRecord<'a>),
    Thought(ThoughtRecord<'a>),
    SessionEvent(SessionEventRecord<'a>),
}

impl<'a> Record<'a> {
    pub(super) fn read(object: &'a Object<'_>, kind: &str) -> Result<Self, Violation> {
        Ok(match kind {
            "x-qwen-terminal" => {
                let record: TerminalRecord<'_> = object.read()?;
                word("channel", &record.channel, &["stdout", "stderr"])?;
                word("source", &record.source, &["assistant", "tool", "console", "system"])?;
                if let Some(level) = &record.console_level {
                    word("console_level", level, &["debug", "info", "log", "warn", "error"])?;
                }
                if let Some(scope) = &record.log_scope {
                    word("log_scope", scope, &["system", "tool", "debug"])?;
                }
                Self::Terminal(record)
            }
            "x-qwen-tool-display" => {
                let record: ToolDisplayRecord<'_> = object.read()?;
                let words = ["pending", "confirming", "executing", "success", "error", "canceled"];
                word("status", &record.status, &words)?;
                Self::ToolDisplay(record)
            }
            "x-qwen-thought" => Self::Thought(object.read()?),
            "x-qwen-session-event" => Self::SessionEvent(object.read()?),
            _ => return Err(object.unknown_type()),
        })
    }

    pub(super) fn session_id(&self) -> Option<&str> {
        match self {
            Self::Terminal(record) => record.session_id.as_deref(),
            Self::ToolDisplay(record) => record.session_id.as_deref(),
            Self::Thought(record) => record.session_id.as_deref(),
            Self::SessionEvent(record) => record.session_id.as_deref(),
        }
    }

    pub(super) fn prompt_id(&self) -> Option<&str> {
        match self {
            Self::Terminal(record) => record.prompt_id.as_deref(),
            Self::ToolDisplay(record) => record.prompt_id.as_deref(),
            Self::Thought(record) => record.prompt_id.as_deref(),
            Self::SessionEvent(record) => record.prompt_id.as_deref(),
        }
    }

    /// True if it reports a prompt that joined the running turn.
    pub(super) fn is_steered(&self) -> bool {
        matches!(self, Self::SessionEvent(record) if record.event == "Steered")
    }

    /// True if it announces that the turn continues in a fork of the session.
    pub(super) fn moves_turn(&self) -> bool {
        matches!(self, Self::SessionEvent(record) if record.value.is_some_and(|value| moves_turn(value.get())))
    }

    /// True if it may concern the session rather than a turn.
    pub(super) fn is_free(&self) -> bool {
        match self {
            Self::Terminal(record) => record.source != "tool",
            Self::SessionEvent(_) => true,
            Self::ToolDisplay(_) | Self::Thought(_) => false,
        }
    }
}

/// Checks requirements that apply to a record in a stream but not to a printed example.
pub(super) fn judge(record: &Record<'_>, report: &mut Report) {
    let Record::Terminal(record) = record else { return };
    let length = record.text.chars().count() as u64;
    let outside = record.ansi.iter().any(|code| code.offset > length)
        || record.spans.iter().any(|span| span.start > span.end || span.end > length);
    if outside {
        report.error("offsets", format!("an offset lies outside of `text`, which has {length} characters"));
    }
    if record.text.contains(['\u{1b}', '\u{9b}']) {
        report.error(
            "terminal-text",
            "`text` holds an escape sequence; those are removed from it and listed in `ansi`",
        );
    }
    if record.exit_code.is_some() && record.source != "system" {
        report.error("exit-code", "an `exit_code` is reported by the system, at the end of a run");
    }
}
