//! Unusable lines that still identify their sender: the error is the answer to that sender.

use std::sync::Arc;

use qwen_events::{Command, ControlReply, ErrorInfo, PromptId};

use super::Result;
use super::control;
use super::field::{Kind, Object};

/// Turns the error of a line into what answers it. A control request is answered with the error, an answer on
/// the control channel fails its question at once, and the error of a prompt names that prompt.
pub(super) fn reject(object: &Object<'_>, error: ErrorInfo) -> Result<Vec<Command>> {
    let kind = find_text(object, "type");
    match kind.as_deref() {
        Some("control_request" | "control/cancel") => match find_text(object, "request_id") {
            Some(request_id) => {
                let nested = object.get("request").is_some();
                Ok(vec![control::malformed(request_id, nested, Arc::default(), error)])
            }
            None => Err(error),
        },
        Some("control_response") => {
            let response = object.get("response").and_then(|response| response.object().ok());
            let nested_id = response.and_then(|response| find_text(&response, "request_id"));
            let nested = nested_id.is_some();
            match nested_id.or_else(|| find_text(object, "request_id")) {
                Some(request_id) => {
                    let reply = ControlReply { request_id, nested, result: Err(error) };
                    Ok(vec![Command::Reply {
                        reply: Box::new(reply),
                        session_id: find_text(object, "session_id"),
                    }])
                }
                None => Err(error),
            }
        }
        // The prompt id of these lines belongs to a prompt that is not refused.
        Some("command_hint_request" | "command_hint_cancel") => Err(error),
        _ if error.refused.is_some() => Err(error),
        _ => {
            let prompt_id = find_text(object, "prompt_id").map(PromptId::new);
            Err(error.for_prompt(find_text(object, "session_id").as_deref(), prompt_id))
        }
    }
}

/// The text of a field that occurs once and is not empty.
fn find_text(object: &Object<'_>, name: &str) -> Option<Arc<str>> {
    let mut values = object.entries().filter(|(key, _)| *key == name);
    let (_, value) = values.next()?;
    if values.next().is_some() || value.kind() != Kind::String {
        return None;
    }
    value.string().ok().filter(|text| !text.is_empty())
}
