//! The word that was perhaps meant.

/// The one of `words` that `word` is a likely misspelling of.
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

/// How many letters have to be changed, added, left out or swapped.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    let mut before = None;
    for (i, letter) in a.chars().enumerate() {
        let [two_up, up, row] = &mut rows;
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            row[j + 1] = (up[j] + usize::from(letter != *other)).min(up[j + 1] + 1).min(row[j] + 1);
            let swapped = j > 0 && before == Some(*other) && b[j - 1] == letter;
            if swapped {
                row[j + 1] = row[j + 1].min(two_up[j - 1] + 1);
            }
        }
        before = Some(letter);
        rows.rotate_left(1);
    }
    rows[1][b.len()]
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
