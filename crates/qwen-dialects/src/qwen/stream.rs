//! What `stream-json` and `stream-chunk-json` have in common: both wrap the same steps in their own kind of
//! line.

use std::borrow::Cow;

use qwen_events::{Body, Event, Timestamp, TurnEnd};

use super::annotate::Annotator;
use super::channel;
use super::frame::{Fatal, Frame, fatal, push_fatal};
use super::turn::Last;
use super::wire::{ErrorBody, Metadata};

/// What an encoder of either format remembers.
pub(super) struct StreamState {
    pub frame: Frame,
    pub annotator: Annotator,
    pub last: Last,
}

impl StreamState {
    /// The state of a stream whose lines are stamped with `frame`.
    pub(super) fn new(frame: Frame) -> Self {
        Self { frame, annotator: Annotator::default(), last: Last::default() }
    }
}

/// What a line without model output carries.
#[derive(Default)]
pub(super) struct MetadataLine<'a> {
    /// None writes no choice at all.
    pub finish_reason: Option<&'static str>,
    pub fingerprint: Option<Cow<'a, str>>,
    pub metadata: Metadata<'a>,
}

/// An encoder of one output format.
pub(super) trait ChatStream: Sized {
    /// An encoder that stamps its lines with `frame`.
    fn with_frame(frame: Frame) -> Self;

    fn state(&self) -> &StreamState;

    fn state_mut(&mut self) -> &mut StreamState;

    /// Writes a line without model output.
    fn push_metadata(&self, at: Timestamp, line: MetadataLine<'_>, out: &mut Vec<u8>);

    /// Writes the terminal record of a turn.
    fn end_turn(&mut self, at: Timestamp, end: &TurnEnd, out: &mut Vec<u8>);

    /// Writes the handshake before the first line.
    fn greet(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        if self.state_mut().frame.take_handshake() {
            let frame = &self.state().frame;
            let (fingerprint, metadata) = (Some(frame.fingerprint()), frame.announcement());
            self.push_metadata(at, MetadataLine { finish_reason: None, fingerprint, metadata }, out);
        }
    }

    fn push_error(
        &self,
        at: Timestamp,
        finish_reason: &'static str,
        error: ErrorBody<'_>,
        out: &mut Vec<u8>,
    ) {
        let metadata = Metadata { error: Some(error), ..Metadata::default() };
        let line = MetadataLine { finish_reason: Some(finish_reason), metadata, ..MetadataLine::default() };
        self.push_metadata(at, line, out);
    }

    /// Writes an event after which the process ends. Returns false if it is another event.
    fn encode_fatal(&mut self, event: &Event, out: &mut Vec<u8>) -> bool {
        let Body::Fatal(error) = &event.body else { return false };
        match fatal(error) {
            Fatal::Message(body) => self.push_error(event.at, "error", body, out),
            Fatal::Bare => push_fatal(out, error),
        }
        true
    }

    /// Writes the handshake if it is due, and what both formats write alike. Returns true if nothing is left
    /// to write for the event.
    fn encode_common(&mut self, event: &Event, out: &mut Vec<u8>) -> bool {
        self.greet(event.at, out);
        if let Body::TurnEnd(end) = &event.body
            && event.scope.parent.is_none()
        {
            if self.state().frame.runs(&end.prompt_id) {
                self.end_turn(event.at, end, out);
            } else {
                // A prompt that was withdrawn before its turn started.
                Self::with_frame(self.state().frame.of_prompt(&end.prompt_id)).end_turn(event.at, end, out);
            }
            return true;
        }
        if let Body::Error(error) = &event.body {
            let body = ErrorBody::from(&**error);
            match &error.refused {
                Some(refused) => {
                    Self::with_frame(self.state().frame.of_refused(refused))
                        .push_error(event.at, "stop", body, out);
                }
                None => self.push_error(event.at, "stop", body, out),
            }
            return true;
        }
        let StreamState { frame, annotator, .. } = self.state_mut();
        annotator.encode(frame, event, out);
        channel::encode(frame.stamp(), event, out);
        false
    }
}
