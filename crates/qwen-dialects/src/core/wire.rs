//! The lines as they are written, field for field.

use std::borrow::Cow;

use qwen_events::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::tool::{ToolCallConfirmation, ToolCallRequest, ToolCallResponse};
use crate::qwen::wire::ErrorBody;

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum CoreLine<'a> {
    /// The model wrote a piece of text.
    Content(#[serde(borrow)] Cow<'a, str>),
    /// The model thought something.
    Thought(#[serde(borrow)] ThoughtValue<'a>),
    /// The model wants a tool.
    ToolCallRequest(#[serde(borrow)] ToolCallRequest<'a>),
    /// Someone is asked about a call.
    ToolCallConfirmation(#[serde(borrow)] ToolCallConfirmation<'a>),
    /// A call is over.
    ToolCallResponse(#[serde(borrow)] ToolCallResponse<'a>),
    /// History was replaced by a summary.
    ChatCompressed(Compression),
    /// The limit on model calls was reached.
    MaxSessionTurns(#[serde(borrow)] Notice<'a>),
    /// The model's output limit, or the token limit, cut the answer.
    MaxTokens(#[serde(borrow)] Notice<'a>),
    /// The agent repeats itself.
    LoopDetected(#[serde(borrow)] Notice<'a>),
    /// A model call failed and is tried again.
    Retry(#[serde(borrow)] RetryValue<'a>),
    /// Another model goes on.
    ModelFallback(#[serde(borrow)] FallbackValue<'a>),
    /// The approval mode changed.
    ModeChanged(#[serde(borrow)] ModeValue<'a>),
    /// A prompt joins the running turn before its next model call.
    Steered(#[serde(borrow)] SteeredValue<'a>),
    /// Anything else.
    Custom(
        #[serde(borrow)]
        #[schemars(with = "serde_json::Value")]
        &'a RawValue,
    ),
    /// A line that could not be used.
    InputError(#[serde(borrow)] ErrorValue<'a>),
    /// Something went wrong and the turn goes on.
    Warning(#[serde(borrow)] ErrorValue<'a>),
    /// The turn is done. Terminal.
    Finished(#[serde(borrow)] Finished<'a>),
    /// The turn failed, ran into a limit, or nothing can go on. Terminal.
    Error(#[serde(borrow)] Failed<'a>),
    /// The turn was cancelled. Terminal.
    UserCancelled(#[serde(borrow)] Cancelled<'a>),
}

/// A thought.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ThoughtValue<'a> {
    /// What it is about, in a few words.
    #[serde(borrow)]
    pub subject: Cow<'a, str>,
    /// The thought.
    #[serde(borrow)]
    pub description: Cow<'a, str>,
    /// The call whose sub-agent thinks.
    #[serde(borrow, rename = "parentCallId", default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<Cow<'a, str>>,
}

/// Tokens before and after compression.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compression {
    /// Before.
    pub original_token_count: u64,
    /// After.
    pub new_token_count: u64,
}

/// A notice in words.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Notice<'a> {
    /// What happened.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// The limit that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A model call that is tried again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryValue<'a> {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// How many retries there may be.
    pub max_retries: u32,
    /// How long we wait.
    pub delay_ms: u64,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What went wrong.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

/// Another model goes on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FallbackValue<'a> {
    /// The model that failed.
    #[serde(borrow)]
    pub from: Cow<'a, str>,
    /// The model that goes on.
    #[serde(borrow)]
    pub to: Cow<'a, str>,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// The approval mode now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModeValue<'a> {
    /// The mode.
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
}

/// A prompt that joins the running turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SteeredValue<'a> {
    /// The prompt's id, not the turn's.
    #[serde(borrow)]
    pub prompt_id: Cow<'a, str>,
}

/// Something that went wrong while the turn, or the process, goes on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorValue<'a> {
    /// What went wrong.
    #[serde(borrow)]
    pub error: ErrorBody<'a>,
}

/// A turn that is done.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Finished<'a> {
    /// `STOP`, `MAX_TOKENS` or `SAFETY`
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// The rest of the terminal record.
    #[serde(borrow, flatten)]
    pub turn: TurnTotals<'a>,
}

/// A turn that failed or ran into a limit.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Failed<'a> {
    /// What ended it.
    #[serde(borrow)]
    pub error: Failure<'a>,
    /// The rest of the terminal record; absent where the process ends outside a turn.
    #[serde(borrow, flatten)]
    pub turn: Option<TurnTotals<'a>>,
}

/// What ended a turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Failure<'a> {
    /// In words.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// The HTTP status, where a server gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// A stable word: of the error, or the limit that was reached.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'a, str>>,
}

/// A turn that was cancelled.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Cancelled<'a> {
    /// Why, in words.
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
    /// The turn.
    #[serde(borrow, rename = "prompt_id", default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// Tokens of the whole turn.
    pub usage_metadata: UsageMetadata,
    /// Calls that were refused.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub permission_denials: Vec<Refusal<'a>>,
}

/// A call that was refused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refusal<'a> {
    /// The call.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// Tokens, in Google's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageMetadata {
    /// Tokens read by the model.
    pub prompt_token_count: u64,
    /// Tokens written by the model.
    pub candidates_token_count: u64,
    /// Both together.
    pub total_token_count: u64,
    /// Of the prompt's, those served from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_content_token_count: Option<u64>,
    /// Of the written, those spent on thinking.
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
