//! Lists of whole numbers, and how wrong they are.

/// The numbers in a text.
pub(super) fn read(text: &str) -> Vec<i64> {
    text.split(|c: char| c != '-' && !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

pub(super) fn write(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

/// The numbers that `all` has more often than `some`, in ascending order.
pub(super) fn missing(all: &[i64], some: &[i64]) -> Vec<i64> {
    let (mut all, mut some) = (all.to_vec(), some.to_vec());
    all.sort_unstable();
    some.sort_unstable();
    let mut some = some.into_iter().peekable();
    all.retain(|number| {
        while some.next_if(|other| other < number).is_some() {}
        some.next_if_eq(number).is_none()
    });
    all
}

/// Numbers that are missing, numbers too many, and neighbours in the wrong order.
pub(super) fn errors(right: &[i64], given: &[i64]) -> usize {
    let disorder = given.windows(2).filter(|pair| pair[0] > pair[1]).count();
    missing(right, given).len() + missing(given, right).len() + disorder
}

/// A score from 0 to 10 for so many errors, as the prompts ask; more errors are always worth less.
pub(super) fn score(errors: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a list has few errors")]
    let value = 10.0 / (1.0 + errors as f64);
    format!("{value:.4}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_as_a_person_would() {
        for (right, given, count) in [
            ("1 2 3", "1 2 3", 0),
            ("1 2 2 3", "1 2 3", 1),
            ("1 2 3", "1 2 2 3", 1),
            ("1 2 3", "1 3 2", 1),
            ("1 2 3", "", 3),
            ("", "4", 1),
            ("1 2 3", "7 8 9", 6),
        ] {
            assert_eq!(errors(&read(right), &read(given)), count, "{right} / {given}");
        }
    }

    #[test]
    fn numbers_are_read_out_of_any_words() {
        assert_eq!(read("Sort ascending: 5, -3 and 1."), [5, -3, 1]);
        assert_eq!(write(&[5, -3]), "5 -3");
    }
}
