//! What a client is told about a line that cannot be read.

use qwen_events::{ErrorInfo, ErrorKind};

/// A line that cannot be used.
pub(super) fn refuse(code: &'static str, message: impl Into<std::sync::Arc<str>>) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, code, message)
}

/// A line that cannot be used because of the field at `path`.
pub(super) fn refuse_at(
    code: &'static str,
    path: &str,
    message: impl Into<std::sync::Arc<str>>,
) -> ErrorInfo {
    refuse(code, message).with_param(path)
}

/// A field that is not there.
pub(super) fn missing(path: &str, expected: &str) -> ErrorInfo {
    refuse_at("missing_field", path, format!("`{path}` is missing; it must be {expected}"))
}

/// A field that holds a word which is none of those that it may hold.
pub(super) fn invalid(path: &str, found: &str, expected: &str) -> ErrorInfo {
    let shown: String = found.chars().take(80).collect();
    refuse_at("invalid_value", path, format!("`{path}` is {shown:?}; it must be {expected}"))
}
