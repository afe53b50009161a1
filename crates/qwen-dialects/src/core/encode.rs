//! Encodes events as `{"type","value"}` lines.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{
    Body, CallId, ControlCall, Denial, EndStatus, ErrorInfo, ErrorKind, Event, Finish, PromptId,
    SessionEvent, SessionId, ToolCall, ToolEnd, ToolStatus, TurnEnd, graph_events, notices, outside_turns,
};

use super::tool::{
    ConfirmationDetails, ResponsePart, ShownResult, ToolCallConfirmation, ToolCallRequest, ToolCallResponse,
};
use super::wire::{
    Cancelled, Compression, CoreLine, ErrorValue, Failed, Failure, FallbackValue, Finished, ModeValue,
    Notice, Refusal, RetryValue, SteeredValue, ThoughtValue, TurnTotals, UsageMetadata,
};
use crate::line::{push_line, push_string};
use crate::qwen::channel::{self, Stamp};
use crate::qwen::thought::{Thought, Thoughts};
use crate::qwen::turn::{Last, end_words};
use crate::qwen::wire::{ErrorBody, raw};
use crate::{Encoder, StreamInfo};

pub(super) struct CoreEncoder {
    session_id: SessionId,
    prompt_id: Option<PromptId>,
    /// The current or last message, for `response_id`.
    message_id: Option<Arc<str>>,
    thoughts: Thoughts,
    last: Last,
    /// The open permission requests, for `onConfirm`.
    questions: Vec<(CallId, Arc<str>)>,
}

impl CoreEncoder {
    pub(super) fn new(info: &StreamInfo) -> Self {
        Self {
            session_id: info.session_id.clone(),
            prompt_id: None,
            message_id: None,
            thoughts: Thoughts::default(),
            last: Last::default(),
            questions: Vec::new(),
        }
    }

    fn end_thought(&mut self, parent: Option<&CallId>, out: &mut Vec<u8>) {
        if let Some(block) = self.thoughts.take(parent) {
            push_thought(&Thought::of_block(&block), parent, out);
        }
    }

    fn request<'a>(&'a self, call: &'a ToolCall, parent: Option<&'a CallId>) -> ToolCallRequest<'a> {
        ToolCallRequest {
            call_id: Cow::Borrowed(call.id.as_str()),
            name: Cow::Borrowed(&call.name),
            args: raw(&call.arguments),
            is_client_initiated: false,
            prompt_id: Cow::Borrowed(self.prompt_id.as_ref().map_or("", PromptId::as_str)),
            // A sub-agent's messages have their own ids, which are unknown here.
            response_id: self.message_id.as_deref().filter(|_| parent.is_none()).map(Cow::Borrowed),
            parent_call_id: parent_id(parent),
        }
    }

    fn end_turn(&mut self, end: &TurnEnd, out: &mut Vec<u8>) {
        self.end_thought(None, out);
        if self.prompt_id.as_ref() == Some(&end.prompt_id) {
            let closing = self.last.close(end);
            if !closing.streamed && !closing.content.is_empty() {
                push_content(&closing.content, out);
            }
            self.prompt_id = None;
            self.questions.clear();
        }
        push_line(out, &terminal(end));
    }

    /// Writes the lines of the main agent's messages and updates the state.
    fn message(&mut self, body: &Body, out: &mut Vec<u8>) {
        match body {
            Body::MessageStart { message_id, .. } => {
                self.message_id = Some(message_id.clone());
                self.last = Last::Open;
            }
            Body::TextDelta(text) if !text.is_empty() => push_content(text, out),
            Body::MessageEnd(message) => {
                self.last = if message.calls.is_empty() { Last::Held(message.clone()) } else { Last::Calls };
            }
            _ => {}
        }
    }
}

impl Encoder for CoreEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let parent = event.scope.parent.as_ref();
        if matches!(
            event.body,
            Body::TextDelta(_) | Body::ToolCallDelta { .. } | Body::ToolCall(_) | Body::MessageEnd(_)
        ) {
            self.end_thought(parent, out);
        }
        if parent.is_none() {
            self.message(&event.body, out);
        }
        match &event.body {
            Body::TurnStart(start) if parent.is_none() => {
                self.session_id = start.session_id.clone();
                self.prompt_id = Some(start.prompt_id.clone());
                self.last = Last::Nothing;
            }
            Body::ThoughtDelta(text) => self.thoughts.add(parent, text),
            Body::Thinking(step) => push_thought(&Thought::of_step(step), parent, out),
            Body::ToolCall(call) => push_line(out, &CoreLine::ToolCallRequest(self.request(call, parent))),
            Body::Approval { call, confirmation, .. } => {
                let question = self.questions.iter().find(|(id, _)| *id == call.id);
                let on_confirm = question.map_or("control_response", |(_, request_id)| request_id);
                let details = ConfirmationDetails::new(confirmation, on_confirm);
                let request = self.request(call, parent);
                push_line(out, &CoreLine::ToolCallConfirmation(ToolCallConfirmation { request, details }));
            }
            Body::ToolEnd(end) => push_line(out, &CoreLine::ToolCallResponse(response(end, parent))),
            Body::Session(notice) => push_notice(notice, out),
            Body::Custom(value) => push_line(out, &CoreLine::Custom(raw(value))),
            Body::Error(error) => {
                let value = ErrorValue { error: ErrorBody::from(&**error) };
                let input = error.kind == ErrorKind::Input;
                push_line(out, &if input { CoreLine::InputError(value) } else { CoreLine::Warning(value) });
            }
            Body::Fatal(error) => {
                push_line(out, &CoreLine::Error(Failed { error: failure(error), turn: None }));
            }
            Body::TurnEnd(end) if parent.is_none() => self.end_turn(end, out),
            Body::Ready
            | Body::TurnStart(..)
            | graph_events!()
            | Body::MessageStart { .. }
            | Body::TextDelta(..)
            | Body::ThoughtSignature(..)
            | Body::ToolCallDelta { .. }
            | Body::MessageEnd(..)
            | Body::Decision { .. }
            | Body::ToolStart(..)
            | Body::ToolOutput { .. }
            | Body::ToolDisplay { .. }
            | notices!()
            | Body::History(..)
            | Body::TurnEnd(..)
            | outside_turns!() => {
                if let Body::ControlRequest { request_id, call, .. } = &event.body
                    && let ControlCall::CanUseTool { call, .. } = &**call
                {
                    self.questions.push((call.id.clone(), request_id.clone()));
                }
                let stamp = Stamp {
                    session_id: &self.session_id,
                    prompt_id: self.prompt_id.as_ref(),
                    limitation: None,
                };
                channel::encode(stamp, event, out);
            }
        }
    }
}

/// Writes a piece of text. It is the most frequent line, so it is written without serde.
fn push_content(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"content\",\"value\":");
    push_string(out, text);
    out.extend_from_slice(b"}\n");
}

fn push_thought(thought: &Thought<'_>, parent: Option<&CallId>, out: &mut Vec<u8>) {
    push_line(
        out,
        &CoreLine::Thought(ThoughtValue {
            subject: Cow::Borrowed(&*thought.subject),
            description: Cow::Borrowed(&*thought.description),
            parent_call_id: parent_id(parent),
        }),
    );
}

fn parent_id(parent: Option<&CallId>) -> Option<Cow<'_, str>> {
    parent.map(|call| Cow::Borrowed(call.as_str()))
}

fn response<'a>(end: &'a ToolEnd, parent: Option<&'a CallId>) -> ToolCallResponse<'a> {
    let text = ResponsePart { text: Some(Cow::Borrowed(&*end.text)), ..ResponsePart::default() };
    let word = match end.status {
        ToolStatus::Success => None,
        ToolStatus::Error => Some("execution_failed"),
        ToolStatus::Denied => Some("execution_denied"),
        ToolStatus::Cancelled => Some("cancelled"),
    };
    ToolCallResponse {
        call_id: Cow::Borrowed(end.call.id.as_str()),
        response_parts: std::iter::once(text).chain(end.media.iter().map(ResponsePart::from)).collect(),
        result_display: end
            .display
            .as_ref()
            .map_or_else(|| ShownResult::Text(Cow::Borrowed(&end.text)), ShownResult::from),
        error: word.map(|_| Cow::Borrowed(&*end.text)),
        error_type: word.map(|word| Cow::Borrowed(end.error_code.unwrap_or(word))),
        output_file: end.output_file.as_deref().map(Cow::Borrowed),
        content_length: Some(end.text.chars().count() as u64),
        parent_call_id: parent_id(parent),
    }
}

fn push_notice(notice: &SessionEvent, out: &mut Vec<u8>) {
    let words = |message: Cow<'static, str>, limit| Notice { message, limit };
    let line = match notice {
        // The terminal record reports these.
        SessionEvent::Finished | SessionEvent::Cancelled => return,
        SessionEvent::Compressed { original_tokens, new_tokens, .. } => {
            CoreLine::ChatCompressed(Compression {
                original_token_count: *original_tokens,
                new_token_count: *new_tokens,
            })
        }
        SessionEvent::MaxTurns { limit } => {
            let message = format!("The session reached its limit of {limit} model calls.");
            CoreLine::MaxSessionTurns(words(message.into(), Some(*limit)))
        }
        SessionEvent::MaxTokens { message } => {
            CoreLine::MaxTokens(Notice { message: Cow::Borrowed(message), limit: None })
        }
        SessionEvent::LoopDetected { message } => {
            CoreLine::LoopDetected(Notice { message: Cow::Borrowed(message), limit: None })
        }
        SessionEvent::Retry { attempt, max_retries, delay_ms, status, error } => {
            CoreLine::Retry(RetryValue {
                attempt: *attempt,
                max_retries: *max_retries,
                delay_ms: *delay_ms,
                status: *status,
                message: Cow::Borrowed(error),
            })
        }
        // Readers of this dialect know only retries; attempt 0 of 0 is a wait that does not count.
        SessionEvent::Waiting { reason, delay_ms, status, .. } => CoreLine::Retry(RetryValue {
            attempt: 0,
            max_retries: 0,
            delay_ms: *delay_ms,
            status: *status,
            message: Cow::Borrowed(reason),
        }),
        SessionEvent::ModelFallback { from, to, reason } => CoreLine::ModelFallback(FallbackValue {
            from: Cow::Borrowed(from),
            to: Cow::Borrowed(to),
            reason: Cow::Borrowed(reason),
        }),
        SessionEvent::ModeChanged { mode } => CoreLine::ModeChanged(ModeValue { mode: Cow::Borrowed(mode) }),
        SessionEvent::Steered { prompt_id, .. } => {
            CoreLine::Steered(SteeredValue { prompt_id: Cow::Borrowed(prompt_id.as_str()) })
        }
    };
    push_line(out, &line);
}

/// The terminal record: exactly one per turn.
fn terminal(end: &TurnEnd) -> CoreLine<'_> {
    let turn = TurnTotals {
        prompt_id: Some(Cow::Borrowed(end.prompt_id.as_str())),
        usage_metadata: UsageMetadata::from(&end.usage),
        permission_denials: end.denials.iter().map(refusal).collect(),
    };
    match end.status {
        EndStatus::Done => {
            let reason = match end.finish {
                Finish::Stop | Finish::ToolCalls => "STOP",
                Finish::Length => "MAX_TOKENS",
                Finish::ContentFilter => "SAFETY",
            };
            CoreLine::Finished(Finished { reason: Cow::Borrowed(reason), turn })
        }
        EndStatus::Cancelled => {
            CoreLine::UserCancelled(Cancelled { message: Cow::Borrowed(end_words(end)), turn })
        }
        status => {
            let error = end.error.as_ref();
            // A limit is reported under its own name, whatever the error's code is.
            let code = error.filter(|_| !status.is_limit()).map_or(status.name(), |error| error.code);
            let error = Failure {
                message: Cow::Borrowed(end_words(end)),
                status: error.and_then(|error| error.status),
                code: Some(Cow::Borrowed(code)),
            };
            CoreLine::Error(Failed { error, turn: Some(turn) })
        }
    }
}

fn refusal(denial: &Denial) -> Refusal<'_> {
    Refusal {
        call_id: Cow::Borrowed(denial.call_id.as_str()),
        name: Cow::Borrowed(&denial.tool_name),
        reason: Cow::Borrowed(&denial.reason),
    }
}

fn failure(error: &ErrorInfo) -> Failure<'_> {
    Failure {
        message: Cow::Borrowed(&error.message),
        status: error.status,
        code: Some(Cow::Borrowed(error.code)),
    }
}
