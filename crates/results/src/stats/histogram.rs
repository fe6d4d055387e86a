//! A distribution in bounded memory: every value from 1 ns to 292 years to three significant digits.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::moments::Moments;

/// Significant decimal digits that a bucket keeps: two values in one bucket differ by at most 0.1 %.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// A high dynamic range histogram of samples in nanoseconds, with what such a histogram cannot hold kept beside it.
///
/// It grows by itself, takes at most about half a megabyte, and never saturates. A histogram of this kind has no place
/// for values below zero: they are counted apart and are in none of the percentiles. Maximum, mean and standard
/// deviation are those of the samples themselves, not of the buckets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LatencyHistogram {
    #[serde(rename = "counts", with = "counts")]
    buckets: Histogram<u64>,
    moments: Moments,
    max: Option<i64>,
    negative: u64,
}

/// Buckets as they are passed on: the values that they hold, with their counts.
mod counts {
    use hdrhistogram::Histogram;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        buckets: &Histogram<u64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let recorded = buckets.iter_recorded();
        to.collect_seq(recorded.map(|step| (step.value_iterated_to(), step.count_at_value())))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Histogram<u64>, D::Error> {
        let mut histogram = super::LatencyHistogram::new();
        for (value, count) in Vec::<(u64, u64)>::deserialize(from)? {
            let recorded = histogram.buckets.record_n(value, count);
            recorded.map_err(D::Error::custom)?;
        }
        Ok(histogram.buckets)
    }
}

/// One step of a walk through the percentiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PercentilePoint {
    /// The largest value that counts here, in nanoseconds: the upper end of its bucket, or the largest sample itself.
    pub value_ns: u64,
    /// The percentile level of this step, as a fraction from 0 to 1.
    pub quantile: f64,
    /// How many samples do not exceed `value_ns`.
    pub count: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self {
            buckets: Histogram::new(SIGNIFICANT_DIGITS)
                .expect("three digits are within the allowed one to five"),
            moments: Moments::default(),
            max: None,
            negative: 0,
        }
    }

    /// An empty histogram with all the memory that it can come to need, half a megabyte: recording allocates nothing.
    pub fn presized() -> Self {
        let mut buckets = Histogram::new_with_bounds(1, i64::MAX as u64, SIGNIFICANT_DIGITS)
            .expect("three digits are within the allowed one to five");
        // Touches all of it, so that recording causes no page fault either.
        buckets.reset();
        Self {
            buckets,
            ..Self::new()
        }
    }

    /// The histogram of all `samples`.
    pub fn of(samples: &[i64]) -> Self {
        let mut histogram = Self::new();
        samples.iter().for_each(|&sample| histogram.record(sample));
        histogram
    }

    /// Records one sample in nanoseconds; one below zero is only counted.
    pub fn record(&mut self, sample: i64) {
        let Ok(value) = u64::try_from(sample) else {
            self.negative += 1;
            return;
        };
        self.buckets
            .record(value)
            .expect("the buckets grow up to the largest i64");
        self.moments.record(sample);
        self.max = self.max.max(Some(sample));
    }

    /// Records `count` samples that are all the same; below zero they are only counted.
    pub fn record_many(&mut self, sample: i64, count: u64) {
        if count == 0 {
            return;
        }
        let Ok(value) = u64::try_from(sample) else {
            self.negative += count;
            return;
        };
        self.buckets
            .record_n(value, count)
            .expect("the buckets grow up to the largest i64");
        self.moments.merge(&Moments::repeated(sample, count));
        self.max = self.max.max(Some(sample));
    }

    /// Adds everything that `other` has recorded.
    pub fn merge(&mut self, other: &Self) {
        self.buckets
            .add(&other.buckets)
            .expect("the buckets grow up to the largest i64");
        self.moments.merge(&other.moments);
        self.negative += other.negative;
        self.max = self.max.max(other.max);
    }

    /// Samples in the distribution: those from zero up.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Samples below zero, which are not in the distribution.
    pub fn negative(&self) -> u64 {
        self.negative
    }

    /// The largest sample of the distribution, exactly; `None` when it is empty.
    pub fn max_ns(&self) -> Option<i64> {
        self.max
    }

    /// The mean of the distribution, exactly; `None` when it is empty.
    pub fn mean_ns(&self) -> Option<f64> {
        self.moments.mean()
    }

    /// The sample standard deviation of the distribution; `None` for fewer than two samples.
    pub fn stdev_ns(&self) -> Option<f64> {
        self.moments.stdev()
    }

    /// Walks from the smallest value to the largest in percentile levels whose distance halves with each halving of the
    /// distance to 100 %, `ticks` steps each; the last step is at exactly 100 %. Empty for an empty distribution.
    ///
    /// # Panics
    /// When `ticks` is zero.
    pub fn percentiles(&self, ticks: u32) -> impl Iterator<Item = PercentilePoint> + '_ {
        let max = self.max_ns().unwrap_or(0) as u64;
        let mut count = 0;
        self.buckets.iter_quantiles(ticks).map(move |step| {
            count += step.count_since_last_iteration();
            PercentilePoint {
                value_ns: step.value_iterated_to().min(max),
                quantile: step.quantile_iterated_to(),
                count,
            }
        })
    }

    /// Walks over the buckets that hold samples, in ascending order: the upper end of each in nanoseconds and the
    /// number of samples in it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// Its buckets, for a format that takes them as they are.
    pub(crate) fn as_buckets(&self) -> &Histogram<u64> {
        &self.buckets
    }

    /// The number of power-of-two ranges that the histogram has grown to.
    pub fn ranges(&self) -> u8 {
        self.buckets.buckets()
    }

    /// The number of equal parts of a range, a power of two that keeps the promised digits.
    pub fn parts_of_a_range(&self) -> u64 {
        (2 * 10_u64.pow(u32::from(SIGNIFICANT_DIGITS))).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_sample_of_every_magnitude_and_none() {
        for sample in [0, 1, 2047, 2048, 123_456_789, i64::MAX] {
            let histogram = LatencyHistogram::of(&[sample]);
            assert_eq!((histogram.count(), histogram.max_ns()), (1, Some(sample)));
            let last = histogram.percentiles(5).last().unwrap();
            let found = (last.value_ns, last.quantile, last.count);
            assert_eq!(found, (sample as u64, 1.0, 1));
        }
        let empty = LatencyHistogram::default();
        assert_eq!((empty.count(), empty.negative()), (0, 0));
        assert_eq!((empty.max_ns(), empty.mean_ns()), (None, None));
        assert_eq!(empty.percentiles(5).count(), 0);
    }

    #[test]
    fn negative_samples_are_counted_apart() {
        let histogram = LatencyHistogram::of(&[-5, 10, i64::MIN, 20]);
        assert_eq!((histogram.count(), histogram.negative()), (2, 2));
        let figures = (histogram.max_ns(), histogram.mean_ns());
        assert_eq!(figures, (Some(20), Some(15.0)));
    }

    #[test]
    fn many_at_once_are_the_same_as_one_by_one() {
        let mut at_once = LatencyHistogram::presized();
        let mut one_by_one = LatencyHistogram::new();
        for (sample, count) in [(40, 7), (5_000_000, 2), (-3, 4), (42, 0)] {
            at_once.record_many(sample, count);
            (0..count).for_each(|_| one_by_one.record(sample));
        }
        assert_eq!(at_once.count(), one_by_one.count());
        assert_eq!(at_once.negative(), one_by_one.negative());
        assert_eq!(at_once.mean_ns(), one_by_one.mean_ns());
        assert!((at_once.stdev_ns().unwrap() / one_by_one.stdev_ns().unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(at_once.max_ns(), one_by_one.max_ns());
        assert!(at_once.buckets().eq(one_by_one.buckets()));
    }

    proptest! {
        #[test]
        fn values_keep_three_digits(samples in prop::collection::vec(0_i64..10_000_000_000, 1..500)) {
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let histogram = LatencyHistogram::of(&samples);
            for point in histogram.percentiles(5) {
                // Whatever the level, the counted samples and the value belong together.
                let exact = sorted[point.count as usize - 1] as u64;
                prop_assert!(point.value_ns >= exact);
                prop_assert!(point.value_ns as f64 <= exact as f64 * 1.001 + 1.0);
                prop_assert!(point.count as f64 >= point.quantile * samples.len() as f64 - 1e-6);
            }
            prop_assert_eq!(histogram.max_ns(), sorted.last().copied());
        }

        #[test]
        fn merging_equals_recording_all(
            left in prop::collection::vec(-10_i64..10_000_000, 0..100),
            right in prop::collection::vec(any::<i64>(), 0..100),
        ) {
            let mut merged = LatencyHistogram::of(&left);
            merged.merge(&LatencyHistogram::of(&right));
            let whole = LatencyHistogram::of(&[left, right].concat());
            prop_assert_eq!(merged.negative(), whole.negative());
            prop_assert_eq!(merged.max_ns(), whole.max_ns());
            prop_assert_eq!(merged.percentiles(5).collect::<Vec<_>>(), whole.percentiles(5).collect::<Vec<_>>());
        }
    }
}
