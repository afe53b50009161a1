//! Medians and percentiles.

/// The value that a share of `at` (0 to 1) of the samples does not exceed; 0 of none.
pub fn percentile(samples: &mut [f64], at: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index into a list that fits in memory, from a share between 0 and 1"
    )]
    let rank = (samples.len() as f64 * at).ceil() as usize;
    samples.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

pub fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    percentile(&mut samples.into_iter().collect::<Vec<_>>(), 0.5)
}

#[cfg(test)]
mod tests {
    use super::{median, percentile};

    #[test]
    fn percentiles_are_samples() {
        let mut samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (at, wanted) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            assert!((percentile(&mut samples, at) - wanted).abs() < f64::EPSILON, "{at}");
        }
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median([]).abs() < f64::EPSILON);
    }
}
