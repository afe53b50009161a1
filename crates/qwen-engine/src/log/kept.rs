//! What a log remembers of a run that it cannot tell otherwise.

use std::sync::Arc;

use qwen_events::{CallId, Journal, Json};

/// A run as far as it came: where it began, how each step changed it, and what was done in the step under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The form of the state and the changes.
    pub version: u32,
    /// The state that it began with.
    pub state: Json,
    /// The changes since, in order.
    pub deltas: Vec<Json>,
    /// The node that runs next; none when the last one has run.
    pub next: Option<Arc<str>>,
    /// What was done in the step under way, by name.
    pub effects: Vec<(Arc<str>, Json)>,
}

impl Kept {
    /// Takes in what a journal says.
    pub(super) fn take(kept: &mut Option<Self>, journal: &Journal) {
        match (journal, kept) {
            (Journal::Base { version, next, state }, kept) => {
                *kept = Some(Self {
                    version: *version,
                    state: state.clone(),
                    deltas: Vec::new(),
                    next: Some(next.clone()),
                    effects: Vec::new(),
                });
            }
            (Journal::Effect { key, value }, Some(kept)) => kept.effects.push((key.clone(), value.clone())),
            (Journal::Step { next, delta }, Some(kept)) => {
                kept.deltas.push(delta.clone());
                kept.next.clone_from(next);
                kept.effects.clear();
            }
            (_, None) => {}
        }
    }

    /// A tool of a thought was started. When nothing says what came of it, it is not started again.
    pub(super) fn tool_started(&mut self, id: &CallId) {
        self.effects.push((started(id), Json::trusted("null")));
    }
}

/// The name under which the start of a thought's tool is remembered.
pub(crate) fn started(id: &CallId) -> Arc<str> {
    format!("started/{id}").into()
}
