//! Messages of an ACP client that concern a turn. Those about the connection and its sessions are handled by
//! `qwen --acp`, which also knows what a permission request offered; here only the plain answers count.

use qwen_events::{Command, ControlBody, ControlReply, Prompt, PromptId};

use super::Result;
use super::error::{missing, refuse_at};
use super::field::{Kind, Object, Value};
use crate::acp::{OptionId, permission_answer, prompt_parts};

/// Reads a message; a response to nothing that is asked here has no command.
pub(super) fn message(object: &Object<'_>) -> Result<Option<Command>> {
    let id = object.get("id").map(|id| text_of(&id)).transpose()?;
    let Some(method) = object.string("method")? else { return Ok(response(object, id)) };
    let params = object.need("params", "an object")?.object()?;
    let session_id = Some(params.need("sessionId", "the session's id")?.string()?);
    match &*method {
        "session/prompt" => {
            let blocks = params.need("prompt", "an array of content blocks")?;
            if blocks.kind() != Kind::Array {
                return Err(blocks.type_error("an array of content blocks"));
            }
            let blocks: Vec<serde_json::Value> =
                serde_json::from_str(blocks.json().as_str()).unwrap_or_default();
            let content = prompt_parts(&blocks)?;
            let prompt_id = Some(PromptId::new(id.ok_or_else(|| missing("id", "the id of the request"))?));
            Ok(Some(Command::Prompt(Box::new(Prompt {
                session_id,
                prompt_id,
                parts: content.parts,
                ..Prompt::default()
            }))))
        }
        "session/cancel" => Ok(Some(Command::Cancel {
            session_id,
            prompt_id: None,
            reason: "session/cancel".into(),
            request_id: None,
        })),
        "session/set_mode" => Ok(Some(Command::Control {
            request_id: id.ok_or_else(|| missing("id", "the id of the request"))?.into(),
            nested: false,
            body: Box::new(ControlBody::SetPermissionMode(params.need("modeId", "a mode")?.string()?)),
        })),
        other => {
            let shown: String = other.chars().take(80).collect();
            let words = "it must be `session/prompt`, `session/cancel` or `session/set_mode`";
            Err(refuse_at("unknown_method", "method", format!("there is no method {shown:?}; {words}")))
        }
    }
}

fn response(object: &Object<'_>, id: Option<String>) -> Option<Command> {
    let result = serde_json::from_str(object.get("result")?.json().as_str()).ok()?;
    let offered = [OptionId::AllowOnce, OptionId::RejectOnce];
    let answer = permission_answer(&offered, None, &result);
    let reply = ControlReply { request_id: id?.into(), nested: false, result: Ok(answer.reply) };
    Some(Command::Reply { reply: Box::new(reply), session_id: None })
}

/// An id as text: requests may have numbers.
fn text_of(id: &Value<'_>) -> Result<String> {
    match id.kind() {
        Kind::String => Ok(id.string()?.to_string()),
        _ => Ok(id.json().as_str().to_owned()),
    }
}
