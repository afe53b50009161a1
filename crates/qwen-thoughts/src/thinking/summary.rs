//! One-line summaries of thoughts.

/// The maximum length of a summary, in characters.
const LONGEST: usize = 160;

/// The beginning of a text, on one line.
pub(crate) fn summary(text: &str) -> String {
    let mut words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    let mut summary: String = words.by_ref().take(LONGEST).collect();
    if words.next().is_some() {
        summary.push('…');
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_short_line() {
        assert_eq!(summary(" a\n  b\tc "), "a b c");
        let long = summary(&"ä".repeat(500));
        assert_eq!((long.chars().count(), long.ends_with('…')), (161, true));
    }
}
