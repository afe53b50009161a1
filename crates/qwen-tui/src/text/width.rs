//! Measures the width of text in cells, by grapheme.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Whether terminals disagree about the width of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    None,
    /// They may disagree (variation selectors, joiners, flags): the column must be set again after it.
    Disputed,
}

/// The grapheme clusters of a text.
pub fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let length = match rest.as_bytes() {
            [] => return None,
            // Nothing in ASCII joins a letter before it, and most text is ASCII.
            [first, behind @ ..] if is_printable(*first) && behind.first().is_none_or(u8::is_ascii) => 1,
            _ => rest.graphemes(true).next()?.len(),
        };
        let (cluster, behind) = rest.split_at(length);
        rest = behind;
        Some(cluster)
    })
}

/// True for a printable character of ASCII.
fn is_printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// The width of a cluster in cells, and whether terminals agree on it.
pub fn grapheme_width(cluster: &str) -> (usize, Risk) {
    let mut chars = cluster.chars();
    let first = chars.next();
    if first.is_some_and(|c| (' '..='~').contains(&c)) && chars.next().is_none() {
        return (1, Risk::None);
    }
    let disputed = cluster.chars().nth(1).is_some();
    (cluster.width().min(2), if disputed { Risk::Disputed } else { Risk::None })
}

/// The width of a text in cells; a tab counts as one.
pub fn width(text: &str) -> usize {
    if text.bytes().all(is_printable) {
        return text.len();
    }
    graphemes(text).map(|cluster| if cluster == "\t" { 1 } else { grapheme_width(cluster).0 }).sum()
}

/// The end of a text, at most `bytes` bytes.
pub fn last_bytes(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Splits a text into lines of at most `columns` cells, between words if possible. A word that is longer
/// than a line is split between clusters.
pub fn wrap_words(text: &str, columns: usize) -> Vec<&str> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut start = 0;
        let mut used = 0;
        // The last possible break, after a space, and the width up to it.
        let mut breakable = None;
        let mut next_at = 0;
        for cluster in graphemes(line) {
            let at = next_at;
            next_at += cluster.len();
            let cells = grapheme_width(cluster).0;
            if used + cells > columns && at > start {
                if cluster == " " {
                    lines.push(&line[start..at]);
                    start = at + 1;
                    used = 0;
                    breakable = None;
                    continue;
                }
                let (end, next) = breakable.unwrap_or((at, at));
                lines.push(&line[start..end]);
                used = width(&line[next..at]);
                start = next;
                breakable = None;
            }
            used += cells;
            if cluster == " " {
                breakable = Some((at, at + 1));
            } else if cells == 2 {
                breakable = Some((at + cluster.len(), at + cluster.len()));
            }
        }
        lines.push(line.get(start..).unwrap_or_default());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_measured_as_terminals_do() {
        for (text, cells) in
            [("abc", 3), ("日本", 4), ("e\u{301}", 1), ("👨\u{200d}👩\u{200d}👧", 2), ("", 0)]
        {
            assert_eq!(width(text), cells, "{text}");
        }
    }

    #[test]
    fn clusters_are_those_of_the_standard_whatever_is_next_to_ascii() {
        for text in
            ["plain", "e\u{301}a\u{308}x", "a\u{200d}b", "1\u{fe0f}\u{20e3}2", "\r\na\tb", "🇩🇪🇫🇷x", "日本 a"]
        {
            let expected: Vec<&str> = text.graphemes(true).collect();
            assert_eq!(graphemes(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn words_wrap_without_losing_a_letter() {
        assert_eq!(wrap_words("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_words("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap_words("日本語です", 4), ["日本", "語で", "す"]);
        assert_eq!(wrap_words("a\n\nb", 5), ["a", "", "b"]);
    }
}
