//! The rules of `claude`.

mod partial;
mod session;
mod vendor;

use serde_json::Value;

use super::bounded::{Names, Sessions};
use super::report::Report;
use super::syntax::{Object, Violation};
use super::{Rules, channel};
use crate::claude::wire::Message;
use crate::claude::wire::control::{ControlRequest, Question};
use crate::claude::wire::message::{Block, Content};
use crate::claude::wire::result::{ResultLine, Subtype};
use crate::claude::wire::stream_event::StreamEvent;
use session::Session;

#[derive(Default)]
pub(super) struct ClaudeRules {
    sessions: Sessions<Session>,
    /// The session of the most recent line; lines without a session belong to it.
    last_session: Box<str>,
    uuids: Names,
}

/// The events that spec 4 shows unwrapped; in a stream they are always wrapped.
const STREAM_EVENTS: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

/// True for a `system` line with a subtype that no rule covers.
fn is_unknown_notice(object: &Object<'_>) -> bool {
    let Some(subtype) = object.str("subtype").filter(|_| object.kind() == Some("system")) else {
        return false;
    };
    let mismatch = object.read::<Message<'_>>().err();
    mismatch.is_some_and(|violation| violation.message.contains(&format!("unknown variant `{subtype}`")))
}

/// The lines that belong to a session.
const NAMES_SESSION: [&str; 5] = ["system", "assistant", "user", "stream_event", "result"];

/// True if a block of thinking lacks its signature.
fn unsigned_thinking(object: &Object<'_>) -> bool {
    let content = object.get("message").and_then(|message| message.get("content")).and_then(Value::as_array);
    content.into_iter().flatten().any(|block| {
        block.get("type").and_then(Value::as_str) == Some("thinking") && block.get("signature").is_none()
    })
}

fn read<'a>(object: &'a Object<'_>) -> Result<Option<Message<'a>>, Violation> {
    let nested = matches!(object.kind(), Some("control_request")) && object.has("request");
    if !nested && let Some(fits) = channel::read(object) {
        return fits.map(|()| None);
    }
    if object.kind().is_none() {
        return Err(object.unknown_type());
    }
    if vendor::is_unrelated_to_turn(object) || is_unknown_notice(object) {
        return Ok(None);
    }
    let message: Message<'_> = object.read()?;
    check_object_fields(&message)?;
    if let Message::Result(result) = &message {
        result_fields(result)?;
    }
    Ok(Some(message))
}

/// Checks fields that the wire types accept with any value and that must be objects.
fn check_object_fields(message: &Message<'_>) -> Result<(), Violation> {
    let all_objects = |blocks: &[Block<'_>]| blocks.iter().all(input_is_object);
    let fits = match message {
        Message::Assistant(line) => all_objects(&line.message.content),
        Message::User(line) => match &line.message.content {
            Content::Text(_) => true,
            Content::Blocks(blocks) => all_objects(blocks),
        },
        Message::StreamEvent(line) => match &line.event {
            StreamEvent::ContentBlockStart { content_block, .. } => input_is_object(content_block),
            _ => true,
        },
        Message::ControlRequest(ControlRequest { request: Question::CanUseTool(question), .. }) => {
            question.input.as_str().starts_with('{')
        }
        Message::Result(result) => {
            result.permission_denials.iter().all(|denial| denial.tool_input.as_str().starts_with('{'))
        }
        _ => true,
    };
    if fits { Ok(()) } else { Err(Violation::new("shape", "the input of a tool call is always an object")) }
}

fn input_is_object(block: &Block<'_>) -> bool {
    match block {
        Block::ToolUse { input, .. } => input.as_str().starts_with('{'),
        _ => true,
    }
}

/// Checks what SDKs require: an answer for `success`, and reasons for everything else.
fn result_fields(result: &ResultLine<'_>) -> Result<(), Violation> {
    match result.subtype {
        Subtype::Success if result.result.is_none() => {
            Err(Violation::new("shape", "a `result` of subtype `success` has the answer in `result`"))
        }
        Subtype::Success => Ok(()),
        _ if !result.is_error => {
            Err(Violation::new("shape", "a `result` that is not a success must set `is_error`"))
        }
        _ if result.errors.is_none() && result.error.is_none() => {
            Err(Violation::new("shape", "a `result` that is not a success must give the cause in `errors`"))
        }
        _ => Ok(()),
    }
}

impl Rules for ClaudeRules {
    fn shape(&self, object: &Object<'_>) -> Result<(), Violation> {
        let read_as = vendor::read_as(object);
        let object = read_as.as_ref().unwrap_or(object);
        if object.kind().is_some_and(|kind| STREAM_EVENTS.contains(&kind)) {
            return object.read::<StreamEvent<'_>>().map(|_| ());
        }
        read(object).map(|_| ())
    }

    fn line(&mut self, object: &Object<'_>, report: &mut Report) {
        let read_as = vendor::read_as(object);
        let message = match read(read_as.as_ref().unwrap_or(object)) {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(violation) => return report.violation(violation),
        };
        if !object.has("session_id") && NAMES_SESSION.contains(&object.kind().unwrap_or_default()) {
            report.error("envelope", "every line of a session has its `session_id`");
        }
        if object.kind() == Some("result") && !object.has("usage") {
            report.error("usage", "the `result` has the `usage` of its turn");
        }
        if object.kind() == Some("assistant") && unsigned_thinking(object) {
            report.error(
                "signature",
                "a block of thinking has a `signature`, empty where the provider gives none",
            );
        }
        if let Some(session) = object.str("session_id")
            && *self.last_session != *session
        {
            self.last_session = session.into();
        }
        // Qwen Code's `init` repeats the session id as its `uuid` in every turn.
        if let Some(uuid) = object.str("uuid").filter(|uuid| **uuid != *self.last_session)
            && !self.uuids.insert(uuid)
        {
            report.warning("uuid", format!("the `uuid` {uuid} names another line already"));
        }
        let session = self.sessions.get_or_insert(&self.last_session);
        // A notice may come before its turn; a control request belongs to no turn.
        let is_of_turn = matches!(
            message,
            Message::StreamEvent(_) | Message::Assistant(_) | Message::User(_) | Message::Result(_)
        );
        if is_of_turn || object.has("seq") {
            session.begin(is_of_turn && object.is_later_line());
        }
        match &message {
            Message::System(line) => session.notice(&line.notice, report),
            Message::Assistant(line) => {
                session.assistant(line.parent_tool_use_id.as_deref(), &line.message, report);
            }
            Message::User(line) => {
                session.user(
                    line.parent_tool_use_id.as_deref(),
                    &line.message.content,
                    line.is_replay,
                    report,
                );
            }
            Message::StreamEvent(line) => {
                session.stream_event(line.parent_tool_use_id.as_deref(), &line.event, report);
            }
            Message::Result(result) => session.result(result, report),
            Message::RateLimitEvent(_)
            | Message::ConversationReset(_)
            | Message::ControlRequest(_)
            | Message::ControlResponse(_)
            | Message::ControlCancelRequest { .. } => {}
        }
    }

    fn reply(&mut self, _: &str, report: &mut Report) {
        report.error("shape", "the document of this dialect is its `result`, not events and a reply");
    }

    fn finish(&mut self, report: &mut Report) {
        for (id, session) in self.sessions.all() {
            session.finish(id, report);
        }
    }
}
