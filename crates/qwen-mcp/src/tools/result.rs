//! Converts the results of tools and resources for the model.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qwen_events::{Media, MediaSource, image_type};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::tools::visible::visible;

/// The most images that one result may hold.
const MOST_IMAGES: usize = 16;
/// The largest image, in bytes.
const LARGEST_IMAGE: usize = 8 << 20;
/// The longest address or name that is shown, in characters.
const LONGEST_LABEL: usize = 500;

/// The `result` of `tools/call` on the wire.
#[derive(Deserialize)]
struct CallAnswer {
    #[serde(default)]
    content: Vec<Block>,
    #[serde(rename = "structuredContent", default)]
    structured: Option<Value>,
    #[serde(rename = "isError", default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct ReadResult {
    contents: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Image {
        data: String,
    },
    Audio {
        #[serde(rename = "mimeType", default)]
        mime_type: String,
    },
    Resource {
        resource: Resource,
    },
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        description: String,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
    #[serde(rename = "mimeType", default)]
    mime_type: String,
    text: Option<String>,
    blob: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceContents {
    /// The text, with a note for content that is neither text nor image.
    pub text: String,
    pub media: Vec<Media>,
}

/// The result of a call without its text, which went to the [`TextSink`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallResult {
    pub media: Vec<Media>,
    /// The server reported that the tool failed.
    pub is_error: bool,
}

/// Parses the result of a call and writes its text to `out`. Returns `None` if the result violates the
/// protocol.
pub(crate) fn call_result(result: &RawValue, out: &mut dyn TextSink) -> Option<CallResult> {
    let result: CallAnswer = serde_json::from_str(result.get()).ok()?;
    let mut collected = Collected::new(out);
    for block in result.content {
        collected.block(block);
    }
    if let (false, Some(structured)) = (collected.any_text, &result.structured) {
        collected.text(&structured.to_string());
    }
    if collected.is_empty() {
        collected.text("(no output)");
    }
    Some(CallResult { media: collected.media, is_error: result.is_error })
}

/// Parses the contents of a resource. Returns `None` if the result violates the protocol.
pub(crate) fn contents(result: &RawValue) -> Option<ResourceContents> {
    let result: ReadResult = serde_json::from_str(result.get()).ok()?;
    let mut text = String::new();
    let mut collected = Collected::new(&mut text);
    for resource in result.contents {
        match resource {
            Resource { text: Some(text), .. } => collected.text(&text),
            other => collected.resource(other),
        }
    }
    let media = collected.media;
    Some(ResourceContents { text, media })
}

/// Receives the text of a result.
pub trait TextSink: Send {
    /// Appends a piece of the text.
    fn append(&mut self, piece: &str);
}

impl TextSink for String {
    fn append(&mut self, piece: &str) {
        self.push_str(piece);
    }
}

struct Collected<'a> {
    out: &'a mut dyn TextSink,
    media: Vec<Media>,
    has_output: bool,
    any_text: bool,
}

impl<'a> Collected<'a> {
    fn new(out: &'a mut dyn TextSink) -> Self {
        Self { out, media: Vec::new(), has_output: false, any_text: false }
    }

    fn is_empty(&self) -> bool {
        !self.has_output && self.media.is_empty()
    }

    fn text(&mut self, text: &str) {
        if self.has_output {
            self.out.append("\n");
        }
        self.has_output = true;
        self.any_text = true;
        self.out.append(text);
    }

    fn note(&mut self, note: &str) {
        let any_text = self.any_text;
        self.text(&format!("[{note}]"));
        self.any_text = any_text;
    }

    fn block(&mut self, block: Block) {
        match block {
            Block::Text { text } => self.text(&text),
            Block::Image { data } => self.image(&data, "an image"),
            Block::Audio { mime_type } => {
                self.note(&format!("audio of type {}, which is not shown", label(&mime_type)));
            }
            Block::Resource { resource } => self.resource(resource),
            Block::ResourceLink { uri, name, description } => {
                let mut note = format!("a resource: {} {}", label(&name), label(&uri));
                if !description.is_empty() {
                    note.push_str(": ");
                    note.push_str(&label(&description));
                }
                self.note(&note);
            }
            Block::Unknown => self.note("content of an unknown kind"),
        }
    }

    fn resource(&mut self, resource: Resource) {
        let uri = label(&resource.uri);
        match resource {
            Resource { text: Some(text), .. } => {
                self.note(&format!("the resource {uri}"));
                self.text(&text);
            }
            Resource { blob: Some(blob), mime_type, .. } if mime_type.starts_with("image/") => {
                self.image(&blob, &format!("the image {uri}"));
            }
            Resource { blob: Some(blob), mime_type, .. } => {
                let kind = if mime_type.is_empty() {
                    "unknown type".to_owned()
                } else {
                    format!("type {}", label(&mime_type))
                };
                self.note(&format!(
                    "the resource {uri}, about {} bytes of {kind}, is not shown",
                    blob.len() / 4 * 3
                ));
            }
            Resource { .. } => self.note(&format!("the resource {uri} is empty")),
        }
    }

    /// Adds an image if model servers accept its type. The type comes from its first bytes, not from the
    /// declared MIME type.
    fn image(&mut self, data: &str, name: &str) {
        if self.media.len() == MOST_IMAGES {
            self.note(&format!("{name} exceeds the number of images and is not shown"));
            return;
        }
        if data.len() / 4 * 3 > LARGEST_IMAGE {
            self.note(&format!("{name} is larger than {} MiB and not shown", LARGEST_IMAGE >> 20));
            return;
        }
        let data: String = data.split_ascii_whitespace().collect();
        match STANDARD.decode(&data).map(|bytes| image_type(&bytes)) {
            Ok(Some(mime_type)) => self
                .media
                .push(Media { mime_type: mime_type.into(), source: MediaSource::Base64(data.into()) }),
            Ok(None) | Err(_) => self.note(&format!("{name} is of a kind that cannot be shown")),
        }
    }
}

fn label(text: &str) -> String {
    visible(text, LONGEST_LABEL).text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PIXEL: &str = "R0lGODlhAQABAAAAACwAAAAAAQABAAA=";

    fn of(result: &Value) -> (String, CallResult) {
        let raw = serde_json::value::to_raw_value(result).unwrap();
        let mut text = String::new();
        let made = call_result(&raw, &mut text).unwrap();
        (text, made)
    }

    #[test]
    fn texts_and_resources_become_text_and_images_become_images() {
        let (text, made) = of(&json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/pdf", "blob": "AAAAAAAA"}},
            {"type": "resource_link", "uri": "x://y\u{200b}", "name": "n"},
            {"type": "audio", "data": "", "mimeType": "audio/wav"},
            {"type": "smell"}],
            "structuredContent": {"ignored": true}}));
        assert_eq!(
            text,
            "one\n[the resource file:///a]\ntwo\n[the resource file:///b, about 6 bytes of type application/pdf, is not shown]\n\
             [a resource: n x://y\\u{200b}]\n[audio of type audio/wav, which is not shown]\n\
             [content of an unknown kind]"
        );
        assert!(!made.is_error);
        let image = Media { mime_type: "image/gif".into(), source: MediaSource::Base64(PIXEL.into()) };
        assert_eq!(made.media, [image], "its bytes say that it is a GIF");
    }

    #[test]
    fn data_alone_becomes_its_json() {
        let (text, made) = of(&json!({"content": [], "structuredContent": {"a": [1, 2]}}));
        assert_eq!((text.as_str(), made), (r#"{"a":[1,2]}"#, CallResult::default()));
        assert_eq!(of(&json!({})).0, "(no output)");
    }

    #[test]
    fn a_tool_that_failed_is_an_error_in_its_own_words() {
        let (text, made) =
            of(&json!({"content": [{"type": "text", "text": "no such row"}], "isError": true}));
        assert_eq!((text.as_str(), made.is_error), ("no such row", true));
    }

    #[test]
    fn images_that_a_model_would_choke_on_are_named_and_not_passed_on() {
        let (text, made) = of(&json!({"content": [
            {"type": "image", "data": "not base64!", "mimeType": "image/png"},
            {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}));
        assert!(made.media.is_empty());
        assert_eq!(text.matches("an image is of a kind that cannot be shown").count(), 2);
    }

    #[test]
    fn a_malformed_result_is_rejected() {
        for result in [json!(7), json!({"content": "x"}), json!({"content": [{"type": "text"}]})] {
            let raw = serde_json::value::to_raw_value(&result).unwrap();
            assert!(call_result(&raw, &mut String::new()).is_none(), "{result}");
        }
    }
}
