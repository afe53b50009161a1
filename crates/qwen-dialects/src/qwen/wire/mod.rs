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

/// A payload that passes through as it is; what is no JSON after all becomes `null` rather than a broken line.
pub(crate) fn raw(json: &Json) -> &RawValue {
    serde_json::from_str(json.as_str()).unwrap_or(RawValue::NULL)
}

/// Whether a flag is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

words! {
    /// What a message-level line says it is.
    CompletionObject = "chat.completion";
    /// What a chunk says it is.
    ChunkObject = "chat.completion.chunk";
    /// Who writes.
    AssistantRole = "assistant";
    /// What kind of tool a call names.
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
                /// The session.
                pub session_id?: Cow<'a, str>,
                /// The turn; absent outside one.
                pub prompt_id?: Cow<'a, str>,
                #[doc = $choices_doc]
                pub choices: Vec<$choice<'a>>,
                #[doc = $usage_doc]
                pub usage?: TokenUsage,
                /// Which program wrote the stream; only in the handshake.
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
    /// Always 0.
    pub index: u32,
    /// The message.
    pub message: AssistantMessage<'a>,
    /// `stop`, `tool_calls`, `length`, `content_filter` or `error`.
    pub finish_reason: Cow<'a, str>,
}

wire_struct! {
    /// What the model said.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct AssistantMessage<'a> {
        /// `assistant`
        pub role: AssistantRole,
        /// The text; absent when there are only calls.
        pub content?: Cow<'a, str>,
        /// The calls.
        pub tool_calls?: Vec<WireToolCall<'a>>,
    }
}

/// A call, whole.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WireToolCall<'a> {
    /// The call's id.
    pub id: Cow<'a, str>,
    /// `function`
    #[serde(rename = "type")]
    pub kind: FunctionType,
    /// What is called.
    pub function: FunctionCall<'a>,
}

/// What is called, and with what.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCall<'a> {
    /// The tool.
    pub name: Cow<'a, str>,
    /// The arguments, a JSON object as text.
    pub arguments: Cow<'a, str>,
}

/// The one choice of a chunk.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChunkChoice<'a> {
    /// Always 0.
    #[serde(default)]
    pub index: u32,
    /// What is new.
    pub delta: Delta<'a>,
    /// Null until the message's last chunk.
    #[serde(default)]
    pub finish_reason: Option<Cow<'a, str>>,
}

wire_struct! {
    /// What is new in a chunk.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct Delta<'a> {
        /// Who writes; in a message's first chunk.
        pub role?: AssistantRole,
        /// More text.
        pub content?: Cow<'a, str>,
        /// More of a call.
        pub tool_calls?: Vec<ToolCallDelta<'a>>,
    }
}

wire_struct! {
    /// More of a call.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ToolCallDelta<'a> {
        /// The call's place in its message.
        pub index: u32,
        /// The call's id; in its first piece.
        pub id?: Cow<'a, str>,
        /// `function`; in its first piece.
        #[serde(rename = "type")]
        pub kind?: FunctionType,
        /// What is called.
        pub function: FunctionDelta<'a>,
    }
}

wire_struct! {
    /// More of what is called.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct FunctionDelta<'a> {
        /// The tool; in the first piece.
        pub name?: Cow<'a, str>,
        /// More of the arguments' text.
        #[serde(default)]
        pub arguments: Cow<'a, str>,
    }
}

wire_struct! {
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
        pub prompt_tokens_details?: PromptTokens,
        /// Of the completion's.
        pub completion_tokens_details?: CompletionTokens,
        /// The provider reported none and these are an estimate.
        #[serde(default, skip_serializing_if = "is_false")]
        pub estimated: bool,
    }
}

wire_struct! {
    /// Of the prompt's tokens.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct PromptTokens {
        /// Those served from the provider's cache.
        pub cached_tokens: u64,
        /// Those newly written to it.
        pub cache_write_tokens?: u64,
    }
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

wire_struct! {
    /// What goes beside the OpenAI fields.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct Metadata<'a> {
        /// The protocol's version; in the handshake.
        pub protocol_version?: Cow<'a, str>,
        /// The input format; in the handshake.
        pub input_format?: Cow<'a, str>,
        /// The output format; in the handshake.
        pub output_format?: Cow<'a, str>,
        /// What a host may rely on, by name; in the handshake.
        pub capabilities?: Vec<Cow<'a, str>>,
        /// The session; in the handshake.
        pub session_id?: Cow<'a, str>,
        /// What went wrong, or which limit was reached.
        pub error?: ErrorBody<'a>,
        /// Control requests of the turn that went wrong, also in its summary; only in its terminal record.
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
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub control_errors: Vec<ErrorBody<'a>>,
        /// Tokens by model.
        pub usage_by_model: BTreeMap<Cow<'a, str>, ModelTokens>,
        /// The answer as data, where a schema was asked for.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub structured_output?: &'a RawValue,
        /// A continuation of a turn that had ended, under the same `prompt_id`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub continuation: bool,
    }
}

/// A call that was refused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PermissionDenial<'a> {
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// The call.
    pub tool_call_id: Cow<'a, str>,
    /// What it wanted to do.
    #[schemars(with = "serde_json::Value")]
    #[serde(borrow)]
    pub arguments: &'a RawValue,
    /// Why it was refused.
    pub reason: Cow<'a, str>,
}

wire_struct! {
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
        pub cached_tokens?: u64,
        /// Of the completion's tokens, those spent on thinking.
        pub reasoning_tokens?: u64,
        /// The price in US dollars, when prices are known.
        pub cost_usd?: f64,
    }
}

wire_struct! {
    /// An error in OpenAI's form.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct ErrorBody<'a> {
        /// What was asked, what went wrong, what to do.
        pub message: Cow<'a, str>,
        /// What kind of error.
        #[serde(rename = "type")]
        pub kind: Cow<'a, str>,
        /// The field that was wrong.
        #[serde(default)]
        pub param: Option<Cow<'a, str>>,
        /// A stable word for programs.
        #[serde(default)]
        pub code: Option<Cow<'a, str>>,
        /// The HTTP status, where a server gave one.
        pub status?: u16,
        /// Whether trying again may help.
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
    /// What went wrong.
    pub error: ErrorBody<'a>,
}
