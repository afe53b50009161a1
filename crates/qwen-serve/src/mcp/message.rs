//! JSON-RPC messages of MCP clients, and the messages that answer them.

use serde_json::{Map, Value, json};

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const HEADER_MISMATCH: i64 = -32020;
pub const MISSING_CAPABILITY: i64 = -32021;
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// An error as JSON-RPC carries it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl ProtocolError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// The response that reports this error.
    pub fn response(&self, id: &Value) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}

/// A request of the client.
#[derive(Debug, Clone, PartialEq)]
pub struct McpRequest {
    /// A text or an integer.
    pub id: Value,
    pub method: String,
    /// An object; empty if the client sent none.
    pub params: Value,
}

impl McpRequest {
    /// The value of a `_meta` key of the protocol.
    pub fn meta(&self, name: &str) -> &Value {
        &self.params["_meta"][format!("io.modelcontextprotocol/{name}")]
    }
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub enum McpMessage {
    Request(McpRequest),
    Notification {
        method: String,
        params: Value,
    },
    /// The answer to a request of the server; none if it is an error.
    Response {
        id: Value,
        result: Option<Value>,
    },
}

/// Parses a message. The error is the response to send.
pub fn parse(text: &[u8]) -> Result<McpMessage, Value> {
    let refuse = |id: &Value, code, message: &str| Err(ProtocolError::new(code, message).response(id));
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return refuse(&Value::Null, PARSE_ERROR, "The message is not valid JSON.");
    };
    let Value::Object(mut message) = value else {
        return refuse(&Value::Null, INVALID_REQUEST, "The message must be one JSON object.");
    };
    let id = message.remove("id");
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    let shown = id.clone().filter(is_id).unwrap_or_default();
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(&shown, INVALID_REQUEST, "`jsonrpc` must be \"2.0\".");
    }
    let Some(method) = message.remove("method") else {
        let is_answer = message.contains_key("result") || message.contains_key("error");
        return match id {
            Some(id) if is_answer => Ok(McpMessage::Response { id, result: message.remove("result") }),
            _ => refuse(&shown, INVALID_REQUEST, "The message has neither a method nor a result."),
        };
    };
    let Value::String(method) = method else {
        return refuse(&shown, INVALID_REQUEST, "`method` must be a text.");
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(params @ Value::Object(_)) => params,
        Some(_) => return refuse(&shown, INVALID_PARAMS, "`params` must be an object."),
    };
    match id {
        None => Ok(McpMessage::Notification { method, params }),
        Some(id) if is_id(&id) => Ok(McpMessage::Request(McpRequest { id, method, params })),
        Some(_) => refuse(&Value::Null, INVALID_REQUEST, "`id` must be a text or an integer."),
    }
}

/// A notification of the server.
pub fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_by_their_shape() {
        let request = parse(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap();
        let expected = McpRequest { id: json!(1), method: "ping".to_owned(), params: json!({}) };
        assert_eq!(request, McpMessage::Request(expected));
        let note = parse(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap();
        assert_eq!(note, McpMessage::Notification { method: "x".to_owned(), params: json!({"a": 1}) });
        let answer = parse(br#"{"jsonrpc":"2.0","id":"q","result":{}}"#).unwrap();
        assert_eq!(answer, McpMessage::Response { id: json!("q"), result: Some(json!({})) });
        let failed = parse(br#"{"jsonrpc":"2.0","id":"q","error":{"code":1,"message":""}}"#).unwrap();
        assert_eq!(failed, McpMessage::Response { id: json!("q"), result: None });
    }

    #[test]
    fn a_bad_message_is_one_error() {
        for (text, code, id) in [
            ("{", PARSE_ERROR, Value::Null),
            ("[]", INVALID_REQUEST, Value::Null),
            (r#"{"id":1,"method":"m"}"#, INVALID_REQUEST, json!(1)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, INVALID_REQUEST, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, INVALID_REQUEST, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, INVALID_REQUEST, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, INVALID_PARAMS, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST, json!(1)),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &id), "{text}");
        }
    }
}
