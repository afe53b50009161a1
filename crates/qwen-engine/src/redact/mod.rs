//! Redacts secrets in events before the log, a dialect or a user reads them.

mod calls;
mod message;
mod restore;
mod whole;

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{
    Body, CallId, Channel, Event, Json, Part, Scope, ToolCall, graph_events, outside_turns, session_notices,
};
pub use qwen_redact::{Redactor, TextStream, secret_values};

use self::calls::Calls;
use self::message::MessageRedaction;
pub(crate) use self::restore::restore_redacted;
use self::whole::Whole;

/// Redacts the parts of a message that goes to the model, because its server is a third party, or to a file.
pub(crate) fn hide_secrets(parts: &mut [Part], redactor: &Redactor) {
    for part in parts {
        match part {
            Part::Text(text) | Part::Thought { text, .. } => *text = redactor.redact(text).into(),
            Part::Result(result) => result.text = redactor.redact(&result.text).into(),
            Part::Call(call) => {
                if let Cow::Owned(clean) = redactor.redact_json(call.arguments.as_str()) {
                    Arc::make_mut(call).arguments = Json::trusted(clean);
                }
            }
            Part::Media(_) => {}
        }
    }
}

/// Redacts secrets in a stream of events. Streamed texts are searched across their pieces; text that is held
/// back is sent before the event that ends it, so nothing is lost or reordered.
pub struct EventRedactor {
    redactor: Arc<Redactor>,
    /// The streamed message of the main agent and of each sub-agent.
    message: Vec<(Option<CallId>, MessageRedaction)>,
    outputs: Vec<Output>,
    calls: Calls,
}

/// The output of a running tool on one of its channels.
struct Output {
    call: Arc<ToolCall>,
    channel: Channel,
    scope: Scope,
    stream: TextStream,
}

/// The result of redacting an event.
#[derive(Debug, PartialEq)]
pub struct Redacted {
    /// Text that was held back and must be sent first.
    pub before: Vec<Event>,
    /// The event itself; `None` if all of it is held back.
    pub event: Option<Event>,
}

impl EventRedactor {
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, message: Vec::new(), outputs: Vec::new(), calls: Calls::default() }
    }

    /// Redacts the next event.
    pub fn redact(&mut self, event: Event) -> Redacted {
        let Event { at, scope, mut body } = event;
        let mut late = Vec::new();
        let passed = self.streams(&scope, &mut body, &mut late);
        if passed {
            Whole { redactor: &self.redactor, calls: &mut self.calls }.body(&mut body);
        }
        self.forget(&body);
        let before = late.into_iter().map(|(scope, body)| Event { at, scope, body }).collect();
        Redacted { before, event: passed.then_some(Event { at, scope, body }) }
    }

    /// Handles streamed texts, and returns whether anything is left of the event. Text that was held back
    /// until now is added to `late`.
    fn streams(&mut self, scope: &Scope, body: &mut Body, late: &mut Vec<(Scope, Body)>) -> bool {
        let redactor = &*self.redactor;
        match body {
            Body::TextDelta(_) | Body::ThoughtDelta(_) | Body::ToolCallDelta { .. } => {
                let message = message_of(&mut self.message, scope.parent.as_ref());
                let (passed, earlier) = message.piece(redactor, body);
                late.extend(earlier.into_iter().map(|body| (scope.clone(), body)));
                passed
            }
            Body::ToolCall(call) => {
                let message = message_of(&mut self.message, scope.parent.as_ref());
                late.extend(message.end_of_call(redactor, &call.id).map(|body| (scope.clone(), body)));
                true
            }
            Body::MessageStart { .. } | Body::MessageEnd(_) => {
                let message = message_of(&mut self.message, scope.parent.as_ref());
                late.extend(message.end(redactor).into_iter().map(|body| (scope.clone(), body)));
                true
            }
            Body::ToolOutput { call, channel, text } => {
                let output = self.outputs.iter().position(|o| o.call.id == call.id && o.channel == *channel);
                let output = output.unwrap_or_else(|| {
                    self.outputs.push(Output {
                        call: call.clone(),
                        channel: *channel,
                        scope: scope.clone(),
                        stream: TextStream::default(),
                    });
                    self.outputs.len() - 1
                });
                match self.outputs[output].stream.push(redactor, std::mem::take(text)) {
                    Some(clean) => *text = clean,
                    None => return false,
                }
                true
            }
            Body::ToolEnd(end) => {
                self.end_outputs(|output| output.call.id == end.call.id, late);
                true
            }
            Body::TurnEnd(_) => {
                for (parent, mut message) in std::mem::take(&mut self.message) {
                    let scope = Scope { parent, ..scope.clone() };
                    late.extend(message.end(redactor).into_iter().map(|body| (scope.clone(), body)));
                }
                self.end_outputs(|_| true, late);
                true
            }
            Body::Ready
            | Body::TurnStart(..)
            | graph_events!()
            | Body::ThoughtSignature(..)
            | Body::Decision { .. }
            | Body::Approval { .. }
            | Body::ToolStart(..)
            | Body::ToolDisplay { .. }
            | Body::Thinking(..)
            | session_notices!()
            | Body::Error(..)
            | outside_turns!()
            | Body::Fatal(..) => true,
        }
    }

    fn end_outputs(&mut self, ends: impl Fn(&Output) -> bool, late: &mut Vec<(Scope, Body)>) {
        let redactor = &*self.redactor;
        for mut output in self.outputs.extract_if(.., |output| ends(output)) {
            if let Some(text) = output.stream.finish(redactor) {
                let call = self.calls.clean(redactor, &output.call);
                late.push((output.scope, Body::ToolOutput { call, channel: output.channel, text }));
            }
        }
    }

    /// Drops the state of an ended call or turn.
    fn forget(&mut self, body: &Body) {
        match body {
            Body::ToolEnd(end) => {
                self.calls.forget(&end.call.id);
                self.message.retain(|(parent, _)| parent.as_ref() != Some(&end.call.id));
            }
            Body::TurnEnd(_) => self.calls = Calls::default(),
            _ => {}
        }
    }
}

fn message_of<'a>(
    message: &'a mut Vec<(Option<CallId>, MessageRedaction)>,
    parent: Option<&CallId>,
) -> &'a mut MessageRedaction {
    let place = message.iter().position(|(of, _)| of.as_ref() == parent).unwrap_or_else(|| {
        message.push((parent.cloned(), MessageRedaction::default()));
        message.len() - 1
    });
    &mut message[place].1
}

#[cfg(test)]
mod tests;
