//! Tracing: a reader of the events that also provides the trace context for work that leaves the process.

use qwen_events::{CallId, Event, TraceContext};

/// Builds a trace from events. It is called synchronously and must never block.
pub trait Tracer: Send + Sync {
    /// A turn is about to start, optionally under the host's trace context.
    fn turn_begins(&self, host: Option<&TraceContext>);

    /// Receives every event, already redacted.
    fn event(&self, event: &Event);

    /// The trace context of a running call, for requests and processes that it starts.
    fn context_of(&self, call: &CallId) -> Option<TraceContext>;

    /// The hooks of an event start, possibly for a call. They have ended when the returned value is dropped.
    fn hooks_begin(&self, event: &'static str, about: Option<&CallId>) -> HooksRun;
}

/// A run of hooks, which lasts as long as this value.
pub struct HooksRun {
    pub context: TraceContext,
    /// Dropped when the hooks have ended.
    pub until: Box<dyn std::any::Any + Send>,
}
