//! The document form of `--output-format json`: a whole turn as `{"events":[…],"reply":"…"}`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::syntax::{Object, Violation};

/// A turn as one document.
#[derive(Deserialize)]
pub(crate) struct Document<'a> {
    /// The lines of the equivalent stream, without the reply.
    #[serde(borrow)]
    pub(crate) events: Vec<&'a RawValue>,
    pub(crate) reply: String,
}

impl<'a> Document<'a> {
    /// Parses `object` if it is a document.
    pub(crate) fn read(object: &'a Object<'_>) -> Option<Result<Self, Violation>> {
        (object.has("events") && object.kind().is_none()).then(|| object.read())
    }
}
