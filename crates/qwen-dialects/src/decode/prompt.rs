//! The Qwen Chat Request.

use std::sync::Arc;

use qwen_events::{
    CallId, Command, CommandCall, CommandKind, Delivery, Part, Prompt, PromptId, PromptOptions, PromptOrigin,
    ToolResult,
};

use super::Result;
use super::error::{invalid, missing, refuse_at};
use super::field::{Kind, Object, Value};
use super::options::{filled, name, options, session_id};
use super::part::{have_content, joined, media_of, parts};
use super::trace::trace;

/// Reads a Qwen Chat Request.
pub(super) fn request(object: &Object<'_>) -> Result<Command> {
    let input = object.need("input", "an object")?.object()?;
    let origin = origin(&input)?;
    let command = input.get("command").map(|value| command(&value)).transpose()?;
    let mut content = input.get("parts").map(|value| parts(&value)).transpose()?.unwrap_or_default();
    // Spec 1 does not say whether its extended fields are next to `input` or inside it, so both are
    // accepted.
    let extended = |name: &str| object.get(name).or_else(|| input.get(name));
    let tool_request = extended("tool_request").map(|value| value.object()).transpose()?;
    let mut tool_call_id = extended("tool_call_id").map(|value| filled(&value)).transpose()?;
    if let Some(request) = &tool_request
        && let Some(named) = request.any(&["callId", "call_id"])
    {
        let id = filled(&named)?;
        if let Some(other) = tool_call_id.as_ref().filter(|other| **other != id) {
            return Err(invalid(
                named.path(),
                &id,
                &format!("the same call as `tool_call_id`, which is `{other}`"),
            ));
        }
        tool_call_id = Some(id);
    }
    if command.is_none() && origin != PromptOrigin::ToolResponse && !have_content(&content) {
        let path = input.path_of("parts");
        return Err(if tool_request.is_some() {
            let message = "`tool_request` starts no tool: it names the call that `input.parts` answer, with `input.origin` \
                           `tool_response`; ask for a tool in words, or with a `command`";
            refuse_at("empty_prompt", &path, message)
        } else if content.is_empty() {
            missing(&path, "a list of parts, unless there is a `command`")
        } else {
            refuse_at("empty_prompt", &path, format!("`{path}` is empty and there is no `command`"))
        });
    }
    if origin == PromptOrigin::ToolResponse {
        let tool = match &tool_request {
            Some(request) => request.string("name")?,
            None => None,
        };
        content = answer(content, tool_call_id.as_ref(), &tool.unwrap_or_default())?;
    }
    let mut options = match object.get("options") {
        Some(value) => options(&value.object()?)?,
        None => PromptOptions::default(),
    };
    let continuation = if object.get("continuation").is_some() {
        object.bool("continuation")
    } else {
        input.bool("continuation")
    };
    let continuation = continuation?.unwrap_or(false);
    let model = name(object, "model")?;
    options.model = options.model.or(model);
    Ok(Command::Prompt(Box::new(Prompt {
        input: None,
        verbatim: false,
        session_id: session_id(object)?,
        prompt_id: name(object, "prompt_id")?.map(PromptId::new),
        uuid: object.string("uuid")?,
        message_origin: None,
        origin,
        parts: content,
        command,
        history: Vec::new(),
        system: None,
        options,
        tool_call_id: tool_call_id.map(CallId::new),
        continuation,
        delivery: delivery(object)?,
        resend: object.bool("resend")?.unwrap_or(false),
        trace: trace(object),
    })))
}

/// When a prompt that arrives during a turn takes effect.
pub(super) fn delivery(object: &Object<'_>) -> Result<Delivery> {
    let Some(value) = object.get("delivery") else {
        return Ok(Delivery::Queue);
    };
    match &*value.text()? {
        "queue" => Ok(Delivery::Queue),
        "steer" => Ok(Delivery::Steer),
        other => Err(invalid(value.path(), other, "`queue` or `steer`")),
    }
}

fn origin(input: &Object<'_>) -> Result<PromptOrigin> {
    let Some(value) = input.get("origin") else {
        return Ok(PromptOrigin::User);
    };
    match &*value.text()? {
        "user" => Ok(PromptOrigin::User),
        "tool_response" => Ok(PromptOrigin::ToolResponse),
        "system" => Ok(PromptOrigin::System),
        other => Err(invalid(value.path(), other, "`user`, `tool_response` or `system`")),
    }
}

fn command(value: &Value<'_>) -> Result<CommandCall> {
    let object = value.object()?;
    let kind = match object.get("kind") {
        None => CommandKind::Slash,
        Some(kind) => match &*kind.text()? {
            "slash" | "/" => CommandKind::Slash,
            "at" | "@" => CommandKind::At,
            "help" | "?" => CommandKind::Help,
            other => return Err(invalid(kind.path(), other, "`slash`, `at` or `help`")),
        },
    };
    let path = match object.get("path") {
        Some(path) if path.kind() == Kind::String => vec![filled(&path)?],
        Some(path) => path.strings()?,
        None if kind == CommandKind::Help => Vec::new(),
        None => return Err(missing(&object.path_of("path"), "the command's name and sub-names")),
    };
    if path.is_empty() && kind != CommandKind::Help {
        return Err(missing(&format!("{}[0]", object.path_of("path")), "the command's name"));
    }
    Ok(CommandCall { kind, path, args: object.string("args")?.unwrap_or_default() })
}

/// The result of a tool that the host ran. Function responses are unchanged; other parts together are the
/// answer to the call that the request names.
fn answer(content: Vec<Part>, call_id: Option<&Arc<str>>, tool: &Arc<str>) -> Result<Vec<Part>> {
    let expected = "the call that is answered, since `input.origin` is `tool_response`";
    let named = || call_id.map(|id| CallId::new(id.clone())).ok_or_else(|| missing("tool_call_id", expected));
    let (results, plain): (Vec<_>, Vec<_>) =
        content.into_iter().partition(|part| matches!(part, Part::Result(_)));
    let mut answers = Vec::with_capacity(results.len() + 1);
    for part in results {
        if let Part::Result(mut result) = part {
            if result.call_id.as_str().is_empty() {
                result.call_id = named()?;
            }
            if result.name.is_empty() {
                result.name = tool.clone();
            }
            answers.push(Part::Result(result));
        }
    }
    if answers.is_empty() || !plain.is_empty() {
        let text = joined(&plain);
        let media = media_of(plain);
        let name = tool.clone();
        answers.push(Part::Result(ToolResult { call_id: named()?, name, text, media, is_error: false }));
    }
    Ok(answers)
}
