//! How a turn ends: the response to its prompt, with a result or an error.

use std::borrow::Cow;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Finish, TurnEnd, Usage};
use serde_json::json;

use super::sizes::{call_id, explanation, one_line};
use super::wire::{
    ErrorObject, ErrorResponse, PromptResponse, PromptResult, StopReason, TokenCounts, Version,
};
use crate::line::push_line;
use crate::qwen::turn::end_words;

/// The maximum number of denied calls that a response names.
const MAX_DENIALS: usize = 100;

/// The code of an error in JSON-RPC.
pub fn error_code(error: &ErrorInfo) -> i64 {
    match (error.kind, error.code) {
        (ErrorKind::Auth, _) => -32000,
        (_, "unknown_session" | "file_not_found") => -32002,
        (ErrorKind::Input | ErrorKind::Usage, _) => -32602,
        _ => -32603,
    }
}

/// A failure for the client.
pub(super) fn error_object(error: &ErrorInfo) -> ErrorObject<'static> {
    let message = explanation(&error.message);
    let message = if message.is_empty() { "The request failed.".to_owned() } else { message };
    ErrorObject {
        code: error_code(error),
        message: message.into(),
        data: Some(json!({"qwen": {"code": error.code, "retryable": error.retryable}})),
    }
}

/// Writes the response to the prompt.
pub(super) fn push_end(end: &TurnEnd, with_usage: bool, out: &mut Vec<u8>) {
    let id = Cow::Borrowed(end.prompt_id.as_str());
    let stop_reason = match end.status {
        EndStatus::Done => match end.finish {
            Finish::Stop | Finish::ToolCalls => StopReason::EndTurn,
            Finish::Length => StopReason::MaxTokens,
            Finish::ContentFilter => StopReason::Refusal,
        },
        EndStatus::Cancelled => StopReason::Cancelled,
        EndStatus::MaxTokens => StopReason::MaxTokens,
        EndStatus::MaxTurns | EndStatus::MaxToolCalls | EndStatus::MaxWallTime | EndStatus::Budget => {
            StopReason::MaxTurnRequests
        }
        // The model or its provider refused to answer.
        EndStatus::Error if end.finish == Finish::ContentFilter => StopReason::Refusal,
        EndStatus::Error | EndStatus::Interrupted => {
            let unexplained = || ErrorInfo::new(ErrorKind::Internal, end.status.name(), end_words(end));
            let cause = end.error.clone().unwrap_or_else(unexplained);
            let mut error = error_object(&cause);
            // A failed turn is not an invalid request.
            if error.code == -32602 {
                error.code = -32603;
            }
            error.data = Some(json!({"qwen": {"status": end.status.name(), "code": cause.code,
                "retryable": cause.retryable, "costUsd": end.cost_usd}}));
            return push_line(out, &ErrorResponse { jsonrpc: Version::Word, id, error });
        }
    };
    let mut meta = json!({"status": end.status.name(), "modelCalls": end.model_calls,
        "toolCalls": end.tool_calls, "durationMs": end.duration_ms, "usage": counts(&end.usage)});
    if end.cost_usd > 0.0 {
        meta["costUsd"] = end.cost_usd.into();
    }
    if end.status != EndStatus::Done {
        meta["message"] = one_line(end_words(end)).into();
    }
    if !end.denials.is_empty() {
        let denied = end.denials.iter().take(MAX_DENIALS);
        meta["denied"] = denied.map(|denial| call_id(&denial.call_id).into_owned()).collect();
    }
    let usage = with_usage.then(|| counts(&end.usage));
    let result = PromptResult { stop_reason, usage, meta: Some(json!({"qwen": meta})) };
    push_line(out, &PromptResponse { jsonrpc: Version::Word, id, result });
}

fn counts(usage: &Usage) -> TokenCounts {
    TokenCounts {
        input_tokens: usage.prompt_tokens.saturating_sub(usage.cached_tokens),
        output_tokens: usage.completion_tokens,
        total_tokens: usage.total(),
        cached_read_tokens: usage.cached_tokens,
        cached_write_tokens: usage.cache_write_tokens,
        thought_tokens: usage.thought_tokens,
    }
}
