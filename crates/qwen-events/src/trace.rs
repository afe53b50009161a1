//! Where in a trace something happens, as it is carried from one program to the next.

use std::sync::Arc;

/// The context of a trace in the words of W3C Trace Context. It is carried as it was written: whoever makes traces
/// reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `00-<trace id>-<span id>-<flags>`
    pub traceparent: Arc<str>,
    /// What the systems on the way added.
    pub tracestate: Option<Arc<str>>,
}
