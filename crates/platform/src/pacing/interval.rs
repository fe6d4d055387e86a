//! A length of time that comes again and again, finer than a tick, with its jitter.

use super::jitter::Jitter;
use crate::time::{Clock, Nanos, Ticks};

/// Binary digits behind a tick. With them a rate of ten million a second is kept to a millionth, and a day of ticks
/// still fits.
const FRACTION_BITS: u32 = 12;
/// The longest mean: with its jitter it is at most twice as long.
const LONGEST: u64 = u64::MAX >> 2;

/// A length of time in fractions of a tick, the mean of many when there is a jitter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    mean: u64,
    spread: u64,
    jitter: Option<Jitter>,
}

impl Interval {
    /// A length in nanoseconds, in the unit of `clock`; one beyond what fits (days) is cut.
    pub fn new<C: Clock>(clock: &C, length: Nanos) -> Self {
        Self::from_parts(u128::from(clock.ticks_in(length).0) << FRACTION_BITS)
    }

    /// The length between two of `per_second` equal parts of a second.
    pub fn from_rate<C: Clock>(clock: &C, per_second: f64) -> Self {
        assert!(per_second > 0.0, "a rate is positive, not {per_second}");
        let second = clock.ticks_in(Nanos(1_000_000_000)).0 as f64;
        Self::from_parts((second * f64::from(1 << FRACTION_BITS) / per_second).round() as u128)
    }

    fn from_parts(mean: u128) -> Self {
        Interval {
            mean: u64::try_from(mean).unwrap_or(LONGEST).min(LONGEST),
            spread: 0,
            jitter: None,
        }
    }

    /// The same, longer and shorter by a jitter.
    pub fn with_jitter(self, jitter: Jitter) -> Self {
        Interval {
            spread: jitter.spread(self.mean),
            jitter: Some(jitter),
            ..self
        }
    }

    /// The next length, in fractions of a tick.
    #[inline(always)]
    fn next_parts(&mut self) -> u64 {
        match &mut self.jitter {
            None => self.mean,
            Some(jitter) => jitter.vary(self.mean, self.spread),
        }
    }

    /// The next length, without its fraction of a tick.
    #[inline(always)]
    pub(super) fn next_whole(&mut self) -> Ticks {
        Ticks(self.next_parts() >> FRACTION_BITS)
    }

    /// The next length in whole ticks, where `fraction` keeps what is left for the one after it.
    #[inline(always)]
    pub(super) fn next_with(&mut self, fraction: &mut u64) -> Ticks {
        let parts = self.next_parts() + *fraction;
        *fraction = parts & ((1 << FRACTION_BITS) - 1);
        Ticks(parts >> FRACTION_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::scripted;

    #[test]
    fn fractions_of_a_tick_add_up() {
        let clock = scripted::set(0, 0);
        let mut interval = Interval::from_rate(&clock, 3e6);
        let mut fraction = 0;
        let mut sum = 0;
        for _ in 0..3_000_000 {
            sum += interval.next_with(&mut fraction).0;
        }
        // A second within the half of a 4096th of a tick that each may be off.
        assert!((999_999_600..=1_000_000_400).contains(&sum), "{sum}");
    }

    #[test]
    fn lengths_are_exact_and_endless_ones_are_cut() {
        let clock = scripted::set(0, 0);
        assert_eq!(
            Interval::new(&clock, Nanos(86_400_000_000_000)).next_whole(),
            Ticks(86_400_000_000_000)
        );
        let mut longest = Interval::new(&clock, Nanos(u64::MAX)).with_jitter(Jitter::new(1.0, 1));
        let mut fraction = 0;
        for _ in 0..100 {
            longest.next_with(&mut fraction);
        }
    }
}
