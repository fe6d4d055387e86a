//! What happens between two operations of a benchmark.
//!
//! A pace is spent in a busy loop on the benchmark's own clock and never falls into a sample. While it lasts, `idle` is
//! called over and over, so that the thread can do small work such as polling a completion queue; `idle` returns
//! whether to go on, so that a stop is seen during a long pause.

mod constant_rate;

pub use constant_rate::ConstantRate;

use crate::time::{Clock, Nanos, Ticks};

/// The way from one operation to the next.
pub trait Pacing {
    /// Called after each operation; returns when the next one is due.
    fn pause<C: Clock>(&mut self, clock: &C, idle: impl FnMut() -> bool);
}

/// One operation right after the other; `idle` runs once between them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPause;

impl Pacing for NoPause {
    #[inline(always)]
    fn pause<C: Clock>(&mut self, _clock: &C, mut idle: impl FnMut() -> bool) {
        idle();
    }
}

/// A constant time from the end of one operation to the start of the next.
#[derive(Debug, Clone, Copy)]
pub struct ConstantWait {
    length: Ticks,
}

impl ConstantWait {
    /// A wait of `length`, in the unit of `clock`.
    pub fn new<C: Clock>(clock: &C, length: Nanos) -> Self {
        ConstantWait {
            length: clock.ticks_in(length),
        }
    }
}

impl Pacing for ConstantWait {
    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, mut idle: impl FnMut() -> bool) {
        let start = clock.now();
        while idle() && clock.now().0.wrapping_sub(start.0) < self.length.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Monotonic;

    #[test]
    fn a_constant_wait_is_at_least_its_length_and_calls_idle() {
        let clock = Monotonic::default();
        let mut pacing = ConstantWait::new(&clock, Nanos(200_000));
        let mut calls = 0;
        let before = clock.now();
        pacing.pause(&clock, || {
            calls += 1;
            true
        });
        assert!(clock.now().0 - before.0 >= 200_000);
        assert!(calls >= 1);
    }

    #[test]
    fn a_wait_ends_when_idle_says_so() {
        let clock = Monotonic::default();
        let mut pacing = ConstantWait::new(&clock, Nanos(3_600_000_000_000));
        let mut calls = 0;
        pacing.pause(&clock, || {
            calls += 1;
            calls < 3
        });
        assert_eq!(calls, 3);
    }

    #[test]
    fn no_pause_lets_idle_run_once() {
        let mut calls = 0;
        NoPause.pause(&Monotonic::default(), || {
            calls += 1;
            true
        });
        assert_eq!(calls, 1);
    }
}
