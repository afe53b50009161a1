//! What a host may write to us, as types: for those who write such lines in Rust, and for the schemas. The decoder
//! reads the same lines field by field and takes more spellings than are written here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::control::{ControlCancelType, ControlRequestType};
use super::{wire_struct, words};

words! {
    /// What a request for suggestions says it is.
    HintRequestType = "command_hint_request";
    /// What withdraws a request for suggestions.
    HintCancelType = "command_hint_cancel";
    /// What asks for a sign of life.
    HeartbeatRequestType = "heartbeat_request";
    /// What asks us to stop.
    CancelRequestType = "control/cancel";
    /// What a user line says it is.
    UserType = "user";
}

wire_struct! {
    /// The Qwen Chat Request: something said to the agent.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct ChatRequest {
        /// The session; `_new` asks for a new one.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The turn; by default `<session_id>########<turn>`.
        #[schemars(length(min = 1))]
        pub prompt_id?: String,
        /// Another model for this request.
        pub model?: String,
        /// What is said.
        pub input: RequestInput,
        /// Overrides for this request.
        pub options?: RequestOptions,
        /// The call that is answered; needed where the origin is `tool_response`.
        pub tool_call_id?: String,
        /// It continues the turn of the same `prompt_id`.
        pub continuation?: bool,
        /// `queue` (the default) waits for the end of the running turn; `steer` joins it before its next model call.
        pub delivery?: String,
        /// The prompt is sent again: it joins the turn of the same `prompt_id`.
        pub resend?: bool,
        /// The call that is answered, as it was asked for.
        pub tool_request?: ToolRequest,
        /// The protocol version that the host relies on.
        pub protocol_version?: String,
        /// Capabilities that the host relies on.
        pub requires?: Vec<String>,
        /// The host's place in a trace (W3C Trace Context), under which the turn belongs; may stand in `metadata` too.
        pub traceparent?: String,
        /// What goes with it.
        pub tracestate?: String,
    }
}

wire_struct! {
    /// What is said.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct RequestInput {
        /// Who speaks; by default the user.
        pub origin?: Origin,
        /// What is said; needed unless there is a command.
        pub parts?: RequestParts,
        /// A command declared as such.
        pub command?: DeclaredCommand,
        /// The same as `tool_call_id` beside `input`, where that has none.
        pub tool_call_id?: String,
        /// The same as `continuation` beside `input`, where that has none.
        pub continuation?: bool,
        /// The same as `tool_request` beside `input`, where that has none.
        pub tool_request?: ToolRequest,
    }
}

wire_struct! {
    /// A command and its arguments.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct DeclaredCommand {
        /// `slash`, `at` or `help`
        pub kind: DeclaredKind,
        /// Its name and sub-names.
        pub path: Vec<String>,
        /// The rest, as typed.
        pub args?: String,
    }
}

/// What kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredKind {
    /// `/name`
    Slash,
    /// `@path`
    At,
    /// `?`
    Help,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person or the program that acts for one.
    User,
    /// A tool that the host ran.
    ToolResponse,
    /// The host, giving context for the next turn.
    System,
}

/// A text, a part, or several.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RequestParts {
    /// A text.
    Text(String),
    /// One part.
    One(Box<RequestPart>),
    /// Several parts.
    Many(Vec<RequestPart>),
}

wire_struct! {
    /// A piece of what is said: a text, a tool's answer, or a medium. `type` may be left out where the one other key says
    /// what it is.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct RequestPart {
        /// `text`, `function_response`, `file_data`, `inline_data`, `image_url`, `image`, `document` or `tool_result`
        #[serde(rename = "type")]
        pub kind?: String,
        /// A text.
        pub text?: String,
        /// A tool's answer.
        #[serde(alias = "functionResponse")]
        pub function_response?: FunctionResponse,
        /// A medium at an address.
        #[serde(alias = "fileData")]
        pub file_data?: FilePart,
        /// A medium in line.
        #[serde(alias = "inlineData")]
        pub inline_data?: InlinePart,
        /// An image at an address, in OpenAI's form: the address, or an object with `url`.
        pub image_url?: Value,
        /// An image or a document in Claude's form.
        pub source?: Map<String, Value>,
    }
}

wire_struct! {
    /// A tool's answer.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct FunctionResponse {
        /// The call; by default the request's `tool_call_id`.
        pub id?: String,
        /// The tool.
        pub name?: String,
        /// What it gave back: a text, or an object with `output` or `error`.
        pub response: Value,
    }
}

wire_struct! {
    /// A medium at an address.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct FilePart {
        /// The address.
        #[serde(alias = "fileUri")]
        pub file_uri: String,
        /// Its type.
        #[serde(alias = "mimeType")]
        pub mime_type?: String,
    }
}

wire_struct! {
    /// A medium in line.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct InlinePart {
        /// Its bytes, as base64.
        pub data: String,
        /// Its type.
        #[serde(alias = "mimeType")]
        pub mime_type?: String,
    }
}

wire_struct! {
    /// Overrides for one request.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct RequestOptions {
        /// Another model.
        pub model?: String,
        /// How freely the model samples.
        pub temperature?: f64,
        /// How much of the probability it samples from.
        pub top_p?: f64,
        /// The longest answer, in tokens.
        pub max_tokens?: u64,
        /// Makes sampling repeatable, where the provider can.
        pub seed?: i64,
        /// A text, or texts, at which the model stops.
        pub stop?: Stop,
        /// How hard the model thinks: `low`, `medium`, `high`, …
        pub effort?: String,
        /// Only these tools may be used.
        pub tool_overrides?: Vec<String>,
        /// Tools that the host runs, as OpenAI function schemas.
        pub tools?: Vec<HostTool>,
        /// The form of the result.
        pub response_format?: ResponseFormat,
    }
}

/// The form of a result, in the words of OpenAI.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Words.
    Text,
    /// Any JSON object.
    JsonObject,
    /// What a JSON Schema describes.
    JsonSchema {
        /// The schema and its name.
        json_schema: NamedSchema,
    },
}

wire_struct! {
    /// A JSON Schema and its name.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct NamedSchema {
        /// A name for it, which changes nothing.
        pub name?: String,
        /// The schema.
        pub schema: serde_json::Map<String, serde_json::Value>,
    }
}

/// A text or texts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Stop {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

wire_struct! {
    /// A tool that the host runs.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct HostTool {
        /// `function`
        #[serde(rename = "type")]
        pub kind?: super::FunctionType,
        /// The tool.
        pub function: FunctionSchema,
    }
}

wire_struct! {
    /// A tool as the model is told about it.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct FunctionSchema {
        /// Its name.
        #[schemars(length(min = 1))]
        pub name: String,
        /// What it does.
        pub description?: String,
        /// The JSON Schema of its arguments.
        pub parameters?: Map<String, Value>,
    }
}

wire_struct! {
    /// A call as it was asked for.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct ToolRequest {
        /// The call.
        #[serde(alias = "call_id")]
        pub call_id?: String,
        /// The tool.
        pub name?: String,
        /// Its arguments.
        pub args?: Map<String, Value>,
    }
}

wire_struct! {
    /// The OpenAI request: a whole conversation, whose last user message is the prompt.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct ConversationRequest {
        /// Another model for this request.
        pub model?: String,
        /// The conversation.
        #[schemars(length(min = 1))]
        pub messages: Vec<ConversationMessage>,
        /// The session; `_new` asks for a new one.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The turn.
        pub prompt_id?: String,
    }
}

wire_struct! {
    /// An entry of the conversation.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ConversationMessage {
        /// `system`, `developer`, `user`, `assistant` or `tool`
        pub role: String,
        /// What is said.
        pub content?: RequestParts,
        /// The calls of an assistant message.
        pub tool_calls?: Vec<Value>,
        /// The call that a tool message answers.
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
        /// What is said.
        pub message: UserMessage,
        /// The client's own id of the message.
        pub uuid?: String,
        /// Not looked at: the line belongs to the session that runs.
        pub session_id?: String,
        /// The host's place in a trace (W3C Trace Context), under which the turn belongs.
        pub traceparent?: String,
        /// What goes with it.
        pub tracestate?: String,
    }
}

/// What the user says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// `user`
    pub role: UserType,
    /// A text, or blocks.
    pub content: RequestParts,
}

wire_struct! {
    /// What could be typed here?
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct HintRequestLine {
        /// `command_hint_request`
        #[serde(rename = "type")]
        pub kind: HintRequestType,
        /// The session.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The request's own prompt id, to be repeated in the answer.
        pub prompt_id?: String,
        /// `slash` or `at`; by default what the text starts with.
        pub trigger?: Trigger,
        /// The text so far.
        pub text: String,
        /// Where the cursor is, in characters.
        pub cursor?: u64,
        /// Where it is typed.
        pub context?: HintContext,
    }
}

/// What triggers suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// `/`
    Slash,
    /// `@`
    At,
}

wire_struct! {
    /// Where something is typed.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct HintContext {
        /// The directory that paths are relative to.
        pub cwd?: String,
        /// What is selected.
        pub selected_text?: String,
    }
}

wire_struct! {
    /// The suggestions asked for are no longer wanted.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct HintCancelLine {
        /// `command_hint_cancel`
        #[serde(rename = "type")]
        pub kind: HintCancelType,
        /// The session.
        pub session_id?: String,
        /// The prompt id of the request.
        pub prompt_id?: String,
    }
}

wire_struct! {
    /// Are you there?
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct HeartbeatRequestLine {
        /// `heartbeat_request`
        #[serde(rename = "type")]
        pub kind: HeartbeatRequestType,
        /// The session.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// From now on send one every so many milliseconds; 0 stops that.
        pub interval_ms?: u64,
    }
}

wire_struct! {
    /// Stop what you are doing.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct CancelRequestLine {
        /// `control/cancel`
        #[serde(rename = "type")]
        pub kind: CancelRequestType,
        /// The session.
        #[schemars(length(min = 1))]
        pub session_id?: String,
        /// The turn or queued prompt that is meant; absent means whatever runs.
        pub prompt_id?: String,
        /// Why; by default `escape`.
        pub reason?: String,
        /// Where an answer on the control channel is wanted too.
        pub request_id?: String,
    }
}

wire_struct! {
    /// A request on the control channel: flat, with `subtype` and its fields beside it, or nested, with both in `request`.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlInput {
        /// `control_request`
        #[serde(rename = "type")]
        pub kind: ControlRequestType,
        /// The request's id, to be repeated in the answer.
        #[schemars(length(min = 1))]
        pub request_id: String,
        /// Flat: what is asked, such as `interrupt`.
        pub subtype?: String,
        /// Nested: what is asked.
        pub request?: NestedRequest,
        /// The fields of the flat form.
        #[serde(flatten)]
        pub fields: Map<String, Value>,
    }
}

/// What is asked, in the nested form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NestedRequest {
    /// What is asked, such as `interrupt`.
    pub subtype: String,
    /// Its fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A request on the control channel is withdrawn.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ControlCancelInput {
    /// `control_cancel_request`
    #[serde(rename = "type")]
    pub kind: ControlCancelType,
    /// The request's id.
    #[schemars(length(min = 1))]
    pub request_id: String,
}
