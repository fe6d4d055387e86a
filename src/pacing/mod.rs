//! What happens between two operations of a benchmark.
//!
//! | pace | between two operations |
//! | --- | --- |
//! | [`NoPause`], [`BackToBack`] | nothing; the first gives the thread a moment for other work |
//! | [`ConstantWait`] | the same time from the end of one to the start of the next |
//! | [`ConstantRate`] | the same time from start to start: what an operation takes is subtracted from the wait |
//! | [`Poisson`] | random times from start to start, independent of each other, drawn before |
//! | [`Bursty`] | nothing within a group of operations, their waits together behind it |
//!
//! `Load` is which of them an end has, as a setting, and `Paced` any of them.
//!
//! All but the first row can vary their waits by [`Jitter`], which a seed decides. A pace is spent in a busy loop on
//! the benchmark's own clock and never falls into a sample. While it lasts, [`Idle::tick`] is called over and over, so
//! that the thread can do small work such as polling a completion queue; it returns whether to go on, so that a stop is
//! seen during a long pause.

mod bursty;
mod constant_rate;
mod interval;
mod jitter;
mod load;
mod paced;
mod schedule;
#[cfg(test)]
pub(crate) mod scripted;

pub use bursty::Bursty;
pub use constant_rate::{AfterMiss, ConstantRate};
pub use interval::Interval;
pub use jitter::{Jitter, SplitMix64};
pub(crate) use load::{EndLoad, Load};
pub(crate) use paced::Paced;
pub use schedule::{LONGEST_INTERVAL, Poisson};

use crate::time::{Clock, Nanos, Ticks};

/// What a thread does while it waits. A closure is the `tick` of one that does nothing at the beginning.
pub trait Idle {
    /// Called once when there is time to wait for, before the first tick.
    #[inline(always)]
    fn begin(&mut self) {}

    /// Called over and over; whether to go on waiting.
    fn tick(&mut self) -> bool;
}

impl<F: FnMut() -> bool> Idle for F {
    #[inline(always)]
    fn tick(&mut self) -> bool {
        self()
    }
}

/// The way from one operation to the next.
pub trait Pacing {
    /// Called when there is time, before operations begin: draws what is to be drawn for them.
    fn renew(&mut self) {}

    /// Called right before the first operation, with the time; paces that follow a schedule begin it here.
    #[inline(always)]
    fn start_at(&mut self, _now: Ticks) {}

    /// Called after each operation; returns when the next one is due. `idle` ticks at least once, unless the pace is in
    /// the middle of a group or [`BackToBack`].
    fn pause<C: Clock>(&mut self, clock: &C, idle: impl Idle);

    /// Operations so far that were already due when the one before them ended.
    fn missed(&self) -> u64 {
        0
    }

    /// When each of the first `count` operations is meant to start, if it was told to [start](Self::start_at) at
    /// `start`; `None` when that depends on how long the operations take.
    fn intended_starts(&self, _start: Ticks, _count: usize) -> Option<Vec<Ticks>> {
        None
    }
}

/// One operation right after the other; `idle` ticks once between them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPause;

impl Pacing for NoPause {
    #[inline(always)]
    fn pause<C: Clock>(&mut self, _clock: &C, mut idle: impl Idle) {
        idle.tick();
    }
}

/// One operation right after the other, and nothing between them.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackToBack;

impl Pacing for BackToBack {
    #[inline(always)]
    fn pause<C: Clock>(&mut self, _clock: &C, _idle: impl Idle) {}
}

/// A constant time from the end of one operation to the start of the next, or one that varies by a jitter.
#[derive(Debug, Clone, Copy)]
pub struct ConstantWait {
    interval: Interval,
}

impl ConstantWait {
    /// A wait of `length`, in the unit of `clock`.
    pub fn new<C: Clock>(clock: &C, length: Nanos) -> Self {
        Self::of(Interval::new(clock, length))
    }

    /// A wait of that length, jitter included.
    pub fn of(interval: Interval) -> Self {
        ConstantWait { interval }
    }
}

impl Pacing for ConstantWait {
    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, mut idle: impl Idle) {
        let start = clock.now();
        let length = self.interval.next_whole();
        idle.begin();
        while idle.tick() && clock.now().0.wrapping_sub(start.0) < length.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Monotonic;

    #[test]
    fn a_wait_ends_when_idle_says_so() {
        let clock = Monotonic::default();
        let hour = Interval::new(&clock, Nanos(3_600_000_000_000));
        let mut rate = ConstantRate::new(hour, AfterMiss::CatchUp);
        rate.start_at(clock.now());
        for mut pacing in [Paced::Wait(ConstantWait::of(hour)), Paced::Rate(rate)] {
            let mut calls = 0;
            pacing.pause(&clock, || {
                calls += 1;
                calls < 3
            });
            assert_eq!(calls, 3);
        }
    }

    #[test]
    fn a_wait_has_exactly_its_length_whatever_the_operation_took() {
        let clock = scripted::set(1000, 1);
        let mut pacing = ConstantWait::new(&clock, Nanos(100));
        scripted::advance(70);
        pacing.pause(&clock, || true);
        // Began at the reading of 1071, ended with the first that is 100 later.
        assert_eq!(scripted::time(), 1171);
        assert_eq!(pacing.missed(), 0);
        assert!(pacing.intended_starts(Ticks(0), 3).is_none());
    }

    #[test]
    fn a_jittered_wait_follows_its_seed() {
        let lengths = |seed| {
            let clock = scripted::set(0, 1);
            let jitter = Jitter::new(0.5, seed);
            let mut pacing =
                ConstantWait::of(Interval::new(&clock, Nanos(1000)).with_jitter(jitter));
            (0..50)
                .map(|_| {
                    let before = scripted::time();
                    pacing.pause(&clock, || true);
                    scripted::time() - before
                })
                .collect::<Vec<_>>()
        };
        let first = lengths(7);
        assert_eq!(first, lengths(7));
        assert_ne!(first, lengths(8));
        assert!(first.iter().all(|length| (500..=1502).contains(length)));
    }

    #[test]
    fn waiting_is_announced_once_and_only_where_there_is_something_to_wait_for() {
        #[derive(Default)]
        struct Count(u32, u32);
        impl Idle for &mut Count {
            fn begin(&mut self) {
                self.0 += 1;
            }
            fn tick(&mut self) -> bool {
                self.1 += 1;
                true
            }
        }
        let clock = scripted::set(0, 10);
        let mut count = Count::default();
        BackToBack.pause(&clock, &mut count);
        assert_eq!((count.0, count.1), (0, 0));
        NoPause.pause(&clock, &mut count);
        assert_eq!((count.0, count.1), (0, 1));
        ConstantWait::new(&clock, Nanos(30)).pause(&clock, &mut count);
        assert_eq!((count.0, count.1), (1, 4));
    }
}
