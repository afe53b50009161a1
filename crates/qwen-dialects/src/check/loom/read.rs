//! Reads a line of either form, and checks what serde cannot express about its shape.

use std::borrow::Cow;

use serde_json::Value;

use super::super::syntax::{END_STATUSES, Object, Violation, word};
use crate::loom::custom::{Custom, CustomValue};
use crate::loom::export::Exported;
use crate::loom::wire::{Body, Frame, ReplyFrame};

pub(super) enum LoomLine<'a> {
    /// A line about the connection.
    Nothing,
    Event(Envelope<'a>, Body<'a>),
    Reply(Envelope<'a>, Cow<'a, str>),
}

/// The session of a line and its number in the stream.
#[derive(Default)]
pub(super) struct Envelope<'a> {
    /// Empty if the line names none.
    pub(super) session: Cow<'a, str>,
    pub(super) node: Option<Cow<'a, str>>,
    pub(super) number: Option<u64>,
}

impl LoomLine<'_> {
    pub(super) fn envelope(&self) -> &Envelope<'_> {
        const NONE: &Envelope<'_> = &Envelope { session: Cow::Borrowed(""), node: None, number: None };
        match self {
            Self::Nothing => NONE,
            Self::Event(envelope, _) | Self::Reply(envelope, _) => envelope,
        }
    }
}

/// Reads a line of the protocol form.
pub(super) fn protocol<'a>(object: &'a Object<'_>) -> Result<LoomLine<'a>, Violation> {
    if object.kind().is_none() && object.has("reply") {
        let frame: ReplyFrame<'_> = object.read()?;
        let session = frame.session_id.unwrap_or_default();
        return Ok(LoomLine::Reply(
            Envelope { session, node: frame.node_id, number: frame.event_id },
            frame.reply,
        ));
    }
    if object.kind().is_none() {
        return Err(object.unknown_type());
    }
    let frame: Frame<'_> = object.read()?;
    if matches!(frame.body, Body::GotExpand { .. }) && frame.node_id.is_none() {
        return Err(Violation::new("shape", "a `got_expand` names the thought that it opens in `node_id`"));
    }
    event(frame, object.get("value").or_else(|| object.get("arguments")))
}

/// Reads a line of the export form.
pub(super) fn exported<'a>(object: &'a Object<'_>) -> Result<LoomLine<'a>, Violation> {
    let Some(key) = object.only_key() else {
        return Err(Violation::new("shape", "a line of the export form is an object with a single key"));
    };
    if key == "reply" {
        let frame: ReplyFrame<'_> = object.read()?;
        return Ok(LoomLine::Reply(Envelope::default(), frame.reply));
    }
    let payload = object.get(key);
    let custom = (key == "Custom").then_some(payload).flatten();
    let arguments = payload.and_then(|payload| payload.get("arguments"));
    let exported: Exported<'_> = object.read().map_err(|violation| {
        if violation.message.contains(&format!("unknown variant `{key}`")) {
            Violation::new("unknown-type", format!("the export form has no event `{key}`"))
        } else {
            violation
        }
    })?;
    event(exported.into(), custom.or(arguments))
}

/// Checks what the wire types leave open: `payload` is the part of the line that they accept with any
/// value.
fn event<'a>(frame: Frame<'a>, payload: Option<&Value>) -> Result<LoomLine<'a>, Violation> {
    match &frame.body {
        Body::ToolCall(_) | Body::ToolApproval(_) if !payload.is_some_and(Value::is_object) => {
            return Err(Violation::new("shape", "the `arguments` of a call are always an object"));
        }
        Body::Custom { value: CustomValue::Other(_) } => known_kind(payload)?,
        Body::Custom { value: CustomValue::Known(custom) } => {
            if let Custom::RunEnd { status } = custom.as_ref() {
                word("status", status, &END_STATUSES)?;
            }
        }
        _ => {}
    }
    let session = frame.session_id.unwrap_or_default();
    Ok(LoomLine::Event(Envelope { session, node: frame.node_id, number: frame.event_id }, frame.body))
}

/// A `custom` value may be anything, but a known kind must have its shape.
fn known_kind(value: Option<&Value>) -> Result<(), Violation> {
    const KINDS: [&str; 7] =
        ["thought", "session_event", "console", "error", "subagent", "command", "run_end"];
    let kind = value.and_then(|value| value.get("kind")).and_then(Value::as_str);
    match (kind.filter(|kind| KINDS.contains(kind)), value) {
        (Some(kind), Some(value)) => match serde_json::from_value::<Custom<'_>>(value.clone()) {
            Err(error) => Err(Violation::new("shape", format!("a custom value of kind `{kind}`: {error}"))),
            Ok(_) => Ok(()),
        },
        _ => Ok(()),
    }
}
