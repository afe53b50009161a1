//! Removes secrets from text that is displayed, stored or sent to the model.
//!
//! Two kinds of text are secret: known values (the model's keys, variables named like a key) in their likely
//! encodings, and text that has the shape of a well-known kind of key. Each match is replaced by `***`. The
//! public head of a shape (`ghp_`, `Bearer `) and the first character of a known value stay visible, so a
//! piece of a stream is passed on at once unless its end already matches more than that.

mod known;
mod scan;
mod shape;
mod stream;
mod variables;

use std::borrow::Cow;

use self::known::Pattern;
use self::shape::SHAPES;
pub use self::stream::TextStream;
pub use self::variables::{is_secret, secret_values, url_password};

/// Replacement for a secret.
pub const REDACTION_MARK: &str = "***";

/// Finds secrets in texts. It is created once and shared; the state of each stream is in its [`TextStream`].
pub struct Redactor {
    /// Known values in all their encodings, sorted.
    patterns: Vec<Pattern>,
    /// Bit set of the byte pairs that a pattern or shape can start with. It rules out nearly all text.
    pairs: Box<[u64; 1024]>,
    /// Bit set of the bytes that a pattern or shape can start with, for the last byte of a piece.
    firsts: [u64; 4],
}

impl Redactor {
    /// Creates a redactor for these values and for everything that has the shape of a key. Values that are
    /// short, numeric or common words are not redacted, because that would mostly hide ordinary text.
    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut patterns = Vec::new();
        for value in values {
            known::forms(value.as_ref(), &mut patterns);
        }
        patterns.sort_unstable();
        patterns.dedup();
        let mut redactor = Self { patterns, pairs: Box::new([0; 1024]), firsts: [0; 4] };
        for at in 0..redactor.patterns.len() {
            let bytes = &redactor.patterns[at].bytes;
            let (first, second) = (bytes[0], bytes[1]);
            redactor.starts_with(first, second);
        }
        for shape in SHAPES {
            redactor.starts_with(shape.head[0], shape.head[1]);
        }
        redactor
    }

    /// Returns `text` with its secrets replaced.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_whole(text, TextStream::default())
    }

    /// Returns JSON text with its secrets replaced. The result is still valid JSON.
    pub fn redact_json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_whole(text, TextStream::json())
    }

    fn redact_whole<'a>(&self, text: &'a str, mut stream: TextStream) -> Cow<'a, str> {
        if self.next_candidate(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        match stream.redact_text(self, text) {
            Some(clean) => Cow::Owned(clean),
            None => Cow::Borrowed(text),
        }
    }

    fn starts_with(&mut self, first: u8, second: u8) {
        let pair = usize::from(first) << 8 | usize::from(second);
        self.pairs[pair / 64] |= 1 << (pair % 64);
        self.firsts[usize::from(first) / 64] |= 1 << (first % 64);
    }
}

impl Default for Redactor {
    /// Matches key shapes only, no known values.
    fn default() -> Self {
        Self::new(std::iter::empty::<&str>())
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} patterns)", self.patterns.len())
    }
}

#[cfg(test)]
mod tests;
