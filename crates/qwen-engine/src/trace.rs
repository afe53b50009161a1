//! Traces: one more reader of the events, that also says where in the trace the work is which leaves the process.

use qwen_events::{CallId, Event, TraceContext};

/// Makes a trace of what happens. It is told everything at once and never keeps anyone waiting.
pub trait Tracer: Send + Sync {
    /// A turn is about to begin; its host may say under what.
    fn turn_begins(&self, host: Option<&TraceContext>);

    /// Something happened. Secrets are gone from it already.
    fn event(&self, event: &Event);

    /// The place of a running call, for whatever it starts.
    fn place_of(&self, call: &CallId) -> Option<TraceContext>;

    /// The hooks of an event are called, perhaps about a call. They are done when what is given back is dropped.
    fn hooks_begin(&self, event: &'static str, about: Option<&CallId>) -> HooksRun;
}

/// Hooks that are being called, for as long as it lives.
pub struct HooksRun {
    /// Their place in the trace.
    pub place: TraceContext,
    /// Is dropped when they are done.
    pub until: Box<dyn std::any::Any + Send>,
}
