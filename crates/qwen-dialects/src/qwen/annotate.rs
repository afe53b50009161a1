//! The records that accompany the messages: tool activity and output, thinking, session notices.

use std::borrow::Cow;

use qwen_events::{
    Body, CallId, Channel, Confirmation, ConsoleLevel, EndStatus, Event, LogScope, SessionEvent, Timestamp,
    ToolCall, ToolEnd, ToolStatus, TurnEnd, graph_events, outside_turns,
};

use super::frame::{Frame, created};
use super::terminal::{Rendered, Terminal};
use super::thought::{Thought, Thoughts};
use super::turn::end_words;
use super::wire::raw;
use super::wire::record::{
    AnsiCode, ConfirmationRecord, Metrics, ResultDisplay, SessionEventRecord, SessionEventType,
    TerminalRecord, TerminalType, ThoughtRecord, ThoughtType, ToolDisplayRecord, ToolDisplayType,
};
use crate::line::push_line;
use crate::task;

/// Writes the `x-qwen-*` records of a stream.
#[derive(Debug, Default)]
pub(super) struct Annotator {
    thoughts: Thoughts,
    /// Each call's output, stream by stream: an escape or a colour may continue in the next piece.
    terminals: Vec<(CallId, Channel, Terminal)>,
    /// The notices of this turn, by name, so that the one that announces its end is written once.
    announced: Vec<&'static str>,
}

/// The state of a call, in the terms of the wire.
struct CallStatus<'a> {
    status: &'static str,
    pending: bool,
    display: Option<ResultDisplay<'a>>,
    confirmation: Option<ConfirmationRecord<'a>>,
}

impl CallStatus<'_> {
    fn bare(status: &'static str, pending: bool) -> Self {
        Self { status, pending, display: None, confirmation: None }
    }
}

impl Annotator {
    /// True if the main agent's thinking is still to be written.
    pub(super) fn owes_thought(&self) -> bool {
        !self.thoughts.main_is_empty()
    }

    /// Writes the records of `event`.
    pub(super) fn encode(&mut self, frame: &Frame, event: &Event, out: &mut Vec<u8>) {
        let parent = event.scope.parent.as_ref();
        match &event.body {
            Body::TurnStart(_) if parent.is_none() => self.announced.clear(),
            Body::ThoughtDelta(text) => self.thoughts.add(parent, text),
            Body::TextDelta(_) | Body::ToolCallDelta { .. } | Body::MessageEnd(_) => {
                self.end_thought(frame, parent, out);
            }
            Body::ToolCall(call) => {
                self.end_thought(frame, parent, out);
                push_display(frame, event, call, CallStatus::bare("pending", true), out);
            }
            Body::Approval { call, confirmation, .. } => {
                push_display(frame, event, call, confirming(confirmation), out);
            }
            Body::ToolStart(call) => {
                push_display(frame, event, call, CallStatus::bare("executing", false), out);
            }
            Body::ToolOutput { call, channel, text } => {
                let rendered = self.terminal(&call.id, *channel).render(text);
                push_output(frame, parent, &call.id, *channel, rendered, out);
            }
            Body::ToolDisplay { call, display } => {
                let call_status =
                    CallStatus { display: Some((&**display).into()), ..CallStatus::bare("executing", false) };
                push_display(frame, event, call, call_status, out);
            }
            Body::ToolEnd(end) => {
                self.end_output(frame, parent, &end.call.id, out);
                push_display(frame, event, &end.call, ended(end), out);
            }
            Body::Thinking(step) => push_thought(frame, parent, &Thought::of_step(step), out),
            Body::Session(notice) => self.notice(frame, parent, notice, out),
            Body::Task(event) => {
                if let Some((name, words)) = task::notice(event) {
                    let (event, message) = (Cow::Borrowed(name), Cow::Owned(words));
                    push_line(out, &SessionEventRecord { event, message, ..session_event(frame, None) });
                }
            }
            Body::Console { level, scope, text } => {
                let Rendered { text, spans, ansi } = Terminal::default().render(text);
                push_line(
                    out,
                    &TerminalRecord {
                        channel: Cow::Borrowed(Channel::Stderr.name()),
                        source: Cow::Borrowed("console"),
                        text,
                        spans,
                        ansi,
                        console_level: Some(Cow::Borrowed(level_name(*level))),
                        log_scope: Some(Cow::Borrowed(scope_name(*scope))),
                        parent_tool_call_id: parent_id(parent),
                        ..stamped(frame)
                    },
                );
            }
            Body::Custom(value) => push_line(
                out,
                &SessionEventRecord {
                    event: Cow::Borrowed("Custom"),
                    value: Some(raw(value)),
                    ..session_event(frame, parent)
                },
            ),
            Body::Ready
            | Body::TurnStart(..)
            | graph_events!()
            | Body::MessageStart { .. }
            | Body::ThoughtSignature(..)
            | Body::Decision { .. }
            | Body::RateLimit(..)
            | Body::Resumed(..)
            | Body::Hook(..)
            | Body::History(..)
            | Body::Error(..)
            | Body::TurnEnd(..)
            | outside_turns!()
            | Body::Fatal(..) => {}
        }
    }

    /// Writes the records before the terminal record of a turn: pending thinking, the notice of how it
    /// ended, and the exit code.
    pub(super) fn end_turn(&mut self, frame: &Frame, end: &TurnEnd, out: &mut Vec<u8>) {
        self.end_thought(frame, None, out);
        while let Some((call, ..)) = self.terminals.first() {
            let call = call.clone();
            self.end_output(frame, None, &call, out);
        }
        let event = match end.status {
            EndStatus::Done => Some("Finished"),
            EndStatus::Cancelled => Some("USER_CANCELLED"),
            EndStatus::MaxTurns => Some("MaxSessionTurns"),
            EndStatus::MaxTokens => Some("MAX_TOKENS"),
            _ => None,
        };
        if let Some(event) = event.filter(|event| !self.announced.contains(event)) {
            let message = Cow::Borrowed(end_words(end));
            push_line(
                out,
                &SessionEventRecord { event: event.into(), message, ..session_event(frame, None) },
            );
        }
        push_exit(frame, end, out);
        *self = Self::default();
    }

    fn end_thought(&mut self, frame: &Frame, parent: Option<&CallId>, out: &mut Vec<u8>) {
        if let Some(block) = self.thoughts.take(parent) {
            push_thought(frame, parent, &Thought::of_block(&block), out);
        }
    }

    fn terminal(&mut self, call: &CallId, channel: Channel) -> &mut Terminal {
        let known = self.terminals.iter().position(|(id, on, _)| id == call && *on == channel);
        let at = known.unwrap_or_else(|| {
            self.terminals.push((call.clone(), channel, Terminal::default()));
            self.terminals.len() - 1
        });
        &mut self.terminals[at].2
    }

    /// Forgets a call's output; an incomplete escape at its end is written.
    fn end_output(&mut self, frame: &Frame, parent: Option<&CallId>, call: &CallId, out: &mut Vec<u8>) {
        while let Some(at) = self.terminals.iter().position(|(id, ..)| id == call) {
            let (_, channel, mut terminal) = self.terminals.remove(at);
            if let Some(code) = terminal.leftover() {
                let ansi = vec![AnsiCode { offset: 0, code: Cow::Owned(code) }];
                push_output(frame, parent, call, channel, Rendered { ansi, ..Rendered::default() }, out);
            }
        }
    }

    fn notice(&mut self, frame: &Frame, parent: Option<&CallId>, notice: &SessionEvent, out: &mut Vec<u8>) {
        let none = Metrics::default();
        let (event, message, metrics): (&'static str, Cow<'_, str>, Option<Metrics>) = match notice {
            SessionEvent::Finished => ("Finished", "The turn is done.".into(), None),
            SessionEvent::Compressed { original_tokens, new_tokens, .. } => (
                "ChatCompressed",
                format!("The conversation was compressed from {original_tokens} to {new_tokens} tokens.")
                    .into(),
                Some(Metrics {
                    original_tokens: Some(*original_tokens),
                    compressed_tokens: Some(*new_tokens),
                    ..none
                }),
            ),
            SessionEvent::MaxTokens { message } => ("MAX_TOKENS", (&**message).into(), None),
            SessionEvent::MaxTurns { limit } => (
                "MaxSessionTurns",
                format!("The session reached its limit of {limit} model calls.").into(),
                Some(Metrics { limit: Some(*limit), ..none }),
            ),
            SessionEvent::Cancelled => ("USER_CANCELLED", "The turn was cancelled.".into(), None),
            SessionEvent::Retry { attempt, max_retries, delay_ms, status, error } => (
                "Retry",
                format!("The model call failed and is tried again: {error}").into(),
                Some(Metrics {
                    attempt: Some(*attempt),
                    max_retries: Some(*max_retries),
                    delay_ms: Some(*delay_ms),
                    status: *status,
                    ..none
                }),
            ),
            SessionEvent::Waiting { reason, delay_ms, status, .. } => (
                "Waiting",
                format!(
                    "Waiting {} s for the reset of the model server's limit: {reason}",
                    delay_ms.div_ceil(1000)
                )
                .into(),
                Some(Metrics { delay_ms: Some(*delay_ms), status: *status, ..none }),
            ),
            SessionEvent::ModelFallback { from, to, reason } => {
                ("ModelFallback", format!("{to} goes on in place of {from}: {reason}").into(), None)
            }
            SessionEvent::LoopDetected { message } => ("LoopDetected", (&**message).into(), None),
            SessionEvent::ModeChanged { mode } => {
                ("ModeChanged", format!("The approval mode is now {mode}.").into(), None)
            }
            SessionEvent::Steered { prompt_id, .. } => {
                let turn = serde_json::json!({"turn": frame.prompt_id()}).to_string();
                let joined = serde_json::value::RawValue::from_string(turn).ok();
                let record = SessionEventRecord {
                    event: "Steered".into(),
                    message: "The prompt joins the running turn before its next model call.".into(),
                    value: joined.as_deref(),
                    prompt_id: Some(Cow::Borrowed(prompt_id.as_str())),
                    ..session_event(frame, parent)
                };
                return push_line(out, &record);
            }
        };
        if parent.is_none() {
            self.announced.push(event);
        }
        push_line(
            out,
            &SessionEventRecord { event: event.into(), message, metrics, ..session_event(frame, parent) },
        );
    }
}

/// Writes the record that ends a run, with its exit code.
fn push_exit(frame: &Frame, end: &TurnEnd, out: &mut Vec<u8>) {
    push_line(
        out,
        &TerminalRecord {
            channel: Cow::Borrowed(Channel::Stdout.name()),
            source: Cow::Borrowed("system"),
            log_scope: Some(Cow::Borrowed("system")),
            exit_code: Some(i32::from(end.exit_code())),
            ..stamped(frame)
        },
    );
}

fn confirming(confirmation: &Confirmation) -> CallStatus<'_> {
    CallStatus { confirmation: Some(confirmation.into()), ..CallStatus::bare("confirming", true) }
}

fn ended(end: &ToolEnd) -> CallStatus<'_> {
    let status = match end.status {
        ToolStatus::Success => "success",
        ToolStatus::Error | ToolStatus::Denied => "error",
        ToolStatus::Cancelled => "canceled",
    };
    let display = end.display.as_ref().map_or_else(|| ResultDisplay::text(&end.text), ResultDisplay::from);
    CallStatus { display: Some(display), ..CallStatus::bare(status, false) }
}

fn push_display(
    frame: &Frame,
    event: &Event,
    call: &ToolCall,
    call_status: CallStatus<'_>,
    out: &mut Vec<u8>,
) {
    let at: Timestamp = event.at;
    push_line(
        out,
        &ToolDisplayRecord {
            kind: ToolDisplayType::Word,
            tool_call_id: Cow::Borrowed(call.id.as_str()),
            tool_name: Some(Cow::Borrowed(&call.name)),
            parent_tool_call_id: parent_id(event.scope.parent.as_ref()),
            session_id: frame.session_id(),
            prompt_id: frame.prompt_id(),
            status: Cow::Borrowed(call_status.status),
            result_display: call_status.display,
            confirmation: call_status.confirmation,
            pending: call_status.pending,
            timestamp: created(at),
        },
    );
}

fn push_output(
    frame: &Frame,
    parent: Option<&CallId>,
    call: &CallId,
    channel: Channel,
    rendered: Rendered<'_>,
    out: &mut Vec<u8>,
) {
    let Rendered { text, spans, ansi } = rendered;
    // A piece that only began an escape is not written yet.
    if text.is_empty() && ansi.is_empty() {
        return;
    }
    push_line(
        out,
        &TerminalRecord {
            channel: Cow::Borrowed(channel.name()),
            source: Cow::Borrowed("tool"),
            text,
            spans,
            ansi,
            log_scope: Some(Cow::Borrowed("tool")),
            tool_call_id: Some(Cow::Borrowed(call.as_str())),
            parent_tool_call_id: parent_id(parent),
            ..stamped(frame)
        },
    );
}

fn push_thought(frame: &Frame, parent: Option<&CallId>, thought: &Thought<'_>, out: &mut Vec<u8>) {
    push_line(
        out,
        &ThoughtRecord {
            kind: ThoughtType::Word,
            subject: Cow::Borrowed(&*thought.subject),
            description: Cow::Borrowed(&*thought.description),
            parent_tool_call_id: parent_id(parent),
            session_id: frame.session_id(),
            prompt_id: frame.prompt_id(),
        },
    );
}

fn stamped(frame: &Frame) -> TerminalRecord<'_> {
    TerminalRecord {
        kind: TerminalType::Word,
        session_id: frame.session_id(),
        prompt_id: frame.prompt_id(),
        ..TerminalRecord::default()
    }
}

fn session_event<'a>(frame: &'a Frame, parent: Option<&'a CallId>) -> SessionEventRecord<'a> {
    SessionEventRecord {
        kind: SessionEventType::Word,
        parent_tool_call_id: parent_id(parent),
        session_id: frame.session_id(),
        prompt_id: frame.prompt_id(),
        ..SessionEventRecord::default()
    }
}

fn parent_id(parent: Option<&CallId>) -> Option<Cow<'_, str>> {
    parent.map(|call| Cow::Borrowed(call.as_str()))
}

fn level_name(level: ConsoleLevel) -> &'static str {
    match level {
        ConsoleLevel::Debug => "debug",
        ConsoleLevel::Info => "info",
        ConsoleLevel::Warn => "warn",
        ConsoleLevel::Error => "error",
    }
}

fn scope_name(scope: LogScope) -> &'static str {
    match scope {
        LogScope::System => "system",
        LogScope::Tool => "tool",
        LogScope::Debug => "debug",
    }
}
