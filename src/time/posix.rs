//! The clocks of `clock_gettime`; one tick is one nanosecond.

use std::mem::MaybeUninit;

use super::{Clock, Reading, Ticks};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A POSIX clock known at compile time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Posix<const ID: libc::clockid_t>;

/// `CLOCK_MONOTONIC`: rises steadily, its rate is steered by NTP, it is never stepped.
pub type Monotonic = Posix<{ libc::CLOCK_MONOTONIC }>;

/// `CLOCK_MONOTONIC_RAW`: as the hardware counts, without NTP.
pub type MonotonicRaw = Posix<{ libc::CLOCK_MONOTONIC_RAW }>;

/// `CLOCK_REALTIME`: the time of day, which can be stepped in both directions. A [`Reading`] only: as a [`Clock`], to
/// take differences of stamps from, it does not compile.
pub type Realtime = Posix<{ libc::CLOCK_REALTIME }>;

// The vDSO orders the counter's reading after all earlier instructions (rdtsc_ordered; on Arm an ISB, or CNTVCTSS, in
// front and a load that depends on it behind), so no fence is needed here.
#[inline(always)]
fn read<const ID: libc::clockid_t>() -> Ticks {
    const {
        assert!(
            ID == libc::CLOCK_MONOTONIC
                || ID == libc::CLOCK_MONOTONIC_RAW
                || ID == libc::CLOCK_REALTIME
        );
    }
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to writable memory of the right type. The call fails only for an unknown clock (every
    // Linux has the three admitted above) or a bad pointer, so the value is written.
    let now = unsafe {
        libc::clock_gettime(ID, now.as_mut_ptr());
        now.assume_init()
    };
    Ticks(now.tv_sec as u64 * NANOS_PER_SECOND + now.tv_nsec as u64)
}

impl<const ID: libc::clockid_t> Reading for Posix<ID> {
    #[inline(always)]
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        (read::<ID>(), work())
    }
}

impl<const ID: libc::clockid_t> Clock for Posix<ID> {
    #[inline(always)]
    fn now(&self) -> Ticks {
        const {
            assert!(ID == libc::CLOCK_MONOTONIC || ID == libc::CLOCK_MONOTONIC_RAW);
        }
        read::<ID>()
    }
}
