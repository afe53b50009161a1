//! Keeping secrets out of what is shown, stored and told to the model.
//!
//! Two things are secret: values that we know (the model's keys, variables named like a key), in the forms that they
//! are likely to take, and texts that have the shape of a well-known kind of key. What is found becomes `***`. The
//! public head of a shape (`ghp_`, `Bearer `) and the first character of a known value stay: so a piece of a stream
//! is passed on at once unless what it ends with already looks like more than that.

mod known;
mod scan;
mod shape;
mod stream;
mod variables;

use std::borrow::Cow;

use self::known::Pattern;
use self::shape::SHAPES;
pub use self::stream::TextStream;
pub use self::variables::secret_values;

/// What stands where a secret stood.
pub const BLOT: &str = "***";

/// Finds secrets in texts. It is made once and shared; what it knows about one stream is in that stream's
/// [`TextStream`].
pub struct Redactor {
    /// Known values in all their forms, sorted.
    patterns: Vec<Pattern>,
    /// Which pairs of bytes some pattern or shape starts with: nearly all text is passed by this alone.
    pairs: Box<[u64; 1024]>,
    /// Which bytes some pattern or shape starts with, for the last byte of a piece.
    firsts: [u64; 4],
}

impl Redactor {
    /// A redactor of these values, and of everything that has the shape of a key. A value that is short, a number or
    /// a common word is left alone: blotting it out would hide the text rather than the secret.
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

    /// `text` without the secrets in it.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_whole(text, TextStream::default())
    }

    /// A JSON text without the secrets in it; it stays JSON.
    pub fn redact_json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_whole(text, TextStream::json())
    }

    fn redact_whole<'a>(&self, text: &'a str, mut stream: TextStream) -> Cow<'a, str> {
        if self.next_candidate(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        match stream.whole(self, text) {
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
    /// A redactor that knows no values, only shapes.
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
