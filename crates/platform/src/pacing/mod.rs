//! What happens between two operations of a benchmark.
//!
//! | pace | between two operations |
//! | --- | --- |
//! | [`NoPause`] | nothing |
//! | [`ConstantWait`] | the same time from the end of one to the start of the next |
//! | [`ConstantRate`] | the same time from start to start: what an operation takes is subtracted from the wait |
//! | [`Poisson`] | random times from start to start, independent of each other, drawn before |
//! | [`Bursty`] | nothing within a group of operations, their waits together behind it |
//!
//! `Load` is which of them an end has, as a setting, and `AnyPacing` any of them.
//!
//! All but the first row can vary their waits by [`Jitter`], which a seed decides. A pace is spent in a busy loop on
//! the benchmark's own clock and never falls into a sample. While it lasts, the thread can do small work such as polling
//! a completion queue, and sees that it is to stop.

mod bursty;
mod constant_rate;
mod interval;
mod jitter;
#[allow(missing_docs)]
mod load;
mod paced;
mod schedule;
#[cfg(any(test, feature = "testing"))]
pub mod scripted;

pub use bursty::Bursty;
pub use constant_rate::{ConstantRate, MissPolicy};
pub use interval::Interval;
pub use jitter::{Jitter, SplitMix64};
pub use load::{EndLoad, Load};
pub use paced::AnyPacing;
pub use schedule::{LONGEST_INTERVAL, Poisson};

use crate::time::{Clock, Nanos, Ticks};

/// The way from one operation to the next.
pub trait Pacing {
    /// Called when there is time, before operations begin: draws what is to be drawn for them.
    fn renew(&mut self) {}

    /// Called right before the first operation, with the time; paces that follow a schedule begin it here.
    #[inline(always)]
    fn start_at(&mut self, _now: Ticks) {}

    /// Called after each operation: when the next one is due. `None` where it follows at once: without a pace, within a
    /// group, or as it is overdue.
    fn next_due<C: Clock>(&mut self, clock: &C) -> Option<Ticks>;

    /// Called after each operation instead of [`next_due`](Self::next_due); returns when the next one is due. `tick` is
    /// called at least once, and over and over while there is time; it returns whether to go on waiting.
    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, mut tick: impl FnMut() -> bool) {
        let due = self.next_due(clock);
        while tick() && due.is_some_and(|due| is_after(due, clock.now())) {}
    }

    /// Operations so far that were already due when the one before them ended.
    fn missed(&self) -> u64 {
        0
    }

    /// When each of `count` operations is meant to start, if they [start](Self::start_at) at `start`, after `before`
    /// others that the pace was begun with; `None` when that depends on how long the operations take.
    fn intended_starts(&self, _start: Ticks, _before: usize, _count: usize) -> Option<Vec<Ticks>> {
        None
    }
}

/// Waits for a moment; `tick` returns whether to go on waiting.
#[inline(always)]
pub fn wait_until<C: Clock>(due: Ticks, clock: &C, mut tick: impl FnMut() -> bool) {
    while tick() && is_after(due, clock.now()) {}
}

/// Whether `first` is later than `second`, on a counter that may wrap around.
#[inline(always)]
fn is_after(first: Ticks, second: Ticks) -> bool {
    (first.0.wrapping_sub(second.0) as i64) > 0
}

/// One operation right after the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPause;

impl Pacing for NoPause {
    #[inline(always)]
    fn next_due<C: Clock>(&mut self, _clock: &C) -> Option<Ticks> {
        None
    }
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
    fn next_due<C: Clock>(&mut self, clock: &C) -> Option<Ticks> {
        let now = clock.now();
        Some(Ticks(now.0.wrapping_add(self.interval.next_whole().0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Posix;

    #[test]
    fn a_wait_ends_when_idle_says_so() {
        let clock = Posix::MONOTONIC;
        let hour = Interval::new(&clock, Nanos(3_600_000_000_000));
        let mut rate = ConstantRate::new(hour, MissPolicy::CatchUp);
        rate.start_at(clock.now());
        for mut pacing in [
            AnyPacing::Wait(ConstantWait::of(hour)),
            AnyPacing::Rate(rate),
        ] {
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
        assert!(pacing.intended_starts(Ticks(0), 0, 3).is_none());
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
    fn a_thread_has_a_moment_for_other_work_even_without_a_pause() {
        let clock = scripted::set(0, 10);
        let mut ticks = 0;
        let mut tick = || {
            ticks += 1;
            true
        };
        assert_eq!(NoPause.next_due(&clock), None);
        NoPause.pause(&clock, &mut tick);
        ConstantWait::new(&clock, Nanos(30)).pause(&clock, &mut tick);
        assert_eq!(ticks, 1 + 3);
    }
}
