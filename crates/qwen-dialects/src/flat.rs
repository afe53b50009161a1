//! The lines that are about the connection and not about a turn: the flat control channel and `result/*` of spec 1.
//! Dialects without their own forms write these.

use std::borrow::Cow;

use qwen_events::{
    Activity, Body, CancelResult, ControlCall, ControlReply, Event, Heartbeat, HintResult, HintStatus,
    HintTrigger, Timestamp, turn_steps,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::line::push_line;
use crate::payload::Payload;

/// The response to a request that is not a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum ResultNote<'a> {
    /// A periodic sign of life.
    #[serde(rename = "result/heartbeat")]
    Heartbeat {
        /// The id of the session.
        session_id: Cow<'a, str>,
        /// Always the literal `ok`.
        status: Cow<'a, str>,
        /// The activity of the running turn: `thinking`, `tool`, or `waiting` while the host runs a tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        activity: Option<Cow<'a, str>>,
        /// The name of the tool that is running or that the host runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<Cow<'a, str>>,
        /// Seconds since the Unix epoch.
        ts: u64,
    },
    /// Completions of the text that is being typed.
    #[serde(rename = "result/command_hint")]
    CommandHint {
        /// The id of the session.
        session_id: Cow<'a, str>,
        /// The `prompt_id` of the request.
        prompt_id: Cow<'a, str>,
        /// Either `slash` or `at`.
        trigger: Cow<'a, str>,
        /// `ok`, `loading` or `error`.
        status: Cow<'a, str>,
        /// The suggestions, best first.
        suggestions: Vec<HintSuggestion<'a>>,
        /// Additional information about the suggestions.
        metadata: HintMetadata,
        /// The error message for users.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Cow<'a, str>>,
    },
    /// The result of a cancel request.
    #[serde(rename = "result/cancel")]
    Cancel {
        /// The id of the session.
        session_id: Cow<'a, str>,
        /// The id of the turn's prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_id: Option<Cow<'a, str>>,
        /// `ok` if a prompt was cancelled, otherwise `noop`.
        status: Cow<'a, str>,
        /// A message for users about what was cancelled.
        message: Cow<'a, str>,
        /// The `reason` of the request.
        reason: Cow<'a, str>,
    },
}

/// A line of the flat control channel: requests, responses and withdrawals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum ControlLine<'a> {
    /// A control request to the host.
    #[serde(rename = "control_request")]
    ControlRequest {
        /// The id of the control request, repeated in its response.
        request_id: Cow<'a, str>,
        /// The id of the session.
        session_id: Cow<'a, str>,
        /// The id of the turn's prompt; absent outside a turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_id: Option<Cow<'a, str>>,
        /// The body of the request.
        #[serde(flatten)]
        question: FlatQuestion<'a>,
    },
    /// A response to a control request of the host, in the form of that request.
    #[serde(rename = "control_response")]
    ControlResponse(ControlResponse<'a>),
    /// A control request is withdrawn; a response to it is ignored.
    #[serde(rename = "control_cancel_request")]
    ControlCancelRequest {
        /// The id of the control request, repeated in its response.
        request_id: Cow<'a, str>,
    },
}

/// A completion of the text that is being typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HintSuggestion<'a> {
    /// The text to display.
    pub label: Cow<'a, str>,
    /// The text to insert.
    pub value: Cow<'a, str>,
    /// A description of the suggestion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}

/// Additional information about the suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HintMetadata {
    /// True if the text already equals one of the suggestions.
    pub is_perfect_match: bool,
}

/// A question of the flat control channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum FlatQuestion<'a> {
    /// A permission request for a tool call.
    CanUseTool {
        /// The tool call that needs permission.
        tool: FlatTool<'a>,
        /// The reason for the request.
        metadata: FlatReason<'a>,
    },
    /// A call of a hook that the host implements.
    HookCallback(HookPayload<'a>),
    /// A message for an MCP server that the host implements.
    McpMessage(McpPayload<'a>),
}

/// The tool call that needs permission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlatTool<'a> {
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments of the call, a JSON object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub arguments: Payload<'a>,
}

/// The reason for the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlatReason<'a> {
    /// A message for users, one sentence.
    pub reason: Cow<'a, str>,
    /// The id of the tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Cow<'a, str>>,
    /// The path outside the workspace that caused the request, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<Cow<'a, str>>,
    /// The id of the sub-agent that sent the request; absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
}

/// A hook of the host and its input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookPayload<'a> {
    /// The id under which the host registered the hook.
    pub callback_id: Cow<'a, str>,
    /// The input of the hook.
    pub input: Payload<'a>,
    /// The id of the tool call that this line concerns.
    #[serde(default)]
    pub tool_use_id: Option<Cow<'a, str>>,
}

/// A message for an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpPayload<'a> {
    /// The name of the MCP server.
    pub server_name: Cow<'a, str>,
    /// The JSON-RPC message for the server.
    pub message: Payload<'a>,
}

/// A response on the control channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ControlResponse<'a> {
    /// The flat form: `request_id` is a top-level key.
    Flat {
        /// The id of the control request.
        request_id: Cow<'a, str>,
        /// The content of the response.
        response: FlatResponse<'a>,
    },
    /// The nested form: `request_id` is a key of `response`.
    Nested {
        /// The content of the response.
        response: NestedResponse<'a>,
    },
}

/// A response of the flat control channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum FlatResponse<'a> {
    /// The answer to a request that succeeded.
    Success {
        /// The result of the request.
        result: Payload<'a>,
    },
    /// The answer to a request that failed.
    Error {
        /// The error, if the request failed.
        error: FlatError<'a>,
    },
}

/// The error of a control request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlatError<'a> {
    /// A message for users, one sentence.
    pub message: Cow<'a, str>,
    /// A stable identifier for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'a, str>>,
    /// True if a retry may succeed.
    #[serde(default)]
    pub retryable: bool,
}

/// A response of the nested control channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum NestedResponse<'a> {
    /// The answer to a request that succeeded.
    Success {
        /// The id of the control request.
        request_id: Cow<'a, str>,
        /// The result of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<Payload<'a>>,
    },
    /// The answer to a request that failed.
    Error {
        /// The id of the control request.
        request_id: Cow<'a, str>,
        /// The error, if the request failed.
        error: Cow<'a, str>,
    },
}

/// Writes `event` if it is about the connection. Returns whether it was.
pub(crate) fn push_flat(event: &Event, out: &mut Vec<u8>) -> bool {
    match &event.body {
        Body::Heartbeat(beat) => push_line(out, &heartbeat(beat, event.at)),
        Body::HintResult(hint) => push_line(out, &command_hint(hint)),
        Body::CancelResult(result) => push_cancel(result, out),
        Body::ControlRequest { request_id, session_id, prompt_id, call } => push_line(
            out,
            &ControlLine::ControlRequest {
                request_id: request_id.as_ref().into(),
                session_id: session_id.as_str().into(),
                prompt_id: prompt_id.as_ref().map(|id| id.as_str().into()),
                question: question(call),
            },
        ),
        Body::ControlReply(reply) => push_line(out, &ControlLine::ControlResponse(control_response(reply))),
        Body::ControlCancel { request_id } => {
            push_line(out, &ControlLine::ControlCancelRequest { request_id: request_id.as_ref().into() });
        }
        turn_steps!()
        | Body::TurnStart(..)
        | Body::TurnEnd(..)
        | Body::CommandResult(..)
        | Body::Error(..)
        | Body::Ready
        | Body::Fatal(..) => return false,
    }
    true
}

fn heartbeat(beat: &Heartbeat, at: Timestamp) -> ResultNote<'_> {
    ResultNote::Heartbeat {
        session_id: beat.session_id.as_str().into(),
        status: "ok".into(),
        activity: beat.activity.as_ref().map(|activity| activity.name().into()),
        tool: beat.activity.as_ref().and_then(Activity::tool).map(Into::into),
        ts: at.seconds(),
    }
}

fn command_hint(hint: &HintResult) -> ResultNote<'_> {
    ResultNote::CommandHint {
        session_id: hint.session_id.as_str().into(),
        prompt_id: hint.prompt_id.as_str().into(),
        trigger: match hint.trigger {
            HintTrigger::Slash => "slash".into(),
            HintTrigger::At => "at".into(),
        },
        status: match hint.status {
            HintStatus::Ok => "ok".into(),
            HintStatus::Loading => "loading".into(),
            HintStatus::Error => "error".into(),
        },
        suggestions: hint
            .suggestions
            .iter()
            .map(|s| HintSuggestion {
                label: s.label.as_ref().into(),
                value: s.value.as_ref().into(),
                description: s.description.as_deref().map(Cow::Borrowed),
            })
            .collect(),
        metadata: HintMetadata { is_perfect_match: hint.is_perfect_match },
        message: hint.message.as_deref().map(Cow::Borrowed),
    }
}

fn push_cancel(result: &CancelResult, out: &mut Vec<u8>) {
    let status = if result.cancelled { "ok" } else { "noop" };
    push_line(
        out,
        &ResultNote::Cancel {
            session_id: result.session_id.as_str().into(),
            prompt_id: result.prompt_id.as_ref().map(|id| id.as_str().into()),
            status: status.into(),
            message: result.message.as_ref().into(),
            reason: result.reason.as_ref().into(),
        },
    );
    if let Some(request_id) = &result.request_id {
        #[derive(Serialize)]
        struct Outcome<'a> {
            status: &'a str,
            message: &'a str,
        }
        push_line(
            out,
            &ControlLine::ControlResponse(ControlResponse::Flat {
                request_id: request_id.as_ref().into(),
                response: FlatResponse::Success {
                    result: Payload::from_value(&Outcome { status, message: &result.message }),
                },
            }),
        );
    }
}

fn question(call: &ControlCall) -> FlatQuestion<'_> {
    match call {
        ControlCall::CanUseTool { call, reason, blocked_path, agent_id, .. } => FlatQuestion::CanUseTool {
            tool: FlatTool { name: call.name.as_ref().into(), arguments: Payload::new(&call.arguments) },
            metadata: FlatReason {
                reason: reason.as_ref().into(),
                tool_call_id: Some(call.id.as_str().into()),
                blocked_path: blocked_path.as_deref().map(Cow::Borrowed),
                agent_id: agent_id.as_deref().map(Cow::Borrowed),
            },
        },
        ControlCall::HookCallback { callback_id, input, tool_use_id } => {
            FlatQuestion::HookCallback(hook_payload(callback_id, input, tool_use_id.as_deref()))
        }
        ControlCall::McpMessage { server, message } => FlatQuestion::McpMessage(mcp_payload(server, message)),
    }
}

/// A hook call as both control channels carry it.
pub(crate) fn hook_payload<'a>(
    callback_id: &'a str,
    input: &'a qwen_events::Json,
    tool_use_id: Option<&'a str>,
) -> HookPayload<'a> {
    HookPayload {
        callback_id: callback_id.into(),
        input: Payload::new(input),
        tool_use_id: tool_use_id.map(Cow::Borrowed),
    }
}

/// An MCP message as both control channels carry it.
pub(crate) fn mcp_payload<'a>(server: &'a str, message: &'a qwen_events::Json) -> McpPayload<'a> {
    McpPayload { server_name: server.into(), message: Payload::new(message) }
}

/// An answer in the form in which it was asked for.
pub(crate) fn control_response(reply: &ControlReply) -> ControlResponse<'_> {
    let request_id = Cow::Borrowed(reply.request_id.as_ref());
    if reply.nested {
        ControlResponse::Nested {
            response: match &reply.result {
                Ok(json) => NestedResponse::Success { request_id, response: Some(Payload::new(json)) },
                Err(error) => NestedResponse::Error { request_id, error: error.message.as_ref().into() },
            },
        }
    } else {
        ControlResponse::Flat {
            request_id,
            response: match &reply.result {
                Ok(json) => FlatResponse::Success { result: Payload::new(json) },
                Err(error) => FlatResponse::Error {
                    error: FlatError {
                        message: error.message.as_ref().into(),
                        code: Some(error.code.into()),
                        retryable: error.retryable,
                    },
                },
            },
        }
    }
}
