//! Reproducible random numbers.

/// Random numbers derived from a seed and a text.
pub(super) struct SeededRandom(fastrand::Rng);

impl SeededRandom {
    /// Random numbers for `text`.
    pub fn new(seed: u64, text: &str) -> Self {
        // FNV-1a: the hashes of the standard library are not guaranteed to be stable.
        let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash =
            text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Self(fastrand::Rng::with_seed(hash))
    }

    /// True with the probability `p`.
    pub fn happens(&mut self, p: f64) -> bool {
        self.0.f64() < p
    }

    /// A number below `limit`, which is not 0.
    pub fn next_below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    /// One of `list`, if there is one.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        if list.is_empty() { None } else { list.get(self.next_below(list.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_from_seed_and_text_alone() {
        let draws = |seed, text| {
            let mut random = SeededRandom::new(seed, text);
            (0..8).map(|_| random.next_below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, "a"), draws(1, "a"));
        assert_ne!(draws(1, "a"), draws(2, "a"));
        assert_ne!(draws(1, "a"), draws(1, "b"));
    }
}
