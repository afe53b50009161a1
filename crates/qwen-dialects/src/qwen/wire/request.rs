//! What a host may write to us, as types: for those who write such lines in Rust, and for the schemas. The decoder
//! reads the same lines field by field and takes more spellings than are written here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::control::{ControlCancelType, ControlRequestType};
use super::{wire_struct, words};

words! {
    /// The literal `command_hint_request`.
    HintRequestType = "command_hint_request";
    /// The literal `command_hint_cancel`.
    HintCancelType = "command_hint_cancel";
    /// The literal `heartbeat_request`.
    HeartbeatRequestType = "heartbeat_request";
    /// The literal `control/cancel`.
    CancelRequestType = "control/cancel";
    /// The literal `user`.
    UserType = "user";
}

wire_struct! {
    /// The Qwen Chat Request: input for the agent.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct ChatRequest {
        /// The id of the session; `_new` creates one.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The id of the prompt, unique in its session; by default `<session_id>########<turn>`.
        #[schemars(length(min = 1))]
        pub prompt_id?: String,
        /// A model for this request only.
        pub model?: String,
        /// The origin and content of the request.
        pub input: RequestInput,
        /// Overrides for this request.
        pub options?: RequestOptions,
        /// The id of the tool call that is answered; required with origin `tool_response`.
        pub tool_call_id?: String,
        /// True if the request continues the turn with the same `prompt_id`.
        pub continuation?: bool,
        /// `queue` (the default) waits for the end of the running turn; `steer` joins it before its next model call.
        pub delivery?: String,
        /// True for a repeated prompt: it joins the turn with the same `prompt_id`.
        pub resend?: bool,
        /// The tool call that is answered, as it was requested.
        pub tool_request?: ToolRequest,
        /// The protocol version that the host requires.
        pub protocol_version?: String,
        /// The capabilities that the host requires.
        pub requires?: Vec<String>,
        /// The host's W3C trace context, the parent of the turn's span; also accepted in `metadata`.
        pub traceparent?: String,
        /// Additional information about the request.
        pub tracestate?: String,
    }
}

wire_struct! {
    /// The content of a request: its origin and its text or command.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct RequestInput {
        /// The origin; by default the user.
        pub origin?: Origin,
        /// The content; required unless there is a command.
        pub parts?: RequestParts,
        /// A command given explicitly.
        pub command?: DeclaredCommand,
        /// The same as the top-level `tool_call_id`, used if that is absent.
        pub tool_call_id?: String,
        /// The same as the top-level `continuation`, used if that is absent.
        pub continuation?: bool,
        /// The same as the top-level `tool_request`, used if that is absent.
        pub tool_request?: ToolRequest,
    }
}

wire_struct! {
    /// A parsed command with its arguments.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct DeclaredCommand {
        /// `slash`, `at` or `help`
        pub kind: DeclaredKind,
        /// The command's name followed by the names of its subcommands.
        pub path: Vec<String>,
        /// The arguments as typed.
        pub args?: String,
    }
}

/// The kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredKind {
    /// A command of the form `/name`.
    Slash,
    /// A reference of the form `@path`.
    At,
    /// The command `?`, which shows the help.
    Help,
}

/// The origin of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The user, or a program acting for the user.
    User,
    /// A tool that the host ran.
    ToolResponse,
    /// The host, adding context for the next turn.
    System,
}

/// A text, a part, or several.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RequestParts {
    /// The message as one plain text.
    Text(String),
    /// The message as a single part.
    One(Box<RequestPart>),
    /// The message as several parts.
    Many(Vec<RequestPart>),
}

wire_struct! {
    /// A part of the content: a text, a tool result or a medium. `type` may be absent if the only other key
    /// identifies the kind.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct RequestPart {
        /// `text`, `function_response`, `file_data`, `inline_data`, `image_url`, `image`, `document` or `tool_result`
        #[serde(rename = "type")]
        pub kind?: String,
        /// The text of a text part.
        pub text?: String,
        /// The result of a tool that the host ran.
        #[serde(alias = "functionResponse")]
        pub function_response?: FunctionResponse,
        /// A medium given by its URL.
        #[serde(alias = "fileData")]
        pub file_data?: FilePart,
        /// A medium whose data is inside the message.
        #[serde(alias = "inlineData")]
        pub inline_data?: InlinePart,
        /// An image in OpenAI's form: a URL, or an object with `url`.
        pub image_url?: Value,
        /// An image or a document in Claude's form.
        pub source?: Map<String, Value>,
    }
}

wire_struct! {
    /// The result of a tool that the host ran.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct FunctionResponse {
        /// The id of the call; by default the request's `tool_call_id`.
        pub id?: String,
        /// The name of the tool.
        pub name?: String,
        /// The result: a text, or an object with `output` or `error`.
        pub response: Value,
    }
}

wire_struct! {
    /// A medium given by its URL.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct FilePart {
        /// The URL of the file.
        #[serde(alias = "fileUri")]
        pub file_uri: String,
        /// The MIME type of the data.
        #[serde(alias = "mimeType")]
        pub mime_type?: String,
    }
}

wire_struct! {
    /// A medium whose data is inside the message.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct InlinePart {
        /// The bytes as base64.
        pub data: String,
        /// The MIME type of the data.
        #[serde(alias = "mimeType")]
        pub mime_type?: String,
    }
}

wire_struct! {
    /// Overrides for one request.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct RequestOptions {
        /// The model for this request.
        pub model?: String,
        /// The sampling temperature of the model.
        pub temperature?: f64,
        /// The nucleus sampling threshold.
        pub top_p?: f64,
        /// The output limit in tokens.
        pub max_tokens?: u64,
        /// The seed for repeatable sampling, if the provider supports it.
        pub seed?: i64,
        /// One or more stop sequences.
        pub stop?: Stop,
        /// The reasoning effort: `low`, `medium`, `high`, …
        pub effort?: String,
        /// An allow-list of tools for this request.
        pub tool_overrides?: Vec<String>,
        /// Tools that the host runs, as OpenAI function schemas.
        pub tools?: Vec<HostTool>,
        /// The format of the result.
        pub response_format?: ResponseFormat,
    }
}

/// The format of a result, in OpenAI's form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Plain text without a schema.
    Text,
    /// A JSON object of any shape.
    JsonObject,
    /// A value that satisfies a JSON Schema.
    JsonSchema {
        /// The schema and its name.
        json_schema: NamedSchema,
    },
}

wire_struct! {
    /// A JSON Schema and its name.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct NamedSchema {
        /// A name for the schema, without effect.
        pub name?: String,
        /// The JSON Schema of the result.
        pub schema: serde_json::Map<String, serde_json::Value>,
    }
}

/// One text or several.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Stop {
    /// A single stop sequence.
    One(String),
    /// A list of texts.
    Many(Vec<String>),
}

wire_struct! {
    /// A tool that the host runs.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct HostTool {
        /// `function`
        #[serde(rename = "type")]
        pub kind?: super::FunctionType,
        /// The function definition of the tool.
        pub function: FunctionSchema,
    }
}

wire_struct! {
    /// The function definition of a tool.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct FunctionSchema {
        /// The name of the function.
        #[schemars(length(min = 1))]
        pub name: String,
        /// A description of the tool for the model.
        pub description?: String,
        /// The JSON Schema of its arguments.
        pub parameters?: Map<String, Value>,
    }
}

wire_struct! {
    /// A tool call as it was requested.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct ToolRequest {
        /// The id of the tool call.
        #[serde(alias = "call_id")]
        pub call_id?: String,
        /// The name of the tool.
        pub name?: String,
        /// The arguments of the call, a JSON object.
        pub args?: Map<String, Value>,
    }
}

wire_struct! {
    /// The OpenAI request: a whole conversation, whose last user message is the prompt.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct ConversationRequest {
        /// A model for this request only.
        pub model?: String,
        /// The messages of the conversation, oldest first.
        #[schemars(length(min = 1))]
        pub messages: Vec<ConversationMessage>,
        /// The id of the session; `_new` creates one.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The id of the turn's prompt.
        pub prompt_id?: String,
    }
}

wire_struct! {
    /// An entry of the conversation.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ConversationMessage {
        /// `system`, `developer`, `user`, `assistant` or `tool`
        pub role: String,
        /// The content of the message.
        pub content?: RequestParts,
        /// The calls of an assistant message.
        pub tool_calls?: Vec<Value>,
        /// The id of the call that a tool message answers.
        pub tool_call_id?: String,
    }
}

wire_struct! {
    /// The user line of the Claude and Qwen Code SDKs.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct UserLine {
        /// `user`
        #[serde(rename = "type")]
        pub kind: UserType,
        /// The message of the user.
        pub message: UserMessage,
        /// The client's own id of the message.
        pub uuid?: String,
        /// Ignored: the line belongs to the running session.
        pub session_id?: String,
        /// The host's W3C trace context, the parent of the turn's span.
        pub traceparent?: String,
        /// Additional information about the request.
        pub tracestate?: String,
    }
}

/// A message of the user.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// Always the literal `user`.
    pub role: UserType,
    /// A plain text or a list of blocks.
    pub content: RequestParts,
}

wire_struct! {
    /// A request for suggestions.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct HintRequestLine {
        /// `command_hint_request`
        #[serde(rename = "type")]
        pub kind: HintRequestType,
        /// The id of the session.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The id of the request, repeated in the response.
        pub prompt_id?: String,
        /// `slash` or `at`; by default derived from the first character of the text.
        pub trigger?: Trigger,
        /// The text so far.
        pub text: String,
        /// The position of the cursor in characters.
        pub cursor?: u64,
        /// The context of the text.
        pub context?: HintContext,
    }
}

/// The trigger of suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The character `/`, for commands.
    Slash,
    /// The character `@`, for files.
    At,
}

wire_struct! {
    /// The context of the text that is being typed.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct HintContext {
        /// The directory that paths are relative to.
        pub cwd?: String,
        /// The text that is selected in the editor.
        pub selected_text?: String,
    }
}

wire_struct! {
    /// Withdraws a request for suggestions.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct HintCancelLine {
        /// `command_hint_cancel`
        #[serde(rename = "type")]
        pub kind: HintCancelType,
        /// The id of the session.
        pub session_id?: String,
        /// The `prompt_id` of the request.
        pub prompt_id?: String,
    }
}

wire_struct! {
    /// A request for a heartbeat.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct HeartbeatRequestLine {
        /// `heartbeat_request`
        #[serde(rename = "type")]
        pub kind: HeartbeatRequestType,
        /// The id of the session.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The interval of periodic heartbeats in milliseconds; 0 stops them.
        pub interval_ms?: u64,
    }
}

wire_struct! {
    /// A request to cancel a turn.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct CancelRequestLine {
        /// `control/cancel`
        #[serde(rename = "type")]
        pub kind: CancelRequestType,
        /// The id of the session.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The id of the turn or queued prompt to cancel; by default the running turn.
        pub prompt_id?: String,
        /// The reason; by default `escape`.
        pub reason?: String,
        /// Set to receive a response on the control channel as well.
        pub request_id?: String,
    }
}

wire_struct! {
    /// A control request: flat, with `subtype` and its fields at the top level, or nested, with both in `request`.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlInput {
        /// `control_request`
        #[serde(rename = "type")]
        pub kind: ControlRequestType,
        /// The id of the request, repeated in the response.
        #[schemars(length(min = 1))]
        pub request_id: String,
        /// Flat form: the kind of request, such as `interrupt`.
        pub subtype?: String,
        /// Nested form: the request.
        pub request?: NestedRequest,
        /// The fields of the flat form.
        #[serde(flatten)]
        pub fields: Map<String, Value>,
    }
}

/// The request in the nested form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NestedRequest {
    /// The kind of request, such as `interrupt`.
    pub subtype: String,
    /// The fields of the request.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A request on the control channel is withdrawn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ControlCancelInput {
    /// Always the literal `control_cancel_request`.
    #[serde(rename = "type")]
    pub kind: ControlCancelType,
    /// The id of the control request.
    #[schemars(length(min = 1))]
    pub request_id: String,
}
