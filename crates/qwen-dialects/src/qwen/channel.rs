//! The lines that answer requests (`result/*`) and the control channel, as they are written. Other dialects that have
//! no words of their own for these write them too.

use std::borrow::Cow;

use qwen_events::{
    Body, CancelResult, CommandCall, CommandKind, CommandResult, CommandResultBody, ControlCall,
    ControlReply, ErrorInfo, Event, HintResult, HintStatus, HintTrigger, Level, PromptId, SessionId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::record::ConfirmationRecord;
use super::wire::{raw, word};
use crate::line::push_line;

word!(
    /// What the end of a command says it is.
    CommandType = "result/command"
);
word!(
    /// What suggestions say they are.
    HintType = "result/command_hint"
);
word!(
    /// What a heartbeat says it is.
    HeartbeatType = "result/heartbeat"
);
word!(
    /// What the end of a cancel request says it is.
    CancelType = "result/cancel"
);
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

/// The end of a command.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CommandLine<'a> {
    /// `result/command`
    #[serde(rename = "type")]
    pub kind: CommandType,
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The prompt that held the command.
    #[serde(borrow)]
    pub prompt_id: Cow<'a, str>,
    /// The command as it was understood.
    #[serde(borrow)]
    pub command: CommandName<'a>,
    /// What came of it.
    #[serde(borrow)]
    pub result: CommandOutcome<'a>,
}

/// A command and its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CommandName<'a> {
    /// `slash`, `at` or `help`
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Its name and sub-names.
    #[serde(borrow)]
    pub path: Vec<Cow<'a, str>>,
    /// The rest, as typed.
    #[serde(borrow, default)]
    pub args: Cow<'a, str>,
}

impl<'a> From<&'a CommandCall> for CommandName<'a> {
    fn from(call: &'a CommandCall) -> Self {
        let kind = match call.kind {
            CommandKind::Slash => "slash",
            CommandKind::At => "at",
            CommandKind::Help => "help",
        };
        Self {
            kind: Cow::Borrowed(kind),
            path: call.path.iter().map(|name| Cow::Borrowed(&**name)).collect(),
            args: Cow::Borrowed(&call.args),
        }
    }
}

/// What came of a command.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CommandOutcome<'a> {
    /// `message`, `dialog`, `tool` or `submit_prompt`
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// How loud a message is: `info`, `warning` or `error`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Cow<'a, str>>,
    /// The words of a message, or the prompt that is submitted.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Cow<'a, str>>,
    /// The name of the dialog.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Cow<'a, str>>,
    /// What the dialog shows.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub data: Option<&'a RawValue>,
    /// The tool that was run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolUse<'a>>,
}

/// A tool and its arguments.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse<'a> {
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The arguments, an object.
    #[serde(borrow)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub arguments: &'a RawValue,
}

/// Suggestions for what is being typed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HintLine<'a> {
    /// `result/command_hint`
    #[serde(rename = "type")]
    pub kind: HintType,
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The request's prompt id.
    #[serde(borrow)]
    pub prompt_id: Cow<'a, str>,
    /// `slash` or `at`
    #[serde(borrow)]
    pub trigger: Cow<'a, str>,
    /// `ok`, `loading` or `error`
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// The suggestions, best first.
    #[serde(borrow)]
    pub suggestions: Vec<SuggestionItem<'a>>,
    /// What goes beside them.
    pub metadata: HintMetadata,
    /// What went wrong.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
}

/// A suggestion.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SuggestionItem<'a> {
    /// What is shown.
    #[serde(borrow)]
    pub label: Cow<'a, str>,
    /// What is inserted.
    #[serde(borrow)]
    pub value: Cow<'a, str>,
    /// What it means.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}

/// What goes beside suggestions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HintMetadata {
    /// The text already names one of them exactly.
    pub is_perfect_match: bool,
}

/// A sign of life.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatLine<'a> {
    /// `result/heartbeat`
    #[serde(rename = "type")]
    pub kind: HeartbeatType,
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The turn under way.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// `ok`
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// Seconds since the Unix epoch.
    pub ts: u64,
}

/// The end of a cancel request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CancelLine<'a> {
    /// `result/cancel`
    #[serde(rename = "type")]
    pub kind: CancelType,
    /// The session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The turn or queued prompt that was meant.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<Cow<'a, str>>,
    /// `ok`, or `noop` where there was nothing to cancel.
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// The reason that the request gave.
    #[serde(borrow, default)]
    pub reason: Cow<'a, str>,
    /// What happened, in a sentence.
    #[serde(borrow, default)]
    pub message: Cow<'a, str>,
}

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

/// What lines that name no turn of their own are stamped with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp<'a> {
    pub session_id: &'a SessionId,
    pub prompt_id: Option<&'a PromptId>,
}

impl<'a> Stamp<'a> {
    #[expect(clippy::unnecessary_wraps, reason = "the fields that it fills are optional")]
    fn session(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self.session_id.as_str()))
    }

    fn prompt(self) -> Option<Cow<'a, str>> {
        self.prompt_id.map(|id| Cow::Borrowed(id.as_str()))
    }
}

/// Writes the lines of an event that answers a request or belongs to the control channel; says whether it was one.
pub(crate) fn encode(stamp: Stamp<'_>, event: &Event, out: &mut Vec<u8>) -> bool {
    match &event.body {
        Body::CommandResult(result) => push_command(result, out),
        Body::HintResult(result) => push_hint(result, out),
        Body::Heartbeat(session_id) => push_line(
            out,
            &HeartbeatLine {
                kind: HeartbeatType::Word,
                session_id: Cow::Borrowed(session_id.as_str()),
                prompt_id: stamp.prompt(),
                status: Cow::Borrowed("ok"),
                ts: event.at.seconds(),
            },
        ),
        Body::CancelResult(result) => push_cancel(stamp, result, out),
        Body::ControlRequest { request_id, session_id, prompt_id, call } => {
            let prompt_id = prompt_id.as_ref().or(stamp.prompt_id);
            push_line(out, &control_request(request_id, session_id, prompt_id, call));
        }
        Body::ControlReply(reply) => push_reply(stamp, reply, out),
        Body::ControlCancel { request_id } => push_line(
            out,
            &ControlCancelLine {
                kind: ControlCancelType::Word,
                request_id: Cow::Borrowed(request_id),
                session_id: stamp.session(),
                prompt_id: stamp.prompt(),
            },
        ),
        _ => return false,
    }
    true
}

fn push_command(result: &CommandResult, out: &mut Vec<u8>) {
    let none = CommandOutcome::default();
    let outcome = match &result.body {
        CommandResultBody::Message { level, content } => CommandOutcome {
            kind: Cow::Borrowed("message"),
            level: Some(Cow::Borrowed(match level {
                Level::Info => "info",
                Level::Warning => "warning",
                Level::Error => "error",
            })),
            content: Some(Cow::Borrowed(content)),
            ..none
        },
        CommandResultBody::Dialog { name, data } => CommandOutcome {
            kind: Cow::Borrowed("dialog"),
            dialog: Some(Cow::Borrowed(name)),
            data: Some(raw(data)),
            ..none
        },
        CommandResultBody::Tool { name, arguments } => CommandOutcome {
            kind: Cow::Borrowed("tool"),
            tool: Some(ToolUse { name: Cow::Borrowed(name), arguments: raw(arguments) }),
            ..none
        },
        CommandResultBody::SubmitPrompt { content } => CommandOutcome {
            kind: Cow::Borrowed("submit_prompt"),
            content: Some(Cow::Borrowed(content)),
            ..none
        },
    };
    push_line(
        out,
        &CommandLine {
            kind: CommandType::Word,
            session_id: Cow::Borrowed(result.session_id.as_str()),
            prompt_id: Cow::Borrowed(result.prompt_id.as_str()),
            command: CommandName::from(&result.command),
            result: outcome,
        },
    );
}

fn push_hint(result: &HintResult, out: &mut Vec<u8>) {
    push_line(
        out,
        &HintLine {
            kind: HintType::Word,
            session_id: Cow::Borrowed(result.session_id.as_str()),
            prompt_id: Cow::Borrowed(result.prompt_id.as_str()),
            trigger: Cow::Borrowed(match result.trigger {
                HintTrigger::Slash => "slash",
                HintTrigger::At => "at",
            }),
            status: Cow::Borrowed(match result.status {
                HintStatus::Ok => "ok",
                HintStatus::Loading => "loading",
                HintStatus::Error => "error",
            }),
            suggestions: result
                .suggestions
                .iter()
                .map(|suggestion| SuggestionItem {
                    label: Cow::Borrowed(&suggestion.label),
                    value: Cow::Borrowed(&suggestion.value),
                    description: suggestion.description.as_deref().map(Cow::Borrowed),
                })
                .collect(),
            metadata: HintMetadata { is_perfect_match: result.is_perfect_match },
            message: result.message.as_deref().map(Cow::Borrowed),
        },
    );
}

fn push_cancel(stamp: Stamp<'_>, result: &CancelResult, out: &mut Vec<u8>) {
    let status = if result.cancelled { "ok" } else { "noop" };
    let prompt_id = result.prompt_id.as_ref().or(stamp.prompt_id);
    let stamp = Stamp { session_id: &result.session_id, prompt_id };
    push_line(
        out,
        &CancelLine {
            kind: CancelType::Word,
            session_id: stamp.session(),
            prompt_id: stamp.prompt(),
            status: Cow::Borrowed(status),
            reason: Cow::Borrowed(&result.reason),
            message: Cow::Borrowed(&result.message),
        },
    );
    if let Some(request_id) = &result.request_id {
        #[derive(Serialize)]
        struct Outcome<'a> {
            status: &'a str,
            message: &'a str,
        }
        let outcome = serde_json::value::to_raw_value(&Outcome { status, message: &result.message });
        push_line(
            out,
            &ControlResponseLine {
                kind: ControlResponseType::Word,
                request_id: Cow::Borrowed(request_id),
                session_id: stamp.session(),
                prompt_id: stamp.prompt(),
                response: ControlAnswer {
                    subtype: Cow::Borrowed("success"),
                    result: Some(outcome.as_deref().unwrap_or(RawValue::NULL)),
                    error: None,
                },
            },
        );
    }
}

/// A question to the host, in the flat form.
fn control_request<'a>(
    request_id: &'a str,
    session_id: &'a SessionId,
    prompt_id: Option<&'a PromptId>,
    call: &'a ControlCall,
) -> ControlRequestLine<'a> {
    let mut line = ControlRequestLine {
        kind: ControlRequestType::Word,
        request_id: Cow::Borrowed(request_id),
        subtype: Cow::Borrowed(""),
        session_id: Cow::Borrowed(session_id.as_str()),
        prompt_id: prompt_id.map(|id| Cow::Borrowed(id.as_str())),
        tool: None,
        metadata: None,
        callback_id: None,
        input: None,
        tool_use_id: None,
        server_name: None,
        message: None,
    };
    match call {
        ControlCall::CanUseTool { call, confirmation, reason, blocked_path, agent_id } => {
            line.subtype = Cow::Borrowed("can_use_tool");
            line.tool = Some(ToolUse { name: Cow::Borrowed(&call.name), arguments: raw(&call.arguments) });
            line.metadata = Some(ControlMetadata {
                reason: Cow::Borrowed(reason),
                tool_call_id: Some(Cow::Borrowed(call.id.as_str())),
                confirmation: Some((&**confirmation).into()),
                blocked_path: blocked_path.as_deref().map(Cow::Borrowed),
                agent_id: agent_id.as_deref().map(Cow::Borrowed),
            });
        }
        ControlCall::HookCallback { callback_id, input, tool_use_id } => {
            line.subtype = Cow::Borrowed("hook_callback");
            line.callback_id = Some(Cow::Borrowed(callback_id));
            line.input = Some(raw(input));
            line.tool_use_id = tool_use_id.as_deref().map(Cow::Borrowed);
        }
        ControlCall::McpMessage { server, message } => {
            line.subtype = Cow::Borrowed("mcp_message");
            line.server_name = Some(Cow::Borrowed(server));
            line.message = Some(raw(message));
        }
    }
    line
}

fn push_reply(stamp: Stamp<'_>, reply: &ControlReply, out: &mut Vec<u8>) {
    let subtype = Cow::Borrowed(if reply.result.is_ok() { "success" } else { "error" });
    let result = reply.result.as_ref().ok().map(raw);
    let error: Option<&ErrorInfo> = reply.result.as_ref().err();
    if reply.nested {
        let response = NestedAnswer {
            subtype,
            request_id: Cow::Borrowed(&reply.request_id),
            response: result,
            error: error.map(|error| Cow::Borrowed(&*error.message)),
        };
        let (session_id, prompt_id) = (stamp.session(), stamp.prompt());
        push_line(
            out,
            &NestedResponseLine { kind: ControlResponseType::Word, session_id, prompt_id, response },
        );
    } else {
        let error = error.map(|error| ControlError {
            message: Cow::Borrowed(&*error.message),
            retryable: error.retryable,
            code: Some(Cow::Borrowed(error.code)),
        });
        push_line(
            out,
            &ControlResponseLine {
                kind: ControlResponseType::Word,
                request_id: Cow::Borrowed(&reply.request_id),
                session_id: stamp.session(),
                prompt_id: stamp.prompt(),
                response: ControlAnswer { subtype, result, error },
            },
        );
    }
}
