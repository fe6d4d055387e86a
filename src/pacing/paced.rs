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

impl Pacing for Paced {
    #[inline(always)]
    fn start_at(&mut self, now: Ticks) {
        match self {
            Paced::Not(waiter) => waiter.start_at(now),
            Paced::Wait(waiter) => waiter.start_at(now),
            Paced::Rate(waiter) => waiter.start_at(now),
            Paced::Bursty(waiter) => waiter.start_at(now),
        }
    }

    #[inline(always)]
    fn pause<C: Clock>(&mut self, clock: &C, idle: impl Idle) {
        match self {
            Paced::Not(waiter) => waiter.pause(clock, idle),
            Paced::Wait(waiter) => waiter.pause(clock, idle),
            Paced::Rate(waiter) => waiter.pause(clock, idle),
            Paced::Bursty(waiter) => waiter.pause(clock, idle),
        }
    }

    fn missed(&self) -> u64 {
        match self {
            Paced::Not(waiter) => waiter.missed(),
            Paced::Wait(waiter) => waiter.missed(),
            Paced::Rate(waiter) => waiter.missed(),
            Paced::Bursty(waiter) => waiter.missed(),
        }
    }

    fn intended_starts(&self, start: Ticks, count: usize) -> Option<Vec<Ticks>> {
        match self {
            Paced::Not(waiter) => waiter.intended_starts(start, count),
            Paced::Wait(waiter) => waiter.intended_starts(start, count),
            Paced::Rate(waiter) => waiter.intended_starts(start, count),
            Paced::Bursty(waiter) => waiter.intended_starts(start, count),
        }
    }
}
