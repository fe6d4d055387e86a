//! Operations at a constant rate, with count of the steps that came too late.

use super::Pacing;
use crate::time::{Clock, Nanos, Ticks};

/// Every operation is due a whole number of periods after the first pause began. What takes longer than a period misses
/// steps: they are counted and not made up for, and the rate holds. It never gives up the CPU.
#[derive(Debug, Clone, Copy)]
pub struct ConstantRate {
    period: Nanos,
    start: Option<Ticks>,
    /// The last step that was met or missed.
    step: u64,
    missed: u64,
}

impl ConstantRate {
    /// One operation every `period`.
    ///
    /// # Panics
    /// When the period is zero.
    pub fn new(period: Nanos) -> Self {
        assert!(period.0 > 0, "a rate has a period");
        ConstantRate {
            period,
            start: None,
            step: 0,
            missed: 0,
        }
    }

    /// Steps so far, met or missed.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Steps missed so far.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl Pacing for ConstantRate {
    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, mut idle: impl FnMut() -> bool) {
        let start = *self.start.get_or_insert_with(|| clock.now());
        let due = clock.ticks_in(Nanos((self.step + 1) * self.period.0));
        let mut now;
        loop {
            let go_on = idle();
            now = clock.now();
            if now.0.wrapping_sub(start.0) >= due.0 {
                break;
            }
            if !go_on {
                return;
            }
        }
        // A clock that was set back in between shows no time at all, not centuries.
        let elapsed = clock
            .to_nanos(now)
            .0
            .saturating_sub(clock.to_nanos(start).0);
        // Rounding between ticks and nanoseconds may leave it just below the step that was due.
        let step = (elapsed / self.period.0).max(self.step + 1);
        self.missed += step - self.step - 1;
        self.step = step;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::time::{ClockKind, Monotonic};

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// A clock that is set by hand and goes on by one nanosecond a reading.
    #[derive(Clone, Copy)]
    struct Set;

    impl Clock for Set {
        fn kind(&self) -> ClockKind {
            ClockKind::Monotonic
        }
        fn now(&self) -> Ticks {
            Ticks(NOW.replace(NOW.get() + 1))
        }
        fn to_nanos(&self, reading: Ticks) -> Nanos {
            Nanos(reading.0)
        }
        fn ticks_in(&self, length: Nanos) -> Ticks {
            Ticks(length.0)
        }
    }

    fn go_on(pacing: &mut ConstantRate) -> u64 {
        pacing.pause(&Set, || true);
        NOW.get() - 1
    }

    #[test]
    fn steps_are_whole_periods_from_the_start_however_long_the_work_takes() {
        NOW.set(1000);
        let mut pacing = ConstantRate::new(Nanos(100));
        assert_eq!(go_on(&mut pacing), 1100);
        NOW.set(1150);
        assert_eq!(go_on(&mut pacing), 1200);
        assert_eq!((pacing.steps(), pacing.missed()), (2, 0));
        // Late by less than a period: the step is met, if late.
        NOW.set(1399);
        assert_eq!(go_on(&mut pacing), 1399);
        assert_eq!((pacing.steps(), pacing.missed()), (3, 0));
        assert_eq!(go_on(&mut pacing), 1400);
        // Steps 5, 6 and 7 have gone by when it comes back; 8 is met late.
        NOW.set(1850);
        assert_eq!(go_on(&mut pacing), 1850);
        assert_eq!((pacing.steps(), pacing.missed()), (8, 3));
        assert_eq!(go_on(&mut pacing), 1900);
        assert_eq!((pacing.steps(), pacing.missed()), (9, 3));
    }

    #[test]
    fn a_wait_ends_when_idle_says_so_and_meets_no_step() {
        NOW.set(0);
        let mut pacing = ConstantRate::new(Nanos(3_600_000_000_000));
        let mut calls = 0;
        pacing.pause(&Set, || {
            calls += 1;
            calls < 3
        });
        assert_eq!((calls, pacing.steps(), pacing.missed()), (3, 0, 0));
    }

    #[test]
    fn met_and_missed_add_up_to_the_time_that_passed() {
        let clock = Monotonic::default();
        let period = 100_000;
        let mut pacing = ConstantRate::new(Nanos(period));
        let start = clock.now();
        for operation in 0..100 {
            pacing.pause(&clock, || true);
            if operation == 50 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        let passed = (clock.now().0 - start.0) / period;
        assert!(pacing.missed() >= 49, "{pacing:?}");
        assert_eq!(pacing.steps(), 100 + pacing.missed());
        // The thread may be put aside between the last step and the reading.
        assert!(pacing.steps() <= passed, "{pacing:?}, {passed}");
    }
}
