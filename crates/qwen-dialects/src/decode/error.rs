//! Errors about lines that cannot be read.

use qwen_events::{ErrorInfo, ErrorKind};

/// The error for an unusable line.
pub(super) fn refuse(code: &'static str, message: impl Into<std::sync::Arc<str>>) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, code, message)
}

/// The error for a line that is unusable because of the field at `path`.
pub(super) fn refuse_at(
    code: &'static str,
    path: &str,
    message: impl Into<std::sync::Arc<str>>,
) -> ErrorInfo {
    refuse(code, message).with_param(path)
}

/// The error for a missing field.
pub(super) fn missing(path: &str, expected: &str) -> ErrorInfo {
    refuse_at("missing_field", path, format!("`{path}` is missing; it must be {expected}"))
}

/// The error for a field with an unknown value.
pub(super) fn invalid(path: &str, found: &str, expected: &str) -> ErrorInfo {
    let shown: String = found.chars().take(80).collect();
    refuse_at("invalid_value", path, format!("`{path}` is {shown:?}; it must be {expected}"))
}
