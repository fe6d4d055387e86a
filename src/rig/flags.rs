//! What the threads of a run share while it lasts: values that stand apart, and the word to stop. For
//! the benchmarks of adapters and of queues; a watch on a clock has its own (`clock::supervise`).

use std::sync::atomic::{AtomicBool, Ordering};

/// A value on a cache line of its own (two, as processors fetch them in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// The word to leave all loops, which is never taken back.
#[derive(Debug, Default)]
pub(crate) struct Stop(Apart<AtomicBool>);

impl Stop {
    /// Gives it.
    pub(crate) fn set(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was given. Relaxed: nothing else is learnt from it, and a reading that is late by a turn does no harm.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }
}
