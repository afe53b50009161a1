//! The server's scripted reaction to one request.

pub mod anthropic;
pub mod event;
pub mod sse;

use std::sync::Arc;
use std::time::Duration;

use crate::{ReplyEvent, fail};

/// One action of the server.
#[derive(Debug, Clone)]
pub enum Step {
    /// Writes these bytes of the body: one HTTP chunk, one write.
    Chunk(Arc<[u8]>),
    /// Writes an event in the wire format of the request.
    Event(ReplyEvent),
    /// Writes the current time, as `<nanoseconds>;`, in the wire format of the request.
    Stamp,
    /// Sends the head of the answer without a byte of its body.
    Head,
    /// Waits until the gate with this name is opened.
    Gate(String),
    /// Waits this long; for benchmarks and scripts, never to order events in a test.
    Pause(Duration),
    /// Drops the connection without ending the response.
    Close,
    /// Responds with a status, additional headers and a body instead of a stream.
    Status(u16, Vec<(String, String)>, String),
}

/// Holds the reply until [`crate::MockModel::open`] is called with this name.
pub fn gate(name: &str) -> Step {
    Step::Gate(name.to_owned())
}

/// All actions of the server for one request.
///
/// Raw chunks are written unchanged. A reply with events is completed: a missing finish, usage and end mark
/// are added, so that `Reply::text("hi")` is a complete answer in either wire format.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(crate) steps: Vec<Step>,
}

impl Reply {
    /// A reply of these steps. A status must be the only step, apart from gates and pauses.
    #[track_caller]
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::checked(steps.into_iter().collect()).unwrap_or_else(|error| fail(error))
    }

    pub(crate) fn checked(steps: Vec<Step>) -> Result<Self, &'static str> {
        let is_status = |step: &Step| matches!(step, Step::Status(..));
        let writes = steps.iter().filter(|step| !matches!(step, Step::Gate(_) | Step::Pause(_))).count();
        if steps.iter().any(is_status) && writes > 1 {
            return Err("a reply with a status cannot write anything else: a response has one head");
        }
        Ok(Self { steps })
    }

    /// A complete answer with one piece of text.
    pub fn text(text: &str) -> Self {
        Self::new([Step::Event(ReplyEvent::Text(text.to_owned()))])
    }

    /// A complete answer with one tool call.
    pub fn call(id: &str, name: &str, arguments: &str) -> Self {
        Self::new([Step::Event(ReplyEvent::call(id, name, arguments))])
    }

    /// An error status with a body.
    pub fn status(code: u16, body: &str) -> Self {
        Self::new([Step::Status(code, Vec::new(), body.to_owned())])
    }

    /// Merges adjacent chunks into writes of up to `size` bytes.
    pub fn coalesced(self, size: usize) -> Self {
        let mut steps = Vec::new();
        let mut pending: Vec<u8> = Vec::new();
        for step in self.steps {
            if let Step::Chunk(bytes) = &step {
                if !pending.is_empty() && pending.len() + bytes.len() > size {
                    steps.push(Step::Chunk(std::mem::take(&mut pending).into()));
                }
                pending.extend_from_slice(bytes);
                continue;
            }
            if !pending.is_empty() {
                steps.push(Step::Chunk(std::mem::take(&mut pending).into()));
            }
            steps.push(step);
        }
        if !pending.is_empty() {
            steps.push(Step::Chunk(pending.into()));
        }
        Self { steps }
    }
}
