//! How an oracle goes wrong with lists: rarely with short ones, ever more with long ones.

use super::random::SeededRandom;

/// An error rate for each number of a list, which grows with the list's length and never beyond `most`. The
/// constants of the oracles are such that one try at the usual sizes has about as many errors as the
/// published runs.
pub(super) struct ErrorRate {
    /// The rate for endless lists.
    pub most: f64,
    /// The length at which half of that is reached.
    pub half_at: f64,
}

impl ErrorRate {
    #[expect(clippy::cast_precision_loss, reason = "lists are short")]
    fn at(&self, length: usize) -> f64 {
        let square = (length as f64).powi(2);
        self.most * square / (square + self.half_at.powi(2))
    }

    /// Spoils a list of ascending numbers: now and then one is lost or written twice. `share` of the usual
    /// rate.
    pub fn inject_errors(&self, numbers: &[i64], share: f64, random: &mut SeededRandom) -> Vec<i64> {
        let rate = self.at(numbers.len()) * share;
        let mut spoilt = Vec::with_capacity(numbers.len() + 4);
        for number in numbers {
            if !random.happens(rate) {
                spoilt.push(*number);
            } else if random.happens(0.5) {
                spoilt.extend([*number, *number]);
            }
        }
        spoilt
    }
}

/// Tries to repair `given`: one error at most is found, and sometimes a new one is made, more often in long
/// lists.
pub(super) fn repair(right: &[i64], given: &[i64], random: &mut SeededRandom) -> Vec<i64> {
    let mut list = given.to_vec();
    list.sort_unstable();
    if random.happens(0.6) {
        let lost = super::numbers::missing(right, &list);
        let surplus = super::numbers::missing(&list, right);
        if let Some(number) = random.pick(&lost) {
            list.push(*number);
            list.sort_unstable();
        } else if let Some(number) = random.pick(&surplus)
            && let Some(at) = list.iter().position(|other| other == number)
        {
            list.remove(at);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "lists are short")]
    let slip = 0.2 * list.len() as f64 / 64.0;
    if !list.is_empty() && random.happens(slip.min(0.9)) {
        list.remove(random.next_below(list.len()));
    }
    list
}
