//! What a log remembers of a run that the conversation does not tell.

use std::sync::Arc;

use qwen_events::{CallId, Journal, Json};

/// A run as far as it came: where it began, how each step changed it, and what was done in the step under way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredRun {
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

impl StoredRun {
    /// What a journal comes to; none where nothing was begun.
    pub fn of(journal: &[Journal]) -> Option<Self> {
        let mut entries = journal.iter();
        let mut kept = entries.find_map(|entry| match entry {
            Journal::Base { version, next, state } => Some(Self {
                version: *version,
                state: state.clone(),
                deltas: Vec::new(),
                next: Some(next.clone()),
                effects: Vec::new(),
            }),
            _ => None,
        })?;
        for entry in entries {
            match entry {
                Journal::Base { .. } => {}
                Journal::Effect { key, value } => kept.effects.push((key.clone(), value.clone())),
                Journal::Step { next, delta } => {
                    kept.deltas.push(delta.clone());
                    kept.next.clone_from(next);
                    kept.effects.clear();
                }
            }
        }
        Some(kept)
    }

    /// The name under which the start of a thought's tool is remembered. When nothing says what came of it, it is not
    /// started again.
    pub fn started(id: &CallId) -> Arc<str> {
        format!("started/{id}").into()
    }
}
