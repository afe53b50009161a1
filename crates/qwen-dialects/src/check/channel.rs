//! Lines about the connection and not about a turn: `result/*` and the control channel. They may occur
//! anywhere in a stream, so only their shape is checked; pairing requests with answers needs both
//! directions.

use super::syntax::{Object, Violation, word};
use crate::qwen::wire::control::{
    ControlCancelLine, ControlRequestLine, ControlResponseLine, NestedResponseLine,
};
use crate::qwen::wire::result::{CancelLine, CommandLine, HeartbeatLine, HintLine};

/// Checks a line about the connection; none if it is another line.
pub(super) fn read(object: &Object<'_>) -> Option<Result<(), Violation>> {
    Some(match object.kind()? {
        "result/command_hint" => hint(object),
        "result/heartbeat" => {
            object.read::<HeartbeatLine<'_>>().and_then(|line| word("status", &line.status, &["ok"]))
        }
        "result/cancel" => {
            object.read::<CancelLine<'_>>().and_then(|line| word("status", &line.status, &["ok", "noop"]))
        }
        "control_request" => control_request(object),
        "control_response" if object.has("request_id") => {
            object.read::<ControlResponseLine<'_>>().and_then(|line| answer(&line.response.subtype))
        }
        "control_response" => {
            object.read::<NestedResponseLine<'_>>().and_then(|line| answer(&line.response.subtype))
        }
        "control_cancel_request" => object.read::<ControlCancelLine<'_>>().map(|_| ()),
        _ => return None,
    })
}

/// Checks the end of a command, for which some dialects have a separate line.
pub(super) fn command(object: &Object<'_>) -> Result<(), Violation> {
    let line: CommandLine<'_> = object.read()?;
    word("command.kind", &line.command.kind, &["slash", "at", "help"])?;
    word("result.type", &line.result.kind, &["message", "dialog", "tool", "submit_prompt"])?;
    match &line.result.level {
        Some(level) => word("result.level", level, &["info", "warning", "error"]),
        None => Ok(()),
    }
}

fn hint(object: &Object<'_>) -> Result<(), Violation> {
    let line: HintLine<'_> = object.read()?;
    word("trigger", &line.trigger, &["slash", "at"])?;
    word("status", &line.status, &["ok", "loading", "error"])
}

fn control_request(object: &Object<'_>) -> Result<(), Violation> {
    let line: ControlRequestLine<'_> = object.read()?;
    word("subtype", &line.subtype, &["can_use_tool", "hook_callback", "mcp_message"])?;
    match &line.tool {
        None if line.subtype == "can_use_tool" => {
            Err(Violation::new("shape", "a question about a call names the call in `tool`"))
        }
        Some(tool) if !tool.arguments.get().starts_with('{') => {
            Err(Violation::new("shape", "the `arguments` of a call are always an object"))
        }
        _ => Ok(()),
    }
}

fn answer(subtype: &str) -> Result<(), Violation> {
    word("response.subtype", subtype, &["success", "error"])
}
