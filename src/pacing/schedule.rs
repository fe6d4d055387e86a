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
            self.missed += 1;
            if self.after_miss == AfterMiss::StartOver {
                self.start_at(now);
            }
            idle.tick();
            return;
        }
        idle.begin();
        while idle.tick() && is_after(self.due, clock.now()) {}
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
