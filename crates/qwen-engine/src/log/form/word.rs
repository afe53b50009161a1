//! Interned words read back from a log.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The maximum length of a word from a log, in bytes.
const LONGEST: usize = 64;
/// The maximum number of distinct words from logs. The program itself has a few dozen.
const MOST: usize = 1024;

static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Interns a word for the life of the process. Logs are untrusted input, so length and number of interned
/// words are bounded; beyond that a word becomes `unknown`.
pub(crate) fn word(text: &str) -> &'static str {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(word) = known.get(text) {
        return word;
    }
    if text.len() > LONGEST || known.len() >= MOST {
        return "unknown";
    }
    let word: &'static str = Box::leak(text.into());
    known.insert(word);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_kept_once_and_a_long_one_not_at_all() {
        let first = word("file_not_found");
        assert_eq!(first, "file_not_found");
        assert!(std::ptr::eq(first, word("file_not_found")));
        assert_eq!(word(&"x".repeat(65)), "unknown");
    }
}
