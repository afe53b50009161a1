//! Encodes answers to requests and the control channel. Dialects without their own form of these lines use
//! them too.

use std::borrow::Cow;

use qwen_events::{
    Activity, Body, CancelResult, CommandResult, CommandResultBody, ControlCall, ControlReply, ErrorInfo,
    Event, HintResult, HintStatus, HintTrigger, Level, PromptId, SessionId, turn_steps,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::wire::control::{
    ControlAnswer, ControlCancelLine, ControlCancelType, ControlError, ControlMetadata, ControlRequestLine,
    ControlRequestType, ControlResponseLine, ControlResponseType, NestedAnswer, NestedResponseLine,
};
use super::wire::raw;
use super::wire::result::{
    CancelLine, CancelType, CommandLine, CommandName, CommandOutcome, CommandType, HeartbeatLine,
    HeartbeatType, HintLine, HintMetadata, HintType, SuggestionItem, ToolUse,
};
use crate::line::push_line;

/// The stamp of lines that name no turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp<'a> {
    pub session_id: &'a SessionId,
    pub prompt_id: Option<&'a PromptId>,
    /// A limitation of this run, which answers to commands must mention.
    pub limitation: Option<&'static str>,
}

/// The message when input is not a stream: no host can answer a control request.
pub(crate) const NO_CONTROL_CHANNEL: &str =
    "There is no control channel in this run: what would have to be asked is refused.";

impl<'a> Stamp<'a> {
    #[expect(clippy::unnecessary_wraps, reason = "the fields that it fills are optional")]
    fn session(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self.session_id.as_str()))
    }

    /// The stamp of a line about a session; the turn under way belongs to another one if the ids differ.
    fn of_session(self, session_id: &'a SessionId) -> Self {
        let prompt_id = self.prompt_id.filter(|_| session_id == self.session_id);
        Self { session_id, prompt_id, ..self }
    }

    fn prompt(self) -> Option<Cow<'a, str>> {
        self.prompt_id.map(|id| Cow::Borrowed(id.as_str()))
    }
}

/// Writes the lines of an event that answers a request or belongs to the control channel; returns whether
/// it was one.
pub(crate) fn encode(stamp: Stamp<'_>, event: &Event, out: &mut Vec<u8>) -> bool {
    match &event.body {
        Body::CommandResult(result) => push_command(stamp, result, out),
        Body::HintResult(result) => push_hint(result, out),
        Body::Heartbeat(beat) => push_line(
            out,
            &HeartbeatLine {
                kind: HeartbeatType::Word,
                session_id: Cow::Borrowed(beat.session_id.as_str()),
                prompt_id: stamp.of_session(&beat.session_id).prompt(),
                status: Cow::Borrowed("ok"),
                activity: beat.activity.as_ref().map(|activity| Cow::Borrowed(activity.name())),
                tool: beat.activity.as_ref().and_then(Activity::tool).map(Cow::Borrowed),
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
        Body::Ready
        | Body::TurnStart(..)
        | turn_steps!()
        | Body::Error(..)
        | Body::TurnEnd(..)
        | Body::Fatal(..) => return false,
    }
    true
}

fn push_command(stamp: Stamp<'_>, result: &CommandResult, out: &mut Vec<u8>) {
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
            limitation: stamp.limitation.map(Cow::Borrowed),
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
    let stamp = stamp.of_session(&result.session_id);
    let stamp = Stamp { prompt_id: result.prompt_id.as_ref().or(stamp.prompt_id), ..stamp };
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

/// A control request to the host, in the flat form.
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
