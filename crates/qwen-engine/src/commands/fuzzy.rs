//! Fuzzy matching of suggestions.

/// A typed text that many names are compared with.
pub(super) struct Query {
    /// In lower case.
    typed: String,
}

impl Query {
    pub(super) fn new(typed: &str) -> Self {
        Self { typed: typed.to_lowercase() }
    }

    /// A score for `text` if the typed letters appear in it in order, in any case, higher is better; `None`
    /// otherwise. A prefix match scores higher than a contiguous match, which scores higher than scattered
    /// letters.
    pub(super) fn score(&self, text: &str) -> Option<i64> {
        if text.is_ascii() {
            // A large tree is compared for each key, so nothing is copied.
            return self.typed.is_ascii().then(|| score(self.typed.as_bytes(), text.as_bytes())).flatten();
        }
        score(self.typed.as_bytes(), text.to_lowercase().as_bytes())
    }
}

/// The score of bytes; `typed` is in lower case.
fn score(typed: &[u8], text: &[u8]) -> Option<i64> {
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX).min(1000);
    let Some(first) = typed.first() else { return Some(if text.is_empty() { 10_000 } else { 8_000 }) };
    let is_at = |place: usize| {
        text.get(place..place + typed.len()).is_some_and(|part| part.eq_ignore_ascii_case(typed))
    };
    if is_at(0) {
        return Some(if text.len() == typed.len() { 10_000 } else { 8_000 - length });
    }
    let starts_word = |place: usize| place == 0 || is_separator(text[place - 1]);
    let mut starts = (1..text.len()).filter(|place| text[*place].to_ascii_lowercase() == *first);
    if let Some(place) = starts.find(|place| is_at(*place)) {
        return Some(if starts_word(place) { 6_000 } else { 4_000 } - length);
    }
    let (mut gaps, mut last, mut from) = (0_i64, None, 0);
    for wanted in typed {
        let found = text[from..].iter().position(|letter| letter.to_ascii_lowercase() == *wanted)?;
        let place = from + found;
        // A continuation byte of a character is not a gap.
        gaps += i64::from(last.is_some_and(|last| place > last + 1) && !starts_word(place));
        last = Some(place);
        from = place + 1;
    }
    Some(2_000 - 20 * gaps - length)
}

/// True if a word may start after this byte. A byte of a character outside ASCII counts as a letter.
fn is_separator(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(typed: &str, text: &str) -> Option<i64> {
        Query::new(typed).score(text)
    }

    #[test]
    fn better_fits_score_higher() {
        let ranked = ["model", "model-x", "re-model", "remodel", "m-o-d-e-l", "mxoxdxexl"];
        for pair in ranked.windows(2) {
            assert!(score("model", pair[0]) > score("model", pair[1]), "{pair:?}");
        }
        assert_eq!(score("xyz", "model"), None);
        assert!(score("MOD", "model").is_some());
        assert!(score("", "anything").is_some());
    }

    #[test]
    fn letters_outside_ascii_match_in_any_case() {
        assert!(score("über", "docs/ÜBER.md") > score("über", "docs/ü-ber.md"));
        assert!(score("ÜM", "überm.md").is_some());
        assert_eq!(score("ö", "ü.md"), None);
        assert_eq!(score("é", "plain.md"), None);
    }
}
