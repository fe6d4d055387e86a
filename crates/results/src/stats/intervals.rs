//! Samples by the time at which they were taken: how their distribution changed within a run.
//!
//! A sample belongs to the interval in which the time that it measures begins: a latency to that in which its message
//! was sent, a latency from the intended time to that in which it was meant to be sent. Intervals follow one another
//! without a gap, from the first of these moments to the last, or from the beginning to the end of what was measured,
//! where that is known; those without a sample are empty.

use std::time::Duration;

use super::histogram::LatencyHistogram;

/// Runs from this length on are divided without being asked.
pub const DIVIDED_FROM: Duration = Duration::from_secs(60);
/// The length of their intervals.
pub const USUAL_INTERVAL: Duration = Duration::from_secs(1);
/// A run has no more intervals than this: those of a longer one are as many times as long.
pub const MOST_INTERVALS: u64 = 3600;
/// The shortest length that is given for an interval: a log has milliseconds.
const SHORTEST_NS: u64 = 1_000_000;

/// The length of the intervals of a run of that length, where it is divided. `asked`: what the user asked for.
pub fn interval_of(run: Duration, asked: Option<Duration>) -> Option<Duration> {
    asked.or((run >= DIVIDED_FROM).then_some(USUAL_INTERVAL))
}

/// Samples, each with the moment at which it began.
#[derive(Debug, Clone, Default)]
pub struct TimedSamples {
    /// Moments and samples, both in nanoseconds.
    all: Vec<(u64, i64)>,
    /// From when to when was measured, in nanoseconds, where that is known.
    span_ns: Option<[u64; 2]>,
}

/// A part of a run.
#[derive(Debug, Clone)]
pub struct Interval {
    /// When it began, in nanoseconds on the clock of the moments.
    pub begin_ns: u64,
    /// How long it was, in nanoseconds.
    pub length_ns: u64,
    /// Its samples.
    pub histogram: LatencyHistogram,
}

/// Samples in the order of their moments, and the intervals that these fall into.
#[derive(Debug)]
pub struct DividedSamples<'a> {
    ordered: &'a [(u64, i64)],
    begin_ns: u64,
    /// No moment is at it or behind it.
    end_ns: u64,
    length_ns: u64,
}

impl TimedSamples {
    /// Bytes of a sample.
    pub const BYTES: u64 = size_of::<(u64, i64)>() as u64;

    /// None yet; they were taken from one moment to another, in nanoseconds.
    pub fn within(begin_ns: u64, end_ns: u64) -> Self {
        TimedSamples {
            all: Vec::new(),
            span_ns: Some([begin_ns, end_ns]),
        }
    }

    /// Adds a sample and the moment at which it began, both in nanoseconds.
    pub fn push(&mut self, moment_ns: u64, sample_ns: i64) {
        self.all.push((moment_ns, sample_ns));
    }

    /// The samples without their moments, in nanoseconds.
    pub fn samples(&self) -> impl Iterator<Item = i64> + '_ {
        self.all.iter().map(|&(_, sample)| sample)
    }

    /// Divides them into intervals of this length, or a multiple of it where these would be too many. `None` where
    /// there is neither a sample nor a time in which they would have been taken.
    pub fn divided(&mut self, length: Duration) -> Option<DividedSamples<'_>> {
        self.all.sort_unstable_by_key(|(moment, _)| *moment);
        let ends = (self.all.first().zip(self.all.last()))
            .map(|(first, last)| [first.0, last.0.saturating_add(1)]);
        let [begin_ns, end_ns] = match (ends, self.span_ns) {
            (Some(ends), Some(span)) => [ends[0].min(span[0]), ends[1].max(span[1])],
            (ends, span) => ends.or(span)?,
        };
        let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let length = length.max(SHORTEST_NS);
        let span = end_ns.saturating_sub(begin_ns).max(1);
        let times = (span - 1) / length / MOST_INTERVALS + 1;
        Some(DividedSamples {
            ordered: &self.all,
            begin_ns,
            end_ns: begin_ns.saturating_add(span),
            length_ns: length.saturating_mul(times),
        })
    }
}

impl FromIterator<(u64, i64)> for TimedSamples {
    /// Of moments and samples, both in nanoseconds.
    fn from_iter<All: IntoIterator<Item = (u64, i64)>>(all: All) -> Self {
        TimedSamples {
            all: all.into_iter().collect(),
            span_ns: None,
        }
    }
}

impl DividedSamples<'_> {
    /// The length of an interval, in nanoseconds; the last may be shorter.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// The number of intervals, empty ones included.
    pub fn count(&self) -> u64 {
        (self.end_ns - self.begin_ns)
            .div_ceil(self.length_ns)
            .max(1)
    }

    /// Samples that an interval has: those from zero up.
    pub fn samples(&self) -> u64 {
        self.ordered.len() as u64 - self.negative()
    }

    /// Samples below zero, which are in no interval.
    pub fn negative(&self) -> u64 {
        let below = self.ordered.iter().filter(|(_, sample)| *sample < 0);
        below.count() as u64
    }

    /// The intervals one after another, empty ones included; one of them is in memory at a time.
    pub fn iter(&self) -> impl Iterator<Item = Interval> + '_ {
        let mut rest = self.ordered;
        (0..self.count()).map(move |place| {
            let begin_ns = self.begin_ns + place * self.length_ns;
            let is_own = |(moment, _): &(u64, i64)| moment - begin_ns < self.length_ns;
            let (own, others) = rest.split_at(rest.partition_point(is_own));
            rest = others;
            let mut histogram = LatencyHistogram::new();
            own.iter().for_each(|&(_, sample)| histogram.record(sample));
            Interval {
                begin_ns,
                length_ns: (self.length_ns)
                    .clamp(SHORTEST_NS, (self.end_ns - begin_ns).max(SHORTEST_NS)),
                histogram,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn divided(samples: &[(u64, i64)], length: Duration) -> Vec<(u64, u64, u64, Option<i64>)> {
        let mut samples: TimedSamples = samples.iter().copied().collect();
        let divided = samples.divided(length).unwrap();
        let intervals = divided.iter().map(|it| {
            let (count, max) = (it.histogram.count(), it.histogram.max_ns());
            (it.begin_ns, it.length_ns, count, max)
        });
        intervals.collect()
    }

    #[test]
    fn a_run_is_divided_from_a_minute_on_or_as_it_is_asked() {
        let seconds = Duration::from_secs;
        assert_eq!(interval_of(seconds(59), None), None);
        assert_eq!(interval_of(seconds(60), None), Some(seconds(1)));
        assert_eq!(interval_of(seconds(2), Some(seconds(5))), Some(seconds(5)));
    }

    #[test]
    fn a_sample_belongs_to_the_interval_in_which_it_begins() {
        let length = Duration::from_secs(1);
        // In any order; the one at the border belongs to what begins there, and none is between 2 and 3 s.
        let samples = [
            (SECOND + 7, 30),
            (7, 10),
            (SECOND + 6, 20),
            (3 * SECOND + 507, 40),
            (2 * SECOND + 6, -5),
        ];
        let expected = [
            (7, SECOND, 2, Some(20)),
            (SECOND + 7, SECOND, 1, Some(30)),
            (2 * SECOND + 7, SECOND, 0, None),
            (3 * SECOND + 7, SHORTEST_NS, 1, Some(40)),
        ];
        assert_eq!(divided(&samples, length), expected);
    }

    #[test]
    fn one_sample_is_an_interval_and_none_is_none() {
        let one = divided(&[(5, i64::MAX)], Duration::from_secs(1));
        assert_eq!(one, [(5, SHORTEST_NS, 1, Some(i64::MAX))]);
        let mut none = TimedSamples::default();
        assert!(none.divided(Duration::from_secs(1)).is_none());
    }

    #[test]
    fn intervals_are_those_of_what_was_measured() {
        let mut samples = TimedSamples::within(5, 3 * SECOND + 5);
        samples.push(SECOND + 4, 10);
        samples.push(SECOND + 5, 20);
        let divided = samples.divided(Duration::from_secs(1)).unwrap();
        assert_eq!((divided.count(), divided.samples()), (3, 2));
        let counts = divided.iter().map(|it| it.histogram.count());
        assert!(counts.eq([1, 1, 0]));
        assert!(divided.iter().all(|it| it.length_ns == SECOND));
        // A sample may be sent later than it was meant to be.
        samples.push(4 * SECOND, 30);
        let divided = samples.divided(Duration::from_secs(1)).unwrap();
        assert_eq!((divided.count(), divided.samples()), (4, 3));
        let mut none = TimedSamples::within(5, SECOND);
        let divided = none.divided(Duration::from_millis(500)).unwrap();
        assert_eq!((divided.count(), divided.samples()), (2, 0));
    }

    #[test]
    fn a_moment_far_away_makes_longer_intervals_and_not_more() {
        for end in [
            MOST_INTERVALS * SECOND - 1,
            MOST_INTERVALS * SECOND,
            u64::MAX,
        ] {
            let mut samples: TimedSamples = [(0, 1), (end, 2)].into_iter().collect();
            let divided = samples.divided(Duration::from_secs(1)).unwrap();
            assert!(divided.count() <= MOST_INTERVALS, "{end}");
            assert!(divided.length_ns().is_multiple_of(SECOND), "{end}");
            assert_eq!(
                divided.iter().map(|it| it.histogram.count()).sum::<u64>(),
                2
            );
        }
    }

    proptest! {
        #[test]
        fn each_sample_is_in_one_interval(
            samples in prop::collection::vec((0_u64..20 * SECOND, -3_i64..10_000_000_000), 1..300),
        ) {
            let mut timed: TimedSamples = samples.iter().copied().collect();
            let divided = timed.divided(Duration::from_millis(700)).unwrap();
            let intervals: Vec<Interval> = divided.iter().collect();
            prop_assert_eq!(intervals.len() as u64, divided.count());
            prop_assert_eq!(divided.samples() + divided.negative(), samples.len() as u64);
            let counted: u64 = intervals.iter().map(|it| it.histogram.count()).sum();
            prop_assert_eq!(counted, divided.samples());
            for pair in intervals.windows(2) {
                prop_assert_eq!(pair[0].begin_ns + pair[0].length_ns, pair[1].begin_ns);
            }
            for interval in &intervals {
                let own = samples.iter().filter(|(moment, sample)| {
                    *sample >= 0 && *moment >= interval.begin_ns && *moment - interval.begin_ns < divided.length_ns()
                });
                let own: Vec<i64> = own.map(|it| it.1).collect();
                prop_assert_eq!(own.len() as u64, interval.histogram.count());
                prop_assert_eq!(own.iter().max().copied(), interval.histogram.max_ns());
            }
        }
    }
}
