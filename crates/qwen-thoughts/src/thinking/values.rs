//! Parses the values that a model assigns to candidates, in any of several formats.

/// The value of a candidate whose votes could not be read.
pub(crate) const NEUTRAL: f64 = 0.5;

/// The values of `count` candidates, from 0 to 1, as far as the answer contains them: `2: 7`, `2. 7/10`,
/// `Candidate 2 - likely`. A bare value is enough for a single candidate. Prose yields no value.
pub(crate) fn read_values(answer: &str, count: usize) -> Vec<Option<f64>> {
    let mut values = vec![None; count];
    for line in answer.lines() {
        if let Some((number, rest)) = numbered(line)
            && let Some(place) = number.checked_sub(1).and_then(|at| values.get_mut(at))
            && let Some(value) = value(rest)
        {
            *place = Some(value);
        }
    }
    if let [only] = values.as_mut_slice()
        && only.is_none()
    {
        *only = answer.lines().rev().find_map(bare_value);
    }
    values
}

/// The mean of the values that could be read; `None` if there are none.
pub(crate) fn mean(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, count) =
        values.into_iter().flatten().fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// The number at the start of a line, and the text after it.
fn numbered(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start_matches(|c: char| {
        !c.is_ascii_digit() && !c.is_ascii_punctuation() || "*-#([`".contains(c)
    });
    let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
    let number = line.get(..digits)?.parse().ok()?;
    let rest = line[digits..].trim_start_matches(['*', ')', ']', '`', ' ']);
    let rest = rest.strip_prefix([':', '.', '-', '=', '–'])?;
    Some((number, rest))
}

/// A value at the start of a text: a number from 0 to 10, or one of the known words.
fn value(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || "*`_:=".contains(c));
    let word: String = text.chars().take_while(|c| c.is_alphabetic()).collect();
    match word.to_ascii_lowercase().as_str() {
        "sure" | "certain" => return Some(1.0),
        "likely" => return Some(0.7),
        "unlikely" => return Some(0.3),
        "impossible" => return Some(0.0),
        "value" | "score" => return value(&text[word.len()..]),
        _ => {}
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].trim_end_matches('.').parse().ok()?;
    (0.0..=10.0).contains(&number).then_some(number / 10.0)
}

/// A value that is the only content of a line, or of the text after a colon.
fn bare_value(line: &str) -> Option<f64> {
    let text = line.rsplit(':').next()?.trim().trim_matches(['*', '`', '.']);
    let short = text.split_whitespace().count() == 1;
    short.then(|| value(text))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_however_they_are_dressed_up() {
        let some = |list: &[f64]| list.iter().copied().map(Some).collect::<Vec<_>>();
        for (answer, expected) in [
            ("1: 7\n2: 0\n3: 10", some(&[0.7, 0.0, 1.0])),
            ("1. 7\n2. 0.5\n3. 10", some(&[0.7, 0.05, 1.0])),
            ("- **1**: 7/10\n- **2**: sure\n- **3**: impossible", some(&[0.7, 1.0, 0.0])),
            ("Candidate 1: value 7\nCandidate 2: score: 3\nCandidate 3 = likely", some(&[0.7, 0.3, 0.7])),
            ("(1) - 7\n(2) - 2\n(3) - 1", some(&[0.7, 0.2, 0.1])),
            ("3: 1\n1: 2\nfirst things first\n4: 9\n0: 9", vec![Some(0.2), None, Some(0.1)]),
            ("1: 11\n2: -3\n3: many", vec![None, None, None]),
            ("I like them all.", vec![None, None, None]),
            ("", vec![None, None, None]),
        ] {
            assert_eq!(read_values(answer, 3), expected, "{answer}");
        }
    }

    #[test]
    fn one_candidate_needs_no_number() {
        for (answer, expected) in [
            ("7", Some(0.7)),
            ("I think so.\nValue: **8**", Some(0.8)),
            ("likely", Some(0.7)),
            ("It depends on 3 things", None),
        ] {
            assert_eq!(read_values(answer, 1), [expected], "{answer}");
        }
    }

    #[test]
    fn the_mean_counts_only_what_could_be_read() {
        assert_eq!(mean([Some(1.0), None, Some(0.0)]), Some(0.5));
        assert_eq!(mean([None, None]), None);
    }
}
