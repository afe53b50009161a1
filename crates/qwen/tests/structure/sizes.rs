//! Functions and structs have a size that a reader can survey. An entry of a list that is no longer needed fails the
//! test.

use crate::facts::{FACTS, Function, Struct};
use crate::remaining::check;

/// The most lines of a function, from its signature to its closing brace. Tests may be longer tables.
const MAX_LINES: usize = 80;

/// The most fields of a struct.
const MAX_FIELDS: usize = 20;

/// Functions that may be longer, and why.
const LONG_FUNCTIONS: &[(&str, &str)] = &[];

/// Structs that may have more fields, and why.
const WIDE_STRUCTS: &[(&str, &str)] = &[
    ("crates/qwen/src/cli/mod.rs::Run", "one field per flag, which is what clap derives from"),
    ("crates/qwen-dialects/src/claude/wire/result.rs::ResultLine", "the fields of a line of Claude's wire"),
    ("crates/qwen/src/settings/file/typed.rs::Model", "one field per key of the settings group `model`"),
];

fn justified(list: &'static [(&'static str, &'static str)]) -> Vec<&'static str> {
    assert!(list.len() <= 3, "at most three may be justified: {list:#?}");
    list.iter().map(|(place, _)| *place).collect()
}

#[test]
fn no_function_is_longer_than_eighty_lines() {
    let is_long = |function: &&Function| function.lines > MAX_LINES && !function.is_test;
    let long: Vec<&str> = FACTS.functions.iter().filter(is_long).map(|function| &*function.place).collect();
    check(&long, &[&justified(LONG_FUNCTIONS)]);
}

#[test]
fn no_struct_has_more_than_twenty_fields() {
    let is_wide = |found: &&Struct| found.fields.len() > MAX_FIELDS;
    let wide: Vec<&str> = FACTS.structs.iter().filter(is_wide).map(|found| &*found.place).collect();
    check(&wide, &[&justified(WIDE_STRUCTS)]);
}
