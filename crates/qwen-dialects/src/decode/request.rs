//! Requests outside the conversation: suggestions, heartbeats, cancel.

use qwen_events::{Command, HintRequest, HintTrigger, PromptId};

use super::Result;
use super::error::invalid;
use super::field::Object;
use super::options::{name, session_id};

fn prompt_id(object: &Object<'_>) -> Result<Option<PromptId>> {
    Ok(name(object, "prompt_id")?.map(PromptId::new))
}

/// Reads `command_hint_request`.
pub(super) fn hint(object: &Object<'_>) -> Result<Command> {
    let text = object.need("text", "what is typed so far")?.string()?;
    let trigger = match object.get("trigger") {
        Some(value) => match &*value.text()? {
            "slash" | "/" => HintTrigger::Slash,
            "at" | "@" => HintTrigger::At,
            other => return Err(invalid(value.path(), other, "`slash` or `at`")),
        },
        None if text.starts_with('/') => HintTrigger::Slash,
        None => HintTrigger::At,
    };
    let cwd = match object.get("context") {
        Some(context) => context.object()?.string("cwd")?,
        None => None,
    };
    Ok(Command::Hint(Box::new(HintRequest {
        session_id: session_id(object)?,
        prompt_id: prompt_id(object)?,
        trigger,
        text,
        cursor: object.count("cursor")?,
        cwd,
    })))
}

/// Reads `command_hint_cancel`.
pub(super) fn hint_cancel(object: &Object<'_>) -> Result<Command> {
    Ok(Command::HintCancel { session_id: session_id(object)?, prompt_id: prompt_id(object)? })
}

/// Reads `heartbeat_request`.
pub(super) fn heartbeat(object: &Object<'_>) -> Result<Command> {
    Ok(Command::Heartbeat { session_id: session_id(object)?, interval_ms: object.count("interval_ms")? })
}

/// Reads `control/cancel`.
pub(super) fn cancel(object: &Object<'_>) -> Result<Command> {
    Ok(Command::Cancel {
        session_id: session_id(object)?,
        prompt_id: prompt_id(object)?,
        reason: object.string("reason")?.unwrap_or_else(|| "escape".into()),
        request_id: name(object, "request_id")?,
    })
}
