//! The clocks of `clock_gettime`; one tick is one nanosecond.
//!
//! Which of them is a value, not a type: the call takes it as an argument anyway, so a loop compiled for all of them has
//! no instruction more than one compiled for each.

use std::mem::MaybeUninit;

use super::{Clock, Ticks};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A POSIX clock that is never stepped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posix(pub(super) libc::clockid_t);

impl Posix {
    /// `CLOCK_MONOTONIC`: its rate is steered by NTP.
    pub const MONOTONIC: Self = Posix(libc::CLOCK_MONOTONIC);
    /// `CLOCK_MONOTONIC_RAW`: as the hardware counts, without NTP.
    pub const MONOTONIC_RAW: Self = Posix(libc::CLOCK_MONOTONIC_RAW);

    pub(super) const fn is_raw(self) -> bool {
        self.0 == libc::CLOCK_MONOTONIC_RAW
    }
}

impl Clock for Posix {
    #[inline(always)]
    fn now(&self) -> Ticks {
        // SAFETY: every Linux has both clocks that a `Posix` can name.
        unsafe { read(self.0) }
    }

    fn rate_change(&self) -> f64 {
        match self.is_raw() {
            true => 1e-6,
            // Linux, include/linux/timex.h: MAXFREQ, by which NTP may steer it.
            false => 500e-6,
        }
    }
}

/// # Safety
/// The clock exists.
// The vDSO orders the counter's reading after all earlier instructions (rdtsc_ordered; on Arm an ISB, or CNTVCTSS, in
// front and a load that depends on it behind), so no fence is needed here.
#[inline(always)]
pub(super) unsafe fn read(clock: libc::clockid_t) -> Ticks {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to writable memory of the right type. The call fails only for an unknown clock, which the
    // caller rules out, or a bad pointer, so the value is written.
    let now = unsafe {
        libc::clock_gettime(clock, now.as_mut_ptr());
        now.assume_init()
    };
    Ticks(now.tv_sec as u64 * NANOS_PER_SECOND + now.tv_nsec as u64)
}
