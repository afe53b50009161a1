//! Log form of errors.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, Timeout};
use serde::{Deserialize, Serialize};

use super::{is_default, word};

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct ErrorForm {
    kind: String,
    message: Arc<str>,
    code: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    param: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "is_default")]
    retryable: bool,
}

impl From<&ErrorInfo> for ErrorForm {
    fn from(error: &ErrorInfo) -> Self {
        Self {
            kind: kind_word(error.kind),
            message: error.message.clone(),
            code: error.code.into(),
            param: error.param.clone(),
            status: error.status,
            retryable: error.retryable,
        }
    }
}

impl From<ErrorForm> for ErrorInfo {
    fn from(form: ErrorForm) -> Self {
        Self {
            kind: kind(&form.kind),
            message: form.message,
            code: word(&form.code),
            param: form.param,
            status: form.status,
            retryable: form.retryable,
            // Refused prompts are not logged.
            refused: None,
            input: None,
        }
    }
}

const KINDS: [(ErrorKind, &str); 12] = [
    (ErrorKind::Input, "input"),
    (ErrorKind::Usage, "usage"),
    (ErrorKind::Auth, "auth"),
    (ErrorKind::Settings, "settings"),
    (ErrorKind::Sandbox, "sandbox"),
    (ErrorKind::Model, "model"),
    (ErrorKind::Network, "network"),
    (ErrorKind::Tool, "tool"),
    (ErrorKind::Limit, "limit"),
    (ErrorKind::UnsupportedProtocol, "unsupported_protocol"),
    (ErrorKind::Overloaded, "overloaded"),
    (ErrorKind::Internal, "internal"),
];

const TIMEOUTS: [Timeout; 9] = [
    Timeout::Start,
    Timeout::Connect,
    Timeout::FirstToken,
    Timeout::Stall,
    Timeout::Tool,
    Timeout::Node,
    Timeout::Control,
    Timeout::Turn,
    Timeout::Drain,
];

fn kind_word(kind: ErrorKind) -> String {
    if let ErrorKind::Timeout(timeout) = kind {
        return format!("timeout: {}", timeout.name());
    }
    KINDS.iter().find(|(known, _)| *known == kind).map_or("internal", |(_, word)| word).to_owned()
}

/// An unknown kind, written by a later version, is read as an internal error: the message still describes it.
fn kind(word: &str) -> ErrorKind {
    if let Some(name) = word.strip_prefix("timeout: ") {
        let timeout = TIMEOUTS.into_iter().find(|timeout| timeout.name() == name);
        return timeout.map_or(ErrorKind::Internal, ErrorKind::Timeout);
    }
    KINDS.iter().find(|(_, known)| *known == word).map_or(ErrorKind::Internal, |(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_comes_back_as_it_went() {
        let timeouts = TIMEOUTS.map(ErrorKind::Timeout);
        for kind in KINDS.iter().map(|(kind, _)| *kind).chain(timeouts) {
            let error = ErrorInfo {
                param: Some("input.parts".into()),
                status: Some(529),
                retryable: true,
                ..ErrorInfo::new(kind, "overloaded_error", "wait a little")
            };
            let text = serde_json::to_string(&ErrorForm::from(&error)).expect("a line");
            let form: ErrorForm = serde_json::from_str(&text).expect(&text);
            assert_eq!(ErrorInfo::from(form), error, "{text}");
        }
    }
}
