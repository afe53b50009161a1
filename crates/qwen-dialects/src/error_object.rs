//! Errors as the `claude`, `claude-lite` and Loom dialects write them.

use std::borrow::Cow;

use qwen_events::{ErrorInfo, ErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error: `type` and `code` for programs, `message` for users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorObject<'a> {
    /// The kind of error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// What was attempted, what failed, and what to do next.
    pub message: Cow<'a, str>,
    /// A stable identifier for programs, such as `invalid_json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'a, str>>,
    /// The invalid field of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<Cow<'a, str>>,
    /// The HTTP status code, if a server returned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// True if a retry may succeed.
    #[serde(default)]
    pub retryable: bool,
}

impl<'a> From<&'a ErrorInfo> for ErrorObject<'a> {
    fn from(error: &'a ErrorInfo) -> Self {
        Self {
            kind: kind_word(error.kind).into(),
            message: error.message.as_ref().into(),
            code: Some(error.code.into()),
            param: error.param.as_deref().map(Cow::Borrowed),
            status: error.status,
            retryable: error.retryable,
        }
    }
}

fn kind_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Input | ErrorKind::Usage => "invalid_request_error",
        ErrorKind::Auth => "authentication_error",
        ErrorKind::Settings => "settings_error",
        ErrorKind::Sandbox => "sandbox_error",
        ErrorKind::Model => "api_error",
        ErrorKind::Network => "network_error",
        ErrorKind::Timeout(_) => "timeout_error",
        ErrorKind::Tool => "tool_error",
        ErrorKind::Limit => "limit_error",
        ErrorKind::UnsupportedProtocol => "unsupported_protocol",
        ErrorKind::Overloaded => "overloaded_error",
        ErrorKind::Internal => "internal_error",
    }
}
