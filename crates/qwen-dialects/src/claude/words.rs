//! Terms that the vocabulary and the `claude` dialect spell differently.

use qwen_events::{ErrorInfo, ErrorKind, Finish, Timeout, Usage};

use super::wire::message::{CacheCreation, ServerToolUse, ServiceTier, TokenUsage};

/// The version of Claude Code whose behaviour this dialect follows. The SDKs read it, and switch features off
/// below versions that they know; ours is in `qwen_code_version`.
pub(super) const CLAUDE_CODE_VERSION: &str = "2.1.325";

/// The code of the error that ends a turn without the requested structured answer.
pub(super) const NO_STRUCTURED_OUTPUT: &str = "max_structured_output_retries";

/// The code of a call that a hook deferred, and the status of a turn that ended before it.
pub(super) const TOOL_DEFERRED: &str = "tool_deferred";

/// The model name of messages that this program writes itself.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// An approval mode in Claude's terms.
pub fn claude_mode(mode: &str) -> &str {
    match mode {
        "auto-edit" => "acceptEdits",
        "yolo" => "bypassPermissions",
        other => other,
    }
}

/// An approval mode in Qwen's terms.
pub(super) fn qwen_mode(mode: &str) -> &str {
    match mode {
        "acceptEdits" => "auto-edit",
        "bypassPermissions" => "yolo",
        other => other,
    }
}

/// The reason why the model stopped.
pub(super) fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::ContentFilter => "refusal",
    }
}

/// Token usage. Claude's `input_tokens` excludes the cached ones; Qwen's includes them.
pub(super) fn tokens(usage: &Usage, qwen_sdk: bool) -> TokenUsage {
    let cached = if qwen_sdk { 0 } else { usage.cached_tokens.saturating_add(usage.cache_write_tokens) };
    TokenUsage {
        input_tokens: usage.prompt_tokens.saturating_sub(cached),
        output_tokens: usage.completion_tokens,
        cache_read_input_tokens: usage.cached_tokens,
        cache_creation_input_tokens: usage.cache_write_tokens,
        total_tokens: usage.total(),
        ..TokenUsage::default()
    }
}

/// Token usage with the fields that only Claude's CLI writes.
pub(super) fn with_claude_fields(usage: TokenUsage) -> TokenUsage {
    TokenUsage {
        cache_creation: Some(CacheCreation {
            ephemeral_5m_input_tokens: usage.cache_creation_input_tokens,
            ..CacheCreation::default()
        }),
        server_tool_use: Some(ServerToolUse::default()),
        service_tier: Some(ServiceTier::Standard),
        ..usage
    }
}

/// The end of a turn in the words of Claude's package, where it has one.
pub(super) fn claude_reason(reason: &'static str) -> &'static str {
    match reason {
        "budget" => "budget_exhausted",
        NO_STRUCTURED_OUTPUT => "structured_output_retry_exhausted",
        "error" => "model_error",
        "fatal" => "turn_setup_failed",
        other => other,
    }
}

/// True if `error` comes from the model: its server failed, refused, or could not be reached.
pub(super) fn is_api_error(error: &ErrorInfo) -> bool {
    error.code != NO_STRUCTURED_OUTPUT
        && matches!(
            error.kind,
            ErrorKind::Model
                | ErrorKind::Auth
                | ErrorKind::Network
                | ErrorKind::Timeout(Timeout::Connect | Timeout::FirstToken | Timeout::Stall)
        )
}

/// The message about a failed model call.
pub(super) fn api_error_text(error: &ErrorInfo) -> String {
    match error.status {
        Some(status) if !error.message.starts_with(&status.to_string()) => {
            format!("API Error: {status} {}", error.message)
        }
        _ => format!("API Error: {}", error.message),
    }
}

/// The kind of a failed model call, in the SDKs' terms.
pub(super) fn api_error_kind(status: Option<u16>) -> &'static str {
    match status {
        Some(400 | 404 | 413 | 422) => "invalid_request",
        Some(401 | 403) => "authentication_failed",
        Some(402) => "billing_error",
        Some(429) => "rate_limit",
        Some(500..) => "server_error",
        _ => "unknown",
    }
}
