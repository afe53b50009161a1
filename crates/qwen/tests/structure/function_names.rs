//! A function's name is a verb phrase.

use crate::facts::{FACTS, Function};
use crate::remaining::check;

/// Prepositions, participles and other words that do not say what a function does.
const NOT_VERBS: &[&str] = &[
    "because", "before", "behind", "below", "beside", "between", "can", "chosen", "excuse", "found",
    "gathered", "given", "gone", "greets", "held", "here", "left", "listed", "matched", "named", "of", "on",
    "only", "ours", "over", "owned", "same", "shown", "told", "under", "unsaid", "until", "wanted", "whole",
    "written",
];

/// Functions that implement a trait of another crate, which names them.
const FOREIGN: &[&str] = &["crates/qwen-tools/src/builtin/grep_search/mod.rs::Lines::matched"];

#[test]
fn no_function_is_named_by_a_preposition_or_participle() {
    let is_misnamed = |function: &&Function| NOT_VERBS.contains(&&*function.name) && !function.is_test;
    let found: Vec<&str> =
        FACTS.functions.iter().filter(is_misnamed).map(|function| &*function.place).collect();
    check(&found, &[FOREIGN]);
}
