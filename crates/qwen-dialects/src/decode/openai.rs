//! The OpenAI request: a whole conversation in `messages`.

use std::sync::Arc;

use qwen_events::{
    CallId, Command, Json, Message, Part, Prompt, PromptId, PromptOptions, PromptOrigin, Role, Sampling,
    ToolCall, ToolResult,
};

use super::Result;
use super::error::{invalid, missing, refuse_at};
use super::field::{Kind, Object, Value};
use super::options::{filled, name, options, session_id};
use super::part::{have_content, joined, media_of, parts};
use super::prompt::delivery;
use super::trace::trace;

/// Reads a conversation: its last user message is the prompt, earlier messages are history, system messages
/// are the system prompt. A conversation that ends in tool results continues with them.
pub(super) fn conversation(object: &Object<'_>) -> Result<Command> {
    let list = object.need("messages", "an array of messages")?;
    let mut system: Vec<Arc<str>> = Vec::new();
    let mut messages = Vec::new();
    for value in list.array()? {
        match message(&value)? {
            Entry::System(text) => system.push(text),
            Entry::Message(message) => messages.push(message),
        }
    }
    let (origin, parts) = last_words(&mut messages, list.path())?;
    let tool_call_id = parts.iter().find_map(|part| match part {
        Part::Result(result) => Some(result.call_id.clone()),
        _ => None,
    });
    let mut overrides = options(object)?;
    if let Some(value) = object.get("options") {
        overrides = nearer(options(&value.object()?)?, overrides);
    }
    Ok(Command::Prompt(Box::new(Prompt {
        input: None,
        verbatim: false,
        session_id: session_id(object)?,
        prompt_id: name(object, "prompt_id")?.map(PromptId::new),
        uuid: None,
        message_origin: None,
        origin,
        parts,
        command: None,
        history: messages,
        system: (!system.is_empty()).then(|| system.join("\n\n").into()),
        options: overrides,
        tool_call_id,
        continuation: object.bool("continuation")?.unwrap_or(false),
        delivery: delivery(object)?,
        resend: object.bool("resend")?.unwrap_or(false),
        trace: trace(object),
    })))
}

/// The options of `near`, completed by those of `far`.
fn nearer(near: PromptOptions, far: PromptOptions) -> PromptOptions {
    let (a, b) = (near.sampling, far.sampling);
    PromptOptions {
        model: near.model.or(far.model),
        sampling: Sampling {
            temperature: a.temperature.or(b.temperature),
            top_p: a.top_p.or(b.top_p),
            max_tokens: a.max_tokens.or(b.max_tokens),
            seed: a.seed.or(b.seed),
            stop: if a.stop.is_empty() { b.stop } else { a.stop },
            effort: a.effort.or(b.effort),
            ..a
        },
        tool_overrides: near.tool_overrides.or(far.tool_overrides),
        json_schema: near.json_schema.or(far.json_schema),
        host_tools: if near.host_tools.is_empty() { far.host_tools } else { near.host_tools },
    }
}

/// Removes the final messages of the conversation, which are the prompt.
fn last_words(messages: &mut Vec<Message>, path: &str) -> Result<(PromptOrigin, Vec<Part>)> {
    match messages.last().map(|message| message.role) {
        Some(Role::User) => {
            let parts = messages.pop().map(|message| message.parts).unwrap_or_default();
            if have_content(&parts) {
                Ok((PromptOrigin::User, parts))
            } else {
                let path = format!("{path}[{}].content", messages.len());
                Err(refuse_at("empty_prompt", &path, format!("`{path}` is empty")))
            }
        }
        Some(Role::Tool) => {
            let from = messages.iter().rposition(|message| message.role != Role::Tool).map_or(0, |at| at + 1);
            let results = messages.split_off(from).into_iter().flat_map(|message| message.parts).collect();
            Ok((PromptOrigin::ToolResponse, results))
        }
        _ => {
            let message = format!("`{path}` must end in a message of role `user`, which is the prompt");
            Err(refuse_at("no_prompt", path, message))
        }
    }
}

enum Entry {
    System(Arc<str>),
    Message(Message),
}

fn message(value: &Value<'_>) -> Result<Entry> {
    let object = value.object()?;
    let role = object.need("role", "a string")?;
    let content = || object.get("content").map(|content| parts(&content)).transpose();
    let needed =
        || content()?.ok_or_else(|| missing(&object.path_of("content"), "a text or an array of parts"));
    let role = match &*role.text()? {
        "system" | "developer" => return Ok(Entry::System(joined(&needed()?))),
        "user" => Message { role: Role::User, parts: needed()? },
        "assistant" => {
            let mut message_parts = content()?.unwrap_or_default();
            if let Some(calls) = object.get("tool_calls") {
                for call in calls.array()? {
                    message_parts.push(Part::Call(Arc::new(tool_call(&call)?)));
                }
            }
            Message { role: Role::Assistant, parts: message_parts }
        }
        "tool" | "function" => {
            let call_id = filled(&object.need("tool_call_id", "the call that is answered")?)?;
            let content = needed()?;
            let result = ToolResult {
                call_id: CallId::new(call_id),
                name: object.string("name")?.unwrap_or_default(),
                text: joined(&content),
                media: media_of(content),
                is_error: false,
            };
            Message { role: Role::Tool, parts: vec![Part::Result(result)] }
        }
        other => return Err(invalid(role.path(), other, "`system`, `user`, `assistant` or `tool`")),
    };
    Ok(Entry::Message(role))
}

fn tool_call(value: &Value<'_>) -> Result<ToolCall> {
    let object = value.object()?;
    let function = object.need("function", "an object with `name` and `arguments`")?.object()?;
    let written = function.string("arguments")?.unwrap_or_default();
    let arguments = serde_json::from_str::<&serde_json::value::RawValue>(&written)
        .ok()
        .map(|raw| Value::new(raw.get(), ""))
        .filter(|value| value.kind() == Kind::Object);
    let malformed = (arguments.is_none() && !written.trim().is_empty()).then(|| written.clone());
    Ok(ToolCall {
        malformed,
        ..ToolCall::new(
            CallId::new(filled(&object.need("id", "the call's id")?)?),
            filled(&function.need("name", "the tool's name")?)?,
            one_line(arguments.map(|value| value.json())),
        )
    })
}

/// Arguments on one line, without insignificant white space.
fn one_line(arguments: Option<Json>) -> Json {
    match arguments {
        Some(json) if json.as_str().contains(['\n', '\r']) => {
            serde_json::from_str::<serde_json::Value>(json.as_str())
                .map_or_else(|_| Json::empty_object(), |value| Json::trusted(value.to_string()))
        }
        Some(json) => json,
        None => Json::empty_object(),
    }
}
