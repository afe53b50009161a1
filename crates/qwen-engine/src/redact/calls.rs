//! Redacted tool calls. Every piece of a call's output repeats the call, so each call is redacted only once.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{CallId, Json, ToolCall};
use qwen_redact::Redactor;

/// The in-flight calls, in original and redacted form.
#[derive(Default)]
pub(super) struct Calls(Vec<(Arc<ToolCall>, Arc<ToolCall>)>);

impl Calls {
    pub fn clean(&mut self, redactor: &Redactor, call: &Arc<ToolCall>) -> Arc<ToolCall> {
        if let Some((_, shown)) = self.0.iter().find(|(known, _)| Arc::ptr_eq(known, call)) {
            return shown.clone();
        }
        let shown = clean(redactor, call).map_or_else(|| call.clone(), Arc::new);
        self.0.push((call.clone(), shown.clone()));
        shown
    }

    /// Drops a call that has ended.
    pub fn forget(&mut self, id: &CallId) {
        self.0.retain(|(call, _)| call.id != *id);
    }
}

/// The redacted call; `None` if it contains no secret.
fn clean(redactor: &Redactor, call: &ToolCall) -> Option<ToolCall> {
    let arguments = redactor.redact_json(call.arguments.as_str());
    let malformed = call.malformed.as_deref().map(|text| redactor.redact(text));
    if matches!(arguments, Cow::Borrowed(_)) && matches!(malformed, None | Some(Cow::Borrowed(_))) {
        return None;
    }
    Some(ToolCall {
        malformed: malformed.map(Arc::from),
        provider_fields: call.provider_fields.clone(),
        ..ToolCall::new(call.id.clone(), call.name.clone(), Json::trusted(arguments))
    })
}
