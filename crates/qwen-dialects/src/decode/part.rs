//! The parts of a message, in the spellings of Qwen, Google's genai, OpenAI and Claude.

use std::sync::Arc;

use qwen_events::{CallId, Media, MediaSource, Part, ToolResult};

use super::Result;
use super::error::{missing, refuse_at};
use super::field::{Kind, Object, Value};

/// The kinds of part that are recognised by their `type`.
const TYPES: &str = "`text`, `function_response`, `file_data`, `inline_data`, `image_url`, `image`, `document` or `tool_result`";

/// A list of parts, one part, or a text.
pub(super) fn parts(value: &Value<'_>) -> Result<Vec<Part>> {
    match value.kind() {
        Kind::Array => value.array()?.iter().map(part).collect(),
        Kind::String | Kind::Object => Ok(vec![part(value)?]),
        _ => Err(value.type_error("a text or an array of parts")),
    }
}

/// The texts of some parts, joined.
pub(super) fn joined(parts: &[Part]) -> Arc<str> {
    let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
    texts.join("\n").into()
}

/// True if any part has content.
pub(super) fn have_content(parts: &[Part]) -> bool {
    parts.iter().any(|part| !matches!(part, Part::Text(text) if text.trim().is_empty()))
}

fn part(value: &Value<'_>) -> Result<Part> {
    if value.kind() == Kind::String {
        return Ok(Part::Text(value.string()?));
    }
    let object = value.object_or("a text or a part")?;
    let Some(kind) = object.string("type")? else {
        return untyped(&object);
    };
    match &*kind {
        "text" => Ok(Part::Text(object.need("text", "a string")?.string()?)),
        "function_response" | "functionResponse" => {
            function_response(&body(&object, &["function_response", "functionResponse"])?)
        }
        "file_data" | "fileData" => {
            media(&body(&object, &["file_data", "fileData"])?, "application/octet-stream")
        }
        "inline_data" | "inlineData" => {
            media(&body(&object, &["inline_data", "inlineData"])?, "application/octet-stream")
        }
        "image_url" => image_url(&object.need("image_url", "an object with a `url`")?),
        "image" => media(&body(&object, &["source"])?, "image/*"),
        "document" => document(&object),
        "tool_result" => tool_result(&object),
        other => {
            let shown: String = other.chars().take(80).collect();
            let message = format!("there is no part of type {shown:?}; it must be {TYPES}");
            Err(refuse_at("unknown_type", &object.path_of("type"), message))
        }
    }
}

/// A part in the form of genai: its only key is its type.
fn untyped(object: &Object<'_>) -> Result<Part> {
    if let Some(text) = object.get("text") {
        return Ok(Part::Text(text.string()?));
    }
    if let Some(response) = object.any(&["function_response", "functionResponse"]) {
        return function_response(&response.object()?);
    }
    if let Some(data) = object.any(&["file_data", "fileData", "inline_data", "inlineData"]) {
        return media(&data.object()?, "application/octet-stream");
    }
    if let Some(image) = object.get("image_url") {
        return image_url(&image);
    }
    Err(missing(&object.path_of("type"), TYPES))
}

/// The object that holds a part's payload: under its own key, or the part itself.
fn body<'a>(object: &Object<'a>, names: &[&str]) -> Result<Object<'a>> {
    object.any(names).map_or_else(|| Ok(object.clone()), |value| value.object())
}

fn function_response(object: &Object<'_>) -> Result<Part> {
    let call_id = object.any(&["id", "call_id", "callId", "tool_call_id"]);
    let response = object.need_any(&["response", "output", "content"], "what the tool gave back")?;
    let (text, failed) = response_text(&response)?;
    Ok(Part::Result(ToolResult {
        call_id: CallId::new(call_id.map(|id| id.string()).transpose()?.unwrap_or_default()),
        name: object.string("name")?.unwrap_or_default(),
        text,
        media: Vec::new(),
        is_error: failed || object.bool("is_error")?.unwrap_or(false),
    }))
}

/// A tool's result as text, and whether it is an error. A string is used verbatim; of an object, `error`,
/// `output`, `content` or `result` is used; anything else is passed to the model as JSON.
fn response_text(value: &Value<'_>) -> Result<(Arc<str>, bool)> {
    let plain = |value: &Value<'_>| -> Result<Arc<str>> {
        if value.kind() == Kind::String { value.string() } else { Ok(value.json().as_str().into()) }
    };
    if value.kind() != Kind::Object {
        return Ok((plain(value)?, false));
    }
    let object = value.object()?;
    if let Some(error) = object.get("error") {
        return Ok((plain(&error)?, true));
    }
    match object.any(&["output", "content", "result"]) {
        Some(output) => Ok((plain(&output)?, false)),
        None => Ok((plain(value)?, false)),
    }
}

/// A medium in any of its spellings; `otherwise` is the default type.
fn media(object: &Object<'_>, otherwise: &str) -> Result<Part> {
    let mime_type =
        object.any(&["mime_type", "mimeType", "media_type"]).map(|mime| mime.string()).transpose()?;
    if let Some(data) = object.get("data") {
        let mime_type = mime_type.unwrap_or_else(|| otherwise.into());
        return Ok(Part::Media(Media { mime_type, source: MediaSource::Base64(data.string()?) }));
    }
    let expected = "base64 data, or an address in `url`";
    let url = object
        .any(&["file_uri", "fileUri", "url", "uri"])
        .ok_or_else(|| missing(&object.path_of("data"), expected))?;
    at_address(&url, mime_type, otherwise)
}

fn image_url(value: &Value<'_>) -> Result<Part> {
    let url = match value.kind() {
        Kind::Object => value.object()?.need("url", "an address")?,
        _ => value.clone(),
    };
    at_address(&url, None, "image/*")
}

/// A medium at a URL, which may contain the bytes itself (`data:`).
fn at_address(value: &Value<'_>, mime_type: Option<Arc<str>>, otherwise: &str) -> Result<Part> {
    let url = value.text_or("an address")?;
    if let Some(inline) = url.strip_prefix("data:") {
        let Some((kind, data)) = inline.split_once(";base64,") else {
            let message = format!("`{}` is a data: address that is not base64", value.path());
            return Err(refuse_at("invalid_value", value.path(), message));
        };
        let named = kind.split(';').next().filter(|kind| !kind.is_empty()).map(Arc::from);
        let mime_type = named.or(mime_type).unwrap_or_else(|| otherwise.into());
        return Ok(Part::Media(Media { mime_type, source: MediaSource::Base64(data.into()) }));
    }
    let mime_type = mime_type.unwrap_or_else(|| by_extension(&url).unwrap_or(otherwise).into());
    Ok(Part::Media(Media { mime_type, source: MediaSource::Url((&*url).into()) }))
}

/// The MIME type that a URL's extension implies.
fn by_extension(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, extension) = path.rsplit_once('/')?.1.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        _ => return None,
    })
}

/// Claude's document: bytes, an address, or plain text.
fn document(object: &Object<'_>) -> Result<Part> {
    let source = object.need("source", "an object")?.object()?;
    if source.string("type")?.as_deref() == Some("text") {
        return Ok(Part::Text(source.need("data", "a string")?.string()?));
    }
    media(&source, "application/pdf")
}

/// Claude's tool result.
fn tool_result(object: &Object<'_>) -> Result<Part> {
    let call_id = object.need("tool_use_id", "a string")?.string()?;
    let content = object.get("content").map(|content| parts(&content)).transpose()?.unwrap_or_default();
    Ok(Part::Result(ToolResult {
        call_id: CallId::new(call_id),
        name: Arc::default(),
        text: joined(&content),
        media: media_of(content),
        is_error: object.bool("is_error")?.unwrap_or(false),
    }))
}

/// The media among some parts.
pub(super) fn media_of(parts: Vec<Part>) -> Vec<Media> {
    parts
        .into_iter()
        .filter_map(|part| match part {
            Part::Media(media) => Some(media),
            _ => None,
        })
        .collect()
}
