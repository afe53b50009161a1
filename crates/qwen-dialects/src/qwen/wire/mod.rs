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

/// Declares a struct as it stands on the wire. A field with `?` behind its name is an `Option` that is left out of the line
/// when there is no value.
macro_rules! wire_struct {
    ($(#[$meta:meta])* pub struct $name:ident $(<$life:lifetime>)? { $($fields:tt)* }) => {
        wire_struct!(@fields [$(#[$meta])* pub struct $name $(<$life>)?] [] $($fields)*);
    };
    (@fields [$($head:tt)*] [$($done:tt)*]) => {
        $($head)* { $($done)* }
    };
    (@fields $head:tt [$($done:tt)*] $(#[$meta:meta])* pub $field:ident?: $type:ty, $($rest:tt)*) => {
        wire_struct!(@fields $head [
            $($done)*
            $(#[$meta])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $field: Option<$type>,
        ] $($rest)*);
    };
    (@fields $head:tt [$($done:tt)*] $(#[$meta:meta])* pub $field:ident: $type:ty, $($rest:tt)*) => {
        wire_struct!(@fields $head [$($done)* $(#[$meta])* pub $field: $type,] $($rest)*);
    };
}
pub(crate) use wire_struct;

/// Words that a field always holds.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            #[doc = concat!("`", $word, "`")]
            #[default]
            #[serde(rename = $word)]
            Word,
        }
    )+};
}
pub(crate) use words;

/// A payload that passes through as it is; invalid JSON becomes `null` rather than a broken line.
pub(crate) fn raw(json: &Json) -> &RawValue {
    serde_json::from_str(json.as_str()).unwrap_or(RawValue::NULL)
}

/// Whether a flag is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

words! {
    /// The literal `chat.completion`.
    CompletionObject = "chat.completion";
    /// The literal `chat.completion.chunk`.
    ChunkObject = "chat.completion.chunk";
    /// The role of the author.
    AssistantRole = "assistant";
    /// The kind of tool of a call.
    FunctionType = "function";
}

/// Declares the line of one output format. The attribute in brackets applies to the fields that clients may miss.
macro_rules! completion_line {
    (
        $(#[$meta:meta])*
        $name:ident [$(#[$first:meta])?]
        object: $object:ident $object_doc:literal, model: $model_doc:literal,
        choices: $choice:ident $choices_doc:literal, usage: $usage_doc:literal,
    ) => {
        wire_struct! {
            $(#[$meta])*
            #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
            pub struct $name<'a> {
                #[doc = $object_doc]
                $(#[$first])?
                pub object: $object,
                /// `chatcmpl-<session_id>`
                $(#[$first])?
                pub id: Cow<'a, str>,
                /// Seconds since the Unix epoch.
                $(#[$first])?
                pub created: u64,
                #[doc = $model_doc]
                $(#[$first])?
                pub model: Cow<'a, str>,
                /// The id of the session.
                pub session_id?: Cow<'a, str>,
                /// The id of the turn's prompt; absent outside a turn.
                pub prompt_id?: Cow<'a, str>,
                #[doc = $choices_doc]
                pub choices: Vec<$choice<'a>>,
                #[doc = $usage_doc]
                pub usage?: TokenUsage,
                /// The program that wrote the stream; only in the handshake.
                pub system_fingerprint?: Cow<'a, str>,
                /// The handshake's announcement, an error, or the summary of a turn.
                #[serde(borrow)]
                pub metadata?: Metadata<'a>,
            }
        }
    };
}

completion_line! {
    /// A `chat.completion` line: the handshake, an assistant message, an error, or the terminal record of a turn.
    ChatCompletion []
    object: CompletionObject "`chat.completion`",
    model: "The model that wrote, or that the session starts with.",
    choices: Choice "One message; none in the handshake.",
    usage: "Tokens: of the message, or in the terminal record of the whole turn.",
}

completion_line! {
    /// A `chat.completion.chunk` line.
    ChatCompletionChunk [#[serde(default)]]
    object: ChunkObject "`chat.completion.chunk`",
    model: "The model that writes.",
    choices: ChunkChoice "One piece; none in the handshake.",
    usage: "Tokens: of the message in its last chunk, of the whole turn in the turn's last chunk.",
}

/// The one choice of a `chat.completion`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Choice<'a> {
    /// The index of the choice; always 0.
    pub index: u32,
    /// The message that the line carries.
    pub message: AssistantMessage<'a>,
    /// `stop`, `tool_calls`, `length`, `content_filter` or `error`.
    pub finish_reason: Cow<'a, str>,
}

wire_struct! {
    /// A message of the model.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct AssistantMessage<'a> {
        /// `assistant`
        pub role: AssistantRole,
        /// The text; absent if the message has only tool calls.
        pub content?: Cow<'a, str>,
        /// The tool calls of the message.
        pub tool_calls?: Vec<WireToolCall<'a>>,
    }
}

/// A complete tool call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WireToolCall<'a> {
    /// The id of the call, unique in its session.
    pub id: Cow<'a, str>,
    /// Always the literal `function`.
    #[serde(rename = "type")]
    pub kind: FunctionType,
    /// The function that is called.
    pub function: FunctionCall<'a>,
}

/// The function and its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCall<'a> {
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments, a JSON object as text.
    pub arguments: Cow<'a, str>,
}

/// The one choice of a chunk.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChunkChoice<'a> {
    /// The index of the choice; always 0.
    #[serde(default)]
    pub index: u32,
    /// The increment of the message.
    pub delta: Delta<'a>,
    /// Null until the message's last chunk.
    #[serde(default)]
    pub finish_reason: Option<Cow<'a, str>>,
}

wire_struct! {
    /// The increment of a chunk.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct Delta<'a> {
        /// The role of the author; only in a message's first chunk.
        pub role?: AssistantRole,
        /// The next piece of text.
        pub content?: Cow<'a, str>,
        /// Increments of tool calls.
        pub tool_calls?: Vec<ToolCallDelta<'a>>,
    }
}

wire_struct! {
    /// Increments of tool calls.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ToolCallDelta<'a> {
        /// The index of the call in its message.
        pub index: u32,
        /// The id of the call; only in its first piece.
        pub id?: Cow<'a, str>,
        /// `function`; only in the first piece.
        #[serde(rename = "type")]
        pub kind?: FunctionType,
        /// The function that is called.
        pub function: FunctionDelta<'a>,
    }
}

wire_struct! {
    /// An increment of a function call.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct FunctionDelta<'a> {
        /// The name of the tool; only in the first piece.
        pub name?: Cow<'a, str>,
        /// The next piece of the arguments as JSON text.
        #[serde(default)]
        pub arguments: Cow<'a, str>,
    }
}

wire_struct! {
    /// Token counts under OpenAI's names.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    pub struct TokenUsage {
        /// Tokens read by the model.
        pub prompt_tokens: u64,
        /// Tokens written by the model.
        pub completion_tokens: u64,
        /// The sum of both.
        pub total_tokens: u64,
        /// Details of the prompt tokens.
        pub prompt_tokens_details?: PromptTokens,
        /// Details of the completion tokens.
        pub completion_tokens_details?: CompletionTokens,
        /// True if the provider reported no usage and the counts are estimates.
        #[serde(default, skip_serializing_if = "is_false")]
        pub estimated: bool,
    }
}

wire_struct! {
    /// Details of the prompt tokens.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct PromptTokens {
        /// Tokens served from the provider's cache.
        pub cached_tokens: u64,
        /// Tokens newly written to the provider's cache.
        pub cache_write_tokens?: u64,
    }
}

/// Details of the completion tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionTokens {
    /// Tokens spent on thinking.
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

wire_struct! {
    /// Information beyond OpenAI's fields.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct Metadata<'a> {
        /// The protocol's version; in the handshake.
        pub protocol_version?: Cow<'a, str>,
        /// The input format; in the handshake.
        pub input_format?: Cow<'a, str>,
        /// The output format; in the handshake.
        pub output_format?: Cow<'a, str>,
        /// The names of the supported capabilities; only in the handshake.
        pub capabilities?: Vec<Cow<'a, str>>,
        /// The session; in the handshake.
        pub session_id?: Cow<'a, str>,
        /// The error, or the limit that was reached.
        pub error?: ErrorBody<'a>,
        /// Failed control requests of the turn, also in its summary; only in its terminal record.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub control_errors: Vec<ErrorBody<'a>>,
        /// The summary of the turn; only in its terminal record.
        #[serde(borrow)]
        pub turn?: TurnSummary<'a>,
    }
}

wire_struct! {
    /// The summary of a turn.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct TurnSummary<'a> {
        /// `done`, `error`, `cancelled`, `interrupted` or the limit that was reached.
        pub status: Cow<'a, str>,
        /// The duration of the turn in milliseconds.
        pub duration_ms: u64,
        /// The number of model calls.
        pub model_calls: u64,
        /// The number of tool calls.
        pub tool_calls: u64,
        /// The tool calls that were refused.
        #[serde(borrow)]
        pub permission_denials: Vec<PermissionDenial<'a>>,
        /// The control requests of the turn that failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub control_errors: Vec<ErrorBody<'a>>,
        /// The usage of the turn by model.
        pub usage_by_model: BTreeMap<Cow<'a, str>, ModelTokens>,
        /// The part of the turn that sub-agents spent, by name; absent without sub-agents.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub usage_by_agent: BTreeMap<Cow<'a, str>, AgentTokens>,
        /// The validated structured output, if a schema was given.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub structured_output?: &'a RawValue,
        /// True if the turn continued one that had ended under the same `prompt_id`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub continuation: bool,
    }
}

/// A tool call that was refused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PermissionDenial<'a> {
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The id of the tool call.
    pub tool_call_id: Cow<'a, str>,
    /// The arguments of the call, a JSON object.
    #[schemars(with = "serde_json::Value")]
    #[serde(borrow)]
    pub arguments: &'a RawValue,
    /// The reason for the refusal.
    pub reason: Cow<'a, str>,
}

wire_struct! {
    /// What the runs of one sub-agent spent, without the sub-agents that it started.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct AgentTokens {
        /// How often it was started.
        pub runs: u64,
        /// The number of model calls.
        pub model_calls: u64,
        /// The number of tool calls.
        pub tool_calls: u64,
        /// The number of input tokens.
        pub prompt_tokens: u64,
        /// The number of output tokens.
        pub completion_tokens: u64,
        /// The sum of both.
        pub total_tokens: u64,
        /// The part of the prompt tokens served from the provider's cache.
        pub cached_tokens?: u64,
        /// The part of the completion tokens spent on thinking.
        pub reasoning_tokens?: u64,
        /// The cost in US dollars; absent if the model's prices are unknown.
        pub cost_usd?: f64,
    }
}

wire_struct! {
    /// The usage of one model.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ModelTokens {
        /// The number of calls to the model.
        pub calls: u64,
        /// The number of input tokens.
        pub prompt_tokens: u64,
        /// The number of output tokens.
        pub completion_tokens: u64,
        /// The sum of both.
        pub total_tokens: u64,
        /// The part of the prompt tokens served from the provider's cache.
        pub cached_tokens?: u64,
        /// The part of the completion tokens spent on thinking.
        pub reasoning_tokens?: u64,
        /// The cost in US dollars; absent if the model's prices are unknown.
        pub cost_usd?: f64,
    }
}

wire_struct! {
    /// An error in OpenAI's form.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct ErrorBody<'a> {
        /// What was attempted, what failed, and what to do next.
        pub message: Cow<'a, str>,
        /// The kind of error.
        #[serde(rename = "type")]
        pub kind: Cow<'a, str>,
        /// The invalid field of the request.
        #[serde(default)]
        pub param: Option<Cow<'a, str>>,
        /// A stable identifier for programs.
        #[serde(default)]
        pub code: Option<Cow<'a, str>>,
        /// The HTTP status code, if a server returned one.
        pub status?: u16,
        /// True if a retry may succeed.
        #[serde(default, skip_serializing_if = "is_false")]
        pub retryable: bool,
    }
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
    /// The error, if the request failed.
    pub error: ErrorBody<'a>,
}
