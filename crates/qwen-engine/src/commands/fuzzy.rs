//! Fuzzy matching of suggestions.

/// A score for `text` if the letters of `typed` appear in it in order, higher is better; `None` otherwise. A
/// prefix match scores higher than a contiguous match, which scores higher than scattered letters.
pub(super) fn score(typed: &str, text: &str) -> Option<i64> {
    let (typed, text) = (typed.to_lowercase(), text.to_lowercase());
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX).min(1000);
    if text == typed {
        return Some(10_000);
    }
    if text.starts_with(&typed) {
        return Some(8_000 - if typed.is_empty() { 0 } else { length });
    }
    let after = |place: usize| text[..place].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
    if let Some(place) = text.find(&typed) {
        return Some(if after(place) { 6_000 } else { 4_000 } - length);
    }
    let mut letters = text.char_indices();
    let (mut gaps, mut last) = (0_i64, None);
    for wanted in typed.chars() {
        let (place, _) = letters.find(|(_, letter)| *letter == wanted)?;
        let jumped = last.is_some_and(|last| place > last + 1);
        gaps += i64::from(jumped && !after(place));
        last = Some(place);
    }
    Some(2_000 - 20 * gaps - length)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
