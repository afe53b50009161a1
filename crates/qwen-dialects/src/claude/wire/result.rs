//! The `result` line: the terminal record of a turn.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::TokenUsage;
use crate::payload::Payload;

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultLine<'a> {
    /// How it ended.
    pub subtype: Subtype,
    /// Names this line.
    pub uuid: Cow<'a, str>,
    /// The session.
    pub session_id: Cow<'a, str>,
    /// Whether something went wrong.
    pub is_error: bool,
    /// From start to end.
    pub duration_ms: u64,
    /// Of that, waiting for the model.
    #[serde(default)]
    pub duration_api_ms: u64,
    /// Model calls made.
    #[serde(default)]
    pub num_turns: u64,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'a, str>>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<Cow<'a, str>>>,
    /// What went wrong, for Qwen's SDKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ResultError<'a>>,
    /// Why the model stopped.
    #[serde(default)]
    pub stop_reason: Option<Cow<'a, str>>,
    /// The price in US dollars of all turns of this process so far, when prices are known.
    #[serde(default)]
    pub total_cost_usd: f64,
    /// Tokens of the turn; for Qwen's SDKs of all turns of this process so far.
    #[serde(default)]
    pub usage: TokenUsage,
    /// Tokens by model, of all turns of this process so far.
    #[serde(rename = "modelUsage", default)]
    pub model_usage: BTreeMap<Cow<'a, str>, ModelTokens>,
    /// Calls that were refused.
    #[serde(default)]
    pub permission_denials: Vec<PermissionDenial<'a>>,
    /// What ended the turn, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_reason: Option<Cow<'a, str>>,
    /// The HTTP status of a failed model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    /// The call that a hook put off; whoever goes on with the session decides about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred_tool_use: Option<DeferredToolUse<'a>>,
    /// The answer as data, where a schema was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Payload<'a>>,
    /// The same under the name that Qwen's SDKs look for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_result: Option<Payload<'a>>,
    /// The `origin` of the user line that started the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Payload<'a>>,
    /// The client's id of that line, for hosts of Claude's family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<Cow<'a, str>>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subtype {
    /// With an answer, or with a model that could not be reached.
    Success,
    /// Cancelled, failed, or at one of the limits without a word of its own.
    ErrorDuringExecution,
    /// At the limit on model calls.
    ErrorMaxTurns,
    /// At the limit on money.
    ErrorMaxBudgetUsd,
    /// Without the structured answer that was asked for.
    ErrorMaxStructuredOutputRetries,
}

/// What went wrong, for Qwen's SDKs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultError<'a> {
    /// In a sentence.
    pub message: Cow<'a, str>,
}

/// Tokens of one model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelTokens {
    /// Tokens read by the model.
    pub input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    #[serde(default)]
    pub cache_read_input_tokens: u64,
    /// Tokens newly written to the provider's cache.
    #[serde(default)]
    pub cache_creation_input_tokens: u64,
    /// Of the tokens that the model wrote, those spent on thinking; absent where the server does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// Always 0.
    #[serde(default)]
    pub web_search_requests: u64,
    /// How many tokens the model can read; 0 where nobody says.
    #[serde(default)]
    pub context_window: u64,
    /// How many tokens one answer may have; 0 where nobody says.
    #[serde(default)]
    pub max_output_tokens: u64,
    /// The price in US dollars, when prices are known.
    #[serde(rename = "costUSD", default)]
    pub cost_usd: f64,
}

/// A call that a hook put off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeferredToolUse<'a> {
    /// The call.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// What it wants to do.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub input: Payload<'a>,
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionDenial<'a> {
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// The call.
    pub tool_use_id: Cow<'a, str>,
    /// What it wanted to do.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub tool_input: Payload<'a>,
}
