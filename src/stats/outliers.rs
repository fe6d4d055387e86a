//! Samples far from the rest, found by a measure that the far ones cannot move.
//!
//! The usual "three standard deviations from the mean" hides what it looks for: an outlier enlarges the standard
//! deviation, and among ten samples or fewer nothing can ever lie three deviations away. The median and the median
//! absolute deviation (MAD) stay where they are until half of the samples are far off. For normally distributed samples
//! one MAD is 0.6745 standard deviations.
//!
//! Outliers are counted, never removed: in a latency they are the finding.

use serde::Serialize;

use super::percentile::percentile_of_sorted;

/// The usual limit, in MADs: about 3.4 standard deviations of a normal distribution, one sample in 1300.
pub const DEFAULT_MADS: f64 = 5.0;

/// How many samples lie further than `mads` median absolute deviations from the median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outliers {
    /// The median of the samples, in nanoseconds.
    pub median_ns: f64,
    /// The median absolute deviation from it, in nanoseconds, unscaled.
    pub mad_ns: f64,
    /// The limit of the test, in MADs.
    pub mads: f64,
    /// Samples further below the median than the limit.
    pub low: u64,
    /// Samples further above the median than the limit.
    pub high: u64,
}

impl Outliers {
    /// Counts the outliers among `samples`, in any order, beyond `mads` times the MAD.
    ///
    /// `None` without samples, and when the MAD is zero: more than half of the samples are then equal, any other would
    /// count as far, and the test says nothing.
    pub fn of(samples: &[i64], mads: f64) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let median_ns = percentile_of_sorted(&sorted, 50.0)?;
        let mad_ns = median_absolute_deviation(&sorted)?;
        if mad_ns == 0.0 {
            return None;
        }
        let reach = mads * mad_ns;
        let low = sorted.partition_point(|&sample| (sample as f64) < median_ns - reach);
        let not_high = sorted.partition_point(|&sample| sample as f64 <= median_ns + reach);
        Some(Self {
            median_ns,
            mad_ns,
            mads,
            low: low as u64,
            high: (sorted.len() - not_high) as u64,
        })
    }

    /// Outliers on both sides.
    pub fn total(&self) -> u64 {
        self.low + self.high
    }
}

/// The median of the absolute distances from the median, in the samples' unit, for samples in ascending order.
///
/// `None` without samples.
pub fn median_absolute_deviation(sorted: &[i64]) -> Option<f64> {
    debug_assert!(sorted.is_sorted());
    let last = sorted.len().checked_sub(1)?;
    // Twice the median is an integer, so that all distances are exact when doubled.
    let double_median = i128::from(sorted[last / 2]) + i128::from(sorted[last.div_ceil(2)]);
    let mut double_distances: Vec<u128> = sorted
        .iter()
        .map(|&sample| (2 * i128::from(sample) - double_median).unsigned_abs())
        .collect();
    double_distances.sort_unstable();
    Some((double_distances[last / 2] + double_distances[last.div_ceil(2)]) as f64 / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_deviation() {
        // median 2, distances 1 1 0 0 2 4 7, sorted 0 0 1 1 2 4 7
        assert_eq!(median_absolute_deviation(&[1, 1, 2, 2, 4, 6, 9]), Some(1.0));
        // median 2.5, distances 1.5 0.5 0.5 1.5, their median 1
        assert_eq!(median_absolute_deviation(&[1, 2, 3, 4]), Some(1.0));
        assert_eq!(median_absolute_deviation(&[5]), Some(0.0));
        assert_eq!(median_absolute_deviation(&[]), None);
        assert_eq!(
            median_absolute_deviation(&[i64::MIN, i64::MAX]),
            Some((u64::MAX / 2) as f64)
        );
    }

    #[test]
    fn finds_what_three_standard_deviations_never_can() {
        let outliers = Outliers::of(&[100, 101, 99, 102, 98, 5000], DEFAULT_MADS).unwrap();
        assert_eq!((outliers.low, outliers.high, outliers.total()), (0, 1, 1));
    }

    #[test]
    fn both_sides_and_the_limit_itself_is_inside() {
        // median 10, distances 6 1 1 0 1 1 6 -> MAD 1
        let samples = [4, 9, 9, 10, 11, 11, 16];
        let at_limit = Outliers::of(&samples, 6.0).unwrap();
        assert_eq!((at_limit.mad_ns, at_limit.total()), (1.0, 0));
        let beyond = Outliers::of(&samples, 5.9).unwrap();
        assert_eq!((beyond.low, beyond.high), (1, 1));
    }

    #[test]
    fn says_nothing_when_most_samples_are_equal() {
        assert_eq!(Outliers::of(&[7, 7, 7, 7, 900], DEFAULT_MADS), None);
        assert_eq!(Outliers::of(&[], DEFAULT_MADS), None);
    }

    proptest! {
        #[test]
        fn equals_a_naive_count(samples in prop::collection::vec(-100_000_i64..100_000, 1..60), mads in 0.5..6.0_f64) {
            let median = |mut values: Vec<f64>| {
                values.sort_by(f64::total_cmp);
                let n = values.len();
                if n % 2 == 1 { values[n / 2] } else { (values[n / 2 - 1] + values[n / 2]) / 2.0 }
            };
            let values: Vec<f64> = samples.iter().map(|&s| s as f64).collect();
            let centre = median(values.clone());
            let mad = median(values.iter().map(|v| (v - centre).abs()).collect());
            let far = values.iter().filter(|&&v| v < centre - mads * mad || v > centre + mads * mad).count() as u64;
            match Outliers::of(&samples, mads) {
                None => prop_assert_eq!(mad, 0.0),
                Some(found) => {
                    prop_assert_eq!((found.median_ns, found.mad_ns), (centre, mad));
                    prop_assert_eq!(found.total(), far);
                }
            }
        }
    }
}
