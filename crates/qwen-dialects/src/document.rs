//! `--output-format json`: a turn as one document instead of a stream.

use qwen_events::{Body, CommandResultBody, EndStatus, Event, channel_events, turn_steps};

use crate::dialect::{Dialect, Encoder};
use crate::line::push_string;

/// Wraps the encoder of a stream and produces one document per turn: in `qwen` and `claude` the terminal
/// record, elsewhere `{"events":[…],"reply":"…"}`. Lines that cannot wait for the end of a turn (the
/// control channel, answers to requests that are no prompts, errors outside a turn) remain separate.
pub struct Document {
    inner: Box<dyn Encoder>,
    shape: Shape,
    in_turn: bool,
    /// The lines of the current event.
    scratch: Vec<u8>,
}

enum Shape {
    /// The turn's last line is the document.
    Terminal,
    /// The same, among lines about the session; it begins with this text.
    TerminalNamed(&'static [u8]),
    /// All lines, as the elements of a list.
    Whole {
        /// The elements so far, each followed by a comma.
        events: Vec<u8>,
        /// True if the last line of a turn is the reply, which has a separate field.
        ends_with_reply: bool,
    },
}

impl Document {
    /// Documents in the form of `dialect`, whose streams `inner` writes.
    pub fn new(dialect: Dialect, inner: Box<dyn Encoder>) -> Self {
        let shape = match dialect {
            Dialect::Qwen => Shape::Terminal,
            Dialect::Claude => Shape::TerminalNamed(br#"{"type":"result","#),
            Dialect::Loom | Dialect::LoomExport => Shape::Whole { events: Vec::new(), ends_with_reply: true },
            Dialect::ClaudeLite | Dialect::Core | Dialect::Acp => {
                Shape::Whole { events: Vec::new(), ends_with_reply: false }
            }
        };
        Self { inner, shape, in_turn: false, scratch: Vec::new() }
    }

    /// Whether `event` ends a document and, if it does, the answer.
    fn reply<'e>(&self, event: &'e Event) -> Option<&'e str> {
        match &event.body {
            Body::TurnEnd(end) if event.scope.parent.is_none() => {
                Some(if end.status == EndStatus::Done || end.status.is_limit() { &end.reply } else { "" })
            }
            Body::CommandResult(result) if !self.in_turn => match &result.body {
                CommandResultBody::Message { content, .. } => Some(content),
                CommandResultBody::Dialog { .. } | CommandResultBody::Tool { .. } => Some(""),
                CommandResultBody::SubmitPrompt { .. } => None,
            },
            Body::Fatal(_) => Some(""),
            _ => None,
        }
    }
}

impl Encoder for Document {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let urgent = match &event.body {
            channel_events!() => true,
            Body::Error(_) => !self.in_turn || !matches!(self.shape, Shape::Whole { .. }),
            Body::TurnStart(_) if event.scope.parent.is_none() => {
                self.in_turn = true;
                false
            }
            Body::Ready
            | Body::TurnStart(..)
            | turn_steps!()
            | Body::TurnEnd(..)
            | Body::CommandResult(..)
            | Body::Fatal(..) => false,
        };
        if urgent {
            self.inner.encode(event, out);
            return;
        }
        self.scratch.clear();
        self.inner.encode(event, &mut self.scratch);
        let reply = self.reply(event);
        let mut lines = self.scratch.split_inclusive(|byte| *byte == b'\n');
        match (&mut self.shape, reply) {
            (Shape::Terminal, Some(_)) => out.extend_from_slice(lines.next_back().unwrap_or_default()),
            (Shape::TerminalNamed(head), Some(_)) => {
                out.extend_from_slice(lines.rfind(|line| line.starts_with(head)).unwrap_or_default());
            }
            (Shape::Terminal | Shape::TerminalNamed(_), None) => {}
            (Shape::Whole { events, ends_with_reply }, reply) => {
                if reply.is_some() && *ends_with_reply {
                    lines.next_back();
                }
                for line in lines {
                    events.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
                    events.push(b',');
                }
                if let Some(reply) = reply {
                    out.extend_from_slice(br#"{"events":["#);
                    out.extend_from_slice(events.strip_suffix(b",").unwrap_or(events));
                    out.extend_from_slice(br#"],"reply":"#);
                    push_string(out, reply);
                    out.extend_from_slice(b"}\n");
                    events.clear();
                }
            }
        }
        if reply.is_some() {
            self.in_turn = false;
        }
    }
}
