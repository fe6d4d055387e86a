//! Operations that start at a constant rate.

use super::schedule::{AfterMiss, Schedule};
use super::{Idle, Interval, Pacing};
use crate::time::{Clock, Ticks};

/// The same time from the start of one operation to the start of the next; what the operation takes is part of it.
///
/// An operation that takes longer than that makes the next one late. It is counted, and [`AfterMiss`] says how it goes
/// on. With a jitter the times between two starts vary, and the schedule follows from the seed alone.
#[derive(Debug, Clone, Copy)]
pub struct ConstantRate(Schedule);

impl ConstantRate {
    /// Starts at that interval.
    pub fn new(interval: Interval, after_miss: AfterMiss) -> Self {
        ConstantRate(Schedule::new(interval, after_miss))
    }
}

impl Pacing for ConstantRate {
    #[inline(always)]
    fn start_at(&mut self, now: Ticks) {
        self.0.start_at(now);
    }

    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, idle: impl Idle) {
        self.0.advance();
        self.0.wait(clock, idle);
    }

    fn missed(&self) -> u64 {
        self.0.missed()
    }

    fn intended_starts(&self, start: Ticks, count: usize) -> Option<Vec<Ticks>> {
        self.0.moments(start, count, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::{Jitter, scripted};
    use crate::time::Nanos;

    fn started(after_miss: AfterMiss) -> (scripted::Scripted, ConstantRate) {
        let clock = scripted::set(1000, 0);
        let mut pacing = ConstantRate::new(Interval::new(&clock, Nanos(200)), after_miss);
        pacing.start_at(Ticks(1000));
        (clock, pacing)
    }

    /// Lets an operation take its time and waits for the next; returns when that starts. Each look at the clock while
    /// waiting takes a nanosecond.
    fn operation(clock: &scripted::Scripted, pacing: &mut ConstantRate, takes: u64) -> u64 {
        scripted::advance(takes);
        pacing.pause(clock, || {
            if scripted::time() < 1_000_000 {
                scripted::advance(1);
            }
            true
        });
        scripted::time()
    }

    #[test]
    fn the_time_of_the_operation_is_part_of_the_interval() {
        let (clock, mut pacing) = started(AfterMiss::CatchUp);
        assert_eq!(operation(&clock, &mut pacing, 80), 1200);
        assert_eq!(operation(&clock, &mut pacing, 0), 1400);
        assert_eq!(operation(&clock, &mut pacing, 199), 1600);
        assert_eq!(pacing.missed(), 0);
    }

    #[test]
    fn a_stall_is_made_up_for_and_the_schedule_stands() {
        let (clock, mut pacing) = started(AfterMiss::CatchUp);
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
        let (clock, mut pacing) = started(AfterMiss::StartOver);
        assert_eq!(operation(&clock, &mut pacing, 750), 1751);
        assert_eq!(pacing.missed(), 1);
        assert_eq!(operation(&clock, &mut pacing, 10), 1950);
        assert_eq!(pacing.missed(), 1);
        assert!(pacing.intended_starts(Ticks(1000), 2).is_none());
    }

    #[test]
    fn the_intended_starts_are_those_that_were_kept() {
        for jitter in [None, Some(Jitter::new(1.0, 42))] {
            let clock = scripted::set(5, 0);
            let mut interval = Interval::from_rate(&clock, 3e6);
            if let Some(jitter) = jitter {
                interval = interval.with_jitter(jitter);
            }
            let fresh = ConstantRate::new(interval, AfterMiss::CatchUp);
            let mut pacing = fresh;
            pacing.start_at(Ticks(5));
            let intended = fresh.intended_starts(Ticks(5), 500).unwrap();
            assert_eq!(intended[0], Ticks(5));
            for due in &intended[1..] {
                // Operations that take no time: each starts when it is due, or right after one that was late by a tick.
                let start = operation(&clock, &mut pacing, 0);
                assert!((due.0..due.0 + 3).contains(&start), "{start} for {due:?}");
            }
        }
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let (clock, mut pacing) = started(AfterMiss::CatchUp);
        let mut ticks = 0;
        pacing.pause(&clock, || {
            ticks += 1;
            ticks < 3
        });
        assert_eq!(ticks, 3);
    }

    #[test]
    fn a_counter_that_wraps_around_is_no_miss() {
        let clock = scripted::set(u64::MAX - 50, 0);
        let mut pacing = ConstantRate::new(Interval::new(&clock, Nanos(200)), AfterMiss::CatchUp);
        pacing.start_at(Ticks(u64::MAX - 50));
        pacing.pause(&clock, || {
            scripted::advance(1);
            true
        });
        assert_eq!((scripted::time(), pacing.missed()), (149, 0));
    }
}
