//! From the counts of a device to the nanoseconds of a clock.
//!
//! The counter is read between two readings of the clock. Two such pairs, one before and one after what is converted,
//! make a straight line. The error is half of the longer of the two intervals in which the counter was read, a count,
//! and what rounding leaves. By how much the rates change, a third pair shows: the line of the outer two misses the one
//! between them.

use super::Clock;

/// Readings of which the quickest is kept.
const TRIES: usize = 32;
/// A pair that is closer by more than this factor shows too little about a line.
const MOST_UNEQUAL: i128 = 4;

/// A reading of a counter, and the readings of a clock before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterPair {
    /// The counter.
    pub count: u64,
    /// The clock before, in nanoseconds.
    pub before_ns: u64,
    /// The clock after, in nanoseconds.
    pub after_ns: u64,
}

impl CounterPair {
    /// Reads both several times, and keeps the tightest.
    ///
    /// # Errors
    /// When the counter cannot be read.
    pub fn read<C: Clock, E>(
        clock: &C,
        mut count: impl FnMut() -> Result<u64, E>,
    ) -> Result<Self, E> {
        let mut read = || {
            let before = clock.now();
            let count = count()?;
            let [before_ns, after_ns] = [before, clock.now()].map(|it| clock.to_nanos(it).0);
            Ok(CounterPair {
                count,
                before_ns,
                after_ns,
            })
        };
        let mut best = read()?;
        for _ in 1..TRIES {
            let next = read()?;
            if next.width() < best.width() {
                best = next;
            }
        }
        Ok(best)
    }

    fn width(&self) -> u64 {
        self.after_ns.saturating_sub(self.before_ns)
    }

    /// Twice the middle, which may lie between two nanoseconds.
    fn doubled_middle(&self) -> i128 {
        i128::from(self.before_ns) + i128::from(self.after_ns)
    }
}

/// A counter: after how many counts it begins again, and its rate as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterKind {
    /// All bits that it has.
    pub mask: u64,
    /// Counts a second.
    pub hertz: Option<f64>,
}

impl CounterKind {
    fn period(&self) -> i128 {
        1 << (u64::BITS - self.mask.leading_zeros())
    }

    /// From one count to another one, which is later by less than a period.
    fn distance(&self, from: u64, to: u64) -> i128 {
        (i128::from(to) - i128::from(from)).rem_euclid(self.period())
    }
}

/// The straight line through two pairs.
#[derive(Debug, Clone, Copy)]
pub struct CounterLine {
    kind: CounterKind,
    from: CounterPair,
    to: CounterPair,
    /// Counts between the two, of all periods.
    counts: i128,
    doubled_ns: i128,
}

impl CounterLine {
    /// `None` where the counter or the clock does not advance from the one to the other.
    pub fn new(kind: CounterKind, from: CounterPair, to: CounterPair) -> Option<Self> {
        let doubled_ns = to.doubled_middle() - from.doubled_middle();
        let within = kind.distance(from.count, to.count);
        // How often it began again only its rate shows.
        let all = kind.hertz.map_or(within, |hertz| {
            (hertz * doubled_ns as f64 / 2e9).round() as i128
        });
        let counts = within + kind.period() * rounded(all - within, kind.period()).max(0);
        (doubled_ns > 0 && counts > 0).then_some(CounterLine {
            kind,
            from,
            to,
            counts,
            doubled_ns,
        })
    }

    /// When the counter had this value, in nanoseconds: of all such moments the one that is nearest to `near_ns`.
    pub fn nanos(&self, count: u64, near_ns: u64) -> i64 {
        let near = 2 * i128::from(near_ns) - self.from.doubled_middle();
        let expected = rounded(near * self.counts, self.doubled_ns);
        let first = self.kind.distance(self.from.count, count);
        let period = self.kind.period();
        let counts = first + period * rounded(expected - first, period);
        let doubled = self.from.doubled_middle() + rounded(counts * self.doubled_ns, self.counts);
        i64::try_from(rounded(doubled, 2)).unwrap_or(i64::MAX)
    }

    /// By how much that is off at the most between the two pairs, in nanoseconds, if both run at constant rates.
    pub fn error_ns(&self) -> u64 {
        let half = self.from.width().max(self.to.width()).div_ceil(2);
        let count = self.doubled_ns / (2 * self.counts) + 1;
        half + u64::try_from(count).unwrap_or(u64::MAX) + 1
    }

    /// Whether a moment lies between the pairs, as far as they show.
    pub fn contains(&self, ns: i64) -> bool {
        let error = i128::from(self.error_ns());
        let first = i128::from(self.from.before_ns) - error;
        (first..=i128::from(self.to.after_ns) + error).contains(&i128::from(ns))
    }

    /// Counts a second.
    pub fn hertz(&self) -> f64 {
        self.counts as f64 / (self.doubled_ns as f64 / 2e9)
    }

    /// By how much [`CounterLine::hertz`] may be off, as a share of it.
    pub fn uncertainty(&self) -> f64 {
        (self.from.width() + self.to.width() + 2) as f64 / self.doubled_ns as f64
    }
}

/// By how much the line through two pairs is off between them because the rates of the two clocks change, by a step at
/// any moment or steadily, in nanoseconds. The pairs next to them show that; `None` where there is none, or only one
/// that is too close.
pub fn drift_ns(
    kind: CounterKind,
    before: Option<CounterPair>,
    [from, to]: [CounterPair; 2],
    after: Option<CounterPair>,
) -> Option<u64> {
    let length = to.doubled_middle() - from.doubled_middle();
    // A step of d after a part a of the length, with b left, takes the line off by d a b / (a + b). The line from a
    // neighbour at the distance n before misses `from` by d b n / (a + b + n), the other misses `to` by d a n / (...).
    let missed = |[first, middle, last]: [CounterPair; 3]| {
        let line = CounterLine::new(kind, first, last)?;
        let doubled = middle.doubled_middle();
        let at = rounded(doubled, 2) as i64;
        let missed = line.nanos(middle.count, at as u64).abs_diff(at);
        let missed = missed + line.error_ns() + middle.width().div_ceil(2);
        let next = last.doubled_middle() - first.doubled_middle() - length;
        (length <= MOST_UNEQUAL * next).then(|| i128::from(missed) * (length + next) / next)
    };
    let of_both = [
        before.and_then(|before| missed([before, from, to])),
        after.and_then(|after| missed([from, to, after])),
    ];
    let drift = match of_both {
        // The step is in the half that one of them shows.
        [Some(before), Some(after)] => before.max(after) / 2,
        [before, after] => before.or(after)?,
    };
    Some(u64::try_from(drift + 1).unwrap_or(u64::MAX))
}

/// The same where no other pair shows it: for rates that change by this share of them at the most.
pub fn greatest_drift_ns([from, to]: [CounterPair; 2], rate_change: f64) -> u64 {
    let length = (to.doubled_middle() - from.doubled_middle()) as f64 / 2.0;
    (rate_change * length / 4.0).ceil() as u64
}

/// A quotient, rounded to the nearest.
fn rounded(of: i128, by: i128) -> i128 {
    (of + by / 2).div_euclid(by)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::Ticks;

    /// A counter as it is: its value at a moment, with a rate that may change over time.
    #[derive(Debug, Clone, Copy)]
    struct Truth {
        kind: CounterKind,
        /// At the beginning.
        offset: u64,
        hertz: f64,
        /// By how much the rate changes in a second, as a share of it.
        bend: f64,
        /// And by how much at once, and the seconds after which.
        step: (f64, f64),
    }

    const BEGIN: u64 = 1_000_000_000_000;

    impl Truth {
        fn at(&self, ns: f64) -> u64 {
            let seconds = ns / 1e9;
            let counts = self.hertz
                * (seconds
                    + self.bend * seconds * seconds / 2.0
                    + self.step.0 * (seconds - self.step.1).max(0.0));
            let period = self.kind.period();
            (i128::from(self.offset) + counts.floor() as i128).rem_euclid(period) as u64
        }

        /// Read at a moment after the beginning, `share` of the way from one reading of the clock to the other.
        fn pair(&self, ns: u64, width: u64, share: f64) -> CounterPair {
            CounterPair {
                count: self.at(ns as f64 + share * width as f64),
                before_ns: BEGIN + ns,
                after_ns: BEGIN + ns + width,
            }
        }
    }

    fn any_truth(bend: f64) -> impl Strategy<Value = Truth> {
        let rate = prop_oneof![Just(1e9), Just(156.25e6), Just(78.125e6), 1e6..2e9_f64];
        let bits = prop_oneof![Just(63_u32), Just(64), Just(48), Just(32), 24_u32..63];
        (rate, bits, any::<u64>(), any::<bool>()).prop_map(move |(hertz, bits, offset, known)| {
            let mask = u64::MAX >> (64 - bits);
            // A rate need be known only where the counter may begin again more than once; by 200 ppm it may be wrong.
            let needed = bits < 48;
            Truth {
                kind: CounterKind {
                    mask,
                    hertz: (known || needed).then_some(hertz * 1.0002),
                },
                offset: offset & mask,
                hertz,
                bend,
                step: (0.0, 0.0),
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_truth_lies_within_the_error(
            truth in any_truth(0.0),
            length in 10_000_u64..2_000_000_000,
            widths in prop::array::uniform2(20_u64..5_000),
            shares in prop::array::uniform2(0.0..=1.0_f64),
            place in 0.0..=1.0_f64,
            ours_later in 0_u64..100_000,
        ) {
            let from = truth.pair(0, widths[0], shares[0]);
            let to = truth.pair(length + 5_000, widths[1], shares[1]);
            let line = CounterLine::new(truth.kind, from, to).unwrap();
            let event = 5_000.0 + place * (length - 5_000) as f64;
            let near = BEGIN + event as u64 + ours_later;
            let found = line.nanos(truth.at(event), near);
            let off = (found - BEGIN as i64) as f64 - event;
            // Less than half of its period from our own stamp.
            let period_ns = truth.kind.period() as f64 / truth.hertz * 1e9;
            prop_assume!(period_ns > 4.0 * ours_later as f64 + 20_000.0);
            prop_assert!(off.abs() <= line.error_ns() as f64, "{off} of {}", line.error_ns());
            prop_assert!(line.contains(found));
            let drift = (line.hertz() / truth.hertz - 1.0).abs();
            prop_assert!(drift <= line.uncertainty() + 2.0 / line.counts as f64, "{drift}");
        }

        #[test]
        fn clocks_that_are_unsteady_stay_within_what_lines_miss(
            truth in any_truth(0.0),
            bend in prop_oneof![Just(0.0), -1e-4..1e-4_f64],
            rate_step in prop_oneof![Just(0.0), -5e-4..5e-4_f64],
            step_at in 0.0..=1.0_f64,
            lengths in prop::array::uniform3(10_000_000_u64..1_000_000_000),
            equal in any::<bool>(),
            shares in prop::array::uniform4(0.0..=1.0_f64),
            neighbours in prop_oneof![Just([true, true]), Just([true, false]), Just([false, true])],
            place in 0.0..=1.0_f64,
        ) {
            // Either the rate has a step or it bends.
            let bend = if rate_step == 0.0 { bend } else { 0.0 };
            let lengths = if equal { [lengths[0]; 3] } else { lengths };
            let begins = [0, lengths[0], lengths[0] + lengths[1], lengths.iter().sum()];
            let step = (rate_step, step_at * begins[3] as f64 / 1e9);
            let truth = Truth { bend, step, ..truth };
            let pair = |at: usize| truth.pair(begins[at], 400, shares[at]);
            let neighbours = [neighbours[0].then(|| pair(0)), neighbours[1].then(|| pair(3))];
            let burst = [pair(1), pair(2)];
            let line = CounterLine::new(truth.kind, burst[0], burst[1]).unwrap();
            let drift = drift_ns(truth.kind, neighbours[0], burst, neighbours[1]);
            let Some(drift) = drift else {
                // One that is too close.
                prop_assert!(lengths[1] > 3 * lengths[0].min(lengths[2]));
                return Ok(());
            };
            let error = line.error_ns() + drift;
            let event = begins[1] as f64 + 400.0 + place * (lengths[1] - 400) as f64;
            let found = line.nanos(truth.at(event), BEGIN + event as u64);
            let off = (found - BEGIN as i64) as f64 - event;
            prop_assert!(off.abs() <= error as f64, "{off} of {error}");
        }

        #[test]
        fn without_a_neighbour_a_step_stays_within_what_is_allowed_for(
            truth in any_truth(0.0),
            rate_step in -5e-4..5e-4_f64,
            step_at in 0.0..=1.0_f64,
            length in 1_000_000_u64..1_000_000_000,
            place in 0.0..=1.0_f64,
        ) {
            let truth = Truth { step: (rate_step, step_at * length as f64 / 1e9), ..truth };
            let burst = [truth.pair(0, 400, 0.5), truth.pair(length, 400, 0.5)];
            let line = CounterLine::new(truth.kind, burst[0], burst[1]).unwrap();
            prop_assert_eq!(drift_ns(truth.kind, None, burst, None), None);
            let error = line.error_ns() + greatest_drift_ns(burst, 5e-4);
            let event = 400.0 + place * (length - 400) as f64;
            let found = line.nanos(truth.at(event), BEGIN + event as u64);
            let off = (found - BEGIN as i64) as f64 - event;
            prop_assert!(off.abs() <= error as f64, "{off} of {error}");
        }
    }

    fn steady(bits: u32) -> Truth {
        Truth {
            kind: CounterKind {
                mask: u64::MAX >> (64 - bits),
                hertz: None,
            },
            offset: 12_345,
            hertz: 156.25e6,
            bend: 0.0,
            step: (0.0, 0.0),
        }
    }

    #[test]
    fn without_the_interval_of_reading_the_error_would_be_too_small() {
        // The counter is read at the very beginning of the interval, and of that the middle is taken.
        let truth = steady(63);
        for width in [100, 1_000, 10_000] {
            let line = CounterLine::new(
                truth.kind,
                truth.pair(0, width, 0.0),
                truth.pair(1_000_000, width, 0.0),
            );
            let line = line.unwrap();
            let found = line.nanos(truth.at(600_000.0), BEGIN + 600_000);
            let off = (found - BEGIN as i64 - 600_000).unsigned_abs();
            let without = line.error_ns() - width / 2;
            assert!(off > without && off <= line.error_ns(), "{off}");
        }
    }

    #[test]
    fn without_what_lines_miss_the_error_would_be_too_small() {
        let truth = Truth {
            bend: 1e-4,
            ..steady(63)
        };
        let pairs: Vec<_> = (0..4_u64)
            .map(|at| truth.pair(at * 500_000_000, 100, 0.5))
            .collect();
        let line = CounterLine::new(truth.kind, pairs[1], pairs[2]).unwrap();
        let found = line.nanos(truth.at(750e6), BEGIN + 750_000_000);
        let off = (found - BEGIN as i64 - 750_000_000).unsigned_abs();
        let burst = [pairs[1], pairs[2]];
        let drift = drift_ns(truth.kind, Some(pairs[0]), burst, Some(pairs[3])).unwrap();
        assert!(
            off > line.error_ns() && off <= line.error_ns() + drift,
            "{off} {drift}"
        );
    }

    #[test]
    fn a_counter_that_begins_anew_is_taken_for_what_it_is() {
        // 2^24 counts are 107 ms: it begins again nine times in a second.
        let truth = steady(24);
        let known = CounterKind {
            hertz: Some(156.25e6),
            ..truth.kind
        };
        let (from, to) = (truth.pair(0, 10, 0.5), truth.pair(1_000_000_000, 10, 0.5));
        let line = CounterLine::new(known, from, to).unwrap();
        for ms in [1_u64, 99, 110, 500, 999] {
            let ns = ms * 1_000_000;
            let found = line.nanos(truth.at(ns as f64), BEGIN + ns + 700);
            assert!(
                found.abs_diff((BEGIN + ns) as i64) <= line.error_ns(),
                "{ms}"
            );
        }
        // Without its rate it is taken for slower.
        assert!(CounterLine::new(truth.kind, from, to).unwrap().hertz() < 17e6);
    }

    #[test]
    fn what_does_not_advance_makes_no_line() {
        let truth = steady(63);
        let pair = truth.pair(0, 10, 0.5);
        assert!(CounterLine::new(truth.kind, pair, pair).is_none());
        let later = CounterPair {
            before_ns: pair.before_ns + 1000,
            after_ns: pair.after_ns + 1000,
            ..pair
        };
        assert!(CounterLine::new(truth.kind, pair, later).is_none());
        assert_eq!(
            drift_ns(truth.kind, Some(pair), [pair, later], Some(later)),
            None
        );
    }

    #[test]
    fn a_moment_far_from_the_pairs_is_outside() {
        let truth = steady(63);
        let (from, to) = (truth.pair(1_000, 10, 0.5), truth.pair(9_000, 10, 0.5));
        let line = CounterLine::new(truth.kind, from, to).unwrap();
        for (ns, is_inside) in [
            (0, false),
            (995, true),
            (5_000, true),
            (9_015, true),
            (10_000, false),
        ] {
            let found = line.nanos(truth.at(ns as f64), BEGIN + ns);
            assert_eq!(line.contains(found), is_inside, "{ns}");
        }
    }

    #[test]
    fn the_tightest_reading_is_kept() {
        #[derive(Clone, Copy)]
        struct Uneven;
        impl Clock for Uneven {
            fn now(&self) -> Ticks {
                use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
                static READINGS: AtomicU64 = AtomicU64::new(0);
                static TIME: AtomicU64 = AtomicU64::new(0);
                let reading = READINGS.fetch_add(1, Relaxed);
                // The fifth pair of readings is the closest.
                let step = if reading == 9 { 3 } else { 50 };
                Ticks(TIME.fetch_add(step, Relaxed) + step)
            }
        }
        let mut counts = 0..;
        let pair = CounterPair::read(&Uneven, || Ok::<u64, ()>(counts.next().unwrap()));
        let pair = pair.unwrap();
        assert_eq!((pair.count, pair.width()), (4, 3));
        assert_eq!(CounterPair::read(&Uneven, || Err(5)), Err(5));
    }
}
