//! `qwen check --history DIR`: checks what hubs, nodes, clients, tools and streams recorded against each other.
//!
//! `load` reads the recordings, `numbers` judges the lines of each session, `turns` their ends, `owners` who appended
//! to its streams, and `tools` what ran.

mod load;
mod numbers;
mod owners;
mod tools;
mod turns;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use self::load::RecordedHistory;
use crate::runtime::exit;

/// The rules of a history, each with what it guarantees.
pub const RULES: &[(&str, &str)] = &[
    ("lost_line", "a reader receives every number, and what was acknowledged is in the stream"),
    ("doubled_line", "a reader receives a number once, apart from what it asks for again"),
    ("swapped_line", "a reader receives the numbers in ascending order"),
    ("different_bytes", "a number has the same bytes for everyone"),
    ("two_ends", "a prompt has at most one terminal record"),
    ("no_end", "a prompt that was accepted has a terminal record"),
    ("line_after_end", "no line of a prompt follows its terminal record"),
    ("two_owners", "an epoch has one owner"),
    ("stale_append", "nothing is stored for an owner that was replaced"),
    ("tool_twice", "a tool call runs at most once"),
    ("tool_without_commit", "a tool call runs after its start was stored"),
    ("unreadable_line", "every recorded line and every line of a log is valid JSON"),
];

/// A violated rule of [`RULES`], with its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file and the line, as far as they are known.
    place: String,
    rule: &'static str,
    message: String,
}

/// The findings so far, each once.
#[derive(Default)]
pub struct Findings(BTreeSet<Finding>);

impl Findings {
    fn add(&mut self, rule: &'static str, place: &str, message: String) {
        self.0.insert(Finding { place: place.to_owned(), rule, message });
    }
}

/// Checks the recordings below a directory. Returns the exit code: 1 for a violated rule, 42 if there is nothing to
/// check.
pub fn check(directory: &Path, mut out: impl Write) -> u8 {
    let mut findings = Findings::default();
    let history = match RecordedHistory::load(directory, &mut findings) {
        Ok(history) => history,
        Err(error) => {
            exit::report(&format!("qwen: {} cannot be read: {error}", directory.display()));
            return 42;
        }
    };
    if history.sessions.is_empty() && findings.0.is_empty() {
        exit::report(&format!(
            "qwen: there is no recording below {}. Record with --record-dir, and the streams with `qwen bus export`.",
            directory.display()
        ));
        return 42;
    }
    let (mut readers, mut lines) = (0, 0);
    for ((_, name), session) in &history.sessions {
        let numbered = numbers::check(name, session, &mut findings);
        turns::check(name, session, &numbered, &mut findings);
        owners::check(name, session, &numbered, &mut findings);
        tools::check(name, session, &numbered, &mut findings);
        readers += session.readers.len();
        lines += numbered.by_number.len();
    }
    for Finding { place, rule, message } in &findings.0 {
        if writeln!(out, "{place}: error[{rule}]: {message}").is_err() {
            break;
        }
    }
    let (sessions, errors) = (history.sessions.len(), findings.0.len());
    exit::report(&format!(
        "{}: {sessions} sessions, {readers} recordings, {lines} numbered lines, {errors} errors",
        directory.display()
    ));
    u8::from(errors > 0)
}
