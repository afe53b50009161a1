//! The part of a run that the log stores and the conversation does not contain.

use std::sync::Arc;

use qwen_events::{CallId, Journal, Json};

/// A run so far: its initial state, the change made by each step, and the effects of the current step.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// The format version of the state and the changes.
    pub version: u32,
    pub state: Json,
    /// The changes since, in order.
    pub deltas: Vec<Json>,
    /// The node that runs next; `None` after the last one.
    pub next: Option<Arc<str>>,
    /// The effects of the current step, by name.
    pub effects: Vec<(Arc<str>, Json)>,
}

impl StoredRun {
    /// Reads a run from a journal; `None` if no run was started.
    pub fn from_journal(journal: &[Journal]) -> Option<Self> {
        let mut entries = journal.iter();
        let mut run = entries.find_map(|entry| match entry {
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
                Journal::Effect { key, value } => run.effects.push((key.clone(), value.clone())),
                Journal::Step { next, delta } => {
                    run.deltas.push(delta.clone());
                    run.next.clone_from(next);
                    run.effects.clear();
                }
            }
        }
        Some(run)
    }

    /// The name under which the start of a thought's tool call is stored. A call with a stored start and no
    /// result is not started again.
    pub fn started(id: &CallId) -> Arc<str> {
        format!("started/{id}").into()
    }
}
