//! The lines as they are written, field for field.

use std::borrow::Cow;

use qwen_events::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::tool::{ToolCallConfirmation, ToolCallRequest, ToolCallResponse};
use crate::qwen::wire::ErrorBody;

/// One line of the stream.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum CoreLine<'a> {
    /// A piece of the model's text.
    Content(#[serde(borrow)] Cow<'a, str>),
    /// A thought of the model.
    Thought(#[serde(borrow)] ThoughtValue<'a>),
    /// A tool call requested by the model.
    ToolCallRequest(#[serde(borrow)] ToolCallRequest<'a>),
    /// A permission request for a call.
    ToolCallConfirmation(#[serde(borrow)] ToolCallConfirmation<'a>),
    /// A tool call ended.
    ToolCallResponse(#[serde(borrow)] ToolCallResponse<'a>),
    /// The history was compacted into a summary.
    ChatCompressed(Compression),
    /// The limit on model calls was reached.
    MaxSessionTurns(#[serde(borrow)] Notice<'a>),
    /// The answer was cut off by the model's output limit or the token limit.
    MaxTokens(#[serde(borrow)] Notice<'a>),
    /// A loop was detected.
    LoopDetected(#[serde(borrow)] Notice<'a>),
    /// A model call failed and is retried.
    Retry(#[serde(borrow)] RetryValue<'a>),
    /// A fallback model continues the turn.
    ModelFallback(#[serde(borrow)] FallbackValue<'a>),
    /// The approval mode changed.
    ModeChanged(#[serde(borrow)] ModeValue<'a>),
    /// A prompt joins the running turn before its next model call.
    Steered(#[serde(borrow)] SteeredValue<'a>),
    /// An event that has no type in this dialect.
    Custom(
        #[serde(borrow)]
        #[schemars(with = "serde_json::Value")]
        &'a RawValue,
    ),
    /// An input line that was rejected.
    InputError(#[serde(borrow)] ErrorValue<'a>),
    /// A recoverable error; the turn continues.
    Warning(#[serde(borrow)] ErrorValue<'a>),
    /// The turn completed. Terminal record.
    Finished(#[serde(borrow)] Finished<'a>),
    /// The turn failed or reached a limit, or the process cannot continue. Terminal record.
    Error(#[serde(borrow)] Failed<'a>),
    /// The turn was cancelled. Terminal record.
    UserCancelled(#[serde(borrow)] Cancelled<'a>),
}

/// A completed thought of the model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ThoughtValue<'a> {
    /// The subject of the thought.
    #[serde(borrow)]
    pub subject: Cow<'a, str>,
    /// The text of the thought.
    #[serde(borrow)]
    pub description: Cow<'a, str>,
    /// The id of the tool call that started the sub-agent.
    #[serde(borrow, rename = "parentCallId", default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<Cow<'a, str>>,
}

/// The number of tokens before and after compaction.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compression {
    /// The number of tokens before compaction.
    pub original_token_count: u64,
    /// The number of tokens after compaction.
    pub new_token_count: u64,
}

/// A notice for users.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Notice<'a> {
    /// The text of the notice.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// The limit that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A model call that is retried.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryValue<'a> {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// The maximum number of retries.
    pub max_retries: u32,
    /// The delay before the next attempt in milliseconds.
    pub delay_ms: u64,
    /// The HTTP status code, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The error message for users.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

/// A fallback model continues the turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FallbackValue<'a> {
    /// The model that failed.
    #[serde(borrow)]
    pub from: Cow<'a, str>,
    /// The model that continues the turn.
    #[serde(borrow)]
    pub to: Cow<'a, str>,
    /// The reason for the end.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// The new approval mode.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModeValue<'a> {
    /// The name of the mode.
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
}

/// A prompt that joins the running turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SteeredValue<'a> {
    /// The id of the prompt that joins, not of the turn.
    #[serde(borrow)]
    pub prompt_id: Cow<'a, str>,
}

/// A recoverable error; the turn or the process continues.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorValue<'a> {
    /// The error, if the request failed.
    #[serde(borrow)]
    pub error: ErrorBody<'a>,
}

/// A turn that completed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Finished<'a> {
    /// `STOP`, `MAX_TOKENS` or `SAFETY`
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// The rest of the terminal record.
    #[serde(borrow, flatten)]
    pub turn: TurnTotals<'a>,
}

/// A turn that failed or reached a limit.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Failed<'a> {
    /// The cause of the failure.
    #[serde(borrow)]
    pub error: Failure<'a>,
    /// The rest of the terminal record; absent where the process ends outside a turn.
    #[serde(borrow, flatten)]
    pub turn: Option<TurnTotals<'a>>,
}

/// The cause of a turn's end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Failure<'a> {
    /// A message for users.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// The HTTP status code, if a server returned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// A stable identifier of the error or of the limit that was reached.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'a, str>>,
}

/// A turn that was cancelled.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Cancelled<'a> {
    /// The reason, for users.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// The rest of the terminal record.
    #[serde(borrow, flatten)]
    pub turn: TurnTotals<'a>,
}

/// What every terminal record says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnTotals<'a> {
    /// The id of the turn's prompt.
    #[serde(borrow, rename = "prompt_id", default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// Tokens of the whole turn.
    pub usage_metadata: UsageMetadata,
    /// The tool calls that were refused.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub permission_denials: Vec<Refusal<'a>>,
}

/// A tool call that was refused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refusal<'a> {
    /// The id of the tool call.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The name of the tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The reason for the end.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// Token counts under Google's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageMetadata {
    /// Tokens read by the model.
    pub prompt_token_count: u64,
    /// Tokens written by the model.
    pub candidates_token_count: u64,
    /// The sum of both.
    pub total_token_count: u64,
    /// The part of the prompt tokens served from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_content_token_count: Option<u64>,
    /// The part of the output tokens spent on thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thoughts_token_count: Option<u64>,
}

impl From<&Usage> for UsageMetadata {
    fn from(usage: &Usage) -> Self {
        let some = |tokens: u64| (tokens > 0).then_some(tokens);
        Self {
            prompt_token_count: usage.prompt_tokens,
            candidates_token_count: usage.completion_tokens,
            total_token_count: usage.total(),
            cached_content_token_count: some(usage.cached_tokens),
            thoughts_token_count: some(usage.thought_tokens),
        }
    }
}
