//! Readers that turn lines into viewer events, one per dialect.

mod acp;
mod claude;
mod claude_lite;
mod core;
mod loom;
mod qwen;

use serde_json::Value;

use super::event::{ViewEvent, ViewLine};
use crate::check::syntax::Object;
use crate::dialect::Dialect;

/// Reads the lines of one dialect.
pub(super) trait Reader: Send {
    /// The events of a line; none if it is not a line of the dialect.
    fn read(&mut self, object: &Object<'_>) -> Option<Vec<ViewLine>>;
}

/// The reader for `dialect`.
pub(super) fn reader(dialect: Dialect) -> Box<dyn Reader> {
    match dialect {
        Dialect::Qwen => Box::new(qwen::QwenReader::default()),
        Dialect::Claude => Box::new(claude::ClaudeReader::default()),
        Dialect::ClaudeLite => Box::new(claude_lite::LiteReader::default()),
        Dialect::Loom => Box::new(loom::LoomReader { export: false }),
        Dialect::LoomExport => Box::new(loom::LoomReader { export: true }),
        Dialect::Core => Box::new(core::CoreReader),
        Dialect::Acp => Box::new(acp::AcpReader::default()),
    }
}

/// Reads a line about the connection in a dialect whose own lines have no session: it is assigned to
/// `session`.
fn channel_of(session: Option<&str>, object: &Object<'_>) -> Option<Vec<ViewLine>> {
    let mut lines = channel(object)?;
    for line in &mut lines {
        line.session = session.map(Into::into);
    }
    Some(lines)
}

/// Reads a line about the connection: the flat control channel and `result/*`.
pub(super) fn channel(object: &Object<'_>) -> Option<Vec<ViewLine>> {
    let seen = match object.kind()? {
        "control_request" => question(object),
        "control_response" | "control_cancel_request" | "result/heartbeat" | "result/command_hint" => {
            ViewEvent::Nothing
        }
        "result/cancel" => {
            let message = object.str("message").unwrap_or_default();
            ViewEvent::Notice(format!("cancel: {} {message}", object.str("status").unwrap_or_default()))
        }
        "result/command" => command(object.get("result")?),
        _ => return None,
    };
    Some(vec![ViewLine { session: object.str("session_id").map(Into::into), ..ViewLine::new(seen) }])
}

fn question(object: &Object<'_>) -> ViewEvent {
    let tool = object.get("tool");
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = object.get("metadata");
    match object.str("subtype") {
        Some("can_use_tool") => ViewEvent::Approval {
            id: text(metadata.and_then(|metadata| metadata.get("tool_call_id"))),
            name: text(tool.and_then(|tool| tool.get("name"))),
            words: tool.and_then(|tool| tool.get("arguments")).map(Value::to_string).unwrap_or_default(),
        },
        other => ViewEvent::Notice(format!("asks the host: {}", other.unwrap_or("something"))),
    }
}

fn command(result: &Value) -> ViewEvent {
    let text = |field: &str| result.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    match result.get("level").and_then(Value::as_str) {
        Some("error") => ViewEvent::Error(text("content")),
        _ if text("content").is_empty() => ViewEvent::Notice(format!("command: {}", text("type"))),
        _ => ViewEvent::Notice(text("content")),
    }
}
