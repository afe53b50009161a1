//! The control channel, flat (`request_id`, `subtype`, …) and nested (`request_id`, `request: {subtype, …}`).

mod initialize;
mod permission;
mod steering;

pub use permission::permission_answer;

use std::sync::Arc;

use qwen_events::{CallId, Command, ControlBody, ControlReply, ErrorInfo, ErrorKind, Json};

use self::initialize::initialize;
use crate::decode::Result;
use crate::decode::error::{invalid, missing, refuse, refuse_at};
use crate::decode::field::{Kind, Object, Value};
use crate::decode::options::filled;

/// Reads `control_request`. Every request is answered, so an invalid body becomes a command too; only a
/// request without an id is an error.
pub(in crate::decode) fn request(object: &Object<'_>) -> Result<Vec<Command>> {
    let request_id = filled(&object.need("request_id", "the request's id")?)?;
    let nested = object.get("request").is_some();
    let mut commands = Vec::new();
    let (subtype, body) = match body(object) {
        Ok((subtype, fields)) => {
            // `initialize` may have requirements; those at the top level have already been read.
            if &*subtype == "initialize" && !fields.path().is_empty() {
                match crate::decode::requires(&fields) {
                    Ok(demands) => commands.extend(demands),
                    Err(error) => return Ok(vec![malformed(request_id, nested, subtype, error)]),
                }
            }
            let body = read(&subtype, &fields);
            (subtype, body)
        }
        Err(error) => (Arc::default(), Err(error)),
    };
    commands.push(match body {
        Ok(body) => Command::Control { request_id, nested, body: Box::new(body) },
        Err(error) => malformed(request_id, nested, subtype, error),
    });
    Ok(commands)
}

/// A request that cannot be read, to be answered with `error`.
pub(in crate::decode) fn malformed(
    request_id: Arc<str>,
    nested: bool,
    subtype: Arc<str>,
    error: ErrorInfo,
) -> Command {
    let body = ControlBody::Malformed { subtype, error: Box::new(error) };
    Command::Control { request_id, nested, body: Box::new(body) }
}

/// The subtype and the object that holds the fields: `request`, `payload`, or the line itself.
fn body<'a>(object: &Object<'a>) -> Result<(Arc<str>, Object<'a>)> {
    let fields = match object.any(&["request", "payload"]) {
        Some(value) => value.object()?,
        None => object.clone(),
    };
    let subtype = fields.get("subtype").or_else(|| object.get("subtype"));
    let subtype = subtype.ok_or_else(|| missing(&fields.path_of("subtype"), "what is asked"))?;
    Ok((filled(&subtype)?, fields))
}

fn read(subtype: &str, fields: &Object<'_>) -> Result<ControlBody> {
    let server = || fields.need_any(&["serverName", "server_name"], "the server's name")?.string();
    Ok(match subtype {
        "initialize" => ControlBody::Initialize(Box::new(initialize(fields)?)),
        "interrupt" => ControlBody::Interrupt,
        "set_model" => ControlBody::SetModel(fields.string("model")?),
        "set_permission_mode" => {
            ControlBody::SetPermissionMode(filled(&fields.need("mode", "an approval mode")?)?)
        }
        "set_effort" => ControlBody::SetEffort(fields.string("effort")?),
        "supported_commands" => ControlBody::SupportedCommands,
        "mcp_status" | "mcp_server_status" => ControlBody::McpStatus,
        "mcp_reconnect" => ControlBody::McpReconnect(server()?),
        "mcp_toggle" => ControlBody::McpToggle {
            server: server()?,
            enabled: fields.need("enabled", "true or false")?.bool()?,
        },
        "get_context_usage" => {
            let details = fields.any(&["show_details", "details"]);
            ControlBody::ContextUsage {
                details: details.map(|value| value.bool()).transpose()?.unwrap_or(false),
            }
        }
        "get_available_models" => ControlBody::AvailableModels,
        "get_usage_info" => ControlBody::UsageInfo { range: fields.string("range")? },
        "continue_last_turn" => {
            let replay = fields.any(&["replay"]).map(|value| value.bool()).transpose()?;
            ControlBody::ContinueLastTurn { replay: replay.unwrap_or(true) }
        }
        "rewind_files" => {
            let message = fields.need_any(&["user_message_id", "message_id"], "the id of a message")?;
            let dry_run = fields.any(&["dry_run", "dryRun"]).map(|value| value.bool()).transpose()?;
            ControlBody::RewindFiles { message_id: filled(&message)?, dry_run: dry_run.unwrap_or(false) }
        }
        "stop_task" => ControlBody::StopTask(filled(&fields.need("task_id", "the task's id")?)?),
        "background_tasks" => ControlBody::BackgroundTasks(fields.string("tool_use_id")?.map(CallId::new)),
        "end_session" => ControlBody::EndSession,
        "mcp_message" => {
            let message = fields.need("message", "a JSON-RPC message")?;
            if message.kind() != Kind::Object {
                return Err(message.type_error("a JSON-RPC message, which is an object"));
            }
            ControlBody::McpMessage { server: server()?, message: message.json() }
        }
        other => match steering::read(other, fields)? {
            Some(wish) => ControlBody::SessionControl(Box::new(wish)),
            None => ControlBody::Unknown(other.into()),
        },
    })
}

/// Reads `control_response`. An answer that names its request is passed on even if the rest is invalid: the
/// request then fails with that error at once.
pub(in crate::decode) fn response(object: &Object<'_>) -> Result<Command> {
    let response = object.get("response");
    let inner = response.as_ref().and_then(|value| value.object().ok());
    let nested_id = inner.as_ref().and_then(|inner| inner.get("request_id"));
    let nested = nested_id.is_some();
    let id = nested_id.or_else(|| object.get("request_id"));
    let request_id =
        filled(&id.ok_or_else(|| missing("request_id", "the id of the request that is answered"))?)?;
    let result = match (inner, response) {
        (Some(inner), _) => answer(&inner),
        (None, Some(value)) => Err(value.type_error("an object with `subtype`")),
        (None, None) => Err(missing("response", "an object with `subtype`")),
    };
    // A session id that is not a string matches no session; the answer is treated like one for another
    // session.
    let session_id = object.get("session_id").filter(|value| value.kind() != Kind::Null);
    let session_id = session_id.map(|value| value.string().unwrap_or_else(|_| value.json().as_str().into()));
    Ok(Command::Reply { reply: Box::new(ControlReply { request_id, nested, result }), session_id })
}

fn answer(response: &Object<'_>) -> Result<Json> {
    let subtype = response.need("subtype", "`success` or `error`")?;
    match &*subtype.text()? {
        "success" => {
            let result = response.any(&["result", "response"]);
            Ok(result.map_or_else(Json::empty_object, |value| value.json()))
        }
        "error" => Err(host_error(&response.need("error", "an object with `message`")?)),
        other => Err(invalid(subtype.path(), other, "`success` or `error`")),
    }
}

/// The host's error message.
fn host_error(value: &Value<'_>) -> ErrorInfo {
    let fields = value.object().ok();
    let message = match &fields {
        Some(fields) => fields.string("message").ok().flatten(),
        None => value.string().ok(),
    };
    let message = message.unwrap_or_else(|| value.json().as_str().into());
    let retryable = fields.and_then(|fields| fields.bool("retryable").ok().flatten());
    ErrorInfo {
        retryable: retryable.unwrap_or(false),
        ..ErrorInfo::new(ErrorKind::Input, "host_error", message)
    }
}

/// Reads `control_cancel_request`.
pub(in crate::decode) fn cancel(object: &Object<'_>) -> Result<Command> {
    let request_id = filled(&object.need("request_id", "the id of the request that is withdrawn")?)?;
    Ok(Command::ControlCancel { request_id })
}

/// An error about an answer as a whole.
pub(in crate::decode) fn malformed_answer(message: impl Into<Arc<str>>) -> ErrorInfo {
    refuse("malformed_answer", message)
}

/// An error about one field of an answer.
pub(in crate::decode) fn malformed_at(path: &str, message: impl Into<Arc<str>>) -> ErrorInfo {
    refuse_at("malformed_answer", path, message)
}
