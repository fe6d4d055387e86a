//! Atomics and shared ownership for the queues: those of the standard library, or those of the model checker loom.

/// Waits this many cycles of the time-stamp counter: published queues do after a look that found nothing.
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
    // The generic timer counts slower than a TSC, at a separate rate: as long as the cycles of one of 3 GHz.
    #[cfg(target_arch = "aarch64")]
    {
        let (hertz, begun): (u64, u64);
        // SAFETY: registers that Linux lets user space read; nothing else is touched.
        unsafe {
            std::arch::asm!("mrs {}, cntfrq_el0", "mrs {}, cntvct_el0", out(reg) hertz, out(reg) begun,
                options(nomem, nostack, preserves_flags));
        }
        let counts = (cycles as u64 * (hertz / 1_000)).div_ceil(3_000_000);
        let mut now = begun;
        while now.wrapping_sub(begun) < counts {
            // SAFETY: as above.
            unsafe {
                std::arch::asm!("mrs {}, cntvct_el0", out(reg) now, options(nomem, nostack, preserves_flags));
            }
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..cycles {
        std::hint::spin_loop();
    }
}

#[cfg(loom)]
pub(crate) use super::weakened::{AtomicU64, AtomicUsize};
#[cfg(loom)]
pub(crate) use loom::sync::{Arc, atomic::Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
