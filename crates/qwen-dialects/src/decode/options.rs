//! Overrides for one request: model, sampling, tools.

use std::sync::Arc;

use qwen_events::{ErrorInfo, Json, PromptOptions, Sampling, SessionId, ToolSpec};

use super::Result;
use super::error::{invalid, refuse_at};
use super::field::{Kind, Object, Value};

/// The overrides in `object`: the `options` of a Qwen Chat Request, or the top level of an OpenAI request.
pub(super) fn options(object: &Object<'_>) -> Result<PromptOptions> {
    let number = |name: &str| object.get(name).map(|value| value.number()).transpose();
    let max_tokens = object.any(&["max_tokens", "max_completion_tokens", "max_output_tokens"]);
    let effort = object.any(&["effort", "reasoning_effort"]);
    Ok(PromptOptions {
        model: object.string("model")?,
        sampling: Sampling {
            temperature: number("temperature")?,
            top_p: number("top_p")?,
            max_tokens: max_tokens.map(|value| value.count()).transpose()?,
            seed: object.get("seed").map(|value| value.integer()).transpose()?,
            stop: object.get("stop").map(|value| stop(&value)).transpose()?.unwrap_or_default(),
            effort: effort.map(|value| value.string()).transpose()?,
            ..Sampling::default()
        },
        tool_overrides: object.get("tool_overrides").map(|value| value.strings()).transpose()?,
        host_tools: object.get("tools").map(|value| tools(&value)).transpose()?.unwrap_or_default(),
        json_schema: match object.get("response_format") {
            Some(value) => response_format(&value.object()?)?,
            None => None,
        },
    })
}

/// The session that a line names; one that could be more than a name is refused here already.
pub(super) fn session_id(object: &Object<'_>) -> Result<Option<Arc<str>>> {
    let Some(value) = object.get("session_id") else {
        return Ok(None);
    };
    let id = value.string()?;
    if id.is_empty() {
        let message = "`session_id` is empty; name a session, or send \"_new\" for a new one";
        return Err(refuse_at("empty_session_id", value.path(), message));
    }
    if &*id == "_new" {
        return Ok(Some(id));
    }
    match SessionId::parse(&id) {
        Ok(_) => Ok(Some(id)),
        Err(error) => {
            let message = format!("`session_id` cannot be used: {error}; \"_new\" asks for a new one");
            Err(refuse_at("invalid_session_id", value.path(), message))
        }
    }
}

/// An optional string that must not be empty.
pub(super) fn name(object: &Object<'_>, field: &str) -> Result<Option<Arc<str>>> {
    object.get(field).map(|value| filled(&value)).transpose()
}

/// A string that must not be empty.
pub(super) fn filled(value: &Value<'_>) -> Result<Arc<str>> {
    let text = value.string()?;
    if text.is_empty() { Err(empty(value.path())) } else { Ok(text) }
}

fn empty(path: &str) -> ErrorInfo {
    refuse_at("empty_field", path, format!("`{path}` is empty; it must be a string with something in it"))
}

fn stop(value: &Value<'_>) -> Result<Vec<Arc<str>>> {
    if value.kind() == Kind::String { Ok(vec![value.string()?]) } else { value.strings() }
}

/// The schema of the result, in the words of OpenAI.
fn response_format(format: &Object<'_>) -> Result<Option<Json>> {
    let kind = format.need("type", "`text`, `json_object` or `json_schema`")?;
    match &*kind.text()? {
        "text" => Ok(None),
        "json_object" => Ok(Some(Json::trusted(r#"{"type":"object"}"#))),
        "json_schema" => {
            let outer = match format.get("json_schema") {
                Some(named) => named.object()?,
                None => format.clone(),
            };
            let schema = outer.need("schema", "a JSON Schema, which is an object")?;
            if schema.kind() == Kind::Object {
                Ok(Some(schema.json()))
            } else {
                Err(schema.type_error("a JSON Schema, which is an object"))
            }
        }
        other => Err(invalid(kind.path(), other, "`text`, `json_object` or `json_schema`")),
    }
}

/// Tools that the host runs, as OpenAI function schemas.
fn tools(value: &Value<'_>) -> Result<Vec<ToolSpec>> {
    let mut tools: Vec<ToolSpec> = Vec::new();
    for item in value.array()? {
        let tool = tool(&item)?;
        if tools.iter().any(|other| other.name == tool.name) {
            let message = format!("the tool `{}` is declared twice", tool.name);
            return Err(refuse_at("duplicate_tool", item.path(), message));
        }
        tools.push(tool);
    }
    Ok(tools)
}

/// The name of a tool that the host runs. Model servers refuse a request with other characters in it.
fn tool_name(value: &Value<'_>) -> Result<Arc<str>> {
    let name = filled(value)?;
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if fits { Ok(name) } else { Err(invalid(value.path(), &name, "letters, digits, `_`, `-` and `.`")) }
}

fn tool(value: &Value<'_>) -> Result<ToolSpec> {
    let outer = value.object()?;
    let function = match outer.get("function") {
        Some(function) => function.object()?,
        None => outer,
    };
    let parameters = function.any(&["parameters", "input_schema", "parametersJsonSchema"]);
    let parameters = match parameters {
        Some(schema) if schema.kind() == Kind::Object => schema.json(),
        Some(schema) => return Err(schema.type_error("a JSON Schema, which is an object")),
        None => Json::trusted(r#"{"type":"object","properties":{}}"#),
    };
    Ok(ToolSpec {
        name: tool_name(&function.need("name", "the tool's name")?)?,
        description: function.string("description")?.unwrap_or_default(),
        parameters,
    })
}
