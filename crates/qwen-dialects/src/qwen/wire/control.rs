//! The control channel as it is written: questions, answers in the flat and the nested form, withdrawals.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::record::ConfirmationRecord;
use super::result::ToolUse;
use super::word;
word!(
    /// What a question on the control channel says it is.
    ControlRequestType = "control_request"
);
word!(
    /// What an answer on the control channel says it is.
    ControlResponseType = "control_response"
);
word!(
    /// What a withdrawn question says it is.
    ControlCancelType = "control_cancel_request"
);

/// A question on the control channel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ControlRequestLine<'a> {
    /// `control_request`
    #[serde(rename = "type")]
    pub kind: ControlRequestType,
    /// The question's id, to be repeated in the answer.
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    /// `can_use_tool`, `hook_callback` or `mcp_message`
    #[serde(borrow)]
    pub subtype: Cow<'a, str>,
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The turn; absent outside one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// `can_use_tool`: what wants to run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolUse<'a>>,
    /// `can_use_tool`: why we ask, and what a person may be shown.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ControlMetadata<'a>>,
    /// `hook_callback`: the host's name for its function.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub callback_id: Option<Cow<'a, str>>,
    /// `hook_callback`: what the function is told.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub input: Option<&'a RawValue>,
    /// `hook_callback`: the call that it is about.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// `mcp_message`: the server.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<Cow<'a, str>>,
    /// `mcp_message`: the JSON-RPC message.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub message: Option<&'a RawValue>,
}

/// Why we ask whether a call may run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ControlMetadata<'a> {
    /// Why we ask.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// The call.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Cow<'a, str>>,
    /// What a person may be shown.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<ConfirmationRecord<'a>>,
    /// The path that is out of bounds, where that is the reason.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<Cow<'a, str>>,
    /// The sub-agent that asks.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
}

/// An answer on the control channel, in the flat form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ControlResponseLine<'a> {
    /// `control_response`
    #[serde(rename = "type")]
    pub kind: ControlResponseType,
    /// The question's id.
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    /// The session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The turn under way.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// The answer.
    #[serde(borrow)]
    pub response: ControlAnswer<'a>,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ControlAnswer<'a> {
    /// `success` or `error`
    #[serde(borrow)]
    pub subtype: Cow<'a, str>,
    /// The answer.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub result: Option<&'a RawValue>,
    /// Why there is none.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ControlError<'a>>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ControlError<'a> {
    /// What went wrong.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// Whether trying again may help.
    #[serde(default)]
    pub retryable: bool,
    /// A stable word for programs.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'a, str>>,
}

/// An answer on the control channel, in the nested form; whoever asked in it is answered in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NestedResponseLine<'a> {
    /// `control_response`
    #[serde(rename = "type")]
    pub kind: ControlResponseType,
    /// The session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The turn under way.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// The answer.
    #[serde(borrow)]
    pub response: NestedAnswer<'a>,
}

/// An answer in the nested form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NestedAnswer<'a> {
    /// `success` or `error`
    #[serde(borrow)]
    pub subtype: Cow<'a, str>,
    /// The question's id.
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    /// The answer.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub response: Option<&'a RawValue>,
    /// Why there is none.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
}

/// A question of ours that no longer matters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ControlCancelLine<'a> {
    /// `control_cancel_request`
    #[serde(rename = "type")]
    pub kind: ControlCancelType,
    /// The question's id.
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    /// The session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The turn under way.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
}
