//! What was done in a step that is not complete, by an earlier process or by an attempt that failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::Json;

/// Things that were done before and are not done again: by name, what came of them.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<HashMap<Arc<str>, Json>>>);

impl Effects {
    /// The effects that a log remembers.
    pub fn of(remembered: impl IntoIterator<Item = (Arc<str>, Json)>) -> Self {
        Self(Arc::new(Mutex::new(remembered.into_iter().collect())))
    }

    /// What came of `key`, if it was done before.
    pub fn recall(&self, key: &str) -> Option<Json> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Remembers what came of `key`, for when the step is tried again.
    pub(super) fn remember(&self, key: &str, value: Json) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.into(), value);
    }

    /// Forgets everything: the step is complete.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
