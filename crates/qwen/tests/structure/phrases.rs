//! Phrases that the prose of this repository avoids, in comments, texts and documentation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::remaining::check;
use crate::{root, sources};

/// Phrases, each after a character that is not a letter.
const PHRASES: &[&str] = &[
    "goes on",
    "go on with",
    "going on with",
    "stands for",
    "stands in for",
    "of its own.",
    "of its own,",
    "of its own;",
    "of its own:",
    "of their own.",
    "of their own,",
    "of their own;",
    "of their own:",
    "answer in time",
    "nobody is there",
    "nobody says",
    "speaks of",
    "a person",
    "is no json.",
    "is no json:",
    "is no worker",
    "what there is to say",
    "where it can run",
    "needs an answer",
    "known to only read",
];

/// Programs for development only.
const TOOLS: &[&str] = &["crates/bench/", "crates/eval/", "crates/mock-model/"];

/// Names of tests, which are quoted in these pages, and records of the past.
const EXCLUDED: &[&str] = &["docs/contributing/sdk-coverage.md", "docs/decisions/", "CHANGELOG.md"];

/// Messages that are part of a wire format, which stays as it is.
const WIRE_TEXTS: &[&str] = &[
    "crates/qwen-dialects/src/loom/custom.rs: goes on",
    "crates/qwen-dialects/src/qwen/annotate.rs: goes on",
];

/// The pages of the documentation, relative to the root.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("README.md"), PathBuf::from("ARCHITECTURE.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found
}

/// True if `text` contains `phrase`, not as the end of a longer word.
fn contains(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| !text[..at].ends_with(|before: char| before.is_alphanumeric()))
}

fn phrases_in(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(root().join(path)).unwrap().to_lowercase();
    // A phrase may continue on the next line of a comment.
    let is_mark = |word: &&str| ["//", "///", "//!"].contains(word);
    let text = text.split_whitespace().filter(|word| !is_mark(word)).collect::<Vec<_>>().join(" ");
    let found = PHRASES.iter().filter(|phrase| contains(&text, phrase));
    found.map(|phrase| format!("{}: {phrase}", path.display())).collect()
}

#[test]
fn no_text_contains_a_phrase_that_our_style_avoids() {
    let is_checked = |path: &PathBuf| {
        let name = path.display().to_string();
        !TOOLS.iter().chain(EXCLUDED).any(|prefix| name.starts_with(prefix))
    };
    let files = sources().into_iter().chain(pages()).filter(is_checked);
    let found: BTreeSet<String> = files.flat_map(|path| phrases_in(&path)).collect();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    check(&found, &[WIRE_TEXTS]);
}
