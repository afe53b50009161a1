//! The control channel as it is written: questions, answers in the flat and the nested form, withdrawals.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::record::ConfirmationRecord;
use super::result::ToolUse;
use super::{wire_struct, words};
words! {
    /// What a question on the control channel says it is.
    ControlRequestType = "control_request";
    /// What an answer on the control channel says it is.
    ControlResponseType = "control_response";
    /// What a withdrawn question says it is.
    ControlCancelType = "control_cancel_request";
}

wire_struct! {
    /// A question on the control channel.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlRequestLine<'a> {
        /// `control_request`
        #[serde(rename = "type")]
        pub kind: ControlRequestType,
        /// The question's id, to be repeated in the answer.
        pub request_id: Cow<'a, str>,
        /// `can_use_tool`, `hook_callback` or `mcp_message`
        pub subtype: Cow<'a, str>,
        /// The session.
        pub session_id: Cow<'a, str>,
        /// The turn; absent outside one.
        pub prompt_id?: Cow<'a, str>,
        /// `can_use_tool`: what wants to run.
        #[serde(borrow)]
        pub tool?: ToolUse<'a>,
        /// `can_use_tool`: why we ask, and what a person may be shown.
        pub metadata?: ControlMetadata<'a>,
        /// `hook_callback`: the host's name for its function.
        pub callback_id?: Cow<'a, str>,
        /// `hook_callback`: what the function is told.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub input?: &'a RawValue,
        /// `hook_callback`: the call that it is about.
        pub tool_use_id?: Cow<'a, str>,
        /// `mcp_message`: the server.
        pub server_name?: Cow<'a, str>,
        /// `mcp_message`: the JSON-RPC message.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub message?: &'a RawValue,
    }
}

wire_struct! {
    /// Why we ask whether a call may run.
    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub struct ControlMetadata<'a> {
        /// Why we ask.
        pub reason: Cow<'a, str>,
        /// The call.
        pub tool_call_id?: Cow<'a, str>,
        /// What a person may be shown.
        pub confirmation?: ConfirmationRecord<'a>,
        /// The path that is out of bounds, where that is the reason.
        pub blocked_path?: Cow<'a, str>,
        /// The sub-agent that asks.
        pub agent_id?: Cow<'a, str>,
    }
}

wire_struct! {
    /// An answer on the control channel, in the flat form.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlResponseLine<'a> {
        /// `control_response`
        #[serde(rename = "type")]
        pub kind: ControlResponseType,
        /// The question's id.
        pub request_id: Cow<'a, str>,
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The turn under way.
        pub prompt_id?: Cow<'a, str>,
        /// The answer.
        #[serde(borrow)]
        pub response: ControlAnswer<'a>,
    }
}

wire_struct! {
    /// An answer, or why there is none.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlAnswer<'a> {
        /// `success` or `error`
        pub subtype: Cow<'a, str>,
        /// The answer.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub result?: &'a RawValue,
        /// Why there is none.
        pub error?: ControlError<'a>,
    }
}

wire_struct! {
    /// Why there is no answer.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlError<'a> {
        /// What went wrong.
        pub message: Cow<'a, str>,
        /// Whether trying again may help.
        #[serde(default)]
        pub retryable: bool,
        /// A stable word for programs.
        pub code?: Cow<'a, str>,
    }
}

wire_struct! {
    /// An answer on the control channel, in the nested form; whoever asked in it is answered in it.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct NestedResponseLine<'a> {
        /// `control_response`
        #[serde(rename = "type")]
        pub kind: ControlResponseType,
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The turn under way.
        pub prompt_id?: Cow<'a, str>,
        /// The answer.
        #[serde(borrow)]
        pub response: NestedAnswer<'a>,
    }
}

wire_struct! {
    /// An answer in the nested form.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct NestedAnswer<'a> {
        /// `success` or `error`
        pub subtype: Cow<'a, str>,
        /// The question's id.
        pub request_id: Cow<'a, str>,
        /// The answer.
        #[schemars(with = "Option<serde_json::Value>")]
        #[serde(borrow)]
        pub response?: &'a RawValue,
        /// Why there is none.
        pub error?: Cow<'a, str>,
    }
}

wire_struct! {
    /// A question of ours that no longer matters.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct ControlCancelLine<'a> {
        /// `control_cancel_request`
        #[serde(rename = "type")]
        pub kind: ControlCancelType,
        /// The question's id.
        pub request_id: Cow<'a, str>,
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The turn under way.
        pub prompt_id?: Cow<'a, str>,
    }
}
