//! The figures of one set of samples, as they are in a row of a results file.

use serde::Serialize;

use super::moments::Moments;
use super::percentile::percentile_of_sorted;

/// The limit of [`Summary::share_above_limit`]: 10 us.
pub const LIMIT_NS: i64 = 10_000;

/// The statistics of all samples of one set, in nanoseconds.
///
/// Extremes are the true ones. Percentiles follow [`percentile_of_sorted`]; with few samples the high ones are
/// essentially the maximum (see [`resolvable`](super::resolvable)).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Number of samples.
    pub count: u64,
    /// Number of samples below zero; more than none means that the clocks disagree.
    pub negative: u64,
    /// The smallest sample.
    pub min_ns: i64,
    /// The largest sample.
    pub max_ns: i64,
    /// The arithmetic mean.
    pub mean_ns: f64,
    /// The sample standard deviation (divisor n - 1); `None` for a single sample.
    pub stdev_ns: Option<f64>,
    /// The 10th percentile.
    pub p10_ns: f64,
    /// The median.
    pub p50_ns: f64,
    /// The 90th percentile.
    pub p90_ns: f64,
    /// The 95th percentile.
    pub p95_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The 99.9th percentile.
    pub p999_ns: f64,
    /// The 99.99th percentile.
    pub p9999_ns: f64,
    /// The share of samples (0 to 1) strictly above `LIMIT_NS`.
    pub share_above_limit: f64,
}

impl Summary {
    /// Summarises `samples`, in any order, `None` without samples.
    pub fn of(samples: &[i64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        Self::of_sorted(&sorted)
    }

    /// As [`of`](Self::of), for samples already in ascending order.
    pub fn of_sorted(sorted: &[i64]) -> Option<Self> {
        let (&min_ns, &max_ns) = (sorted.first()?, sorted.last()?);
        let moments = Moments::of(sorted);
        let above = sorted.len() - sorted.partition_point(|&sample| sample <= LIMIT_NS);
        let percentile = |percent| percentile_of_sorted(sorted, percent);
        Some(Self {
            count: sorted.len() as u64,
            negative: sorted.partition_point(|&sample| sample < 0) as u64,
            min_ns,
            max_ns,
            mean_ns: moments.mean()?,
            stdev_ns: moments.stdev(),
            p10_ns: percentile(10.0)?,
            p50_ns: percentile(50.0)?,
            p90_ns: percentile(90.0)?,
            p95_ns: percentile(95.0)?,
            p99_ns: percentile(99.0)?,
            p999_ns: percentile(99.9)?,
            p9999_ns: percentile(99.99)?,
            share_above_limit: above as f64 / sorted.len() as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_few_samples() {
        assert_eq!(Summary::of(&[]), None);
        let one = Summary::of(&[1234]).unwrap();
        assert_eq!((one.count, one.negative, one.stdev_ns), (1, 0, None));
        assert_eq!((one.min_ns, one.max_ns, one.mean_ns), (1234, 1234, 1234.0));
        assert_eq!((one.p10_ns, one.p9999_ns), (1234.0, 1234.0));
        let two = Summary::of(&[20, 10]).unwrap();
        assert_eq!((two.min_ns, two.max_ns), (10, 20));
        assert_eq!((two.p10_ns, two.p50_ns, two.p90_ns), (11.0, 15.0, 19.0));
        assert!((two.stdev_ns.unwrap() - 50.0_f64.sqrt()).abs() < 1e-12);
        let equal = Summary::of(&[700; 1000]).unwrap();
        assert_eq!(equal.stdev_ns, Some(0.0));
        assert_eq!((equal.p10_ns, equal.p999_ns), (700.0, 700.0));
    }

    #[test]
    fn one_to_a_hundred() {
        let samples: Vec<i64> = (1..=100).rev().collect();
        let summary = Summary::of(&samples).unwrap();
        assert_eq!(summary.mean_ns, 50.5);
        assert_eq!(summary.p50_ns, 50.5);
        // ranks 9.9, 89.1, 94.05, 98.01 and so on, over values that are rank + 1
        for (got, expected) in [
            (summary.p10_ns, 10.9),
            (summary.p90_ns, 90.1),
            (summary.p95_ns, 95.05),
            (summary.p99_ns, 99.01),
            (summary.p999_ns, 99.901),
            (summary.p9999_ns, 99.9901),
        ] {
            assert!((got - expected).abs() < 1e-9, "{got} instead of {expected}");
        }
        assert_eq!(summary.share_above_limit, 0.0);
    }

    #[test]
    fn negative_samples_stay_and_extremes_do_not_overflow() {
        let summary = Summary::of(&[-300, 100, -1, 0]).unwrap();
        assert_eq!((summary.negative, summary.min_ns), (2, -300));
        assert_eq!(summary.mean_ns, -50.25);
        let summary = Summary::of(&[i64::MIN, 0, i64::MAX]).unwrap();
        assert_eq!((summary.min_ns, summary.max_ns), (i64::MIN, i64::MAX));
        assert_eq!(summary.p50_ns, 0.0);
        assert!(summary.stdev_ns.unwrap().is_finite());
    }

    #[test]
    fn the_limit_itself_is_not_above() {
        let samples = [9_999, 10_000, 10_001, 10_001];
        assert_eq!(Summary::of(&samples).unwrap().share_above_limit, 0.5);
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_shares_agree(
            mut samples in prop::collection::vec(prop_oneof![any::<i64>(), 9_990_i64..10_010], 1..100),
        ) {
            let summary = Summary::of(&samples).unwrap();
            let above = samples.iter().filter(|sample| **sample > LIMIT_NS).count();
            prop_assert_eq!(summary.share_above_limit, above as f64 / samples.len() as f64);
            prop_assert_eq!(summary.negative, samples.iter().filter(|s| s.is_negative()).count() as u64);
            prop_assert_eq!(Some(&summary.max_ns), samples.iter().max());
            prop_assert_eq!(Some(&summary.min_ns), samples.iter().min());
            samples.reverse();
            prop_assert_eq!(Summary::of(&samples).unwrap(), summary);
        }
    }
}
