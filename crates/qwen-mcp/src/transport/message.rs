//! Writes and parses JSON-RPC messages.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::tools::visible::visible;

/// Longest error message that is forwarded, in characters.
const LONGEST_ERROR: usize = 2_000;

/// Writes a request. `params` is one JSON object on one line.
pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(crate) fn notification(method: &str, params: Option<&str>) -> String {
    match params {
        Some(params) => format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#),
        None => format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#),
    }
}

/// Writes the notification that a request was cancelled.
pub(crate) fn cancelled(id: u64, reason: &str) -> String {
    let params = format!(r#"{{"requestId":{id},"reason":"{reason}"}}"#);
    notification("notifications/cancelled", Some(&params))
}

/// Writes the response to a server's request. Only `ping` succeeds; a server may not use our model or
/// question our user.
pub(crate) fn answer(id: &str, method: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    let message = match method {
        "sampling/createMessage" => "sampling is refused: servers may not use the model",
        _ => "this client offers no such method",
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"{message}"}}}}"#)
}

/// A message from a server.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    /// The response to one of our requests: the result as JSON, or the error message.
    Answer {
        id: u64,
        result: Result<&'a RawValue, String>,
    },
    /// A request from the server. The id is JSON.
    Request {
        id: &'a str,
        method: Cow<'a, str>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

/// Parses one message or a batch. Returns `None` if it violates the protocol.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Incoming<'_>>> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace())? {
        b'{' => Some(vec![classify(serde_json::from_slice(bytes).ok()?)?]),
        b'[' => {
            let all: Vec<&RawValue> = serde_json::from_slice(bytes).ok()?;
            all.into_iter()
                .map(|one| {
                    one.get()
                        .starts_with('{')
                        .then(|| serde_json::from_str(one.get()).ok())?
                        .and_then(classify)
                })
                .collect()
        }
        _ => None,
    }
}

fn classify(frame: Frame<'_>) -> Option<Incoming<'_>> {
    // A JSON null is not an id; serde maps it to `None`.
    match (frame.id, frame.method) {
        (Some(id), Some(method)) => Some(Incoming::Request { id: id.get(), method }),
        (None, Some(method)) => Some(Incoming::Notification { method, params: frame.params }),
        (Some(id), None) => {
            let result = match (frame.error, frame.result) {
                (Some(error), _) => Err(describe(&error)),
                (None, Some(result)) => Ok(result),
                (None, None) => Err("the answer contains neither a result nor an error".to_owned()),
            };
            Some(Incoming::Answer { id: id.get().parse().ok()?, result })
        }
        (None, None) => None,
    }
}

/// The error code and the description of a response that is an error.
pub(crate) fn read_error(bytes: &[u8]) -> Option<(Option<i64>, String)> {
    let frame: Frame<'_> = serde_json::from_slice(bytes).ok()?;
    let error = frame.error.filter(Value::is_object)?;
    Some((error.get("code").and_then(Value::as_i64), describe(&error)))
}

fn describe(error: &Value) -> String {
    let words = error.get("message").and_then(Value::as_str).unwrap_or("(no message)");
    let mut text = visible(words, LONGEST_ERROR).text;
    if let Some(code) = error.get("code").and_then(Value::as_i64) {
        // Writing to a string cannot fail.
        let _ = write!(text, " (code {code})");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> String {
        let name = |one: &Incoming<'_>| match one {
            Incoming::Answer { id, result: Ok(json) } => format!("answer {id} {}", json.get()),
            Incoming::Answer { id, result: Err(words) } => format!("error {id} {words}"),
            Incoming::Request { id, method } => format!("request {id} {method}"),
            Incoming::Notification { method, params } => {
                format!("notification {method} {}", params.map_or("-", |params| params.get()))
            }
        };
        match read(text.as_bytes()) {
            None => "invalid_line".to_owned(),
            Some(all) => all.iter().map(name).collect::<Vec<_>>().join(" + "),
        }
    }

    #[test]
    fn messages_are_known_by_their_shape() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#, r#"answer 7 {"a":1}"#),
            (
                r#"{"id":7,"error":{"code":-32602,"message":"no\u001b[31m"}}"#,
                r"error 7 no\u{1b}[31m (code -32602)",
            ),
            (r#"{"id":7,"error":"odd"}"#, "error 7 (no message)"),
            (r#"{"id":7}"#, "error 7 the answer contains neither a result nor an error"),
            (r#"{"id":"x","method":"ping"}"#, r#"request "x" ping"#),
            (r#"{"method":"n","params":[1]}"#, "notification n [1]"),
            (r#"{"id":null,"method":"n"}"#, "notification n -"),
            (r#"[{"id":1,"result":2},{"method":"n"}]"#, "answer 1 2 + notification n -"),
            (r#" {"id":"1","result":2}"#, "invalid_line"),
            (r#"{"id":-1,"result":2}"#, "invalid_line"),
            ("[1]", "invalid_line"),
            ("[[]]", "invalid_line"),
            ("{}", "invalid_line"),
            ("Server started", "invalid_line"),
            ("", "invalid_line"),
        ] {
            assert_eq!(shape(text), expected, "{text}");
        }
    }

    #[test]
    fn a_server_may_ping_and_nothing_else() {
        assert_eq!(answer("3", "ping"), r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
        for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
            assert!(answer("\"a\"", method).contains(r#""id":"a","error":{"code":-32601"#), "{method}");
        }
    }
}
