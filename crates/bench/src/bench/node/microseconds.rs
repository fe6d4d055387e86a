//! The latency as benchmarks of messaging tell it: in microseconds, from a histogram of bounded range.

use hdrhistogram::Histogram;

use crate::results::Record;
use crate::results::schema::node as columns;

/// The shortest and the longest time that the histogram tells apart, in microseconds.
const RANGE_US: [u64; 2] = [1, 10_000_000];
const DIGITS: u8 = 3;

/// A histogram from which nothing is left out: negative times count as 0, longer ones as the longest.
#[derive(Debug, Clone)]
pub(super) struct Microseconds {
    histogram: Histogram<u64>,
    out_of_range: u64,
}

impl Microseconds {
    /// Of samples in nanoseconds, each rounded to a microsecond.
    pub(super) fn of(samples_ns: &[i64]) -> Self {
        let [least, most] = RANGE_US;
        let histogram = Histogram::new_with_bounds(least, most, DIGITS);
        let mut microseconds = Microseconds {
            histogram: histogram.expect("the bounds and digits are within what is allowed"),
            out_of_range: 0,
        };
        for &sample in samples_ns {
            let time = u64::try_from(sample).unwrap_or(0);
            microseconds.out_of_range += u64::from(time > most * 1000);
            let time = time.saturating_add(500) / 1000;
            microseconds.histogram.saturating_record(time.min(most));
        }
        microseconds
    }

    /// Sets its figures; none without samples.
    pub(super) fn set(&self, record: &mut Record) {
        let some = |value| (!self.histogram.is_empty()).then_some(value);
        let at = |quantile| some(self.histogram.value_at_quantile(quantile).min(RANGE_US[1]));
        record
            .set(&columns::MIN_US, some(self.histogram.min()))
            .set(&columns::P50_US, at(0.5))
            .set(&columns::P95_US, at(0.95))
            .set(&columns::P99_US, at(0.99))
            .set(&columns::P999_US, at(0.999))
            .set(&columns::MAX_US, at(1.0))
            .set(
                &columns::MEAN_US,
                (!self.histogram.is_empty()).then(|| self.histogram.mean()),
            )
            .set(&columns::OUT_OF_RANGE, self.out_of_range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(samples_ns: &[i64]) -> Record {
        let mut record = Record::new();
        Microseconds::of(samples_ns).set(&mut record);
        record
    }

    #[test]
    fn three_digits_of_a_microsecond_and_more() {
        let samples: Vec<i64> = (1..=1000).map(|us| us * 1000 + 400).collect();
        let record = figures(&samples);
        let figure = |column: &crate::results::schema::Column| record.number(column.name).unwrap();
        assert_eq!(figure(&columns::MIN_US), 1.0);
        assert_eq!(figure(&columns::P50_US), 500.0);
        assert_eq!(figure(&columns::P95_US), 950.0);
        assert_eq!(figure(&columns::P99_US), 990.0);
        assert_eq!(figure(&columns::P999_US), 999.0);
        assert_eq!(figure(&columns::MAX_US), 1000.0);
        assert_eq!(figure(&columns::MEAN_US), 500.5);
        assert_eq!(figure(&columns::OUT_OF_RANGE), 0.0);
        assert_eq!(figures(&[]).number(columns::P50_US.name), None);
    }

    #[test]
    fn what_is_negative_or_too_long_counts_at_the_ends_of_the_range() {
        let record = figures(&[
            -5_000_000,
            i64::MIN,
            10_000_000_000,
            10_000_000_001,
            i64::MAX,
        ]);
        let figure = |column: &crate::results::schema::Column| record.number(column.name).unwrap();
        assert_eq!(figure(&columns::MIN_US), 0.0);
        assert_eq!(figure(&columns::MAX_US), 1e7);
        assert_eq!(figure(&columns::P50_US), 1e7);
        assert_eq!(figure(&columns::OUT_OF_RANGE), 2.0);
    }
}
