//! `chat.completion` and `chat.completion.chunk` as they are written, field for field.

pub mod control;
pub mod record;
pub mod request;
pub mod result;

use std::borrow::Cow;
use std::collections::BTreeMap;

use qwen_events::{ErrorInfo, ErrorKind, Json, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A word that a field always holds.
macro_rules! word {
    ($(#[$doc:meta])* $name:ident = $word:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            #[doc = concat!("`", $word, "`")]
            #[default]
            #[serde(rename = $word)]
            Word,
        }
    };
}
pub(crate) use word;

/// A payload that passes through as it is; what is no JSON after all becomes `null` rather than a broken line.
pub(crate) fn raw(json: &Json) -> &RawValue {
    serde_json::from_str(json.as_str()).unwrap_or(RawValue::NULL)
}

/// Whether a flag is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

word!(
    /// What a message-level line says it is.
    CompletionObject = "chat.completion"
);
word!(
    /// What a chunk says it is.
    ChunkObject = "chat.completion.chunk"
);
word!(
    /// Who writes.
    AssistantRole = "assistant"
);
word!(
    /// What kind of tool a call names.
    FunctionType = "function"
);

/// A `chat.completion` line: the handshake, an assistant message, an error, or the terminal record of a turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChatCompletion<'a> {
    /// `chat.completion`
    pub object: CompletionObject,
    /// `chatcmpl-<session_id>`
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Seconds since the Unix epoch.
    pub created: u64,
    /// The model that wrote, or that the session starts with.
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    /// The session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The turn; absent outside one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// One message; none in the handshake.
    #[serde(borrow)]
    pub choices: Vec<Choice<'a>>,
    /// Tokens: of the message, or in the terminal record of the whole turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Which program wrote the stream; only in the handshake.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<Cow<'a, str>>,
    /// The handshake's announcement, an error, or the summary of a turn.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata<'a>>,
}

/// The one choice of a `chat.completion`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Choice<'a> {
    /// Always 0.
    pub index: u32,
    /// The message.
    #[serde(borrow)]
    pub message: AssistantMessage<'a>,
    /// `stop`, `tool_calls`, `length`, `content_filter` or `error`.
    #[serde(borrow)]
    pub finish_reason: Cow<'a, str>,
}

/// What the model said.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage<'a> {
    /// `assistant`
    pub role: AssistantRole,
    /// The text; absent when there are only calls.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Cow<'a, str>>,
    /// The calls.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<WireToolCall<'a>>>,
}

/// A call, whole.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WireToolCall<'a> {
    /// The call's id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// `function`
    #[serde(rename = "type")]
    pub kind: FunctionType,
    /// What is called.
    #[serde(borrow)]
    pub function: FunctionCall<'a>,
}

/// What is called, and with what.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCall<'a> {
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The arguments, a JSON object as text.
    #[serde(borrow)]
    pub arguments: Cow<'a, str>,
}

/// A `chat.completion.chunk` line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChatCompletionChunk<'a> {
    /// `chat.completion.chunk`
    #[serde(default)]
    pub object: ChunkObject,
    /// `chatcmpl-<session_id>`
    #[serde(borrow, default)]
    pub id: Cow<'a, str>,
    /// Seconds since the Unix epoch.
    #[serde(default)]
    pub created: u64,
    /// The model that writes.
    #[serde(borrow, default)]
    pub model: Cow<'a, str>,
    /// The session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The turn; absent outside one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// One piece; none in the handshake.
    #[serde(borrow)]
    pub choices: Vec<ChunkChoice<'a>>,
    /// Tokens: of the message in its last chunk, of the whole turn in the turn's last chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Which program wrote the stream; only in the handshake.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<Cow<'a, str>>,
    /// The handshake's announcement, an error, or the summary of a turn.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata<'a>>,
}

/// The one choice of a chunk.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChunkChoice<'a> {
    /// Always 0.
    #[serde(default)]
    pub index: u32,
    /// What is new.
    #[serde(borrow)]
    pub delta: Delta<'a>,
    /// Null until the message's last chunk.
    #[serde(borrow, default)]
    pub finish_reason: Option<Cow<'a, str>>,
}

/// What is new in a chunk.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Delta<'a> {
    /// Who writes; in a message's first chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<AssistantRole>,
    /// More text.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Cow<'a, str>>,
    /// More of a call.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCallDelta<'a>>>,
}

/// More of a call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallDelta<'a> {
    /// The call's place in its message.
    pub index: u32,
    /// The call's id; in its first piece.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// `function`; in its first piece.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FunctionType>,
    /// What is called.
    #[serde(borrow)]
    pub function: FunctionDelta<'a>,
}

/// More of what is called.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FunctionDelta<'a> {
    /// The tool; in the first piece.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    /// More of the arguments' text.
    #[serde(borrow, default)]
    pub arguments: Cow<'a, str>,
}

/// Tokens, in OpenAI's words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Tokens read by the model.
    pub prompt_tokens: u64,
    /// Tokens written by the model.
    pub completion_tokens: u64,
    /// Both together.
    pub total_tokens: u64,
    /// Of the prompt's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_details: Option<PromptTokens>,
    /// Of the completion's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens_details: Option<CompletionTokens>,
    /// The provider reported none and these are an estimate.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
}

/// Of the prompt's tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptTokens {
    /// Those served from the provider's cache.
    pub cached_tokens: u64,
    /// Those newly written to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

/// Of the completion's tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionTokens {
    /// Those spent on thinking.
    pub reasoning_tokens: u64,
}

impl From<&Usage> for TokenUsage {
    fn from(usage: &Usage) -> Self {
        let cached = usage.cached_tokens > 0 || usage.cache_write_tokens > 0;
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.total(),
            prompt_tokens_details: cached.then_some(PromptTokens {
                cached_tokens: usage.cached_tokens,
                cache_write_tokens: (usage.cache_write_tokens > 0).then_some(usage.cache_write_tokens),
            }),
            completion_tokens_details: (usage.thought_tokens > 0)
                .then_some(CompletionTokens { reasoning_tokens: usage.thought_tokens }),
            estimated: usage.estimated,
        }
    }
}

/// What goes beside the OpenAI fields.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Metadata<'a> {
    /// The protocol's version; in the handshake.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<Cow<'a, str>>,
    /// The input format; in the handshake.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_format: Option<Cow<'a, str>>,
    /// The output format; in the handshake.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub output_format: Option<Cow<'a, str>>,
    /// What a host may rely on, by name; in the handshake.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Cow<'a, str>>>,
    /// The session; in the handshake.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// What went wrong, or which limit was reached.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody<'a>>,
    /// Control requests of the turn that went wrong, also in its summary; only in its terminal record.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub control_errors: Vec<ErrorBody<'a>>,
    /// The summary of the turn; only in its terminal record.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnSummary<'a>>,
}

/// The summary of a turn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TurnSummary<'a> {
    /// `done`, `error`, `cancelled`, `interrupted` or the limit that was reached.
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// From start to end.
    pub duration_ms: u64,
    /// Model calls made.
    pub model_calls: u64,
    /// Tool calls made.
    pub tool_calls: u64,
    /// Calls that were refused.
    #[serde(borrow)]
    pub permission_denials: Vec<PermissionDenial<'a>>,
    /// Control requests that went wrong.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub control_errors: Vec<ErrorBody<'a>>,
    /// Tokens by model.
    #[serde(borrow)]
    pub usage_by_model: BTreeMap<Cow<'a, str>, ModelTokens>,
    /// The answer as data, where a schema was asked for.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub structured_output: Option<&'a RawValue>,
    /// A continuation of a turn that had ended, under the same `prompt_id`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continuation: bool,
}

/// A call that was refused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PermissionDenial<'a> {
    /// The tool.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// The call.
    #[serde(borrow)]
    pub tool_call_id: Cow<'a, str>,
    /// What it wanted to do.
    #[serde(borrow)]
    #[schemars(with = "serde_json::Value")]
    pub arguments: &'a RawValue,
    /// Why it was refused.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// What one model spent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelTokens {
    /// Calls made to it.
    pub calls: u64,
    /// Tokens read by it.
    pub prompt_tokens: u64,
    /// Tokens written by it.
    pub completion_tokens: u64,
    /// Both together.
    pub total_tokens: u64,
    /// Of the prompt's tokens, those served from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Of the completion's tokens, those spent on thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The price in US dollars, when prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// An error in OpenAI's form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody<'a> {
    /// What was asked, what went wrong, what to do.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// What kind of error.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// The field that was wrong.
    #[serde(borrow, default)]
    pub param: Option<Cow<'a, str>>,
    /// A stable word for programs.
    #[serde(borrow, default)]
    pub code: Option<Cow<'a, str>>,
    /// The HTTP status, where a server gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether trying again may help.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retryable: bool,
}

impl<'a> From<&'a ErrorInfo> for ErrorBody<'a> {
    fn from(error: &'a ErrorInfo) -> Self {
        Self {
            message: Cow::Borrowed(&error.message),
            kind: Cow::Borrowed(error_type(error.kind)),
            param: error.param.as_deref().map(Cow::Borrowed),
            code: Some(Cow::Borrowed(error.code)),
            status: error.status,
            retryable: error.retryable,
        }
    }
}

/// OpenAI's word for a kind of error, and one like it where OpenAI has none.
pub(crate) fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Input | ErrorKind::Usage | ErrorKind::UnsupportedProtocol => "invalid_request_error",
        ErrorKind::Auth => "authentication_error",
        ErrorKind::Settings => "settings_error",
        ErrorKind::Sandbox => "sandbox_error",
        ErrorKind::Model => "api_error",
        ErrorKind::Network => "connection_error",
        ErrorKind::Timeout(_) => "timeout_error",
        ErrorKind::Tool => "tool_error",
        ErrorKind::Limit => "limit_error",
        ErrorKind::Overloaded => "overloaded_error",
        ErrorKind::Internal => "internal_error",
    }
}

/// The line of a fatal error.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FatalError<'a> {
    /// What went wrong.
    #[serde(borrow)]
    pub error: ErrorBody<'a>,
}
