//! Effects of an incomplete step, performed by an earlier process or by a failed attempt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::Json;

/// Effects that must not be repeated: their results by name.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<HashMap<Arc<str>, Json>>>);

impl Effects {
    /// The effects stored in a log.
    pub fn from_log(remembered: impl IntoIterator<Item = (Arc<str>, Json)>) -> Self {
        Self(Arc::new(Mutex::new(remembered.into_iter().collect())))
    }

    /// The result of `key`, if it was performed before.
    pub fn recall(&self, key: &str) -> Option<Json> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Stores the result of `key` for a retry of the step.
    pub(super) fn remember(&self, key: &str, value: Json) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.into(), value);
    }

    /// Clears all effects, because the step is complete.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
