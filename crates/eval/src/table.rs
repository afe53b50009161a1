//! A table of what was measured.

use std::fmt;

/// One way to solve a set of problems.
pub struct Row {
    /// The set of problems, with its size.
    pub problems: String,
    /// The agent and its options.
    pub way: String,
    /// The share of problems solved.
    pub result: String,
    /// Model calls a problem.
    pub calls: f64,
    /// Tokens per problem, on average.
    pub tokens: f64,
    /// The target, and whether it is met.
    pub wanted: Option<(String, bool)>,
}

impl Row {
    /// The head of the table.
    pub const HEAD: &'static str =
        "| problems | way | result | calls | tokens | wanted | ok? |\n|---|---|---:|---:|---:|---:|:-:|";

    /// True if the target is met.
    pub fn holds(&self) -> bool {
        self.wanted.as_ref().is_none_or(|(_, holds)| *holds)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wanted, mark) = match &self.wanted {
            None => ("–", ""),
            Some((wanted, true)) => (wanted.as_str(), "✓"),
            Some((wanted, false)) => (wanted.as_str(), "✗"),
        };
        let Self { problems, way, result, calls, tokens, .. } = self;
        write!(f, "| {problems} | {way} | {result} | {calls:.1} | {tokens:.0} | {wanted} | {mark} |")
    }
}
