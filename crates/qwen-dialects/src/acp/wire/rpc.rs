//! JSON-RPC 2.0 lines: reading them, and writing answers.

use std::borrow::Cow;

use qwen_events::ErrorInfo;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::outcome::error_code;
use super::super::sizes::explanation;

/// The longest line that is accepted, in bytes.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
pub const AUTH_REQUIRED: i64 = -32000;
pub const NOT_FOUND: i64 = -32002;

/// The longest id of a request, in bytes: the answer repeats it in one frame.
const MAX_ID: usize = 256 * 1024;

/// The id of a client's request, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcId(String);

impl RpcId {
    pub fn null() -> Self {
        Self("null".to_owned())
    }

    /// The id if it is one that JSON-RPC allows: an integer, a string or null.
    fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // Half a surrogate pair is not a text.
        let is_text = text.starts_with('"') && serde_json::from_str::<String>(text).is_ok();
        (is_text || text == "null" || is_integer).then(|| Self(text.to_owned()))
    }

    /// The JSON of the id.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// True if `value` is the same id; `1` and `"1"` differ.
    pub fn is(&self, value: &Value) -> bool {
        serde_json::from_str::<Value>(&self.0).is_ok_and(|id| id == *value)
    }
}

/// Why a request fails.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
}

impl RpcError {
    pub fn new(code: i64, message: impl AsRef<str>) -> Self {
        Self { code, message: explanation(message.as_ref()) }
    }

    pub fn params(message: impl AsRef<str>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

impl From<ErrorInfo> for RpcError {
    fn from(error: ErrorInfo) -> Self {
        Self::new(error_code(&error), &*error.message)
    }
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub enum ClientMessage {
    Request { id: RpcId, method: String, params: Value },
    Notification { method: String, params: Value },
    Response { id: Value, result: Result<Value, Value> },
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    params: Option<Value>,
    #[serde(default, deserialize_with = "present_value")]
    result: Option<Value>,
    error: Option<Value>,
}

/// Reads a value that is there, `null` included.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(input: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

fn present_value<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(Some)
}

/// Reads a line. An error names the request that it answers.
pub fn read(line: &[u8]) -> Result<ClientMessage, (RpcId, RpcError)> {
    let refuse = |code, message: String| (RpcId::null(), RpcError::new(code, message));
    if line.len() > MAX_LINE {
        return Err(too_long());
    }
    let text = std::str::from_utf8(line).map_err(|error| {
        refuse(PARSE_ERROR, format!("the line is not UTF-8 from byte {} on", error.valid_up_to()))
    })?;
    let parsed = serde_json::from_str::<&RawValue>(text.trim());
    parsed.map_err(|error| refuse(PARSE_ERROR, format!("the line is not valid JSON: {error}")))?;
    match text.trim_start().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => {
            let message = "batches are not supported; send one message per line";
            return Err(refuse(INVALID_REQUEST, message.to_owned()));
        }
        _ => return Err(refuse(INVALID_REQUEST, "a message must be a JSON object".to_owned())),
    }
    let line: Line<'_> = serde_json::from_str(text)
        .map_err(|error| refuse(INVALID_REQUEST, format!("the message cannot be read: {error}")))?;
    if line.id.is_some_and(|raw| raw.get().len() > MAX_ID) {
        return Err(refuse(INVALID_REQUEST, format!("`id` is longer than {} KiB", MAX_ID / 1024)));
    }
    let id = line.id.map(|raw| {
        let words = "`id` must be an integer, a string or null";
        RpcId::read(raw).ok_or_else(|| refuse(INVALID_REQUEST, words.to_owned()))
    });
    let id = id.transpose()?;
    let refuse_this = |message: &str| {
        Err((id.clone().unwrap_or_else(RpcId::null), RpcError::new(INVALID_REQUEST, message)))
    };
    if line.jsonrpc.as_deref() != Some("2.0") {
        return refuse_this("`jsonrpc` must be \"2.0\"");
    }
    let Some(method) = line.method else {
        let value = line.id.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        return match (line.id, line.result, line.error) {
            (Some(_), Some(result), None) => Ok(ClientMessage::Response { id: value, result: Ok(result) }),
            (Some(_), None, Some(error)) => Ok(ClientMessage::Response { id: value, result: Err(error) }),
            _ => refuse_this("a message has a `method`, or an `id` and one of `result` and `error`"),
        };
    };
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return refuse_this("`method` must be a string");
    };
    let params = line.params.unwrap_or(Value::Null);
    if !matches!(params, Value::Null | Value::Object(_)) {
        let id = id.unwrap_or_else(RpcId::null);
        return Err((id, RpcError::params("`params` must be an object")));
    }
    Ok(match id {
        Some(id) => ClientMessage::Request { id, method, params },
        None => ClientMessage::Notification { method, params },
    })
}

/// The answer to a line that is longer than [`MAX_LINE`].
pub fn too_long() -> (RpcId, RpcError) {
    let message = format!(
        "the line is longer than {} MiB and was skipped; send large content as a resource_link",
        MAX_LINE / 1024 / 1024
    );
    (RpcId::null(), RpcError::new(INVALID_REQUEST, message))
}

/// Appends the response to a request.
pub fn push_response(id: &RpcId, result: &Result<Value, RpcError>, out: &mut Vec<u8>) {
    let body = match result {
        Ok(result) => format!("\"result\":{result}"),
        Err(error) => {
            let error = serde_json::json!({"code": error.code, "message": error.message});
            format!("\"error\":{error}")
        }
    };
    out.extend_from_slice(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{body}}}\n", id.as_json()).as_bytes());
}

/// Appends the notification that a request to the client needs no answer any more.
pub fn push_cancel(request_id: &str, out: &mut Vec<u8>) {
    let params = serde_json::json!({"requestId": request_id});
    let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{params}}}\n");
    out.extend_from_slice(line.as_bytes());
}

/// Returns a required string parameter. Fails if it is absent or not a string.
pub fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, RpcError> {
    match params.get(name) {
        Some(Value::String(text)) => Ok(text),
        None | Some(Value::Null) => Err(RpcError::params(format!("`{name}` is missing"))),
        Some(_) => Err(RpcError::params(format!("`{name}` must be a string"))),
    }
}

/// Returns a string parameter, or `None` if it is absent or `null`. Fails if it has another type.
pub fn optional_text<'a>(params: &'a Value, name: &str) -> Result<Option<&'a str>, RpcError> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(params, name).map(Some),
    }
}

/// A list, which may be absent if it is not `required`.
pub fn list<'a>(params: &'a Value, name: &str, required: bool) -> Result<&'a [Value], RpcError> {
    match params.get(name) {
        Some(Value::Array(items)) => Ok(items),
        None | Some(Value::Null) if !required => Ok(&[]),
        None | Some(Value::Null) => Err(RpcError::params(format!("`{name}` is missing"))),
        Some(_) => Err(RpcError::params(format!("`{name}` must be an array"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let request = read(br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}"#);
        let expected = ClientMessage::Request {
            id: RpcId("\"a\"".to_owned()),
            method: "m".to_owned(),
            params: json!({"x": 1}),
        };
        assert_eq!(request, Ok(expected));
        let notification = read(br#"{"jsonrpc":"2.0","method":"m"}"#);
        assert_eq!(
            notification,
            Ok(ClientMessage::Notification { method: "m".to_owned(), params: Value::Null })
        );
        let response = read(br#"{"jsonrpc":"2.0","id":1,"result":null}"#);
        assert_eq!(response, Ok(ClientMessage::Response { id: json!(1), result: Ok(Value::Null) }));
    }

    #[test]
    fn an_id_is_echoed_as_it_was_written() {
        for id in ["0", "-1", "null", "\"\"", "123456789012345678901234567890", "\"\\u00e4\""] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            let Ok(ClientMessage::Request { id: read, .. }) = read(line.as_bytes()) else { panic!("{id}") };
            assert_eq!(read.as_json(), id);
        }
    }

    #[test]
    fn a_bad_line_is_one_error() {
        for (line, code, id) in [
            ("garbage", PARSE_ERROR, "null"),
            ("{\"jsonrpc\":\"2.0\"", PARSE_ERROR, "null"),
            ("[]", INVALID_REQUEST, "null"),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]", INVALID_REQUEST, "null"),
            ("1", INVALID_REQUEST, "null"),
            (r#"{"id":1,"method":"m"}"#, INVALID_REQUEST, "1"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, INVALID_REQUEST, "1"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, INVALID_REQUEST, "null"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, INVALID_REQUEST, "null"),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, INVALID_REQUEST, "1"),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST, "1"),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, INVALID_REQUEST, "1"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, INVALID_PARAMS, "1"),
        ] {
            let (found, error) = read(line.as_bytes()).unwrap_err();
            assert_eq!((error.code, found.as_json()), (code, id), "{line}");
            assert!(!error.message.is_empty() && !error.message.contains('\n'));
        }
        assert_eq!(read(b"\xff").unwrap_err().1.code, PARSE_ERROR);
    }
}
