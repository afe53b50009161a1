//! Spans of turns. The kernel only says when a turn begins, is dispatched and ends; the embedding program
//! makes spans of that. Without a tracer this costs nothing.

use std::fmt;

use qwen_events::SessionId;

use crate::worker_pool::WorkerId;

/// A prompt whose turn is about to be traced.
#[derive(Debug)]
pub struct TracedPrompt<'a> {
    pub session_id: &'a SessionId,
    pub prompt_id: Option<&'a str>,
    pub tenant: &'a str,
    /// The client's line, which may contain its trace context.
    pub line: &'a [u8],
}

/// The span of one turn. Dropping it ends the span.
pub trait TurnSpan: fmt::Debug {
    /// The prompt was handed to a worker.
    fn dispatched(&mut self, worker: WorkerId);

    /// The terminal record passed.
    fn ended(&mut self, status: &str);
}

/// Begins the span of a turn and returns the `traceparent` for the worker.
pub type TurnTracer = Box<dyn FnMut(&TracedPrompt<'_>) -> (String, Box<dyn TurnSpan>)>;
