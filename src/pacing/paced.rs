//! The paces as one type.

use super::{BackToBack, Bursty, ConstantRate, ConstantWait, Idle, Pacing};
use crate::time::{Clock, Ticks};

/// The waiters as one type: which it is, is asked after each operation, outside of every sample. Where no time is
/// taken, and a nanosecond counts, the loop without a pause is compiled for itself.
#[derive(Debug, Clone, Copy)]
pub enum Paced {
    Not(BackToBack),
    Wait(ConstantWait),
    Rate(ConstantRate),
    Bursty(Bursty),
}

/// What the waiter that it is does.
macro_rules! of_each {
    ($paced:expr, $waiter:ident => $does:expr) => {
        match $paced {
            Paced::Not($waiter) => $does,
            Paced::Wait($waiter) => $does,
            Paced::Rate($waiter) => $does,
            Paced::Bursty($waiter) => $does,
        }
    };
}

impl Pacing for Paced {
    #[inline(always)]
    fn start_at(&mut self, now: Ticks) {
        of_each!(self, waiter => waiter.start_at(now));
    }

    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, idle: impl Idle) {
        of_each!(self, waiter => waiter.pause(clock, idle));
    }

    fn missed(&self) -> u64 {
        of_each!(self, waiter => waiter.missed())
    }

    fn intended_starts(&self, start: Ticks, count: usize) -> Option<Vec<Ticks>> {
        of_each!(self, waiter => waiter.intended_starts(start, count))
    }
}
