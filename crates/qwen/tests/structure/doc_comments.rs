//! A doc comment adds what a name cannot say.

use crate::facts::{Doc, FACTS};
use crate::remaining::check;

/// Sources whose doc comments are the help texts of flags and the descriptions of settings.
const HELP_TEXTS: &[&str] = &["crates/qwen/src/cli/", "crates/qwen/src/settings/file/typed.rs"];

/// The most words of a comment that is too short to add something.
const MAX_WORDS: usize = 3;

#[test]
fn no_public_item_has_a_doc_comment_of_three_words_or_fewer() {
    let is_short = |doc: &&Doc| {
        doc.text.split_whitespace().count() <= MAX_WORDS
            && !HELP_TEXTS.iter().any(|prefix| doc.place.starts_with(prefix))
    };
    let short: Vec<&str> = FACTS.docs.iter().filter(is_short).map(|doc| &*doc.place).collect();
    check(&short, &[]);
}
