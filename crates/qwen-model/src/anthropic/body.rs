//! Encodes the body of a request.

use std::borrow::Cow;

use qwen_events::{Media, MediaSource, Part, Role, Sampling, ToolResult};

use super::REDACTED;
use super::thinking::Thinking;
use crate::json::JsonWriter;
use crate::known_models::{KnownModel, find_known_model};
use crate::openai::message_fields::MARK;
use crate::request::Request;

/// The answer limit of a model whose limit is unknown; this wire requires one.
const DEFAULT_MAX_TOKENS: u64 = 8192;

/// Writes the body of `request` for `model`.
pub(super) fn write(request: &Request, model: &str) -> Vec<u8> {
    let sampling = &request.sampling;
    let known = find_known_model(model);
    let thinking = Thinking::from_sampling(sampling, known.as_ref());
    let max_tokens = max_tokens(sampling, thinking, known.as_ref());
    let thinking = thinking.within(max_tokens);
    let mut w = JsonWriter::with_capacity(16 * 1024);
    w.object(|w| {
        w.key("model").string(model);
        w.key("max_tokens").number(max_tokens);
        // The parts that are the same in all sessions of a project come first, so that the provider can cache them.
        if !request.tools.is_empty() {
            w.key("tools").array(|w| {
                for tool in request.tools.iter() {
                    w.object(|w| {
                        w.key("name").string(&tool.name);
                        w.key("description").string(&tool.description);
                        w.key("input_schema").json(&tool.parameters);
                    });
                }
            });
        }
        if !request.system.trim().is_empty() {
            w.key("system").array(|w| {
                w.object(|w| {
                    w.key("type").string("text");
                    w.key("text").string(&request.system);
                    cache_here(w);
                });
            });
        }
        w.key("messages").array(|w| messages(w, request));
        w.key("stream").bool(true);
        thinking.write(w, sampling);
        if !thinking.is_on() {
            // With thinking the wire accepts neither of the two.
            if let Some(temperature) = sampling.temperature.filter(|t| t.is_finite()) {
                w.key("temperature").number(temperature);
            }
            if let Some(top_p) = sampling.top_p.filter(|p| p.is_finite()) {
                w.key("top_p").number(top_p);
            }
        }
        if !sampling.stop.is_empty() {
            w.key("stop_sequences").array(|w| sampling.stop.iter().for_each(|text| w.string(text)));
        }
    });
    w.into_bytes()
}

/// The limit of answer and thinking together: by default that of the model.
fn max_tokens(sampling: &Sampling, thinking: Thinking, known: Option<&KnownModel>) -> u64 {
    let known = known.map(|model| model.max_output);
    let wanted = match (sampling.max_tokens, known) {
        // Thinking tokens are added to the answer's own limit.
        (Some(answer), _) => answer.saturating_add(thinking.tokens()),
        (None, Some(most)) => return most,
        (None, None) => DEFAULT_MAX_TOKENS.saturating_add(thinking.tokens()),
    };
    known.map_or(wanted, |most| wanted.min(most))
}

/// Lets the provider cache the prefix up to here: an agent sends the same prefix repeatedly.
fn cache_here(w: &mut JsonWriter) {
    w.key("cache_control").object(|w| w.key("type").string("ephemeral"));
}

/// Writes the conversation as this wire requires it: alternating user and assistant, no empty messages, no
/// empty texts.
fn messages(w: &mut JsonWriter, request: &Request) {
    let situation = Part::Text(request.situation.clone());
    let mut turns: Vec<(bool, Vec<&Part>)> = Vec::new();
    let first_user = request.messages.iter().position(|message| message.role == Role::User);
    for (at, message) in request.messages.iter().enumerate() {
        let by_model = message.role == Role::Assistant;
        let preface = (Some(at) == first_user && is_sent(&situation)).then_some(&situation);
        for part in preface.into_iter().chain(message.parts.iter().filter(|part| is_sent(part))) {
            match turns.last_mut() {
                Some((by, parts)) if *by == by_model => parts.push(part),
                _ => turns.push((by_model, vec![part])),
            }
        }
    }
    let last_turn = turns.len().saturating_sub(1);
    for (number, (by_model, parts)) in turns.iter().enumerate() {
        let last_part = parts.len().saturating_sub(1);
        w.object(|w| {
            w.key("role").string(if *by_model { "assistant" } else { "user" });
            w.key("content").array(|w| {
                for (at, part) in parts.iter().enumerate() {
                    w.object(|w| {
                        block(w, part);
                        let may_cache = !matches!(part, Part::Thought { .. });
                        if number == last_turn && at == last_part && may_cache {
                            cache_here(w);
                        }
                    });
                }
            });
        });
    }
}

fn is_sent(part: &Part) -> bool {
    match part {
        Part::Text(text) => !text.trim().is_empty(),
        // The provider rejects thinking without its own signature.
        Part::Thought { signature, .. } => {
            signature.as_ref().is_some_and(|signature| !signature.starts_with(MARK))
        }
        Part::Media(_) | Part::Call(_) | Part::Result(_) => true,
    }
}

/// The fields of one block.
fn block(w: &mut JsonWriter, part: &Part) {
    match part {
        Part::Text(text) => text_block(w, text),
        Part::Thought { text, signature } => {
            let signature = signature.as_deref().unwrap_or_default();
            if let Some(data) = signature.strip_prefix(REDACTED) {
                w.key("type").string("redacted_thinking");
                w.key("data").string(data);
            } else {
                w.key("type").string("thinking");
                w.key("thinking").string(text);
                w.key("signature").string(signature);
            }
        }
        Part::Media(medium) => media_block(w, medium),
        Part::Call(call) => {
            w.key("type").string("tool_use");
            w.key("id").string(&valid_id(call.id.as_str()));
            w.key("name").string(&call.name);
            w.key("input").json(&call.arguments);
        }
        Part::Result(result) => result_block(w, result),
    }
}

fn text_block(w: &mut JsonWriter, text: &str) {
    w.key("type").string("text");
    w.key("text").string(text);
}

fn result_block(w: &mut JsonWriter, result: &ToolResult) {
    w.key("type").string("tool_result");
    w.key("tool_use_id").string(&valid_id(result.call_id.as_str()));
    if result.media.is_empty() {
        w.key("content").string(&result.text);
    } else {
        w.key("content").array(|w| {
            if !result.text.trim().is_empty() {
                w.object(|w| text_block(w, &result.text));
            }
            result.media.iter().for_each(|medium| w.object(|w| media_block(w, medium)));
        });
    }
    if result.is_error {
        w.key("is_error").bool(true);
    }
}

fn media_block(w: &mut JsonWriter, medium: &Media) {
    let kind = match &*medium.mime_type {
        mime if mime.starts_with("image/") => "image",
        "application/pdf" => "document",
        other => {
            w.key("type").string("text");
            w.key("text")
                .formatted(format_args!("[an attachment of type {other}, which this model cannot be shown]"));
            return;
        }
    };
    w.key("type").string(kind);
    w.key("source").object(|w| match &medium.source {
        MediaSource::Base64(data) => {
            w.key("type").string("base64");
            w.key("media_type").string(&medium.mime_type);
            w.key("data").string(data);
        }
        MediaSource::Url(url) => {
            w.key("type").string("url");
            w.key("url").string(url);
        }
    });
}

/// An id that this wire accepts; other providers mint ids with dots and colons.
fn valid_id(id: &str) -> Cow<'_, str> {
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.chars().all(sound) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(id.chars().map(|c| if sound(c) { c } else { '_' }).collect())
    }
}
