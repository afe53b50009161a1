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
    /// The kind of end.
    pub subtype: Subtype,
    /// A unique id of this line.
    pub uuid: Cow<'a, str>,
    /// The id of the session.
    pub session_id: Cow<'a, str>,
    /// True if the turn failed.
    pub is_error: bool,
    /// The duration of the turn in milliseconds.
    pub duration_ms: u64,
    /// The part of the duration spent waiting for the model, in milliseconds.
    #[serde(default)]
    pub duration_api_ms: u64,
    /// The number of model calls.
    #[serde(default)]
    pub num_turns: u64,
    /// The final text of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'a, str>>,
    /// The error messages; absent after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<Cow<'a, str>>>,
    /// The error, in the form that Qwen's SDKs read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ResultError<'a>>,
    /// The reason why the model stopped.
    #[serde(default)]
    pub stop_reason: Option<Cow<'a, str>>,
    /// The cost in US dollars, summed over all turns of this process; 0 if the prices are unknown.
    #[serde(default)]
    pub total_cost_usd: f64,
    /// The tokens of the turn; for Qwen's SDKs the sum over all turns of this process.
    #[serde(default)]
    pub usage: TokenUsage,
    /// Tokens by model, summed over all turns of this process.
    #[serde(rename = "modelUsage", default)]
    pub model_usage: BTreeMap<Cow<'a, str>, ModelTokens>,
    /// The part of the turn that sub-agents spent, by name; absent without sub-agents.
    #[serde(rename = "agentUsage", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_usage: BTreeMap<Cow<'a, str>, AgentTokens>,
    /// The tool calls that were refused.
    #[serde(default)]
    pub permission_denials: Vec<PermissionDenial<'a>>,
    /// A stable identifier of the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_reason: Option<Cow<'a, str>>,
    /// The HTTP status of a failed model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    /// The call that a hook postponed; the next turn of the session decides about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred_tool_use: Option<DeferredToolUse<'a>>,
    /// The validated structured output, if a schema was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Payload<'a>>,
    /// The same value under the name that Qwen's SDKs read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_result: Option<Payload<'a>>,
    /// The `origin` of the user line that started the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Payload<'a>>,
    /// The client's id of that line, for Claude-family hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<Cow<'a, str>>,
}

/// The kind of end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subtype {
    /// The turn completed, or the model could not be reached.
    Success,
    /// The turn was cancelled, failed, or reached a limit without a separate subtype.
    ErrorDuringExecution,
    /// The limit on model calls was reached.
    ErrorMaxTurns,
    /// The budget was exhausted.
    ErrorMaxBudgetUsd,
    /// The requested structured output was not produced.
    ErrorMaxStructuredOutputRetries,
}

/// The error, in the form that Qwen's SDKs read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultError<'a> {
    /// A message for users, one sentence.
    pub message: Cow<'a, str>,
}

/// The tokens used with one model.
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
    /// The part of the output tokens spent on thinking; absent if the server does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// Web searches by the model's server; always 0.
    #[serde(default)]
    pub web_search_requests: u64,
    /// The context window in tokens; 0 if unknown.
    #[serde(default)]
    pub context_window: u64,
    /// The output limit of one message in tokens; 0 if unknown.
    #[serde(default)]
    pub max_output_tokens: u64,
    /// The cost in US dollars; 0 if the model's prices are unknown.
    #[serde(rename = "costUSD", default)]
    pub cost_usd: f64,
}

/// What the runs of one sub-agent spent, without the sub-agents that it started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTokens {
    /// How often it was started.
    pub runs: u64,
    /// The number of model calls.
    pub model_calls: u64,
    /// The number of tool calls.
    pub tool_calls: u64,
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
    /// The cost in US dollars; 0 if the model's prices are unknown.
    #[serde(rename = "costUSD", default)]
    pub cost_usd: f64,
}

/// A call that a hook postponed to the next turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeferredToolUse<'a> {
    /// The id of the tool call.
    pub id: Cow<'a, str>,
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments of the call, a JSON object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub input: Payload<'a>,
}

/// A tool call that was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionDenial<'a> {
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The id of the tool call.
    pub tool_use_id: Cow<'a, str>,
    /// The arguments of the call, a JSON object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub tool_input: Payload<'a>,
}

impl<'a> From<&'a qwen_events::Denial> for PermissionDenial<'a> {
    fn from(denial: &'a qwen_events::Denial) -> Self {
        Self {
            tool_name: denial.tool_name.as_ref().into(),
            tool_use_id: denial.call_id.as_str().into(),
            tool_input: Payload::new(&denial.arguments),
        }
    }
}
