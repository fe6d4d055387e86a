//! The paces as one type.

use super::{Bursty, ConstantRate, ConstantWait, NoPause, Pacing, Poisson};
use crate::time::{Clock, Ticks};

/// Any pace: which it is, is asked after each operation, outside of every sample, by a call. So a hot loop is compiled
/// twice, for [`NoPause`], where a nanosecond counts, and for this one, and not for each pace.
#[derive(Debug, Clone)]
pub enum AnyPacing {
    /// None.
    Not(NoPause),
    /// From the end of an operation.
    Wait(ConstantWait),
    /// From start to start.
    Rate(ConstantRate),
    /// In groups.
    Bursty(Bursty),
    /// At random.
    Poisson(Poisson),
}

/// What the pace that it is does.
macro_rules! of_each {
    ($paced:expr, $pace:ident => $does:expr) => {
        match $paced {
            AnyPacing::Not($pace) => $does,
            AnyPacing::Wait($pace) => $does,
            AnyPacing::Rate($pace) => $does,
            AnyPacing::Bursty($pace) => $does,
            AnyPacing::Poisson($pace) => $does,
        }
    };
}

impl AnyPacing {
    #[inline(never)]
    fn next_due_of_any<C: Clock>(&mut self, clock: &C) -> Option<Ticks> {
        of_each!(self, pace => pace.next_due(clock))
    }
}

impl Pacing for AnyPacing {
    fn renew(&mut self) {
        of_each!(self, pace => pace.renew());
    }

    fn start_at(&mut self, now: Ticks) {
        of_each!(self, pace => pace.start_at(now));
    }

    /// Without a pace there is no call.
    #[inline(always)]
    fn next_due<C: Clock>(&mut self, clock: &C) -> Option<Ticks> {
        match self {
            AnyPacing::Not(_) => None,
            _ => self.next_due_of_any(clock),
        }
    }

    fn missed(&self) -> u64 {
        of_each!(self, pace => pace.missed())
    }

    fn intended_starts(&self, start: Ticks, before: usize, count: usize) -> Option<Vec<Ticks>> {
        of_each!(self, pace => pace.intended_starts(start, before, count))
    }
}
