//! The user line of the Claude and Qwen Code SDKs.

use qwen_events::{Command, Part, Prompt, PromptOrigin};

use super::Result;
use super::error::{invalid, missing};
use super::field::{Kind, Object};
use super::part::parts;
use super::prompt::delivery;
use super::trace::trace;

/// Reads `{"type":"user","message":{"role","content"}}`. Its `session_id` is empty, `default` or stale in
/// those SDKs and is ignored: the line belongs to the running session.
pub(super) fn user(object: &Object<'_>) -> Result<Command> {
    let message = object.need("message", "an object with `role` and `content`")?.object()?;
    if let Some(role) = message.get("role") {
        let text = role.text()?;
        if &*text != "user" {
            return Err(invalid(role.path(), &text, "`user`"));
        }
    }
    let content = message.need("content", "a text or an array of blocks")?;
    let mut message_parts = parts(&content)?;
    if message_parts.is_empty() && content.kind() == Kind::Array {
        return Err(missing(&format!("{}[0]", content.path()), "at least one block"));
    }
    if let Some(pasted) = object.get("pasted_content") {
        for entry in pasted.array_or("an array of texts or blocks")? {
            append(&mut message_parts, parts(&entry)?);
        }
    }
    let answers = message_parts.iter().all(|part| matches!(part, Part::Result(_)));
    let tool_call_id = match message_parts.first() {
        Some(Part::Result(result)) if answers => Some(result.call_id.clone()),
        _ => None,
    };
    Ok(Command::Prompt(Box::new(Prompt {
        uuid: object.string("uuid")?,
        message_origin: object
            .get("origin")
            .filter(|origin| origin.kind() == Kind::Object)
            .map(|origin| origin.json()),
        origin: if answers {
            PromptOrigin::ToolResponse
        } else if object.bool("shouldQuery")? == Some(false) {
            // It is remembered until the next prompt.
            PromptOrigin::System
        } else {
            PromptOrigin::User
        },
        parts: message_parts,
        tool_call_id,
        // The SDKs mark text that their user did not type this way.
        verbatim: object.bool("client_composed")?.unwrap_or(false),
        delivery: delivery(object)?,
        trace: trace(object),
        ..Prompt::default()
    })))
}

/// Appends what the user pasted: its text to the text before it, anything else as it is.
fn append(said: &mut Vec<Part>, pasted: Vec<Part>) {
    for part in pasted {
        match (said.last_mut(), part) {
            (Some(Part::Text(text)), Part::Text(more)) => *text = format!("{text}\n\n{more}").into(),
            (_, part) => said.push(part),
        }
    }
}
