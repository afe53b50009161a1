//! `qwen check`: checks a stream against the rules of its dialect.

use std::io::{self, Write};
use std::ops::ControlFlow;

use qwen_dialects::check::rules::{self, Example, RULES};
use qwen_dialects::check::{Checker, Finding, Level, Mode};

use super::history;
use super::lines::{self, LONGEST, StreamLine};
use crate::cli::CheckArgs;
use crate::runtime::exit;

/// Checks the stream and returns the exit code: 1 if it breaks a rule, 42 if it cannot be read.
pub fn run(args: &CheckArgs) -> u8 {
    if let Some(name) = &args.explain {
        return explain(name, io::stdout().lock());
    }
    if let Some(directory) = &args.history {
        return history::check(directory, io::stdout().lock());
    }
    let dialect = match super::dialect(args.dialect.as_deref()) {
        Ok(dialect) => dialect,
        Err(code) => return code,
    };
    let name = lines::name(args.file.as_deref());
    let mode = if args.fragment { Mode::Fragment } else { Mode::Stream };
    let mut checker = Checker::new(dialect, mode);
    let mut report = Report { name: &name, out: io::stdout().lock(), errors: 0, warnings: 0 };
    let read = lines::each(args.file.as_deref(), |line| {
        report.print(match line {
            StreamLine::Whole(line) => checker.push_line(line),
            StreamLine::TooLong => checker.push_oversized(LONGEST),
        })
    });
    if let Err(error) = read {
        exit::report(&format!("qwen: {name} cannot be read: {error}"));
        return 42;
    }
    // A disconnected reader does not change the result.
    let _ = report.print(checker.finish());
    let dialect = checker.dialect().map_or("any dialect", |dialect| dialect.name());
    exit::report(&format!("{name}: {dialect}, {} errors, {} warnings", report.errors, report.warnings));
    u8::from(report.errors > 0)
}

/// Prints what a rule requires and how it can be broken; `all` lists the rules.
fn explain(name: &str, mut out: impl Write) -> u8 {
    if name == "all" {
        for rule in RULES {
            if writeln!(out, "{:14} {}: {}", rule.name, rule.applies_to, rule.promise).is_err() {
                return 0;
            }
        }
        for (name, promise) in history::RULES {
            if writeln!(out, "{name:15} a history: {promise}").is_err() {
                return 0;
            }
        }
        return 0;
    }
    if let Some((name, promise)) = history::RULES.iter().find(|(rule, _)| *rule == name) {
        // A disconnected reader is not an error.
        let _ = write!(out, "{name} (error, a history)\n\n{promise}.\n");
        return 0;
    }
    let Some(rule) = rules::rule(name) else {
        exit::report(&format!("qwen: there is no rule '{name}'; `qwen check --explain all` lists them"));
        return 2;
    };
    let example = match rule.example {
        Example::Lines(dialect, lines) => {
            let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
            format!("Broken in `{}` by:\n\n{lines}", dialect.name())
        }
        Example::Described(what) => format!("Broken by: {what}\n"),
    };
    // A disconnected reader is not an error.
    let head = format!("{} ({}, {})", rule.name, rule.level.name(), rule.applies_to);
    let _ = write!(out, "{head}\n\n{}.\n\n{example}", rule.promise);
    0
}

/// Prints findings and counts them.
struct Report<'a, W> {
    name: &'a str,
    out: W,
    errors: u64,
    warnings: u64,
}

impl<W: Write> Report<'_, W> {
    /// Stops reading the stream once the reader of the report has disconnected, which is a normal end.
    fn print(&mut self, findings: Vec<Finding>) -> ControlFlow<()> {
        for Finding { line, level, rule, message } in findings {
            match level {
                Level::Error => self.errors += 1,
                Level::Warning => self.warnings += 1,
            }
            let printed = writeln!(self.out, "{}:{line}: {}[{rule}]: {message}", self.name, level.name());
            if printed.and_then(|()| self.out.flush()).is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
