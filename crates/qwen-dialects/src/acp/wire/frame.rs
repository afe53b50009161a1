//! The JSON-RPC messages.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::update::{RawJson, SessionUpdate, ToolUpdate};
use crate::qwen::wire::words;

words! {
    /// The version of JSON-RPC.
    Version = "2.0";
    /// The method of an update.
    UpdateMethod = "session/update";
    /// The method of a permission request.
    PermissionMethod = "session/request_permission";
    /// The method of a question to the user.
    ElicitationMethod = "elicitation/create";
    /// The method that withdraws a request.
    CancelMethod = "$/cancel_request";
}

/// A JSON-RPC message without an id, which is never answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notification<M, P> {
    /// The version of JSON-RPC, always `2.0`.
    pub jsonrpc: Version,
    /// The method, which determines the type of `params`.
    pub method: M,
    /// The parameters that the method defines.
    pub params: P,
}

impl<M: Default, P> Notification<M, P> {
    pub fn new(params: P) -> Self {
        Self { jsonrpc: Version::Word, method: M::default(), params }
    }
}

/// A request to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request<'a, M, P> {
    /// The version of JSON-RPC, always `2.0`.
    pub jsonrpc: Version,
    /// The id that the answer repeats.
    pub id: Cow<'a, str>,
    /// The method, which determines the type of `params`.
    pub method: M,
    /// The parameters that the method defines.
    pub params: P,
}

/// The parameters of `session/update`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateParams<'a> {
    /// The id of the session that changed.
    pub session_id: Cow<'a, str>,
    /// The change, which the client applies to its view of the session.
    pub update: SessionUpdate<'a>,
}

/// The parameters of `session/request_permission`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest<'a> {
    /// The id of the session whose turn waits for the answer.
    pub session_id: Cow<'a, str>,
    /// The call that needs permission.
    pub tool_call: ToolUpdate<'a>,
    /// The answers to choose from, always including one of kind `allow_once`.
    pub options: Vec<PermissionOption<'a>>,
    /// Extensions, ours in `qwen`.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A possible answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption<'a> {
    /// The id that the answer names.
    pub option_id: Cow<'a, str>,
    /// The name for users.
    pub name: Cow<'a, str>,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`
    pub kind: Cow<'a, str>,
}

/// The parameters of `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation<'a> {
    /// The id of the session whose turn waits for the answer.
    pub session_id: Cow<'a, str>,
    /// The call that asks.
    pub tool_call_id: Cow<'a, str>,
    /// The kind of elicitation: always `form`, never `url`.
    pub mode: Cow<'a, str>,
    /// The questions as text for users, one per line.
    pub message: Cow<'a, str>,
    /// The JSON Schema of the answer.
    pub requested_schema: Value,
    /// Extensions, ours in `qwen`.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// The parameters of `$/cancel_request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams<'a> {
    /// The id of the request.
    pub request_id: Cow<'a, str>,
}

/// The method of a message between the parts of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InternalMethod {
    /// The worker accepts input.
    #[serde(rename = "_qwen/ready")]
    Ready,
    /// The answer to a control request.
    #[serde(rename = "_qwen/control_response")]
    ControlResponse,
    /// A sign of life.
    #[serde(rename = "_qwen/heartbeat")]
    Heartbeat,
    /// A prompt joined the running turn.
    #[serde(rename = "_qwen/steered")]
    Steered,
    /// An error that ends no turn.
    #[serde(rename = "_qwen/error")]
    Error,
    /// The error before the process ends.
    #[serde(rename = "_qwen/fatal")]
    Fatal,
    /// Anything else that an application adds.
    #[serde(rename = "_qwen/custom")]
    Custom,
}

/// A message between the parts of this program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Internal<'a> {
    /// The id of the session that the message is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The id of the prompt that joined the turn; only in `_qwen/steered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// The request that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Cow<'a, str>>,
    /// The version of the protocol between worker and kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<Cow<'a, str>>,
    /// The result of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RawJson<'a>>,
    /// The error of `_qwen/error`, `_qwen/fatal` or a control request that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject<'a>>,
}

/// The response to a prompt: the terminal record of its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptResponse<'a> {
    /// The version of JSON-RPC, always `2.0`.
    pub jsonrpc: Version,
    /// The id of the prompt that this response answers.
    pub id: Cow<'a, str>,
    /// How the turn ended.
    pub result: PromptResult,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptResult {
    /// The reason for the end.
    pub stop_reason: StopReason,
    /// The tokens of the turn (unstable in the protocol; only on request).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenCounts>,
    /// Extensions, ours in `qwen`.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// The reason for the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The agent is done.
    EndTurn,
    /// The model's output limit or the token limit was reached.
    MaxTokens,
    /// A limit on model calls, tool calls, time or money was reached.
    MaxTurnRequests,
    /// The model or its provider refused to answer the prompt.
    Refusal,
    /// The turn was cancelled.
    Cancelled,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCounts {
    /// Tokens read by the model that its cache did not hold.
    pub input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// All tokens read and written, cached ones included.
    pub total_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cached_read_tokens: u64,
    /// Tokens written to the provider's cache.
    pub cached_write_tokens: u64,
    /// The part of the output spent on thinking.
    pub thought_tokens: u64,
}

/// The response to a request that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorResponse<'a> {
    /// The version of JSON-RPC, always `2.0`.
    pub jsonrpc: Version,
    /// The id of the request that failed.
    pub id: Cow<'a, str>,
    /// The reason for the failure, for users and for programs.
    pub error: ErrorObject<'a>,
}

/// The reason for a failure: a code, a message and details for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorObject<'a> {
    /// The code of JSON-RPC or of the protocol.
    pub code: i64,
    /// The message for users, on one line.
    pub message: Cow<'a, str>,
    /// Details for programs, ours in `qwen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}
