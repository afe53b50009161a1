//! The host's trace context, which any prompt may include.

use std::sync::Arc;

use qwen_events::TraceContext;

use super::field::{Kind, Object, Value};

/// The trace context of a prompt: `traceparent` and `tracestate` at the top level, or else in `metadata` or
/// `options`. An invalid trace never rejects a prompt, so values that are not text are carried verbatim;
/// the code that records traces reports them.
pub(super) fn trace(object: &Object<'_>) -> Option<TraceContext> {
    let inner = |name: &str| object.get(name).and_then(|value| value.object().ok());
    context(object).or_else(|| context(&inner("metadata")?)).or_else(|| context(&inner("options")?))
}

fn context(object: &Object<'_>) -> Option<TraceContext> {
    let traceparent = text(&object.get("traceparent")?);
    Some(TraceContext { traceparent, tracestate: object.get("tracestate").map(|state| text(&state)) })
}

fn text(value: &Value<'_>) -> Arc<str> {
    match value.kind() {
        Kind::String => value.string().unwrap_or_default(),
        _ => value.json().as_str().into(),
    }
}
