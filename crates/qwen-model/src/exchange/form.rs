//! Detects the form of a body, regardless of its content type.

use ::http::HeaderMap;
use ::http::header::CONTENT_TYPE;

use qwen_http::sse;

pub(super) enum Form {
    /// Not yet known.
    Unknown {
        start: Vec<u8>,
        content_type: ContentType,
    },
    Events(sse::SseReader),
    /// One JSON text.
    Whole(Vec<u8>),
    /// Neither; a part of it is read for the error message.
    Foreign(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentType {
    EventStream,
    Json,
    Other,
}

impl ContentType {
    pub fn read(headers: &HeaderMap) -> Self {
        let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/event-stream" => Self::EventStream,
            "application/json" => Self::Json,
            _ => Self::Other,
        }
    }
}

/// The prefixes of lines in an event stream.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

impl Form {
    /// Detects the form from the first bytes, because servers and proxies send wrong content types; none
    /// while there are too few bytes.
    pub fn recognise(start: &mut Vec<u8>, content_type: ContentType) -> Option<Self> {
        let text = start.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(start).trim_ascii_start();
        let is_json = matches!(text.first()?, b'{' | b'[');
        // An HTML page with any content type: read as events it would be an empty stream, and be retried.
        let is_page = text.starts_with(b"<");
        let is_events = FIELDS.iter().any(|field| text.starts_with(field));
        let is_cut = FIELDS.iter().any(|field| field.starts_with(text));
        if !is_events && is_cut && content_type == ContentType::Other {
            return None;
        }
        let start = std::mem::take(start);
        Some(if is_json {
            Self::Whole(start)
        } else if is_events || (content_type == ContentType::EventStream && !is_page) {
            let mut reader = sse::SseReader::default();
            reader.push(&start);
            Self::Events(reader)
        } else if content_type == ContentType::Json && !is_page {
            Self::Whole(start)
        } else {
            Self::Foreign(start)
        })
    }
}
