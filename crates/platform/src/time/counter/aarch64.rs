//! The counter of Arm's generic timer.
//!
//! Sources: Arm Architecture Reference Manual for A-profile, D12 (the generic timer), CNTVCT_EL0, CNTVCTSS_EL0 and
//! CNTFRQ_EL0. A reading of CNTVCT_EL0 may be executed early: before a load in front of it, whose value nothing has
//! used yet. The manual's own example polls a word, branches on it, issues ISB, and reads the counter: what the branch
//! lets pass has been read, and behind the ISB nothing is executed before it. Who polls here branches too. A reading of
//! CNTVCTSS_EL0 (FEAT_ECV) waits for all that by itself. The second ISB keeps instructions behind the reading, such as
//! a store to a doorbell, from being executed before it.

use std::arch::asm;

use super::TscTrust;
use crate::time::{ClockError, Ticks};

/// What the counter is called in messages.
pub const COUNTER_IN_WORDS: &str = "counter";

/// The register that orders its readings by itself, on a processor that has it.
#[derive(Debug, Clone, Copy)]
pub struct SelfSynchronised(());

impl SelfSynchronised {
    /// The register, if the processor has it (FEAT_ECV) and the kernel reports it.
    pub fn find() -> Option<Self> {
        super::generic_timer::is_self_synchronised().then_some(Self(()))
    }

    /// Reads it alone: the instructions before it have been executed.
    #[inline(always)]
    pub fn read_alone(self) -> Ticks {
        let ticks: u64;
        // SAFETY: a value of this type exists only where the register is. Not `nomem`: the compiler moves no access to
        // memory from one side to the other.
        unsafe { asm!("mrs {}, S3_3_C14_C0_6", out(reg) ticks, options(nostack, preserves_flags)) };
        Ticks(ticks)
    }
}

/// Reads CNTVCT_EL0 behind an ISB: the instructions before it have been executed.
#[inline(always)]
pub(in crate::time) fn read_behind_isb() -> Ticks {
    let ticks: u64;
    // SAFETY: Linux lets user space read it (or reads it for user space, on processors with a defect). As above.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
    Ticks(ticks)
}

/// Orders the instructions behind it after those before it.
#[inline(always)]
fn isb() {
    // SAFETY: it accesses nothing.
    unsafe { asm!("isb", options(nostack, preserves_flags)) };
}

/// How the counter is read here.
#[derive(Debug, Clone, Copy)]
pub struct CounterReader(Option<SelfSynchronised>);

impl CounterReader {
    /// The way for this processor.
    pub fn find() -> Self {
        CounterReader(SelfSynchronised::find())
    }

    /// Reads the counter without a rate: earlier instructions have ended, and later ones have not begun.
    #[inline(always)]
    pub fn read(self) -> Ticks {
        // The branch goes the same way each time, and costs less than an ISB.
        let ticks = match self.0 {
            Some(register) => register.read_alone(),
            None => read_behind_isb(),
        };
        isb();
        ticks
    }

    /// Reads CNTVCT_EL0 alone, while instructions before it may not have ended, and later ones may have begun.
    #[inline(always)]
    pub(super) fn read_unfenced(self) -> Ticks {
        let ticks: u64;
        // SAFETY: as in `read_behind_isb`.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
        Ticks(ticks)
    }
}

/// Counts per second as firmware has written them to CNTFRQ_EL0.
pub(super) fn reported_hertz() -> Option<f64> {
    super::generic_timer::frequency().map(|hertz| hertz as f64)
}

impl TscTrust {
    /// The architecture vouches for the counter, if firmware has set its rate.
    pub fn find() -> Result<Self, ClockError> {
        match reported_hertz() {
            Some(_) => Ok(TscTrust::Architecture),
            None => Err(ClockError::NoRate),
        }
    }
}
