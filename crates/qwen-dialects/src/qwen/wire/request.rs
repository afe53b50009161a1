//! What a host may write to us, as types: for those who write such lines in Rust, and for the schemas. The decoder
//! reads the same lines field by field and takes more spellings than are written here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::control::{ControlCancelType, ControlRequestType};
use super::word;

word!(
    /// What a request for suggestions says it is.
    HintRequestType = "command_hint_request"
);
word!(
    /// What withdraws a request for suggestions.
    HintCancelType = "command_hint_cancel"
);
word!(
    /// What asks for a sign of life.
    HeartbeatRequestType = "heartbeat_request"
);
word!(
    /// What asks us to stop.
    CancelRequestType = "control/cancel"
);
word!(
    /// What a user line says it is.
    UserType = "user"
);

/// The Qwen Chat Request: something said to the agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ChatRequest {
    /// The session; `_new` asks for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub session_id: Option<String>,
    /// The turn; by default `<session_id>########<turn>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub prompt_id: Option<String>,
    /// Another model for this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is said.
    pub input: RequestInput,
    /// Overrides for this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<RequestOptions>,
    /// The call that is answered; needed where the origin is `tool_response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// It continues the turn of the same `prompt_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<bool>,
    /// `queue` (the default) waits for the end of the running turn; `steer` joins it before its next model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// The prompt is sent again: it joins the turn of the same `prompt_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend: Option<bool>,
    /// The call that is answered, as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_request: Option<ToolRequest>,
    /// The protocol version that the host relies on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Capabilities that the host relies on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<Vec<String>>,
    /// The host's place in a trace (W3C Trace Context), under which the turn belongs; may stand in `metadata` too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// What is said.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct RequestInput {
    /// Who speaks; by default the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What is said; needed unless there is a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<RequestParts>,
    /// A command declared as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<DeclaredCommand>,
    /// The same as `tool_call_id` beside `input`, where that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The same as `continuation` beside `input`, where that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<bool>,
    /// The same as `tool_request` beside `input`, where that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_request: Option<ToolRequest>,
}

/// A command and its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeclaredCommand {
    /// `slash`, `at` or `help`
    pub kind: DeclaredKind,
    /// Its name and sub-names.
    pub path: Vec<String>,
    /// The rest, as typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
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

/// A piece of what is said: a text, a tool's answer, or a medium. `type` may be left out where the one other key says
/// what it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct RequestPart {
    /// `text`, `function_response`, `file_data`, `inline_data`, `image_url`, `image`, `document` or `tool_result`
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A tool's answer.
    #[serde(default, alias = "functionResponse", skip_serializing_if = "Option::is_none")]
    pub function_response: Option<FunctionResponse>,
    /// A medium at an address.
    #[serde(default, alias = "fileData", skip_serializing_if = "Option::is_none")]
    pub file_data: Option<FilePart>,
    /// A medium in line.
    #[serde(default, alias = "inlineData", skip_serializing_if = "Option::is_none")]
    pub inline_data: Option<InlinePart>,
    /// An image at an address, in OpenAI's form: the address, or an object with `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<Value>,
    /// An image or a document in Claude's form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Map<String, Value>>,
}

/// A tool's answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct FunctionResponse {
    /// The call; by default the request's `tool_call_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it gave back: a text, or an object with `output` or `error`.
    pub response: Value,
}

/// A medium at an address.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FilePart {
    /// The address.
    #[serde(alias = "fileUri")]
    pub file_uri: String,
    /// Its type.
    #[serde(default, alias = "mimeType", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A medium in line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InlinePart {
    /// Its bytes, as base64.
    pub data: String,
    /// Its type.
    #[serde(default, alias = "mimeType", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// Overrides for one request.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct RequestOptions {
    /// Another model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How freely the model samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much of the probability it samples from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The longest answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Makes sampling repeatable, where the provider can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// A text, or texts, at which the model stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// How hard the model thinks: `low`, `medium`, `high`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Only these tools may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_overrides: Option<Vec<String>>,
    /// Tools that the host runs, as OpenAI function schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<HostTool>>,
    /// The form of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
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

/// A JSON Schema and its name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NamedSchema {
    /// A name for it, which changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The schema.
    pub schema: serde_json::Map<String, serde_json::Value>,
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

/// A tool that the host runs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HostTool {
    /// `function`
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<super::FunctionType>,
    /// The tool.
    pub function: FunctionSchema,
}

/// A tool as the model is told about it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FunctionSchema {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
}

/// A call as it was asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequest {
    /// The call.
    #[serde(default, alias = "call_id", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
}

/// The OpenAI request: a whole conversation, whose last user message is the prompt.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConversationRequest {
    /// Another model for this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The conversation.
    #[schemars(length(min = 1))]
    pub messages: Vec<ConversationMessage>,
    /// The session; `_new` asks for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub session_id: Option<String>,
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
}

/// An entry of the conversation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ConversationMessage {
    /// `system`, `developer`, `user`, `assistant` or `tool`
    pub role: String,
    /// What is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RequestParts>,
    /// The calls of an assistant message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<Value>>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// The user line of the Claude and Qwen Code SDKs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UserLine {
    /// `user`
    #[serde(rename = "type")]
    pub kind: UserType,
    /// What is said.
    pub message: UserMessage,
    /// The client's own id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Not looked at: the line belongs to the session that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The host's place in a trace (W3C Trace Context), under which the turn belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// What the user says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// `user`
    pub role: UserType,
    /// A text, or blocks.
    pub content: RequestParts,
}

/// What could be typed here?
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HintRequestLine {
    /// `command_hint_request`
    #[serde(rename = "type")]
    pub kind: HintRequestType,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub session_id: Option<String>,
    /// The request's own prompt id, to be repeated in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// `slash` or `at`; by default what the text starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// The text so far.
    pub text: String,
    /// Where the cursor is, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
    /// Where it is typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<HintContext>,
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

/// Where something is typed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct HintContext {
    /// The directory that paths are relative to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_text: Option<String>,
}

/// The suggestions asked for are no longer wanted.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct HintCancelLine {
    /// `command_hint_cancel`
    #[serde(rename = "type")]
    pub kind: HintCancelType,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The prompt id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
}

/// Are you there?
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatRequestLine {
    /// `heartbeat_request`
    #[serde(rename = "type")]
    pub kind: HeartbeatRequestType,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub session_id: Option<String>,
    /// From now on send one every so many milliseconds; 0 stops that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ms: Option<u64>,
}

/// Stop what you are doing.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CancelRequestLine {
    /// `control/cancel`
    #[serde(rename = "type")]
    pub kind: CancelRequestType,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub session_id: Option<String>,
    /// The turn or queued prompt that is meant; absent means whatever runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// Why; by default `escape`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where an answer on the control channel is wanted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// Nested: what is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<NestedRequest>,
    /// The fields of the flat form.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
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
