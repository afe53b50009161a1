//! Lists to sort and sets to intersect, and how wrong a reply is.

/// Something to do with lists.
pub struct Task {
    pub prompt: String,
    right: Vec<i64>,
}

/// `count` lists of `length` numbers below 1000 to be sorted.
pub fn sorting(length: usize, count: usize) -> Vec<Task> {
    let mut chance = fastrand::Rng::with_seed(length as u64);
    let mut tasks = Vec::new();
    for _ in 0..count {
        let list: Vec<i64> = (0..length).map(|_| chance.i64(0..1000)).collect();
        let mut right = list.clone();
        right.sort_unstable();
        tasks.push(Task { prompt: format!("Sort ascending: {}", words(&list)), right });
    }
    tasks
}

/// `count` pairs of sets of `size` members to be intersected.
pub fn intersecting(size: usize, count: usize) -> Vec<Task> {
    let mut chance = fastrand::Rng::with_seed(1000 + size as u64);
    let mut tasks = Vec::new();
    for _ in 0..count {
        let mut numbers: Vec<i64> = (0..i64::try_from(size * 2).unwrap_or(i64::MAX)).collect();
        chance.shuffle(&mut numbers);
        let a = numbers[..size].to_vec();
        chance.shuffle(&mut numbers);
        let b = numbers[..size].to_vec();
        let mut right: Vec<i64> = a.iter().copied().filter(|number| b.contains(number)).collect();
        right.sort_unstable();
        tasks.push(Task { prompt: format!("Intersect: {} | {}", words(&a), words(&b)), right });
    }
    tasks
}

impl Task {
    /// How wrong a reply is: numbers that are missing, numbers too many, and neighbours in the wrong order.
    pub fn errors(&self, reply: &str) -> usize {
        let given: Vec<i64> = reply.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let disorder = given.windows(2).filter(|pair| pair[0] > pair[1]).count();
        let mut all: Vec<i64> = self.right.iter().chain(&given).copied().collect();
        all.sort_unstable();
        all.dedup();
        let count = |list: &[i64], number: i64| list.iter().filter(|other| **other == number).count();
        let off = all.iter().map(|number| count(&self.right, *number).abs_diff(count(&given, *number)));
        disorder + off.sum::<usize>()
    }
}

fn words(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_as_a_person_would() {
        let task = Task { prompt: String::new(), right: vec![1, 2, 2, 3] };
        for (reply, errors) in [
            ("1 2 2 3", 0),
            ("1 2 3", 1),
            ("1 2 2 2 3", 1),
            ("1 3 2 2", 1),
            ("", 4),
            ("9", 5),
            ("I cannot", 4),
        ] {
            assert_eq!(task.errors(reply), errors, "{reply}");
        }
    }
}
