//! Failure of a tool call.

use crate::workspace::PathError;
use crate::{ArgumentError, Outcome};

/// Failure of a tool call, to be propagated with `?` and turned into an [`Outcome`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: &'static str,
    text: String,
    mentions_tools: bool,
}

/// Longest error text, in characters. Bounded because it quotes the invalid input.
const LONGEST: usize = 8_000;

impl Refusal {
    pub(crate) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: bounded(text.into()), mentions_tools: false }
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Marks a text that names tools, so that it is translated to the session's vocabulary.
    pub(crate) fn mentioning_tools(mut self) -> Self {
        self.mentions_tools = true;
        self
    }

    /// The same refusal about a part of a call, with what that means for the whole.
    pub(crate) fn within(self, part: impl std::fmt::Display, consequence: &str) -> Self {
        Self::new(self.code, format!("{part}: {} {consequence}", self.text))
    }
}

/// Removes the middle of a text that is too long.
fn bounded(text: String) -> String {
    let length = if text.len() <= LONGEST { 0 } else { text.chars().count() };
    if length <= LONGEST {
        return text;
    }
    let half = LONGEST / 2;
    let (head, tail): (String, String) =
        (text.chars().take(half).collect(), text.chars().skip(length - half).collect());
    format!("{head}[… {} characters …]{tail}", length - 2 * half)
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self { mentions_tools: refusal.mentions_tools, ..Self::failure(refusal.code, refusal.text) }
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
