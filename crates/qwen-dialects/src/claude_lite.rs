//! Spec 3: a flat stream for shell pipes, with exactly one `message_start` and one `message_stop` per turn.

use std::borrow::Cow;

use qwen_events::{
    Body, CallId, CommandResult, CommandResultBody, EndStatus, ErrorInfo, Event, Finish, MessageEnd,
    SessionId, ToolCall, ToolEnd, ToolStatus, TurnEnd, Usage, call_progress, channel_events, graph_events,
    session_notices,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dialect::{Encoder, StreamInfo};
use crate::error_object::ErrorObject;
use crate::flat::{ControlLine, ResultNote, push_flat};
use crate::line::{push_line, push_string};
use crate::payload::Payload;

/// One line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ClaudeLiteLine")]
pub enum Line<'a> {
    /// A line of the dialect itself.
    Frame(Frame<'a>),
    /// The response to a request that is not a prompt.
    Note(ResultNote<'a>),
    /// A line of the control channel.
    Control(ControlLine<'a>),
}

/// A line of the dialect itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Frame<'a> {
    /// The start of a turn.
    MessageStart {
        /// The message that represents the turn.
        message: Head<'a>,
        /// The id of the session, as `--resume` accepts it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<Cow<'a, str>>,
    },
    /// A piece of the model's text.
    ContentBlockDelta {
        /// The text of this piece.
        text: Cow<'a, str>,
    },
    /// A piece of the model's thinking.
    ThinkingDelta {
        /// The text of this piece.
        text: Cow<'a, str>,
    },
    /// The model calls a tool.
    ToolCall {
        /// The id of the tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        /// The name of the tool.
        name: Cow<'a, str>,
        /// The arguments of the call, a JSON object.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        arguments: Payload<'a>,
    },
    /// A tool call ended.
    ToolResult {
        /// The id of the tool call.
        id: Cow<'a, str>,
        /// The name of the tool.
        name: Cow<'a, str>,
        /// True if the call failed, was refused or was cancelled.
        is_error: bool,
        /// The result text that the model receives.
        content: Cow<'a, str>,
    },
    /// An error of the turn or of a line.
    Error {
        /// The error, if the request failed.
        error: ErrorObject<'a>,
    },
    /// The end of the turn, its terminal record.
    MessageStop {
        /// The reason for the end: `stop_turn`, `max_tokens`, `cancelled`, `error`, `max_turns`, …
        stop_reason: Cow<'a, str>,
        /// The same value as `stop_reason`, under the second name in the specification.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Cow<'a, str>>,
        /// The tokens of the whole turn.
        usage: Tokens,
    },
}

/// The message that represents the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Head<'a> {
    /// The id of the message.
    pub id: Cow<'a, str>,
    /// The name of the model.
    pub model: Cow<'a, str>,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Tokens read by the model.
    pub input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
}

/// Writes the `claude-lite` dialect.
#[derive(Debug)]
pub struct LiteEncoder {
    model: std::sync::Arc<str>,
    /// The session that the stream starts with.
    session_id: SessionId,
    in_turn: bool,
    /// The model's message has shown text already.
    wrote_text: bool,
    /// The calls of the model's message that were shown already.
    calls: Vec<CallId>,
    /// The output of commands during a turn. A message has one author, so it is written after the turn's
    /// message.
    held: Vec<CommandResult>,
}

impl Encoder for LiteEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        if push_flat(event, out) {
            return;
        }
        match &event.body {
            Body::Error(error) => push_error(out, error),
            // What cannot even begin still ends: a reader waits for `message_stop`.
            Body::Fatal(error) => {
                if !self.in_turn {
                    let session_id = self.session_id.clone();
                    self.start(session_id.as_str(), session_id.as_str(), out);
                }
                push_error(out, error);
                self.stop("error", &Usage::default(), out);
            }
            // A sub-agent's events are omitted; its report is in the tool's result.
            _ if event.scope.parent.is_some() => {}
            Body::TextDelta(piece) => self.text(piece, out),
            Body::ThoughtDelta(piece) if !piece.is_empty() => {
                push_line(out, &Frame::ThinkingDelta { text: piece.as_ref().into() });
            }
            // A step of a search is progress that a reader of thinking sees.
            Body::Thinking(step) => {
                let text = format!("{}\n", crate::claude::sentence(step));
                push_line(out, &Frame::ThinkingDelta { text: text.into() });
            }
            Body::TurnStart(start) => {
                self.model = start.model.clone();
                self.start(start.prompt_id.as_str(), start.session_id.as_str(), out);
            }
            Body::MessageStart { .. } => self.forget_message(),
            Body::ToolCall(call) => self.call(call, out),
            Body::MessageEnd(end) => self.message_end(end, out),
            Body::ToolEnd(end) => push_tool_result(out, end),
            Body::TurnEnd(end) => {
                if let Some(error) = &end.error {
                    push_error(out, error);
                }
                self.stop(stop_reason(end), &end.usage, out);
            }
            Body::CommandResult(result) => self.command_result(result, out),
            Body::Ready
            | graph_events!()
            | Body::ThoughtDelta(..)
            | Body::ThoughtSignature(..)
            | Body::ToolCallDelta { .. }
            | call_progress!()
            | Body::ToolStart(..)
            | session_notices!()
            | channel_events!() => {}
        }
    }
}

impl LiteEncoder {
    /// An encoder for the stream that `info` describes.
    pub fn new(info: &StreamInfo) -> Self {
        Self {
            model: info.model.clone(),
            session_id: info.session_id.clone(),
            in_turn: false,
            wrote_text: false,
            calls: Vec::new(),
            held: Vec::new(),
        }
    }

    fn start(&mut self, id: &str, session_id: &str, out: &mut Vec<u8>) {
        self.in_turn = true;
        let message = Head { id: id.into(), model: self.model.as_ref().into() };
        push_line(out, &Frame::MessageStart { message, session_id: Some(session_id.into()) });
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        if piece.is_empty() {
            return;
        }
        self.wrote_text = true;
        out.extend_from_slice(br#"{"type":"content_block_delta","text":"#);
        push_string(out, piece);
        out.extend_from_slice(b"}\n");
    }

    fn call(&mut self, call: &ToolCall, out: &mut Vec<u8>) {
        self.calls.push(call.id.clone());
        push_line(
            out,
            &Frame::ToolCall {
                id: Some(call.id.as_str().into()),
                name: call.name.as_ref().into(),
                arguments: Payload::new(&call.arguments),
            },
        );
    }

    /// Shows what of the message was not streamed.
    fn message_end(&mut self, end: &MessageEnd, out: &mut Vec<u8>) {
        if !self.wrote_text {
            self.text(&end.text, out);
        }
        for call in &end.calls {
            if !self.calls.contains(&call.id) {
                self.call(call, out);
            }
        }
        self.forget_message();
    }

    fn forget_message(&mut self) {
        self.wrote_text = false;
        self.calls.clear();
    }

    fn command_result(&mut self, result: &CommandResult, out: &mut Vec<u8>) {
        let words = match &result.body {
            CommandResultBody::Message { content, .. } => content.as_ref(),
            CommandResultBody::Dialog { .. } | CommandResultBody::Tool { .. } => "",
            // Its turn follows.
            CommandResultBody::SubmitPrompt { .. } => return,
        };
        if self.in_turn {
            self.held.push(result.clone());
            return;
        }
        self.start(result.prompt_id.as_str(), result.session_id.as_str(), out);
        self.text(words, out);
        self.forget_message();
        self.stop("stop_turn", &Usage::default(), out);
    }

    fn stop(&mut self, reason: &str, usage: &Usage, out: &mut Vec<u8>) {
        self.in_turn = false;
        push_line(
            out,
            &Frame::MessageStop {
                stop_reason: reason.into(),
                reason: Some(reason.into()),
                usage: Tokens { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens },
            },
        );
        for result in std::mem::take(&mut self.held) {
            self.command_result(&result, out);
        }
    }
}

fn push_error(out: &mut Vec<u8>, error: &ErrorInfo) {
    push_line(out, &Frame::Error { error: error.into() });
}

fn push_tool_result(out: &mut Vec<u8>, end: &ToolEnd) {
    push_line(
        out,
        &Frame::ToolResult {
            id: end.call.id.as_str().into(),
            name: end.call.name.as_ref().into(),
            is_error: end.status != ToolStatus::Success,
            content: end.text.as_ref().into(),
        },
    );
}

fn stop_reason(end: &TurnEnd) -> &'static str {
    match (end.status, end.finish) {
        (EndStatus::Done, Finish::Length) => "max_tokens",
        (EndStatus::Done, Finish::ContentFilter) => "content_filter",
        (EndStatus::Done, _) => "stop_turn",
        (status, _) => status.name(),
    }
}

/// The schemas of this dialect's streams.
pub(crate) fn schemas() -> Vec<(&'static str, schemars::Schema)> {
    vec![("claude-lite-stream", schemars::schema_for!(Line<'static>))]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_piece_of_text_is_what_serde_writes(piece in ".+") {
            let mut encoder =
                LiteEncoder {
                    session_id: SessionId::from_random(0),
                    model: "m".into(),
                    in_turn: true,
                    wrote_text: false,
                    calls: Vec::new(),
                    held: Vec::new(),
                };
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            encoder.text(&piece, &mut fast);
            push_line(&mut slow, &Frame::ContentBlockDelta { text: piece.as_str().into() });
            prop_assert_eq!(String::from_utf8(fast), String::from_utf8(slow));
        }
    }
}
