//! Decodes lines into commands. Liberal: a line is recognised by its shape, in any dialect. Strict: an
//! invalid line costs one error that names the field.

mod acp;
mod claude;
mod control;
mod error;
mod field;
mod openai;
mod options;
mod part;
mod prompt;
mod rejected;
mod request;
pub(crate) mod scan;
mod trace;

pub use control::permission_answer;

use qwen_events::{Command, ErrorInfo};
use serde_json::value::RawValue;

use self::error::{missing, refuse, refuse_at};
use self::field::{Kind, Object, Value};

type Result<T> = std::result::Result<T, ErrorInfo>;

/// The line shapes that are recognised by their `type`.
const TYPES: &str = "`user`, `command_hint_request`, `command_hint_cancel`, `heartbeat_request`, `control/cancel`, \
                     `control_request`, `control_response` or `control_cancel_request`";

/// Reads one line: returns its commands, in order, or one error. An empty line has none.
pub fn decode(line: &[u8]) -> Result<Vec<Command>> {
    let text = std::str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        refuse("invalid_utf8", format!("the line is not UTF-8 from byte {at} on; send JSON in UTF-8"))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
        return Ok(Vec::new());
    }
    if let Err(error) = serde_json::from_str::<&RawValue>(text) {
        return Err(refuse(
            "invalid_json",
            format!("the line is not JSON: {error}; send one JSON object a line"),
        ));
    }
    let scanned = scan::check(text);
    let value = Value::new(text, "");
    if value.kind() != Kind::Object {
        scanned?;
        return Err(refuse(
            "not_an_object",
            "the line is JSON but not an object; send one JSON object a line",
        ));
    }
    let object = match (value.object(), &scanned) {
        (Ok(object), _) => object,
        // A key with invalid text; the scan has found it.
        (Err(_), Err(error)) => return Err(error.clone()),
        (Err(error), Ok(())) => return Err(error),
    };
    scanned.and_then(|()| commands(&object)).or_else(|error| rejected::reject(&object, error))
}

/// The commands of a line, in order.
fn commands(object: &Object<'_>) -> Result<Vec<Command>> {
    let mut commands = Vec::new();
    commands.extend(requires(object)?);
    let demands = !commands.is_empty();
    commands.extend(command(object, demands)?);
    Ok(commands)
}

/// The command of the line, recognised by its shape; none if the line only has requirements.
fn command(object: &Object<'_>, demands: bool) -> Result<Vec<Command>> {
    let one = |command: Command| Ok(vec![command]);
    if let Some(kind) = object.string("type")? {
        return match &*kind {
            "user" => one(claude::user(object)?),
            "command_hint_request" => one(request::hint(object)?),
            "command_hint_cancel" => one(request::hint_cancel(object)?),
            "heartbeat_request" => one(request::heartbeat(object)?),
            "control/cancel" => one(request::cancel(object)?),
            "control_request" => control::request(object),
            "control_response" => one(control::response(object)?),
            "control_cancel_request" => one(control::cancel(object)?),
            other => {
                let shown: String = other.chars().take(80).collect();
                Err(refuse_at(
                    "unknown_type",
                    "type",
                    format!("there is no line of type {shown:?}; it must be {TYPES}"),
                ))
            }
        };
    }
    if object.get("jsonrpc").is_some() {
        return acp::message(object).map(|command| command.into_iter().collect());
    }
    if object.get("input").is_some() {
        return one(prompt::request(object)?);
    }
    if object.get("messages").is_some() {
        return one(openai::conversation(object)?);
    }
    if demands {
        return Ok(Vec::new());
    }
    Err(missing("input", "a Qwen Chat Request's `input`; other lines have `messages` or a `type`"))
}

/// The protocol version and the capabilities that the client requires, if any.
fn requires(object: &Object<'_>) -> Result<Option<Command>> {
    let protocol_version = match object.get("protocol_version") {
        // `1.0` is easily written as a number.
        Some(version) if version.kind() == Kind::Number => Some(version.json().as_str().into()),
        Some(version) => Some(version.string()?),
        None => None,
    };
    let capabilities = object.get("requires").map(|names| names.strings()).transpose()?.unwrap_or_default();
    let asked = protocol_version.is_some() || !capabilities.is_empty();
    Ok(asked.then_some(Command::Requires { protocol_version, capabilities }))
}
