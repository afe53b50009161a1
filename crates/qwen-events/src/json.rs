//! Unparsed JSON text.

use std::fmt;
use std::sync::Arc;

/// One JSON value as text, validated by its creator. This crate carries it without parsing it, so that a
/// payload which is only relayed is neither parsed nor rebuilt.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Wraps a text that the caller has validated as exactly one JSON value on one line.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The empty object, the arguments of a tool call without arguments.
    pub fn empty_object() -> Self {
        Self(Arc::from("{}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
