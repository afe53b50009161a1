//! Failed attempts: parses error responses of any shape and decides whether a retry helps.

use std::time::{Duration, SystemTime};

use ::http::HeaderMap;
use qwen_events::{ErrorInfo, ErrorKind};
use serde_json::Value;

use crate::rate_limit::reset_after;
use qwen_http as http;

/// The maximum number of bytes read of an error body.
pub(crate) const MAX_ERROR_BODY: usize = 64 * 1024;

/// The maximum length of a server's text in a message.
const MAX_WORDS: usize = 2000;

/// The maximum length of a quote of unexpected content.
const MAX_QUOTE: usize = 200;

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub error: ErrorInfo,
    /// The delay after which the server accepts a retry.
    pub retry_after: Option<Duration>,
}

impl From<ErrorInfo> for Failure {
    fn from(error: ErrorInfo) -> Self {
        Self { error, retry_after: None }
    }
}

/// The server sent something that is not an answer.
pub(crate) fn not_an_answer(code: &'static str, message: impl Into<String>) -> Failure {
    ErrorInfo::new(ErrorKind::Model, code, message.into()).into()
}

/// The connection or the stream failed; a retry may help.
pub(crate) fn network(code: &'static str, message: impl Into<String>) -> Failure {
    ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Network, code, message.into()) }.into()
}

/// A request that got no response.
pub(crate) fn unanswered(error: &http::Error) -> Failure {
    use qwen_events::Timeout;
    let (kind, code, advice) = match error {
        http::Error::ConnectTimeout { .. } => (
            ErrorKind::Timeout(Timeout::Connect),
            "connect_timeout",
            " (time-out `connect`, setting model.connectTimeout)",
        ),
        http::Error::HeadTimeout { .. } => (
            ErrorKind::Timeout(Timeout::FirstToken),
            "first_token_timeout",
            " (time-out `first token`, setting model.firstTokenTimeout)",
        ),
        http::Error::Url { .. } => (ErrorKind::Settings, "invalid_base_url", "; check the model's base URL"),
        http::Error::Proxy { .. } => (ErrorKind::Network, "proxy_failed", "; check the proxy's address"),
        http::Error::Resolve { .. } => (ErrorKind::Network, "host_not_found", "; check the model's base URL"),
        http::Error::Connect { .. } => (
            ErrorKind::Network,
            "connection_failed",
            "; check that the model's server runs and its base URL is right",
        ),
        http::Error::Tls { .. } => (
            ErrorKind::Network,
            "tls_failed",
            "; check the address, or name the server's certificate in SSL_CERT_FILE",
        ),
        http::Error::AddressRefused { .. } => (ErrorKind::Network, "address_refused", ""),
        http::Error::Exchange { .. } => (ErrorKind::Network, "connection_lost", ""),
        http::Error::Request(_) => (ErrorKind::Settings, "invalid_request", ""),
    };
    let message = format!("{}{advice}", with_causes(error));
    ErrorInfo { retryable: error.is_transient(), ..ErrorInfo::new(kind, code, message) }.into()
}

/// An error and its causes, each text once.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

/// A response with an error status.
pub(crate) fn refused(status: u16, headers: &HeaderMap, body: &[u8], model: &str) -> Failure {
    let body = match serde_json::from_slice::<Value>(body) {
        Ok(value) => ErrorBody::read(&value),
        Err(_) => ErrorBody { message: quote(body), ..ErrorBody::default() },
    };
    let now = SystemTime::now();
    let is_limit = matches!(status, 429 | 529);
    let reset = || is_limit.then(|| reset_after(headers, now)).flatten();
    Failure { error: body.judge(Some(status), model), retry_after: retry_after(headers, now).or_else(reset) }
}

/// An error object inside a stream that began well.
pub(crate) fn in_stream(json: &str, model: &str) -> Failure {
    let body = match serde_json::from_str::<Value>(json) {
        Ok(value) => ErrorBody::read(&value),
        Err(_) => ErrorBody { message: quote(json.as_bytes()), ..ErrorBody::default() },
    };
    let status = body.status.or_else(|| body.implied_status());
    body.judge(status, model).into()
}

/// The content of an error body, wherever it is.
#[derive(Debug, Default)]
struct ErrorBody {
    message: String,
    /// `type`, `code` and similar fields in lower case, each followed by a space.
    words: String,
    status: Option<u16>,
}

impl ErrorBody {
    fn read(value: &Value) -> Self {
        let mut body = Self::default();
        body.collect(value, 0);
        if body.message.is_empty() {
            body.message = quote(value.to_string().as_bytes());
        }
        body
    }

    /// Searches the locations that servers are known to use: `error`, `message`, `detail`, lists of them,
    /// nested or not.
    fn collect(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(text) => self.set_message(text),
            Value::Array(items) if depth < 4 => {
                if let Some(first) = items.first() {
                    self.collect(first, depth + 1);
                }
            }
            Value::Object(map) => {
                for key in ["type", "code", "status"] {
                    match map.get(key) {
                        Some(Value::String(word)) => {
                            self.words.push_str(&word.to_ascii_lowercase());
                            self.words.push(' ');
                            self.status =
                                self.status.or_else(|| word.parse().ok().filter(|n| is_error_status(*n)));
                        }
                        Some(Value::Number(number)) => {
                            let status = number.as_u64().and_then(|n| u16::try_from(n).ok());
                            self.status = self.status.or(status.filter(|n| is_error_status(*n)));
                        }
                        _ => {}
                    }
                }
                if depth < 4 {
                    for key in ["error", "message", "detail", "errors", "msg", "error_msg", "error_message"] {
                        if let Some(inner) = map.get(key) {
                            self.collect(inner, depth + 1);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn set_message(&mut self, text: &str) {
        if self.message.is_empty() {
            self.message = clean(text, MAX_WORDS);
        }
    }

    /// The HTTP status that corresponds to a code, if a stream has only the code.
    fn implied_status(&self) -> Option<u16> {
        let has = |word: &str| self.words.contains(word);
        if has("overloaded") {
            Some(529)
        } else if has("rate_limit") || has("too_many_requests") {
            Some(429)
        } else if has("authentication") || has("invalid_api_key") {
            Some(401)
        } else if has("permission") {
            Some(403)
        } else if has("not_found") {
            Some(404)
        } else if has("invalid_request") || has("context_length") {
            Some(400)
        } else if has("api_error") || has("server_error") || has("internal") || has("unavailable") {
            Some(500)
        } else {
            None
        }
    }

    fn judge(&self, status: Option<u16>, model: &str) -> ErrorInfo {
        let lower = self.message.to_ascii_lowercase();
        let about = |word: &str| self.words.contains(word) || lower.contains(word);
        let too_long = TOO_LONG.iter().any(|phrase| about(phrase));
        let overloaded = about("overloaded");
        let no_model = lower.contains("model") || self.words.contains("model");
        let (kind, code, retryable, advice) = match status {
            Some(401) => (ErrorKind::Auth, "unauthorized", false, "; check the API key"),
            Some(403) => (ErrorKind::Auth, "forbidden", false, "; check the API key and what it may do"),
            Some(400 | 413 | 422) if too_long => (ErrorKind::Model, "context_length_exceeded", false, ""),
            Some(404) if no_model => (
                ErrorKind::Model,
                "model_not_found",
                false,
                "; check the model's name (--model NAME; qwen models lists what the server offers)",
            ),
            Some(404) => (ErrorKind::Model, "not_found", false, "; check the model's base URL"),
            Some(429) if self.words.contains("insufficient_quota") => {
                (ErrorKind::Model, "insufficient_quota", false, "")
            }
            Some(429) => (ErrorKind::Model, "rate_limited", true, ""),
            Some(529) => (ErrorKind::Model, "overloaded", true, ""),
            Some(500..=599) if overloaded => (ErrorKind::Model, "overloaded", true, ""),
            Some(500 | 502 | 503 | 504) => (ErrorKind::Model, "server_error", true, ""),
            Some(408) => (ErrorKind::Model, "request_timeout", true, ""),
            Some(409) => (ErrorKind::Model, "conflict", true, ""),
            Some(300..=399) => {
                (ErrorKind::Model, "redirected", false, "; set the base URL to where the server really is")
            }
            Some(400 | 413 | 422) => (ErrorKind::Model, "invalid_request", false, ""),
            Some(_) => (ErrorKind::Model, "refused", false, ""),
            None => (ErrorKind::Model, "model_error", false, ""),
        };
        let reason = status
            .and_then(|status| ::http::StatusCode::from_u16(status).ok())
            .and_then(|status| status.canonical_reason())
            .map_or_else(String::new, |reason| format!(" {reason}"));
        let answered = match status {
            Some(status) => format!("the server of the model `{model}` answered {status}{reason}"),
            None => format!("the server of the model `{model}` reported an error"),
        };
        let words = if self.message.is_empty() { "without a message" } else { &self.message };
        let message = format!("{answered}: {words}{advice}");
        ErrorInfo { status, retryable, ..ErrorInfo::new(kind, code, message) }
    }
}

fn is_error_status(status: u16) -> bool {
    (400..=599).contains(&status)
}

/// The delay that the server requests: `retry-after-ms`, or `retry-after` in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let at_most_a_day = |seconds: f64| Duration::from_secs_f64(seconds.min(86_400.0));
    if let Some(ms) = text("retry-after-ms").and_then(number) {
        return Some(at_most_a_day(ms / 1000.0));
    }
    let value = text("retry-after")?;
    if let Some(seconds) = number(value) {
        return Some(at_most_a_day(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// The beginning of unexpected content, on one line.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(4 * MAX_QUOTE)];
    let text = String::from_utf8_lossy(start);
    let text = text.trim();
    let mut quoted: String = text.chars().take(MAX_QUOTE).flat_map(char::escape_debug).collect();
    if text.chars().count() > MAX_QUOTE || start.len() < bytes.len() {
        quoted.push('…');
    }
    quoted
}

/// A server's text without control characters, which could manipulate a terminal.
fn clean(text: &str, max: usize) -> String {
    let mut out: String =
        text.trim().chars().take(max).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().count() > max {
        out.push('…');
    }
    out
}

/// Phrases with which servers report that a conversation exceeds the model's context window.
const TOO_LONG: [&str; 12] = [
    "context_length",
    "context length",
    "context window",
    "context_window",
    "context limit",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "input length should be",
    "maximum number of tokens",
    "reduce the length of the",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, body: &str) -> ErrorInfo {
        refused(status, &HeaderMap::new(), body.as_bytes(), "m").error
    }

    #[test]
    fn the_servers_words_are_found_in_every_usual_shape() {
        for body in [
            r#"{"error":{"message":"the words","type":"x"}}"#,
            r#"{"error":"the words"}"#,
            r#"{"message":"the words","code":"y"}"#,
            r#"{"detail":"the words"}"#,
            r#"{"detail":[{"loc":["body"],"msg":"the words"}]}"#,
            r#"{"errors":[{"message":"the words"}]}"#,
            r#"[{"error":{"message":"the words","code":400}}]"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"the words"}}"#,
            r#"{"error_msg":"the words"}"#,
            "the words",
        ] {
            let error = judged(400, body);
            assert!(error.message.contains("400 Bad Request: the words"), "{body}: {error}");
        }
    }

    #[test]
    fn statuses_are_judged() {
        for (status, body, kind, code, retryable) in [
            (401, "{}", ErrorKind::Auth, "unauthorized", false),
            (403, "{}", ErrorKind::Auth, "forbidden", false),
            (
                400,
                r#"{"error":{"message":"maximum context length is 8192"}}"#,
                ErrorKind::Model,
                "context_length_exceeded",
                false,
            ),
            (
                400,
                r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
                ErrorKind::Model,
                "context_length_exceeded",
                false,
            ),
            (
                400,
                r#"{"message":"Range of input length should be [1, 98304]","code":"InvalidParameter"}"#,
                ErrorKind::Model,
                "context_length_exceeded",
                false,
            ),
            (
                413,
                r#"{"error":{"type":"exceed_context_size_error","message":"the request exceeds the available context size"}}"#,
                ErrorKind::Model,
                "context_length_exceeded",
                false,
            ),
            (400, "{}", ErrorKind::Model, "invalid_request", false),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist"}}"#,
                ErrorKind::Model,
                "model_not_found",
                false,
            ),
            (404, "nothing here", ErrorKind::Model, "not_found", false),
            (408, "", ErrorKind::Model, "request_timeout", true),
            (409, "", ErrorKind::Model, "conflict", true),
            (429, "", ErrorKind::Model, "rate_limited", true),
            (
                429,
                r#"{"error":{"code":"insufficient_quota"}}"#,
                ErrorKind::Model,
                "insufficient_quota",
                false,
            ),
            (500, "", ErrorKind::Model, "server_error", true),
            (502, "<html>", ErrorKind::Model, "server_error", true),
            (503, "overloaded", ErrorKind::Model, "overloaded", true),
            (504, "", ErrorKind::Model, "server_error", true),
            (529, "", ErrorKind::Model, "overloaded", true),
            (501, "", ErrorKind::Model, "refused", false),
            (302, "", ErrorKind::Model, "redirected", false),
        ] {
            let error = judged(status, body);
            assert_eq!((error.kind, error.code, error.retryable), (kind, code, retryable), "{status} {body}");
            assert_eq!(error.status, Some(status));
        }
    }

    #[test]
    fn the_wait_that_a_server_asks_for_is_read_in_three_spellings() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:49:27 GMT"), Some(Duration::ZERO));
        assert_eq!(read("retry-after", "-1"), None);
        assert_eq!(read("retry-after", "soon"), None);
        assert_eq!(read("retry-after", "1e300"), Some(Duration::from_secs(86_400)));
    }

    #[test]
    fn quotes_are_short_and_on_one_line() {
        let quoted = quote("<html>\n\u{1b}[31m".repeat(100).as_bytes());
        assert!(quoted.len() < 1000 && !quoted.contains(['\n', '\u{1b}']), "{quoted}");
        assert!(quoted.ends_with('…'));
        assert!(!judged(500, "{\"message\":\"a\\u001b[31mb\"}").message.contains('\u{1b}'));
    }

    #[test]
    fn a_word_in_a_stream_implies_its_status() {
        let failure = in_stream(r#"{"type":"overloaded_error","message":"Overloaded"}"#, "m");
        assert_eq!(
            (failure.error.status, failure.error.code, failure.error.retryable),
            (Some(529), "overloaded", true)
        );
        let failure = in_stream(r#"{"message":"no","code":429}"#, "m");
        assert_eq!((failure.error.status, failure.error.retryable), (Some(429), true));
        let failure = in_stream(r#""just words""#, "m");
        assert_eq!((failure.error.status, failure.error.code), (None, "model_error"));
        assert!(failure.error.message.contains("just words"));
    }
}
