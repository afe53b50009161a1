//! Redacts one streamed model message: text, thoughts and the arguments of calls.

use std::sync::Arc;

use qwen_events::{Body, CallId};
use qwen_redact::{Redactor, TextStream};

/// The texts of a message that is being streamed.
#[derive(Default)]
pub(super) struct MessageRedaction {
    text: TextStream,
    thought: TextStream,
    arguments: Vec<Arguments>,
    last: Lane,
}

/// The arguments of one call.
struct Arguments {
    index: u32,
    call_id: CallId,
    name: Arc<str>,
    stream: TextStream,
}

/// Which of the texts a piece belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Lane {
    #[default]
    Text,
    Thought,
    Arguments(u32),
}

impl MessageRedaction {
    /// Redacts a piece, and returns whether anything is left of it to be sent. If it belongs to a different
    /// text than the last piece, the text held back from that one is sent first, or their order would change.
    pub fn piece(&mut self, redactor: &Redactor, body: &mut Body) -> (bool, Option<Body>) {
        let lane = match body {
            Body::ThoughtDelta(_) => Lane::Thought,
            Body::ToolCallDelta { index, .. } => Lane::Arguments(*index),
            _ => Lane::Text,
        };
        let earlier = if lane == self.last { None } else { self.release() };
        self.last = lane;
        let passed = match body {
            Body::TextDelta(text) => push(&mut self.text, redactor, text),
            Body::ThoughtDelta(text) => push(&mut self.thought, redactor, text),
            Body::ToolCallDelta { index, call_id, name, arguments } => {
                let place = self.arguments.iter().position(|a| a.index == *index).unwrap_or_else(|| {
                    self.arguments.push(Arguments {
                        index: *index,
                        call_id: call_id.clone(),
                        name: name.clone(),
                        stream: TextStream::json(),
                    });
                    self.arguments.len() - 1
                });
                // A piece without arguments still reports that the call is being written.
                push(&mut self.arguments[place].stream, redactor, arguments);
                true
            }
            _ => true,
        };
        (passed, earlier)
    }

    /// The text held back from the last piece, because another text continues.
    fn release(&mut self) -> Option<Body> {
        match self.last {
            Lane::Text => self.text.release().map(Body::TextDelta),
            Lane::Thought => self.thought.release().map(Body::ThoughtDelta),
            Lane::Arguments(index) => {
                let arguments = self.arguments.iter_mut().find(|a| a.index == index)?;
                arguments.stream.release().map(|text| arguments.piece(text))
            }
        }
    }

    /// The text held back from the arguments of a call that is complete.
    pub fn end_of_call(&mut self, redactor: &Redactor, id: &CallId) -> Option<Body> {
        let arguments = self.arguments.iter_mut().find(|a| a.call_id == *id)?;
        arguments.stream.finish(redactor).map(|text| arguments.piece(text))
    }

    /// All text held back when the message ends. Resets the state.
    pub fn end(&mut self, redactor: &Redactor) -> Vec<Body> {
        let thought = self.thought.finish(redactor).map(Body::ThoughtDelta);
        let text = self.text.finish(redactor).map(Body::TextDelta);
        let mut rest: Vec<Body> = thought.into_iter().chain(text).collect();
        for mut arguments in self.arguments.drain(..) {
            rest.extend(arguments.stream.finish(redactor).map(|text| arguments.piece(text)));
        }
        self.last = Lane::default();
        rest
    }
}

impl Arguments {
    fn piece(&self, text: Box<str>) -> Body {
        Body::ToolCallDelta {
            index: self.index,
            call_id: self.call_id.clone(),
            name: self.name.clone(),
            arguments: text,
        }
    }
}

/// Redacts a piece in place, and returns whether anything is left of it.
fn push(stream: &mut TextStream, redactor: &Redactor, text: &mut Box<str>) -> bool {
    match stream.push(redactor, std::mem::take(text)) {
        Some(clean) => {
            *text = clean;
            true
        }
        None => false,
    }
}
