//! A JSON text that passes through.

use std::fmt;
use std::sync::Arc;

/// One JSON value as text, checked by whoever made it. This crate carries it and never looks inside, so that a
/// payload which only passes through is neither parsed nor built anew on its way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Wraps a text that the caller knows to be exactly one JSON value on one line.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The empty object, which is what a tool call without arguments carries.
    pub fn empty_object() -> Self {
        Self(Arc::from("{}"))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
