//! The content of a prompt, as parts for the model.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, Media, MediaSource, Part};
use serde_json::{Value, json};

/// The content of one `session/prompt`, converted to parts for the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptContent {
    pub parts: Vec<Part>,
}

impl PromptContent {
    /// The parts as a request of the `qwen` dialect has them.
    pub fn request_parts(&self) -> Vec<Value> {
        self.parts.iter().filter_map(request_part).collect()
    }
}

fn request_part(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => Some(json!({"type": "text", "text": &**text})),
        Part::Media(media) => match &media.source {
            MediaSource::Base64(data) => Some(
                json!({"type": "inline_data", "inline_data": {"mime_type": &*media.mime_type, "data": &**data}}),
            ),
            MediaSource::Url(url) => Some(
                json!({"type": "file_data", "file_data": {"mime_type": &*media.mime_type, "file_uri": &**url}}),
            ),
        },
        Part::Thought { .. } | Part::Call(_) | Part::Result(_) => None,
    }
}

fn invalid(at: usize, what: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "invalid_params", format!("prompt[{at}]: {what}"))
        .with_param(format!("prompt[{at}]"))
}

/// Reads the content blocks of a prompt. Links are named to the model, embedded resources are inlined.
pub fn prompt_parts(blocks: &[Value]) -> Result<PromptContent, ErrorInfo> {
    let mut parts: Vec<Part> = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        match part(at, block)? {
            // Blocks that editors split at mentions are one text for the model.
            Part::Text(text) => match parts.last_mut() {
                Some(Part::Text(before)) => *before = format!("{before}{text}").into(),
                _ => parts.push(Part::Text(text)),
            },
            other => parts.push(other),
        }
    }
    let has_content = parts.iter().any(|part| !matches!(part, Part::Text(text) if text.trim().is_empty()));
    if !has_content {
        let message = "the prompt is empty; send at least one content block with content";
        return Err(ErrorInfo::new(ErrorKind::Input, "empty_prompt", message).with_param("prompt"));
    }
    Ok(PromptContent { parts })
}

fn part(at: usize, block: &Value) -> Result<Part, ErrorInfo> {
    let need = |value: &Value, name: &str| -> Result<Arc<str>, ErrorInfo> {
        match value.get(name) {
            Some(Value::String(text)) => Ok(text.as_str().into()),
            Some(_) => Err(invalid(at, &format!("`{name}` must be a string"))),
            None => Err(invalid(at, &format!("`{name}` is missing"))),
        }
    };
    if !block.is_object() {
        return Err(invalid(at, "a content block must be an object with a `type`"));
    }
    match &*need(block, "type")? {
        "text" => Ok(Part::Text(need(block, "text")?)),
        "image" => {
            let mime_type = need(block, "mimeType")?;
            if !mime_type.starts_with("image/") {
                return Err(invalid(at, "`mimeType` of an image must begin with `image/`"));
            }
            let data = need(block, "data")?;
            if !is_base64(&data) {
                return Err(invalid(at, "`data` must be base64"));
            }
            Ok(Part::Media(Media { mime_type, source: MediaSource::Base64(data) }))
        }
        "resource_link" => Ok(Part::Text(mention(&need(block, "uri")?, &need(block, "name")?))),
        "resource" => {
            let resource = block.get("resource").filter(|resource| resource.is_object());
            let resource = resource.ok_or_else(|| invalid(at, "`resource` must be an object"))?;
            let uri = need(resource, "uri")?;
            match (resource.get("text"), resource.get("blob")) {
                (Some(Value::String(text)), _) => Ok(Part::Text(inlined(&uri, text))),
                (None | Some(Value::Null), Some(Value::String(blob))) => {
                    let mime_type = resource.get("mimeType").and_then(Value::as_str);
                    match mime_type.filter(|mime_type| mime_type.starts_with("image/")) {
                        Some(_) if !is_base64(blob) => Err(invalid(at, "`blob` must be base64")),
                        Some(mime_type) => Ok(Part::Media(Media {
                            mime_type: mime_type.into(),
                            source: MediaSource::Base64(blob.as_str().into()),
                        })),
                        None => Ok(Part::Text(
                            format!("[{uri}: binary content of {} bytes, not included]", blob.len() / 4 * 3)
                                .into(),
                        )),
                    }
                }
                _ => Err(invalid(at, "`resource` must have `text` or `blob`, a string")),
            }
        }
        "audio" => Err(invalid(at, "audio is not supported; `promptCapabilities.audio` is false")),
        other => {
            let shown: String = other.chars().take(40).collect();
            let kinds = "text, image, resource_link or resource";
            Err(invalid(at, &format!("there is no content block of type {shown:?}; it must be {kinds}")))
        }
    }
}

fn is_base64(data: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(&byte);
    !data.is_empty() && data.bytes().all(is_allowed)
}

/// How a linked resource is named to the model. The file is read by the model's own tools.
fn mention(uri: &str, name: &str) -> Arc<str> {
    match file_path(uri) {
        Some(path) => format!("`{path}`").into(),
        None => format!("[{name}]({uri})").into(),
    }
}

/// The path of a `file://` address, with its escapes resolved.
fn file_path(uri: &str) -> Option<String> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = path.split(['?', '#']).next()?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escape = (byte == b'%').then(|| std::str::from_utf8(after.get(..2)?).ok()).flatten();
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = after.get(2..)?;
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|path| path.starts_with('/'))
}

/// An embedded resource, marked so that the model can tell it from the prompt.
fn inlined(uri: &str, text: &str) -> Arc<str> {
    let name = file_path(uri).unwrap_or_else(|| uri.to_owned());
    let name = name.replace(['"', '<', '>', '\n'], "_");
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    format!("\n<context ref=\"{name}\">\n{text}{newline}</context>\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(blocks: &Value) -> String {
        let content = prompt_parts(blocks.as_array().unwrap()).unwrap();
        content.parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn mentions_become_part_of_the_text() {
        let blocks = json!([
            {"type": "text", "text": "Explain "},
            {"type": "resource_link", "uri": "file:///w/a%20b.rs", "name": "a b.rs"},
            {"type": "text", "text": ", please."},
        ]);
        assert_eq!(text(&blocks), "Explain `/w/a b.rs`, please.");
        let blocks = json!([{"type": "resource", "resource": {"uri": "file:///w/x", "text": "content"}}]);
        assert_eq!(text(&blocks), "\n<context ref=\"/w/x\">\ncontent\n</context>\n");
    }

    #[test]
    fn a_bad_block_is_named() {
        for (block, words) in [
            (json!(1), "must be an object"),
            (json!({}), "`type` is missing"),
            (json!({"type": "text"}), "`text` is missing"),
            (json!({"type": "text", "text": 1}), "`text` must be a string"),
            (json!({"type": "image", "data": "!", "mimeType": "image/png"}), "base64"),
            (json!({"type": "image", "data": "QQ==", "mimeType": "text/x"}), "image/"),
            (json!({"type": "audio", "data": "", "mimeType": "audio/wav"}), "audio"),
            (json!({"type": "resource", "resource": {"uri": "x"}}), "`text` or `blob`"),
            (
                json!({"type": "resource", "resource": {"uri": "x", "mimeType": "image/png", "blob": "!"}}),
                "base64",
            ),
            (json!({"type": "hologram"}), "hologram"),
        ] {
            let error = prompt_parts(&[json!({"type": "text", "text": "x"}), block]).unwrap_err();
            assert!(error.message.contains(words) && error.message.starts_with("prompt[1]"), "{error}");
        }
        assert_eq!(prompt_parts(&[]).unwrap_err().code, "empty_prompt");
        assert_eq!(prompt_parts(&[json!({"type": "text", "text": " "})]).unwrap_err().code, "empty_prompt");
    }
}
