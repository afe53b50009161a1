//! Findings of the checker.

use super::syntax::Violation;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Readers can handle it.
    Warning,
    /// A rule of the dialect is violated.
    Error,
}

impl Level {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One violation in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1; for something missing at the end, the last one.
    pub line: u64,
    pub level: Level,
    /// A stable name of the violated rule, such as `one-terminal`.
    pub rule: &'static str,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// Collects findings about one line.
pub(super) struct Report {
    line: u64,
    /// The event of a document that is being checked.
    within: Option<usize>,
    found: Vec<Finding>,
}

impl Report {
    pub(super) fn new(line: u64) -> Self {
        Self { line, within: None, found: Vec::new() }
    }

    /// Sets the line of the following findings.
    pub(super) fn at(&mut self, line: u64) {
        self.line = line;
    }

    /// Sets the document event of the following findings; none is the document itself.
    pub(super) fn within(&mut self, event: Option<usize>) {
        self.within = event;
    }

    pub(super) fn error(&mut self, rule: &'static str, message: impl Into<String>) {
        self.push(Level::Error, rule, message.into());
    }

    pub(super) fn warning(&mut self, rule: &'static str, message: impl Into<String>) {
        self.push(Level::Warning, rule, message.into());
    }

    pub(super) fn violation(&mut self, violation: Violation) {
        self.push(Level::Error, violation.rule, violation.message);
    }

    pub(super) fn findings(self) -> Vec<Finding> {
        self.found
    }

    fn push(&mut self, level: Level, rule: &'static str, message: String) {
        let message = match self.within {
            Some(event) => format!("events[{event}]: {message}"),
            None => message,
        };
        self.found.push(Finding { line: self.line, level, rule, message });
    }
}
