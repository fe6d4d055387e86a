//! Moments that lie fixed from the start, and the wait for the next of them.

use serde::Serialize;

use super::Idle;
use super::interval::Interval;
use crate::time::{Clock, Ticks};

/// How a schedule goes on when an operation was still running at the moment the next one was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterMiss {
    /// It stands as it was: what is overdue follows without a wait, until all is made up for. Load that comes from
    /// outside behaves so, and a latency from the intended moment holds what a stall has caused.
    CatchUp,
    /// It begins anew at this moment. Someone who needs the time between two operations for other work behaves so.
    StartOver,
    /// It stands as it was, but what is overdue by a whole interval is left out. A controller or a generator of signals
    /// behaves so: what it has missed is past.
    Skip,
}

/// Moments at an interval from each other, whether or not anything happens at them.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    interval: Interval,
    after_miss: AfterMiss,
    due: Ticks,
    fraction: u64,
    missed: u64,
}

impl Schedule {
    /// A schedule that is still to be started.
    pub fn new(interval: Interval, after_miss: AfterMiss) -> Self {
        Schedule {
            interval,
            after_miss,
            due: Ticks(0),
            fraction: 0,
            missed: 0,
        }
    }

    /// Puts the first moment at `now`.
    #[inline(always)]
    pub(super) fn start_at(&mut self, now: Ticks) {
        self.due = now;
        self.fraction = 0;
    }

    /// Goes on to the next moment.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        let length = self.interval.next_with(&mut self.fraction);
        self.due = Ticks(self.due.0.wrapping_add(length.0));
    }

    /// Waits for the current moment, or counts it as missed.
    #[inline(always)]
    pub(super) fn wait<C: Clock>(&mut self, clock: &C, mut idle: impl Idle) {
        let now = clock.now();
        if is_after(now, self.due) {
            match self.after_miss {
                AfterMiss::CatchUp => self.missed += 1,
                AfterMiss::StartOver => {
                    self.missed += 1;
                    self.start_at(now);
                }
                AfterMiss::Skip => self.skip_to(now),
            }
            idle.tick();
            return;
        }
        idle.begin();
        while idle.tick() && is_after(self.due, clock.now()) {}
    }

    /// Goes on to the last moment before `now`; the ones before it are missed.
    fn skip_to(&mut self, now: Ticks) {
        let behind = now.0.wrapping_sub(self.due.0);
        if let Some((count, ticks, fraction)) = self.interval.count_within(behind, self.fraction) {
            self.due = Ticks(self.due.0.wrapping_add(ticks.0));
            self.fraction = fraction;
            self.missed = self.missed.saturating_add(count);
            return;
        }
        // With a jitter, each is drawn.
        loop {
            let mut next = *self;
            next.advance();
            if is_after(next.due, now) || next.due == self.due {
                return;
            }
            *self = next;
            self.missed += 1;
        }
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed
    }

    /// The first `count` moments after a start, with `each` of them kept for so many operations.
    pub(super) fn moments(&self, start: Ticks, count: usize, each: usize) -> Option<Vec<Ticks>> {
        if self.after_miss != AfterMiss::CatchUp {
            return None;
        }
        let mut replay = *self;
        replay.start_at(start);
        let mut moments = Vec::with_capacity(count);
        while moments.len() < count {
            let left = count - moments.len();
            moments.extend(std::iter::repeat_n(replay.due, each.min(left)));
            (0..each).for_each(|_| replay.advance());
        }
        Some(moments)
    }
}

/// Whether `first` is later than `second`, on a counter that may wrap around.
#[inline(always)]
fn is_after(first: Ticks, second: Ticks) -> bool {
    (first.0.wrapping_sub(second.0) as i64) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::scripted;
    use crate::time::Nanos;
    use proptest::prelude::*;

    fn schedule(per_second: f64, due: u64) -> Schedule {
        let clock = scripted::set(0, 0);
        let interval = Interval::from_rate(&clock, per_second);
        let mut schedule = Schedule::new(interval, AfterMiss::Skip);
        schedule.start_at(Ticks(due));
        schedule
    }

    #[test]
    fn a_long_stall_is_skipped_at_once() {
        // An hour and more at an interval of a nanosecond: one by one that would take hours.
        let mut schedule = schedule(1e9, 7);
        schedule.skip_to(Ticks(7 + (1 << 43)));
        assert_eq!((schedule.due.0, schedule.missed), (7 + (1 << 43), 1 << 43));
    }

    #[test]
    fn an_interval_of_nothing_is_not_skipped() {
        let clock = scripted::set(0, 0);
        let interval = Interval::new(&clock, Nanos(0));
        let mut schedule = Schedule::new(interval, AfterMiss::Skip);
        schedule.skip_to(Ticks(100));
        assert_eq!((schedule.due.0, schedule.missed), (0, 0));
    }

    proptest! {
        #[test]
        fn skipping_ends_where_going_on_one_by_one_does(
            per_second in 1e5..1e9_f64, due in any::<u64>(), before in 0_u32..50, behind in 1_u64..1_000_000,
        ) {
            let mut skipped = schedule(per_second, due);
            (0..before).for_each(|_| skipped.advance());
            let mut walked = skipped;
            let now = Ticks(skipped.due.0.wrapping_add(behind));
            skipped.skip_to(now);
            loop {
                let mut next = walked;
                next.advance();
                if is_after(next.due, now) {
                    break;
                }
                walked = next;
                walked.missed += 1;
            }
            prop_assert_eq!(
                (skipped.due, skipped.fraction, skipped.missed),
                (walked.due, walked.fraction, walked.missed)
            );
        }
    }
}
