//! A clock for tests that moves by a fixed step at each reading, and on request.

use std::cell::Cell;

use super::Pacing;
use crate::time::{Clock, Ticks};

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// A tick is a nanosecond.
#[derive(Debug, Clone, Copy)]
pub struct Scripted {
    step: u64,
}

impl Clock for Scripted {
    fn now(&self) -> Ticks {
        NOW.set(NOW.get().wrapping_add(self.step));
        Ticks(NOW.get())
    }
}

/// A clock that is at `now` and moves by `step` with each reading, before it.
pub fn set(now: u64, step: u64) -> Scripted {
    NOW.set(now);
    Scripted { step }
}

/// Lets time pass.
pub fn advance(ticks: u64) {
    NOW.set(NOW.get().wrapping_add(ticks));
}

/// What the last reading was, and what has passed since.
pub fn time() -> u64 {
    NOW.get()
}

/// Lets an operation take its time and waits for the next; returns when that starts. Each look at the clock while
/// waiting takes a nanosecond.
pub fn operation(clock: &Scripted, pacing: &mut impl Pacing, takes: u64) -> u64 {
    advance(takes);
    pacing.pause(clock, || {
        advance(1);
        true
    });
    time()
}
