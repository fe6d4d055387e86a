//! Mean and standard deviation of a stream of samples, without keeping them.
//!
//! The sum is an exact integer. The squared deviations are gathered by Welford's recurrence ("Note on a method for
//! calculating corrected sums of squares and products", 1962), over the distance from the first sample, so that time
//! stamps near 2^63 with a spread of a few nanoseconds lose no digit; two streams are joined by the formula of Chan,
//! Golub and LeVeque (1979).

use serde::{Deserialize, Serialize};

/// Running count, sum and squared deviations of samples in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Moments {
    count: u64,
    origin: i64,
    sum: i128,
    running_mean: f64,
    squares: f64,
}

impl Moments {
    pub(super) fn of(samples: &[i64]) -> Self {
        let mut moments = Self::default();
        samples.iter().for_each(|&sample| moments.record(sample));
        moments
    }

    /// The moments of `count` samples that are all the same.
    pub(super) fn repeated(sample: i64, count: u64) -> Self {
        Self {
            count,
            origin: sample,
            sum: i128::from(sample) * i128::from(count),
            ..Self::default()
        }
    }

    pub(super) fn record(&mut self, sample: i64) {
        if self.count == 0 {
            self.origin = sample;
        }
        self.count += 1;
        self.sum += i128::from(sample);
        let distance = (i128::from(sample) - i128::from(self.origin)) as f64;
        let before = distance - self.running_mean;
        self.running_mean += before / self.count as f64;
        self.squares += before * (distance - self.running_mean);
    }

    /// Adds all samples that `other` has seen.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let origins_apart = (i128::from(other.origin) - i128::from(self.origin)) as f64;
        let apart = origins_apart + other.running_mean - self.running_mean;
        let together = ours + theirs;
        self.running_mean += apart * theirs / together;
        self.squares += other.squares + apart * apart * ours * theirs / together;
        self.count += other.count;
        self.sum += other.sum;
    }

    /// The arithmetic mean in nanoseconds; `None` without samples.
    pub(super) fn mean(&self) -> Option<f64> {
        let count = i128::from(self.count);
        (count > 0).then(|| {
            let (whole, rest) = (self.sum.div_euclid(count), self.sum.rem_euclid(count));
            whole as f64 + rest as f64 / count as f64
        })
    }

    /// The sample standard deviation (divisor n - 1) in nanoseconds; `None` for fewer than two samples, which have
    /// none.
    pub(super) fn stdev(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares.max(0.0) / (self.count - 1) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn none_where_there_is_no_figure() {
        assert_eq!(Moments::default().mean(), None);
        assert_eq!(Moments::of(&[3]).mean(), Some(3.0));
        assert_eq!(Moments::of(&[3]).stdev(), None);
        assert_eq!(Moments::of(&[3, 3]).stdev(), Some(0.0));
        // Mean 5, squared deviations 32.
        let known = Moments::of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((known.count, known.mean()), (8, Some(5.0)));
        assert!((known.stdev().unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_small_spread_on_a_huge_offset_keeps_its_digits() {
        let far = 1_760_000_000_000_000_000;
        let moments = Moments::of(&[far + 1, far + 2, far + 3, far + 4]);
        assert!((moments.stdev().unwrap() - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn extremes_of_i64() {
        let moments = Moments::of(&[i64::MIN, i64::MAX]);
        assert_eq!(moments.mean(), Some(-0.5));
        let expected = 2_f64.powi(64) / 2_f64.sqrt();
        assert!((moments.stdev().unwrap() / expected - 1.0).abs() < 1e-12);
    }

    /// n * sum of squares - (sum)^2, over n (n - 1), all in integers.
    fn exact_stdev(samples: &[i64]) -> f64 {
        let n = samples.len() as i128;
        let sum: i128 = samples.iter().map(|&s| i128::from(s)).sum();
        let squares: i128 = samples.iter().map(|&s| i128::from(s).pow(2)).sum();
        ((n * squares - sum * sum) as f64 / (n * (n - 1)) as f64).sqrt()
    }

    proptest! {
        #[test]
        fn equals_exact_integer_arithmetic(
            samples in prop::collection::vec(-10_000_000_000_i64..10_000_000_000, 2..300),
        ) {
            let exact = exact_stdev(&samples);
            let got = Moments::of(&samples).stdev().unwrap();
            prop_assert!((got - exact).abs() <= 1e-9 * exact, "{} instead of {}", got, exact);
            let mean = samples.iter().map(|&s| i128::from(s)).sum::<i128>() as f64 / samples.len() as f64;
            prop_assert!((Moments::of(&samples).mean().unwrap() - mean).abs() <= mean.abs() * 1e-14 + 1e-9);
        }

        #[test]
        fn merging_equals_recording_all(
            left in prop::collection::vec(-1_000_000_i64..1_000_000_000, 0..100),
            right in prop::collection::vec(-1_000_000_i64..1_000_000_000, 0..100),
        ) {
            let mut merged = Moments::of(&left);
            merged.merge(&Moments::of(&right));
            let whole = Moments::of(&[left, right].concat());
            prop_assert_eq!(merged.count, whole.count);
            prop_assert_eq!(merged.mean(), whole.mean());
            match (merged.stdev(), whole.stdev()) {
                (Some(a), Some(b)) => prop_assert!((a - b).abs() <= 1e-9 * b, "{} and {}", a, b),
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }
}
