//! The control channel as it is written: questions, answers in the flat and the nested form, withdrawals.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::record::ConfirmationRecord;
use super::result::ToolUse;
use super::{wire_struct, words};
words! {
    /// The literal `control_request`.
    ControlRequestType = "control_request";
    /// The literal `control_response`.
    ControlResponseType = "control_response";
    /// The literal `control_cancel_request`.
    ControlCancelType = "control_cancel_request";
}

wire_struct! {
    /// A control request to the host, in the flat form.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlRequestLine<'a> {
        /// `control_request`
        #[serde(rename = "type")]
        pub kind: ControlRequestType,
        /// The id of the control request, repeated in its response.
        pub request_id: Cow<'a, str>,
        /// `can_use_tool`, `hook_callback` or `mcp_message`
        pub subtype: Cow<'a, str>,
        /// The id of the session.
        pub session_id: Cow<'a, str>,
        /// The id of the turn's prompt; absent outside a turn.
        pub prompt_id?: Cow<'a, str>,
        /// `can_use_tool`: the arguments of the call.
        #[serde(borrow)]
        pub tool?: ToolUse<'a>,
        /// `can_use_tool`: the reason for the request and information to display.
        pub metadata?: ControlMetadata<'a>,
        /// `hook_callback`: the id under which the host registered the hook.
        pub callback_id?: Cow<'a, str>,
        /// `hook_callback`: the input of the hook.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub input?: &'a RawValue,
        /// `hook_callback`: the id of the tool call that it concerns.
        pub tool_use_id?: Cow<'a, str>,
        /// `mcp_message`: the name of the server.
        pub server_name?: Cow<'a, str>,
        /// `mcp_message`: the JSON-RPC message.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub message?: &'a RawValue,
    }
}

wire_struct! {
    /// The reason for a permission request.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct ControlMetadata<'a> {
        /// The reason for the request.
        pub reason: Cow<'a, str>,
        /// The id of the tool call.
        pub tool_call_id?: Cow<'a, str>,
        /// Information to display to the user.
        pub confirmation?: ConfirmationRecord<'a>,
        /// The path outside the workspace that caused the request, if one did.
        pub blocked_path?: Cow<'a, str>,
        /// The id of the sub-agent that sent the request; absent for the main agent.
        pub agent_id?: Cow<'a, str>,
    }
}

wire_struct! {
    /// A response on the control channel, in the flat form.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlResponseLine<'a> {
        /// `control_response`
        #[serde(rename = "type")]
        pub kind: ControlResponseType,
        /// The id of the control request, repeated in its response.
        pub request_id: Cow<'a, str>,
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the running turn's prompt.
        pub prompt_id?: Cow<'a, str>,
        /// The content of the response.
        #[serde(borrow)]
        pub response: ControlAnswer<'a>,
    }
}

wire_struct! {
    /// A result or an error.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlAnswer<'a> {
        /// `success` or `error`
        pub subtype: Cow<'a, str>,
        /// The content of the response.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub result?: &'a RawValue,
        /// The error, if the request failed.
        pub error?: ControlError<'a>,
    }
}

wire_struct! {
    /// The error of a control request.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlError<'a> {
        /// The error message for users.
        pub message: Cow<'a, str>,
        /// True if a retry may succeed.
        #[serde(default)]
        pub retryable: bool,
        /// A stable identifier for programs.
        pub code?: Cow<'a, str>,
    }
}

wire_struct! {
    /// A response on the control channel in the nested form, used for requests in that form.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct NestedResponseLine<'a> {
        /// `control_response`
        #[serde(rename = "type")]
        pub kind: ControlResponseType,
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the running turn's prompt.
        pub prompt_id?: Cow<'a, str>,
        /// The content of the response.
        #[serde(borrow)]
        pub response: NestedAnswer<'a>,
    }
}

wire_struct! {
    /// A response in the nested form.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct NestedAnswer<'a> {
        /// `success` or `error`
        pub subtype: Cow<'a, str>,
        /// The id of the control request, repeated in its response.
        pub request_id: Cow<'a, str>,
        /// The content of the response.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub response?: &'a RawValue,
        /// The error, if the request failed.
        pub error?: Cow<'a, str>,
    }
}

wire_struct! {
    /// A withdrawn control request.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlCancelLine<'a> {
        /// `control_cancel_request`
        #[serde(rename = "type")]
        pub kind: ControlCancelType,
        /// The id of the control request, repeated in its response.
        pub request_id: Cow<'a, str>,
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the running turn's prompt.
        pub prompt_id?: Cow<'a, str>,
    }
}
