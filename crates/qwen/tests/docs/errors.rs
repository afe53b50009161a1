//! The tables of `docs/errors.md`, generated from the source that defines the errors.
//!
//! `QWEN_BLESS=1 cargo test -p qwen --test docs errors` writes them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use crate::generated::keep_generated;
use crate::page::root;

fn source(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The lines of a Rust item from the one that contains `start` to its closing brace.
fn item<'a>(text: &'a str, start: &str) -> &'a str {
    let from = text.find(start).unwrap_or_else(|| panic!("no {start}"));
    let length = text[from..].find("\n}").unwrap();
    &text[from..from + length]
}

/// The wire words of a `match` over `ErrorKind`, by kind.
fn words(path: &str, function: &str) -> BTreeMap<String, String> {
    let text = source(path);
    let mut words = BTreeMap::new();
    for line in item(&text, function).lines().filter(|line| line.contains("=> \"")) {
        let (kinds, word) = line.split_once("=>").unwrap();
        let word = word.trim().trim_matches([',', '"']);
        for kind in kinds.split('|') {
            let kind = kind.trim().trim_start_matches("ErrorKind::").trim_end_matches("(_)");
            words.insert(kind.to_owned(), word.to_owned());
        }
    }
    words
}

/// Each kind of error with its documentation, in the order of the source.
fn kinds() -> Vec<(String, String)> {
    let text = source("crates/qwen-events/src/error.rs");
    let mut kinds = Vec::new();
    let mut meaning = String::new();
    for line in item(&text, "pub enum ErrorKind {").lines().skip(1).map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            meaning = format!("{meaning} {}", comment.trim());
        } else {
            let name = line.split(['(', ',']).next().unwrap();
            kinds.push((name.to_owned(), std::mem::take(&mut meaning).trim().to_owned()));
        }
    }
    kinds
}

/// One test: the tables are parts of one file, which each of them rewrites when they are blessed.
#[test]
fn the_tables_of_errors_are_what_the_source_defines() {
    keep_error_types();
    keep_sdk_errors();
    keep_time_outs();
}

fn keep_error_types() {
    let qwen = words("crates/qwen-dialects/src/qwen/wire/mod.rs", "fn error_type");
    let claude = words("crates/qwen-dialects/src/error_object.rs", "fn kind_word");
    let mut page = String::from(
        "| `type` in `qwen` | in `claude`, `claude-lite` and `loom` | meaning |\n|---|---|---|\n",
    );
    for (kind, meaning) in kinds() {
        let here = qwen.get(&kind).unwrap_or_else(|| panic!("{kind} has no word"));
        let there = claude.get(&kind).unwrap_or_else(|| panic!("{kind} has no word"));
        writeln!(page, "| `{here}` | `{there}` | {meaning} |").unwrap();
    }
    keep_generated("docs/errors.md", "<!-- error types -->", "<!-- end of error types -->", &page);
}

/// The classes of a file by their first line, each with its base and the first sentence of its documentation.
fn python_classes() -> Vec<(String, String, String)> {
    let text = source("sdk/python/src/qwen_agent_sdk/errors.py");
    let mut classes = Vec::new();
    for part in text.split("\nclass ").skip(1) {
        let (head, body) = part.split_once("\"\"\"").unwrap();
        let (name, bases) = head.split_once('(').unwrap();
        let base = bases.split([',', ')']).next().unwrap();
        let summary = body.split("\"\"\"").next().unwrap().split("\n\n").next().unwrap();
        classes.push((
            name.to_owned(),
            base.to_owned(),
            summary.split_whitespace().collect::<Vec<_>>().join(" "),
        ));
    }
    classes
}

fn typescript_classes() -> Vec<(String, String, String)> {
    let text = source("sdk/typescript/src/errors.ts");
    let mut classes = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix("export class ") else { continue };
        let (name, rest) = rest.split_once(' ').unwrap();
        let base = rest.trim_start_matches("extends ").split(' ').next().unwrap();
        let comment = lines[number - 1].trim().trim_start_matches("/**").trim_end_matches("*/").trim();
        assert!(!comment.is_empty(), "{name} has a comment of one line");
        classes.push((name.to_owned(), base.to_owned(), comment.to_owned()));
    }
    classes
}

fn keep_sdk_errors() {
    let mut page = String::new();
    for (language, classes) in [("Python", python_classes()), ("TypeScript", typescript_classes())] {
        writeln!(page, "### {language}\n\n| error | kind of | meaning |\n|---|---|---|").unwrap();
        for (name, base, meaning) in classes {
            writeln!(page, "| `{name}` | `{base}` | {} |", meaning.replace('|', "\\|")).unwrap();
        }
        page.push('\n');
    }
    keep_generated("docs/errors.md", "<!-- sdk errors -->", "<!-- end of sdk errors -->", &page);
}

fn keep_time_outs() {
    let text = source("crates/qwen-events/src/error.rs");
    let names: Vec<String> = item(&text, "pub fn name(self)")
        .lines()
        .filter_map(|line| Some(format!("`{}`", line.split_once("=> \"")?.1.trim_end_matches([',', '"']))))
        .collect();
    let page = format!("Each time-out is named in its error: {}.", names.join(", "));
    keep_generated("docs/errors.md", "<!-- time-outs -->", "<!-- end of time-outs -->", &page);
}
