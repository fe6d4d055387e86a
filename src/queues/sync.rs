//! Atomics and shared ownership for the queues: those of the standard library, or those of the model checker loom.

/// Waits so many cycles of the time-stamp counter: published queues do after a look that found nothing.
#[inline(always)]
pub(super) fn wait_cycles(cycles: usize) {
    // Checked by interpreters it would only take their time.
    if cfg!(any(loom, miri)) || cycles == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every processor that runs this has the counter.
        let now = || unsafe { std::arch::x86_64::_rdtsc() };
        let begun = now();
        while now().wrapping_sub(begun) < cycles as u64 {}
    }
    #[cfg(not(target_arch = "x86_64"))]
    for _ in 0..cycles {
        std::hint::spin_loop();
    }
}

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
