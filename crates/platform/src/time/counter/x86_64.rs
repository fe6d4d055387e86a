//! The time stamp counter of x86-64.
//!
//! Source of the reading's order: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, RDTSC: an
//! LFENCE before it lets all earlier instructions and loads finish, one behind it keeps later ones from starting.

use std::arch::asm;
use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

use super::TscTrust;
use crate::time::{ClockError, Ticks};

/// What the counter is called in messages.
pub const COUNTER_IN_WORDS: &str = "TSC";

/// How the counter is read here. There is one way only.
#[derive(Debug, Clone, Copy)]
pub struct CounterReader(());

impl CounterReader {
    /// The way for this processor.
    pub fn find() -> Self {
        CounterReader(())
    }

    /// Reads the counter without a rate: earlier instructions have ended, and later ones have not begun.
    #[inline(always)]
    pub fn read(self) -> Ticks {
        read_tsc()
    }

    /// Reads the counter alone, while instructions before it may not have ended, and later ones may have begun.
    #[inline(always)]
    pub(super) fn read_unfenced(self) -> Ticks {
        let (low, high): (u64, u64);
        // SAFETY: as in `read_tsc`. Not `nomem`: the compiler moves no access to memory from one side to the other, so
        // that only the processor does.
        unsafe {
            asm!("rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags));
        }
        Ticks(high << 32 | low)
    }
}

/// Counts per second as the processor itself reports them: the TSC has no register for it.
pub(super) fn reported_hertz() -> Option<f64> {
    None
}

impl TscTrust {
    /// Finds out what vouches for the TSC.
    pub fn find() -> Result<Self, ClockError> {
        const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0";
        let sources = std::fs::read_to_string(format!("{SOURCES}/available_clocksource"));
        // A kernel that has found it unstable or different between CPUs takes it off its list.
        let dropped =
            sources.is_ok_and(|list| !list.split_ascii_whitespace().any(|one| one == "tsc"));
        let power = raw_cpuid::CpuId::new().get_advanced_power_mgmt_info();
        if power.is_some_and(|power| power.has_invariant_tsc()) && !dropped {
            return Ok(TscTrust::Invariant);
        }
        let clock_source = std::fs::read_to_string(format!("{SOURCES}/current_clocksource"))
            .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
        if clock_source == "tsc" {
            Ok(TscTrust::ClockSource)
        } else {
            Err(ClockError::NotVouchedFor { clock_source })
        }
    }
}

/// Reads the counter without a rate: earlier instructions have ended, and later ones have not begun.
#[inline(always)]
pub fn read_tsc() -> Ticks {
    // SAFETY: SSE2 (lfence) and the TSC are part of every x86-64 processor; where the kernel forbids RDTSC to user
    // space (PR_TSC_SIGSEGV) the process is killed by a signal, which is not a memory error.
    unsafe {
        // Earlier instructions end before the reading, later ones start behind it.
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        Ticks(ticks)
    }
}

/// The instruction RDTSCP, on a processor that has it.
#[derive(Debug, Clone, Copy)]
pub struct RdtscpInstruction(());

impl RdtscpInstruction {
    /// The instruction, if the processor has it.
    pub fn find() -> Option<Self> {
        let features = raw_cpuid::CpuId::new().get_extended_processor_and_feature_identifiers()?;
        features.has_rdtscp().then_some(Self(()))
    }

    /// Reads the counter and TSC_AUX at once; earlier instructions have ended, and later ones have not begun.
    #[inline(always)]
    pub fn read(self) -> (Ticks, u32) {
        let mut aux = 0;
        // SAFETY: a value of this type exists only where CPUID reports the instruction; `aux` is exclusive.
        unsafe {
            // It waits for earlier instructions by itself; the fence keeps later ones behind it.
            let ticks = __rdtscp(&mut aux);
            _mm_lfence();
            (Ticks(ticks), aux)
        }
    }
}
