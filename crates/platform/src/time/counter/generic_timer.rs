//! What an Arm processor's generic timer is: its rate, and the kernel's facts about it.

use serde::Serialize;

/// The timer that all processors of an Arm system share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GenericTimer {
    /// Counts per second, as firmware has written them to CNTFRQ_EL0; null if it has not.
    pub hertz: Option<u64>,
    /// Whether an event stream wakes a processor that waits by WFE (every 100 us under Linux).
    pub event_stream: bool,
    /// Whether CNTVCTSS_EL0 is there (FEAT_ECV), whose readings order themselves.
    pub self_synchronised: bool,
}

impl GenericTimer {
    /// That of this machine; none where there is no Arm.
    pub fn find() -> Option<Self> {
        #[cfg(target_arch = "aarch64")]
        return Some(GenericTimer {
            hertz: frequency(),
            event_stream: has(libc::AT_HWCAP, EVENT_STREAM),
            self_synchronised: is_self_synchronised(),
        });
        #[cfg(not(target_arch = "aarch64"))]
        None
    }

    /// Nanoseconds of a count.
    pub fn count_ns(&self) -> Option<f64> {
        self.hertz.map(|hertz| 1e9 / hertz as f64)
    }
}

/// `HWCAP_EVTSTRM` of the kernel's `asm/hwcap.h`.
#[cfg(target_arch = "aarch64")]
const EVENT_STREAM: libc::c_ulong = 1 << 2;
/// `HWCAP2_ECV` of the same file.
#[cfg(target_arch = "aarch64")]
const ENHANCED_COUNTER: libc::c_ulong = 1 << 19;

#[cfg(target_arch = "aarch64")]
fn has(which: libc::c_ulong, bit: libc::c_ulong) -> bool {
    // SAFETY: it looks up a number that the kernel gave this process.
    unsafe { libc::getauxval(which) & bit != 0 }
}

/// Whether CNTVCTSS_EL0 may be read here.
#[cfg(target_arch = "aarch64")]
pub(super) fn is_self_synchronised() -> bool {
    has(libc::AT_HWCAP2, ENHANCED_COUNTER)
}

/// Counts per second by CNTFRQ_EL0, if firmware has written any.
#[cfg(target_arch = "aarch64")]
pub(super) fn frequency() -> Option<u64> {
    let hertz: u64;
    // SAFETY: a register that user space may read under Linux; nothing else is touched.
    unsafe {
        std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags))
    };
    (hertz > 0).then_some(hertz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_has_one_whose_count_is_a_fraction_of_a_microsecond() {
        let found = GenericTimer::find();
        assert_eq!(found.is_some(), cfg!(target_arch = "aarch64"));
        let made = GenericTimer {
            hertz: Some(25_000_000),
            event_stream: true,
            self_synchronised: false,
        };
        for timer in found.into_iter().chain([made]) {
            let count_ns = timer.count_ns().unwrap();
            assert!((0.1..1000.0).contains(&count_ns), "{timer:?}");
        }
        assert_eq!(made.count_ns(), Some(40.0));
    }
}
