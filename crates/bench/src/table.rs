//! The printed table: a row has the measured value and its target.

use std::fmt;

pub const HEAD: &str = "| what | measured | target | ok? |\n|---|---:|---:|:-:|";

/// How a measurement compares with its target.
enum Verdict {
    /// There is no target.
    Told,
    Met,
    Missed,
    /// It could not be measured, or what was measured was not the right thing.
    Failed,
}

pub struct Row {
    what: String,
    measured: String,
    target: String,
    verdict: Verdict,
}

impl Row {
    /// A number for comparison, without a target.
    pub fn without_target(what: impl Into<String>, value: f64, unit: &str) -> Self {
        Self {
            what: what.into(),
            measured: number(value, unit),
            target: "–".to_owned(),
            verdict: Verdict::Told,
        }
    }

    /// A text for comparison, without a target.
    pub fn note(what: impl Into<String>, text: impl Into<String>) -> Self {
        Self { what: what.into(), measured: text.into(), target: "–".to_owned(), verdict: Verdict::Told }
    }

    /// A number that should not be above `target`.
    pub fn at_most(what: impl Into<String>, value: f64, unit: &str, target: f64) -> Self {
        let verdict = if value <= target { Verdict::Met } else { Verdict::Missed };
        let target = format!("≤ {target} {unit}");
        Self { what: what.into(), measured: number(value, unit), target, verdict }
    }

    /// A count beside the one it is compared with: it should not have grown by more than `allowed` percent.
    pub fn drift(what: impl Into<String>, count: u64, before: u64, allowed: f64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a percentage needs three digits")]
        let percent = (count as f64 / before.max(1) as f64 - 1.0) * 100.0;
        let verdict = if percent <= allowed { Verdict::Met } else { Verdict::Missed };
        let measured = format!("{} ({percent:+.1} %)", grouped(count));
        let target = format!("{} (+{allowed} %)", grouped(before));
        Self { what: what.into(), measured, target, verdict }
    }

    /// Something that could not be measured.
    pub fn failed(what: impl Into<String>, error: &str) -> Self {
        let measured = error.replace('\n', " ").replace('|', "\\|");
        Self { what: what.into(), measured, target: "–".to_owned(), verdict: Verdict::Failed }
    }

    pub fn has_failed(&self) -> bool {
        matches!(self.verdict, Verdict::Failed)
    }

    pub fn is_met(&self) -> bool {
        !matches!(self.verdict, Verdict::Missed)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.verdict {
            Verdict::Told => "",
            Verdict::Met => "yes",
            Verdict::Missed => "**no**",
            Verdict::Failed => "**failed**",
        };
        write!(f, "| {} | {} | {} | {mark} |", self.what, self.measured, self.target)
    }
}

fn number(value: f64, unit: &str) -> String {
    format!("{value:.2} {unit}")
}

/// A count with a comma after each three digits.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Row, grouped};

    #[test]
    fn a_row_says_whether_its_target_was_met() {
        let cases = [
            (Row::at_most("cpu", 4.999, "ms", 5.0), "| cpu | 5.00 ms | ≤ 5 ms | yes |"),
            (Row::at_most("cpu", 5.01, "ms", 5.0), "| cpu | 5.01 ms | ≤ 5 ms | **no** |"),
            (Row::without_target("wall", 1.0, "ms"), "| wall | 1.00 ms | – |  |"),
            (
                Row::drift("n", 1_029_000, 1_000_000, 3.0),
                "| n | 1,029,000 (+2.9 %) | 1,000,000 (+3 %) | yes |",
            ),
            (
                Row::drift("n", 1_040_000, 1_000_000, 3.0),
                "| n | 1,040,000 (+4.0 %) | 1,000,000 (+3 %) | **no** |",
            ),
            (Row::failed("x", "a|b\nc"), "| x | a\\|b c | – | **failed** |"),
        ];
        for (row, wanted) in cases {
            assert_eq!(row.to_string(), wanted);
        }
    }

    #[test]
    fn counts_are_grouped_in_threes() {
        for (count, wanted) in [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(count), wanted);
        }
    }
}
