//! The last message of a turn, held back until it is known whether another one follows.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{AgentUsage, EndStatus, ErrorInfo, Finish, MessageEnd, ModelUsage, TurnEnd};

use super::wire::{AgentTokens, ErrorBody, Metadata, ModelTokens, PermissionDenial, TurnSummary, raw};

/// The state of the turn's messages.
#[derive(Debug, Default)]
pub(crate) enum Last {
    /// There was none.
    #[default]
    Nothing,
    /// One is being written.
    Open,
    /// The last one had calls and was written.
    Calls,
    /// The last one had none and waits for the next message or the end of the turn.
    Held(Box<MessageEnd>),
}

/// How a turn is closed.
pub(crate) struct Closing {
    /// A message that turned out not to be the answer, to be written first.
    pub before: Option<Box<MessageEnd>>,
    /// The text of the final answer.
    pub content: Arc<str>,
    /// True if the answer's text was part of a streamed message.
    pub streamed: bool,
}

impl Last {
    /// Removes and returns the held message, because another one follows.
    pub(super) fn take_held(&mut self) -> Option<Box<MessageEnd>> {
        match std::mem::take(self) {
            Self::Held(message) => Some(message),
            other => {
                *self = other;
                None
            }
        }
    }

    /// The answer of the turn, which is its last message; one with calls is already written, and the answer
    /// is then empty. A search may choose another text than its last message: then both are written.
    pub(crate) fn close(&mut self, end: &TurnEnd) -> Closing {
        match std::mem::take(self) {
            Self::Nothing => Closing { before: None, content: end.reply.clone(), streamed: false },
            Self::Open => Closing { before: None, content: end.reply.clone(), streamed: true },
            Self::Calls => Closing { before: None, content: Arc::from(""), streamed: true },
            Self::Held(message) if end.reply.is_empty() || end.reply == message.text => {
                Closing { before: None, content: message.text.clone(), streamed: true }
            }
            Self::Held(message) => {
                Closing { before: Some(message), content: end.reply.clone(), streamed: false }
            }
        }
    }
}

/// The `finish_reason` of a message.
pub(super) fn message_finish(message: &MessageEnd) -> &'static str {
    match (message.finish, message.calls.is_empty()) {
        (Finish::Length | Finish::ContentFilter, _) => message.finish.openai(),
        (_, true) => Finish::Stop.openai(),
        (_, false) => Finish::ToolCalls.openai(),
    }
}

/// The `finish_reason` of the terminal record: the model's if it was done, `stop` if we ended the turn.
pub(super) fn turn_finish(end: &TurnEnd) -> &'static str {
    if end.status == EndStatus::Done || end.is_refused() {
        end.finish.openai()
    } else {
        Finish::Stop.openai()
    }
}

/// The summary in the terminal record.
pub(super) fn turn_metadata(end: &TurnEnd) -> Metadata<'_> {
    let by_model = end.usage_by_model.iter();
    let usage_by_model = by_model.map(|spent| (Cow::Borrowed(&*spent.model), model_tokens(spent))).collect();
    let by_agent = end.usage_by_agent.iter();
    let usage_by_agent = by_agent.map(|spent| (Cow::Borrowed(&*spent.agent), agent_tokens(spent))).collect();
    let permission_denials = end
        .denials
        .iter()
        .map(|denial| PermissionDenial {
            tool_name: Cow::Borrowed(&denial.tool_name),
            tool_call_id: Cow::Borrowed(denial.call_id.as_str()),
            arguments: raw(&denial.arguments),
            reason: Cow::Borrowed(&denial.reason),
        })
        .collect();
    let control_errors = || end.control_errors.iter().map(ErrorBody::from).collect();
    Metadata {
        error: turn_error(end),
        control_errors: control_errors(),
        turn: Some(TurnSummary {
            status: Cow::Borrowed(end.status.name()),
            duration_ms: end.duration_ms,
            model_calls: end.model_calls,
            tool_calls: end.tool_calls,
            permission_denials,
            control_errors: control_errors(),
            usage_by_model,
            usage_by_agent,
            structured_output: end.structured.as_ref().map(raw),
            continuation: end.continuation,
        }),
        ..Metadata::default()
    }
}

fn model_tokens(spent: &ModelUsage) -> ModelTokens {
    let usage = &spent.usage;
    ModelTokens {
        calls: spent.calls,
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        total_tokens: usage.total(),
        cached_tokens: above_zero(usage.cached_tokens),
        reasoning_tokens: above_zero(usage.thought_tokens),
        cost_usd: (spent.cost_usd > 0.0).then_some(spent.cost_usd),
    }
}

fn agent_tokens(spent: &AgentUsage) -> AgentTokens {
    let usage = &spent.usage;
    AgentTokens {
        runs: spent.runs,
        model_calls: spent.model_calls,
        tool_calls: spent.tool_calls,
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        total_tokens: usage.total(),
        cached_tokens: above_zero(usage.cached_tokens),
        reasoning_tokens: above_zero(usage.thought_tokens),
        cost_usd: (spent.cost_usd > 0.0).then_some(spent.cost_usd),
    }
}

fn above_zero(tokens: u64) -> Option<u64> {
    (tokens > 0).then_some(tokens)
}

/// The error that ended the turn, unless it was done.
fn turn_error(end: &TurnEnd) -> Option<ErrorBody<'_>> {
    let kind = match end.status {
        EndStatus::Done => return end.error.as_ref().map(ErrorBody::from),
        EndStatus::Error => None,
        EndStatus::Cancelled => Some("cancelled"),
        EndStatus::Interrupted => Some("interrupted"),
        _ => Some("limit_reached"),
    };
    let mut body = end.error.as_ref().map_or_else(|| unexplained(end.status), ErrorBody::from);
    if let Some(kind) = kind {
        body.kind = Cow::Borrowed(kind);
    }
    Some(body)
}

/// The error of a turn that ended early without one.
fn unexplained(status: EndStatus) -> ErrorBody<'static> {
    ErrorBody {
        message: Cow::Borrowed(end_message(status)),
        kind: Cow::Borrowed("internal_error"),
        param: None,
        code: Some(Cow::Borrowed(status.name())),
        status: None,
        retryable: false,
    }
}

/// A sentence about the end of a turn.
pub(crate) fn end_message(status: EndStatus) -> &'static str {
    match status {
        EndStatus::Done => "The turn is done.",
        EndStatus::Error => "The turn failed.",
        EndStatus::Cancelled => "The turn was cancelled.",
        EndStatus::Interrupted => "The turn was interrupted because the process had to end.",
        EndStatus::MaxTurns => "The limit on model calls in a session was reached.",
        EndStatus::MaxToolCalls => "The limit on tool calls was reached.",
        EndStatus::MaxWallTime => "The limit on time was reached.",
        EndStatus::MaxTokens => "The limit on tokens was reached.",
        EndStatus::Budget => "The limit on money was reached.",
    }
}

/// The message about the end of a turn: the error's, or the default.
pub(crate) fn end_words(end: &TurnEnd) -> &str {
    end.error.as_ref().map_or_else(|| end_message(end.status), |error: &ErrorInfo| &error.message)
}
