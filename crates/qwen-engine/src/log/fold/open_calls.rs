//! The calls of a message that have not all ended.

use std::sync::Arc;

use qwen_events::{CallId, Message, Part, Role, ToolCall, ToolResult};

/// The result of a call that was running when its process died.
pub(crate) const INTERRUPTED: &str = "interrupted: the process ended while this call ran, and what it did up to then is \
                                      not known; check before you repeat it";

/// The result of a call that was never started.
const NOT_RUN: &str = "not run: the turn was interrupted before this call";

/// A call of a message whose calls have not all ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    pub call: Arc<ToolCall>,
    pub progress: Progress,
}

/// How far a call got.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It was never started.
    Waiting,
    /// It was started, and its effects are unknown.
    Started,
    Ended(ToolResult),
}

impl Progress {
    /// The result text of a call that reached this state and has no result.
    pub(crate) fn without_result(&self) -> &'static str {
        if *self == Self::Waiting { NOT_RUN } else { INTERRUPTED }
    }
}

/// The calls of the last message of a conversation, until all of them have ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpenCalls(Vec<OpenCall>);

impl OpenCalls {
    /// The calls of a message, none of which was started.
    pub fn from_calls(calls: &[Arc<ToolCall>]) -> Self {
        let waiting = |call: &Arc<ToolCall>| OpenCall { call: call.clone(), progress: Progress::Waiting };
        Self(calls.iter().map(waiting).collect())
    }

    /// The calls that a message at the end of a conversation requests and leaves open.
    pub fn left_by(message: &Message) -> Self {
        let calls = message.parts.iter().filter_map(|part| match part {
            Part::Call(call) if message.role == Role::Assistant => Some(call.clone()),
            _ => None,
        });
        Self::from_calls(&calls.collect::<Vec<_>>())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The calls, in the order of the message.
    pub fn calls(&self) -> &[OpenCall] {
        &self.0
    }

    /// The calls that have no result.
    pub fn waiting(&self) -> impl Iterator<Item = &Arc<ToolCall>> {
        self.0.iter().filter(|open| !matches!(open.progress, Progress::Ended(_))).map(|open| &open.call)
    }

    /// Takes the calls out, in the order of the message.
    pub fn take(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.0)
    }

    /// Marks a call as started.
    pub fn start(&mut self, id: &CallId) {
        if let Some(open) = self.0.iter_mut().find(|open| open.call.id == *id) {
            open.progress = Progress::Started;
        }
    }

    /// Records the result of a call. After the last one, returns the message that contains all results.
    pub fn answer(&mut self, result: ToolResult) -> Option<Message> {
        let open = self.0.iter_mut().find(|open| open.call.id == result.call_id)?;
        open.progress = Progress::Ended(result);
        let ended = self.0.iter().all(|open| matches!(open.progress, Progress::Ended(_)));
        if ended { self.take_results() } else { None }
    }

    /// The message with the results of all calls: a call without a result gets one that states why.
    pub fn take_results(&mut self) -> Option<Message> {
        if self.0.is_empty() {
            return None;
        }
        let result = |open: OpenCall| match open.progress {
            Progress::Ended(result) => Part::Result(result),
            progress => Part::Result(without_result(&open.call, progress.without_result())),
        };
        Some(Message { role: Role::Tool, parts: self.take().into_iter().map(result).collect() })
    }

    /// Appends a message to a conversation that ends in these calls: results complete them, and any other
    /// message ends the wait for results.
    pub fn continue_with(&mut self, message: &Message, conversation: &mut Vec<Message>) {
        if message.role == Role::Tool && !self.is_empty() {
            for part in &message.parts {
                if let Part::Result(result) = part {
                    conversation.extend(self.answer(result.clone()));
                }
            }
        } else {
            conversation.extend(self.take_results());
            conversation.push(message.clone());
        }
    }
}

fn without_result(call: &ToolCall, text: &str) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        text: text.into(),
        media: Vec::new(),
        is_error: true,
    }
}

/// The calls of the last message, if not all of them have ended, and what follows them.
#[derive(Debug, Clone, Default)]
pub struct UnansweredCalls {
    pub calls: OpenCalls,
    /// A hook postponed the calls: the next turn decides about them first.
    pub postponed: bool,
    /// Messages received in the meantime; they follow the results of the calls.
    pub held: Vec<Message>,
}
