//! One request to a server, and what the stateless revision of the protocol adds to it: metadata in the body,
//! headers over HTTP, and results that ask for another attempt.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use qwen_events::TraceContext;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The revision without a handshake: every request carries the protocol version.
pub(crate) const STATELESS: &str = "2026-07-28";

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The least important log messages that servers send during a call.
const LOG_LEVEL: &str = "info";
/// How header values begin and end that HTTP cannot carry as they are.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

pub(crate) struct Request<'a> {
    pub method: &'static str,
    /// The members of `params`: JSON without the braces around it.
    pub members: String,
    /// The tool or the resource that it names.
    pub name: Option<&'a str>,
    /// Arguments that the tool wants to have as headers, too.
    pub headers: HeaderMap,
    pub trace: Option<&'a TraceContext>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: &'static str, members: String) -> Self {
        Self { method, members, name: None, headers: HeaderMap::new(), trace: None }
    }

    pub(crate) fn naming(self, name: &'a str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Writes `params`. `state` is what the server gave to be returned with another attempt.
    pub(crate) fn params(&self, meta: Map<String, Value>, state: Option<&RawValue>) -> String {
        let mut members = self.members.clone();
        let mut add = |name: &str, value: &str| {
            let comma = if members.is_empty() { "" } else { "," };
            members.push_str(&format!("{comma}\"{name}\":{value}"));
        };
        if let Some(state) = state {
            add("requestState", state.get());
        }
        if !meta.is_empty() {
            add("_meta", &Value::from(meta).to_string());
        }
        format!("{{{members}}}")
    }

    /// The `_meta` of the request. `progress` is the token of its progress reports.
    pub(crate) fn meta(&self, progress: Option<u64>, is_stateless: bool) -> Map<String, Value> {
        let mut meta = Map::new();
        if let Some(token) = progress {
            meta.insert("progressToken".to_owned(), token.into());
        }
        if let Some(trace) = self.trace {
            meta.insert("traceparent".to_owned(), (*trace.traceparent).into());
            if let Some(state) = &trace.tracestate {
                meta.insert("tracestate".to_owned(), (**state).into());
            }
        }
        if is_stateless {
            let mut add = |name: &str, value: Value| {
                meta.insert(format!("io.modelcontextprotocol/{name}"), value);
            };
            add("protocolVersion", STATELESS.into());
            add("clientInfo", client_info());
            add("clientCapabilities", json!({}));
            if progress.is_some() {
                add("logLevel", LOG_LEVEL.into());
            }
        }
        meta
    }

    /// The headers of a stateless request over HTTP, apart from the version.
    pub(crate) fn stateless_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(METHOD, HeaderValue::from_static(self.method));
        if let Some(value) = self.name.and_then(header_value) {
            headers.insert(NAME, value);
        }
        headers
    }
}

/// How this client introduces itself.
pub(crate) fn client_info() -> Value {
    json!({"name": "qwen", "version": env!("CARGO_PKG_VERSION")})
}

/// A text as the value of a header, encoded if HTTP cannot carry it as it is.
pub(crate) fn header_value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim_matches([' ', '\t']) == text
        && !(text.starts_with(ENCODED.0) && text.ends_with(ENCODED.1));
    let value = if is_plain {
        text.to_owned()
    } else {
        format!("{}{}{}", ENCODED.0, STANDARD.encode(text), ENCODED.1)
    };
    HeaderValue::try_from(value).ok()
}

/// What a stateless server returned.
pub(crate) enum ResultKind {
    Complete,
    /// It wants the same request again, with this state.
    Repeat(Option<Box<RawValue>>),
    /// It wants answers to questions first. The methods are what the server wrote.
    Questions(Vec<String>),
    /// A kind that this client did not offer to understand.
    Unknown(String),
}

pub(crate) fn result_kind(answer: &RawValue) -> ResultKind {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Interim {
        #[serde(default)]
        result_type: Option<String>,
        #[serde(default)]
        input_requests: Map<String, Value>,
        #[serde(default)]
        request_state: Option<Box<RawValue>>,
    }
    let Ok(interim) = serde_json::from_str::<Interim>(answer.get()) else { return ResultKind::Complete };
    match interim.result_type.as_deref() {
        None | Some("complete") => ResultKind::Complete,
        Some("input_required") if interim.input_requests.is_empty() => {
            ResultKind::Repeat(interim.request_state)
        }
        Some("input_required") => {
            let method = |request: &Value| request["method"].as_str().unwrap_or("?").to_owned();
            ResultKind::Questions(interim.input_requests.values().map(method).collect())
        }
        Some(other) => ResultKind::Unknown(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_are_encoded_where_http_cannot_carry_them() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(header_value(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_request_of_the_older_revisions_carries_only_what_its_caller_wants() {
        let request = Request::new("tools/list", String::new());
        assert_eq!(request.params(request.meta(None, false), None), "{}");
        let request = Request::new("tools/call", r#""name":"t","arguments":{}"#.to_owned()).naming("t");
        assert_eq!(
            request.params(request.meta(Some(3), false), None),
            r#"{"name":"t","arguments":{},"_meta":{"progressToken":3}}"#
        );
    }

    #[test]
    fn a_stateless_request_says_who_speaks_which_version() {
        let request = Request::new("server/discover", String::new());
        let params: Value = serde_json::from_str(&request.params(request.meta(None, true), None)).unwrap();
        let meta = &params["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "qwen");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert!(meta.get("io.modelcontextprotocol/logLevel").is_none());
    }
}
