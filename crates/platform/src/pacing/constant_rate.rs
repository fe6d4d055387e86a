//! Operations that start at a constant rate: their moments lie fixed from the start.

use super::{Interval, Pacing, is_after};
use crate::time::{Clock, Ticks};

/// How a schedule goes on when an operation was still running at the moment the next one was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissPolicy {
    /// It is as it was: what is overdue follows without a wait, until all is made up for. Load that comes from outside
    /// behaves so, and a latency from the intended moment holds what a stall has caused.
    CatchUp,
    /// It starts again at this moment. Someone who needs the time between two operations for other work behaves so.
    StartOver,
}

/// The same time from the start of one operation to the start of the next; what the operation takes is part of it.
///
/// An operation that takes longer than that makes the next one late. It is counted, and [`MissPolicy`] sets how it goes
/// on. With a jitter the times between two starts vary, and the schedule follows from the seed alone.
#[derive(Debug, Clone, Copy)]
pub struct ConstantRate {
    interval: Interval,
    after_miss: MissPolicy,
    due: Ticks,
    fraction: u64,
    missed: u64,
}

impl ConstantRate {
    /// Starts at that interval.
    pub fn new(interval: Interval, after_miss: MissPolicy) -> Self {
        ConstantRate {
            interval,
            after_miss,
            due: Ticks(0),
            fraction: 0,
            missed: 0,
        }
    }

    /// Goes on to the next moment.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        let length = self.interval.next_with(&mut self.fraction);
        self.due = Ticks(self.due.0.wrapping_add(length.0));
    }

    /// The current moment, or `None` if it has passed, which is counted as a miss.
    #[inline(always)]
    pub(super) fn due<C: Clock>(&mut self, clock: &C) -> Option<Ticks> {
        let now = clock.now();
        if !is_after(now, self.due) {
            return Some(self.due);
        }
        self.missed += 1;
        if self.after_miss == MissPolicy::StartOver {
            self.start_at(now);
        }
        None
    }

    /// The first `count` moments after a start, with `each` of them kept for this many operations. What is drawn for
    /// `before` operations was drawn before it.
    pub(super) fn moments(
        &self,
        start: Ticks,
        before: usize,
        count: usize,
        each: usize,
    ) -> Option<Vec<Ticks>> {
        if self.after_miss != MissPolicy::CatchUp {
            return None;
        }
        let mut replay = *self;
        (0..before).for_each(|_| replay.advance());
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

impl Pacing for ConstantRate {
    #[inline(always)]
    fn start_at(&mut self, now: Ticks) {
        self.due = now;
        self.fraction = 0;
    }

    #[inline(always)]
    fn next_due<C: Clock>(&mut self, clock: &C) -> Option<Ticks> {
        self.advance();
        self.due(clock)
    }

    fn missed(&self) -> u64 {
        self.missed
    }

    fn intended_starts(&self, start: Ticks, before: usize, count: usize) -> Option<Vec<Ticks>> {
        self.moments(start, before, count, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::Jitter;
    use crate::pacing::scripted::{self, operation};
    use crate::time::Nanos;

    fn started(after_miss: MissPolicy) -> (scripted::Scripted, ConstantRate) {
        let clock = scripted::set(1000, 0);
        let mut pacing = ConstantRate::new(Interval::new(&clock, Nanos(200)), after_miss);
        pacing.start_at(Ticks(1000));
        (clock, pacing)
    }

    #[test]
    fn the_time_of_the_operation_is_part_of_the_interval() {
        let (clock, mut pacing) = started(MissPolicy::CatchUp);
        assert_eq!(operation(&clock, &mut pacing, 80), 1200);
        assert_eq!(operation(&clock, &mut pacing, 0), 1400);
        assert_eq!(operation(&clock, &mut pacing, 199), 1600);
        assert_eq!(pacing.missed(), 0);
    }

    #[test]
    fn a_stall_is_made_up_for_and_the_schedule_stands() {
        let (clock, mut pacing) = started(MissPolicy::CatchUp);
        // Over at 1750: the starts at 1200, 1400 and 1600 have passed. Each tick of a late one costs 1 as well.
        assert_eq!(operation(&clock, &mut pacing, 750), 1751);
        assert_eq!(operation(&clock, &mut pacing, 10), 1762);
        assert_eq!(operation(&clock, &mut pacing, 10), 1773);
        assert_eq!(pacing.missed(), 3);
        assert_eq!(operation(&clock, &mut pacing, 10), 1800);
        assert_eq!(operation(&clock, &mut pacing, 10), 2000);
        assert_eq!(pacing.missed(), 3);
    }

    #[test]
    fn or_it_starts_over() {
        let (clock, mut pacing) = started(MissPolicy::StartOver);
        assert_eq!(operation(&clock, &mut pacing, 750), 1751);
        assert_eq!(pacing.missed(), 1);
        assert_eq!(operation(&clock, &mut pacing, 10), 1950);
        assert_eq!(pacing.missed(), 1);
        assert!(pacing.intended_starts(Ticks(1000), 0, 2).is_none());
    }

    #[test]
    fn the_intended_starts_are_those_that_were_kept() {
        for jitter in [None, Some(Jitter::new(1.0, 42))] {
            let clock = scripted::set(5, 0);
            let mut interval = Interval::from_rate(&clock, 3e6);
            if let Some(jitter) = jitter {
                interval = interval.with_jitter(jitter);
            }
            let fresh = ConstantRate::new(interval, MissPolicy::CatchUp);
            let mut pacing = fresh;
            pacing.start_at(Ticks(5));
            // It is begun twice.
            for _ in 0..70 {
                operation(&clock, &mut pacing, 0);
            }
            let start = Ticks(scripted::time());
            pacing.start_at(start);
            let intended = fresh.intended_starts(start, 70, 500).unwrap();
            assert_eq!(intended[0], start);
            for due in &intended[1..] {
                // Operations that take no time: each starts when it is due, or right after one that was late by a tick.
                let start = operation(&clock, &mut pacing, 0);
                assert!((due.0..due.0 + 3).contains(&start), "{start} for {due:?}");
            }
        }
    }

    #[test]
    fn a_counter_that_wraps_around_is_no_miss() {
        let clock = scripted::set(u64::MAX - 50, 0);
        let mut pacing = ConstantRate::new(Interval::new(&clock, Nanos(200)), MissPolicy::CatchUp);
        pacing.start_at(Ticks(u64::MAX - 50));
        assert_eq!(operation(&clock, &mut pacing, 0), 149);
        assert_eq!(pacing.missed(), 0);
    }
}
