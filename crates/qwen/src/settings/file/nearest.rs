//! Suggestions for misspelt words.

pub use strsim::osa_distance as distance;

/// The entry of `words` that `word` most likely misspells.
pub fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let same = |known: &&str| known.eq_ignore_ascii_case(word);
    let words: Vec<&str> = words.into_iter().collect();
    if let Some(known) = words.iter().find(|known| same(known)) {
        return Some(known);
    }
    let limit = (word.chars().count() / 2).clamp(1, 3);
    words
        .iter()
        .map(|known| (distance(word, known), *known))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_understood_and_another_word_is_not() {
        let words = ["name", "baseUrl", "maxRetries", "allow", "deny"];
        for (word, expected) in [
            ("nmae", Some("name")),
            ("baseURL", Some("baseUrl")),
            ("maxRetry", Some("maxRetries")),
            ("alow", Some("allow")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
