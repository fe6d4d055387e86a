//! The differences between readings as a distribution, in ticks.

use std::collections::BTreeMap;

use super::recorder::CountingRecorder;
use crate::results::schema::clock as schema;
use crate::stats::LatencyHistogram;

/// How often each difference occurred.
#[derive(Debug, Clone, Default)]
pub(super) struct Distribution {
    counts: BTreeMap<u64, u64>,
    total: u64,
    pub exact: bool,
    /// Where it is not, small values are multiples of so many ticks, rounded down; larger ones are to three digits.
    pub step: u64,
}

/// The percentiles that are reported, in ascending order.
pub(super) fn percentiles() -> impl Iterator<Item = f64> {
    schema::PERCENTILES.iter().map(|(percent, _)| *percent)
}

impl Distribution {
    /// Of differences that were all kept.
    pub(super) fn of(differences: impl Iterator<Item = u64>) -> Self {
        const DIRECT: usize = 1 << 16;
        let mut direct = vec![0_u64; DIRECT];
        let mut distribution = Distribution {
            exact: true,
            step: 1,
            ..Distribution::default()
        };
        for difference in differences {
            match direct.get_mut(usize::try_from(difference).unwrap_or(usize::MAX)) {
                Some(count) => *count += 1,
                None => distribution.add(difference, 1),
            }
        }
        for (value, &count) in direct.iter().enumerate() {
            distribution.add(value as u64, count);
        }
        distribution
    }

    /// Of differences that were counted.
    pub(super) fn of_counted(counted: &CountingRecorder) -> Self {
        let (direct, above) = counted.parts();
        let mut distribution = Distribution {
            exact: above.count() == 0 && counted.step() == 1,
            step: counted.step(),
            ..Distribution::default()
        };
        for (value, &count) in direct.iter().enumerate() {
            distribution.add(value as u64 * counted.step(), count);
        }
        let largest = above.max_ns().unwrap_or(0) as u64;
        for (value, count) in above.buckets() {
            distribution.add(value.min(largest), count);
        }
        distribution
    }

    fn add(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        *self.counts.entry(value).or_default() += count;
        self.total += count;
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.total
    }

    pub(super) fn min(&self) -> Option<u64> {
        self.counts.keys().next().copied()
    }

    pub(super) fn max(&self) -> Option<u64> {
        self.counts.keys().next_back().copied()
    }

    /// The smallest difference that at least so many percent of all do not exceed (nearest rank: no interpolation
    /// between ticks).
    pub(super) fn percentile(&self, percent: f64) -> Option<u64> {
        // 99.99 / 100 is a little above 0.9999 in binary; the margin is far below one sample.
        let rank = ((self.total as f64) * (percent / 100.0) * (1.0 - 1e-12)).ceil() as u64;
        let rank = rank.clamp(1, self.total.max(1));
        let mut passed = 0;
        self.counts
            .iter()
            .find(|(_, count)| {
                passed += **count;
                passed >= rank
            })
            .map(|(&value, _)| value)
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().map(|(&value, &count)| (value, count))
    }

    /// The same as a histogram in nanoseconds, of which so many make a tick.
    pub(super) fn histogram(&self, nanos_per_tick: f64) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for (&value, &count) in &self.counts {
            histogram.record_many((value as f64 * nanos_per_tick).round() as i64, count);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clock::recorder::Recorder;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_differences_that_occurred() {
        let distribution = Distribution::of((1..=1000).rev());
        assert!(distribution.exact);
        let at = [0.0, 50.0, 99.0, 99.9, 99.99, 100.0];
        let found = at.map(|percent| distribution.percentile(percent).unwrap());
        assert_eq!(found, [1, 500, 990, 999, 1000, 1000]);
        assert_eq!(distribution.min(), Some(1));
        assert_eq!(distribution.max(), Some(1000));
        let one = Distribution::of(std::iter::once(1 << 40));
        assert!(percentiles().all(|percent| one.percentile(percent) == Some(1 << 40)));
        assert_eq!(Distribution::of(std::iter::empty()).percentile(50.0), None);
    }

    proptest! {
        #[test]
        fn counted_and_kept_agree(differences in prop::collection::vec(prop_oneof![0_u64..5000, 4000_u64..10_000_000_000], 1..300)) {
            let mut counted = CountingRecorder::default();
            differences.iter().for_each(|&difference| counted.record(difference));
            let counted = Distribution::of_counted(&counted);
            let all = Distribution::of(differences.iter().copied());
            prop_assert_eq!(counted.count(), all.count());
            prop_assert_eq!(counted.max(), all.max());
            for percent in percentiles() {
                let (rough, exact) = (counted.percentile(percent).unwrap(), all.percentile(percent).unwrap());
                prop_assert!(rough >= exact && rough as f64 <= exact as f64 * 1.001 + 1.0);
                prop_assert!(exact >= 4096 || rough == exact);
            }
            prop_assert_eq!(all.histogram(1.0).count(), all.count());
        }
    }
}
