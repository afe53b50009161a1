//! Encodes the body of a request.

use qwen_events::{Media, MediaSource, Message, Part, Reasoning, Role, ToolCall, ToolResult};
use serde_json::{Map, Value};

use super::{OpenAi, message_fields};
use crate::json::JsonWriter;
use crate::request::Request;

/// The estimated size of a body without its texts.
const FRAME: usize = 2048;

/// Writes the body of `request` for `model`.
pub(super) fn write(request: &Request, model: &str, server: &OpenAi) -> Vec<u8> {
    let mut w = JsonWriter::with_capacity(FRAME + size_hint(request));
    w.object(|w| {
        w.key("model").string(model);
        // The parts that are the same in all sessions of a project come first, so that providers can cache them.
        if !request.tools.is_empty() {
            w.key("tools").array(|w| tools(w, request));
        }
        w.key("messages").array(|w| messages(w, request, server));
        w.key("stream").bool(true);
        w.key("stream_options").object(|w| w.key("include_usage").bool(true));
        sampling(w, request, server.genuine);
        if let Some(schema) = &request.response_schema {
            w.key("response_format").object(|w| {
                w.key("type").string("json_schema");
                w.key("json_schema").object(|w| {
                    w.key("name").string("answer");
                    w.key("schema").json(schema);
                });
            });
        }
    });
    w.into_bytes()
}

/// The estimated length of the body, so that the buffer grows once.
fn size_hint(request: &Request) -> usize {
    let media = |media: &Media| match &media.source {
        MediaSource::Base64(text) | MediaSource::Url(text) => text.len() + 64,
    };
    let parts = request.messages.iter().flat_map(|message| &message.parts).map(|part| match part {
        Part::Text(text) => text.len() + text.len() / 16 + 64,
        Part::Thought { .. } => 0,
        Part::Media(medium) => media(medium),
        Part::Call(call) => 2 * call.arguments.as_str().len() + 128,
        Part::Result(result) => {
            result.text.len() + result.text.len() / 8 + 128 + result.media.iter().map(media).sum::<usize>()
        }
    });
    let tools = request.tools.iter().map(|t| t.description.len() + t.parameters.as_str().len() + 128);
    request.system.len()
        + request.system.len() / 16
        + request.situation.len()
        + parts.sum::<usize>()
        + tools.sum::<usize>()
}

fn sampling(w: &mut JsonWriter, request: &Request, genuine: bool) {
    let sampling = &request.sampling;
    if let Some(temperature) = sampling.temperature.filter(|t| t.is_finite()) {
        w.key("temperature").number(temperature);
    }
    if let Some(top_p) = sampling.top_p.filter(|p| p.is_finite()) {
        w.key("top_p").number(top_p);
    }
    if let Some(max_tokens) = sampling.max_tokens {
        w.key(if genuine { "max_completion_tokens" } else { "max_tokens" }).number(max_tokens);
    }
    if let Some(seed) = sampling.seed {
        w.key("seed").number(seed);
    }
    if !sampling.stop.is_empty() {
        w.key("stop").array(|w| sampling.stop.iter().for_each(|text| w.string(text)));
    }
    if let Some(effort) = &sampling.effort {
        w.key("reasoning_effort").string(effort);
    }
    // OpenAI's own server does not know these fields and rejects unknown ones.
    match sampling.reasoning.filter(|_| !genuine) {
        None | Some(Reasoning::Adaptive) => {}
        Some(Reasoning::Off) => w.key("enable_thinking").bool(false),
        Some(Reasoning::Budget(tokens)) => {
            w.key("enable_thinking").bool(true);
            w.key("thinking_budget").number(tokens);
        }
    }
}

fn tools(w: &mut JsonWriter, request: &Request) {
    for tool in request.tools.iter() {
        w.object(|w| {
            w.key("type").string("function");
            w.key("function").object(|w| {
                w.key("name").string(&tool.name);
                w.key("description").string(&tool.description);
                w.key("parameters").json(&tool.parameters);
            });
        });
    }
}

fn messages(w: &mut JsonWriter, request: &Request, server: &OpenAi) {
    // Thinking is sent back only within the running turn.
    let turn = request.messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    if !request.system.is_empty() {
        w.object(|w| {
            w.key("role").string("system");
            w.key("content").string(&request.system);
        });
    }
    // The wire accepts no images from tools. They follow as a user message after all results of the calls,
    // since nothing may come between those.
    let mut shown: Vec<&Media> = Vec::new();
    let mut situation = &*request.situation;
    for (at, message) in request.messages.iter().enumerate() {
        if message.role != Role::Tool {
            images_of_tools(w, &mut shown);
        }
        match message.role {
            Role::Assistant => assistant(w, message, server.requires_reasoning && at > turn),
            Role::User | Role::Tool => {
                for part in &message.parts {
                    if let Part::Result(result) = part {
                        tool_result(w, result);
                        shown.extend(&result.media);
                    }
                }
                let preface = if message.role == Role::User { std::mem::take(&mut situation) } else { "" };
                user(w, message, preface);
            }
        }
    }
    images_of_tools(w, &mut shown);
}

fn images_of_tools(w: &mut JsonWriter, shown: &mut Vec<&Media>) {
    if shown.is_empty() {
        return;
    }
    w.object(|w| {
        w.key("role").string("user");
        w.key("content").array(|w| {
            text_part(w, "The tool results above came with this:");
            shown.drain(..).for_each(|medium| media_part(w, medium));
        });
    });
}

fn tool_result(w: &mut JsonWriter, result: &ToolResult) {
    w.object(|w| {
        w.key("role").string("tool");
        w.key("tool_call_id").string(result.call_id.as_str());
        w.key("content").string(&result.text);
    });
}

/// A user message: texts as a string, because some servers accept nothing else; anything else as parts.
/// `preface` precedes its text.
fn user(w: &mut JsonWriter, message: &Message, preface: &str) {
    let mut visible = message.parts.iter().filter(|part| matches!(part, Part::Text(_) | Part::Media(_)));
    let (first, more) = (visible.next(), visible.next().is_some());
    let Some(first) = first else {
        if message.role == Role::User && message.parts.is_empty() {
            text_message(w, "user", preface);
        }
        return;
    };
    if let (Part::Text(text), false, true) = (first, more, preface.is_empty()) {
        text_message(w, "user", text);
        return;
    }
    let only_text = message.parts.iter().all(|part| !matches!(part, Part::Media(_)));
    w.object(|w| {
        w.key("role").string("user");
        if only_text {
            let (texts, end) = (Texts(&message.parts), if preface.is_empty() { "" } else { "\n" });
            w.key("content").formatted(format_args!("{preface}{end}{texts}"));
        } else {
            w.key("content").array(|w| {
                if !preface.is_empty() {
                    text_part(w, preface);
                }
                for part in &message.parts {
                    match part {
                        Part::Text(text) => text_part(w, text),
                        Part::Media(medium) => media_part(w, medium),
                        Part::Thought { .. } | Part::Call(_) | Part::Result(_) => {}
                    }
                }
            });
        }
    });
}

/// The texts among parts, each on its own line.
struct Texts<'a>(&'a [Part]);

impl std::fmt::Display for Texts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut texts = self.0.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            _ => None,
        });
        if let Some(first) = texts.next() {
            f.write_str(first)?;
        }
        texts.try_for_each(|text| write!(f, "\n{text}"))
    }
}

fn text_message(w: &mut JsonWriter, role: &str, text: &str) {
    w.object(|w| {
        w.key("role").string(role);
        w.key("content").string(text);
    });
}

/// An assistant message. Its thinking is omitted unless the server requires it: most reject it or charge
/// for it twice.
fn assistant(w: &mut JsonWriter, message: &Message, with_reasoning: bool) {
    // The most common case in a long conversation.
    if let [Part::Text(text)] = &message.parts[..] {
        return text_message(w, "assistant", text);
    }
    let has_text = message.parts.iter().any(|part| matches!(part, Part::Text(text) if !text.is_empty()));
    let has_calls = message.parts.iter().any(|part| matches!(part, Part::Call(_)));
    w.object(|w| {
        w.key("role").string("assistant");
        if has_text {
            w.key("content").formatted(format_args!("{}", JoinedText(&message.parts)));
        } else if has_calls {
            w.key("content").null();
        } else {
            w.key("content").string("");
        }
        if with_reasoning && has_calls {
            w.key("reasoning_content").formatted(format_args!("{}", JoinedThoughts(&message.parts)));
        }
        for part in &message.parts {
            if let Part::Thought { signature: Some(signature), .. } = part {
                message_fields::write(w, signature);
            }
        }
        if has_calls {
            w.key("tool_calls").array(|w| {
                for part in &message.parts {
                    let Part::Call(call) = part else { continue };
                    w.object(|w| {
                        w.key("id").string(call.id.as_str());
                        w.key("type").string("function");
                        w.key("function").object(|w| {
                            w.key("name").string(&call.name);
                            w.key("arguments").string(call.arguments.as_str());
                        });
                        provider_fields(w, call);
                    });
                }
            });
        }
    });
}

/// Fields that the provider set on a call besides its name and arguments.
fn provider_fields(w: &mut JsonWriter, call: &ToolCall) {
    let Some(fields) = &call.provider_fields else { return };
    let Ok(fields) = serde_json::from_str::<Map<String, Value>>(fields.as_str()) else { return };
    for (name, value) in
        fields.iter().filter(|(name, _)| !matches!(name.as_str(), "id" | "type" | "function"))
    {
        w.dynamic_key(name).json_value(value);
    }
}

/// The thinking of a model's message.
struct JoinedThoughts<'a>(&'a [Part]);

impl std::fmt::Display for JoinedThoughts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Thought { text, .. } => f.write_str(text),
            _ => Ok(()),
        })
    }
}

/// The joined texts of an assistant message.
struct JoinedText<'a>(&'a [Part]);

impl std::fmt::Display for JoinedText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            _ => Ok(()),
        })
    }
}

fn text_part(w: &mut JsonWriter, text: &str) {
    w.object(|w| {
        w.key("type").string("text");
        w.key("text").string(text);
    });
}

fn media_part(w: &mut JsonWriter, medium: &Media) {
    let is_image = medium.mime_type.starts_with("image/");
    w.object(|w| match &medium.source {
        MediaSource::Url(url) if is_image => {
            w.key("type").string("image_url");
            w.key("image_url").object(|w| w.key("url").string(url));
        }
        MediaSource::Url(url) => {
            w.key("type").string("text");
            w.key("text").formatted(format_args!("[{} at {url}]", medium.mime_type));
        }
        MediaSource::Base64(data) if is_image => {
            w.key("type").string("image_url");
            w.key("image_url")
                .object(|w| w.key("url").formatted(format_args!("data:{};base64,{data}", medium.mime_type)));
        }
        MediaSource::Base64(data) => {
            w.key("type").string("file");
            w.key("file").object(|w| {
                let extension = medium.mime_type.rsplit('/').next().unwrap_or("bin");
                w.key("filename").formatted(format_args!("attachment.{extension}"));
                w.key("file_data").formatted(format_args!("data:{};base64,{data}", medium.mime_type));
            });
        }
    });
}
