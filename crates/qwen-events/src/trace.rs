//! Trace context, propagated from one program to the next.

use std::sync::Arc;

/// A W3C Trace Context, carried verbatim. The code that records traces parses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The W3C header: `00-<trace id>-<span id>-<flags>`.
    pub traceparent: Arc<str>,
    /// Vendor-specific entries added by the systems on the path.
    pub tracestate: Option<Arc<str>>,
}
