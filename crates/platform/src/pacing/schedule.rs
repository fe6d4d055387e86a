//! Operations at random moments that are drawn before the first.

use super::{Pacing, SplitMix64, is_after};
use crate::time::{Clock, Nanos, Ticks};

/// The longest interval that can be drawn, in means: -ln(2^-53), rounded up.
pub const LONGEST_INTERVAL: u32 = 37;

/// Arrivals of a Poisson process: intervals between two starts are independent and exponentially distributed. Their
/// moments lie in memory before the first operation starts; what is overdue follows without a wait.
#[derive(Debug, Clone)]
pub struct Poisson {
    mean_ticks: f64,
    numbers: SplitMix64,
    /// From the first start.
    moments: Vec<Ticks>,
    next: usize,
    start: Ticks,
    missed: u64,
}

impl Poisson {
    /// Up to `most` operations at `per_second` on average, by numbers that follow from `seed`. The moments are drawn by
    /// [`renew`](Pacing::renew).
    pub fn new<C: Clock>(clock: &C, per_second: f64, most: usize, seed: u64) -> Self {
        let second = clock.ticks_in(Nanos(1_000_000_000)).0 as f64;
        Poisson {
            mean_ticks: second / per_second,
            numbers: SplitMix64::new(seed),
            moments: vec![Ticks(0); most],
            next: 0,
            start: Ticks(0),
            missed: 0,
        }
    }

    /// An interval in means: a number from 0 to 1, without 1, of 53 random bits through the inverse of the distribution
    /// (Devroye, "Non-Uniform Random Variate Generation", 1986, II.2.1).
    fn draw(&mut self) -> f64 {
        let uniform = (self.numbers.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        -(1.0 - uniform).ln()
    }
}

impl Pacing for Poisson {
    fn renew(&mut self) {
        let mut moment = 0.0;
        for place in 0..self.moments.len() {
            self.moments[place] = Ticks(moment as u64);
            moment += self.draw() * self.mean_ticks;
        }
    }

    #[inline(always)]
    fn start_at(&mut self, now: Ticks) {
        self.start = now;
        self.next = 0;
    }

    #[inline(always)]
    fn next_due<C: Clock>(&mut self, clock: &C) -> Option<Ticks> {
        self.next += 1;
        let due = Ticks(self.start.0.wrapping_add(self.moments[self.next].0));
        let is_missed = is_after(clock.now(), due);
        self.missed += u64::from(is_missed);
        (!is_missed).then_some(due)
    }

    fn missed(&self) -> u64 {
        self.missed
    }

    fn intended_starts(&self, start: Ticks, _before: usize, count: usize) -> Option<Vec<Ticks>> {
        let moments = self.moments[..count].iter();
        Some(
            moments
                .map(|moment| Ticks(start.0.wrapping_add(moment.0)))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::scripted::{self, operation};

    fn drawn(seed: u64, count: usize) -> Vec<Ticks> {
        let clock = scripted::set(0, 0);
        // A mean of 1000 ns.
        let mut pacing = Poisson::new(&clock, 1e6, count, seed);
        pacing.renew();
        pacing.intended_starts(Ticks(0), 0, count).unwrap()
    }

    #[test]
    fn intervals_are_exponential_and_follow_their_seed() {
        let moments = drawn(7, 100_001);
        assert_eq!((moments[0], &moments), (Ticks(0), &drawn(7, 100_001)));
        assert_ne!(moments[1..9], drawn(8, 9)[1..]);
        let lengths: Vec<f64> = (moments.windows(2))
            .map(|pair| (pair[1].0 - pair[0].0) as f64)
            .collect();
        let mean = lengths.iter().sum::<f64>() / 1e5;
        assert!((mean - 1000.0).abs() < 20.0, "{mean}");
        // Of an exponential distribution e^-x are longer than x means.
        for means in [0.1_f64, 1.0, 3.0] {
            let longer = lengths
                .iter()
                .filter(|&&length| length > means * 1000.0)
                .count();
            let expected = (-means).exp();
            let is_close = (longer as f64 / 1e5 - expected).abs() < 0.01;
            assert!(is_close, "{means}: {longer}");
        }
        let longest = f64::from(LONGEST_INTERVAL) * 1000.0;
        assert!(lengths.iter().all(|&length| length < longest));
    }

    #[test]
    fn operations_start_at_the_moments_drawn_or_right_after_a_late_one() {
        let clock = scripted::set(50, 0);
        let mut pacing = Poisson::new(&clock, 1e6, 100, 3);
        pacing.renew();
        pacing.start_at(Ticks(50));
        let intended = pacing.intended_starts(Ticks(50), 0, 100).unwrap();
        for due in &intended[1..] {
            let start = operation(&clock, &mut pacing, 0);
            assert!((due.0..due.0 + 3).contains(&start), "{start} for {due:?}");
        }
        // A stall over all of them, after which each is late by a tick more.
        pacing.start_at(Ticks(50));
        let missed = pacing.missed();
        operation(&clock, &mut pacing, 0);
        assert_eq!(pacing.missed(), missed + 1);
    }
}
