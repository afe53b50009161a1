//! Why a call did not do its work.

use crate::workspace::PathError;
use crate::{ArgumentError, Outcome};

/// Why a call did not do its work: the failure of an [`Outcome`] while it is passed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: &'static str,
    text: String,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self::failure(refusal.code, refusal.text)
    }
}

impl From<ArgumentError> for Refusal {
    fn from(error: ArgumentError) -> Self {
        Self::new("invalid_arguments", format!("{error}."))
    }
}

impl From<PathError> for Refusal {
    fn from(error: PathError) -> Self {
        Self::new(error.code(), format!("{error}."))
    }
}
