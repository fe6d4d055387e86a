//! What vouches for the time stamp counter, before it is used as a clock.

use serde::Serialize;

use super::cpuid::is_invariant;

/// What vouches for the counter: that it is constant, and the same on all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TscTrust {
    /// The processor says that its TSC is invariant (CPUID 8000_0007H, EDX bit 8).
    Invariant,
    /// The processor does not, but the kernel keeps its own time by it.
    ClockSource,
}

/// Neither the processor nor the kernel vouches for the counter.
#[derive(Debug, thiserror::Error)]
#[error(
    "the TSC cannot be used as a clock: the processor does not call it invariant or the kernel has dropped it, and \
     the kernel's clock source is {clock_source}, not tsc: use --clock monotonic"
)]
pub struct NotVouchedFor {
    /// The kernel's current clock source.
    pub clock_source: String,
}

impl TscTrust {
    /// Finds out what vouches for the TSC.
    ///
    /// # Errors
    /// When nothing does.
    pub fn find() -> Result<Self, NotVouchedFor> {
        const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0";
        let sources = std::fs::read_to_string(format!("{SOURCES}/available_clocksource"));
        // A kernel that has found it unstable or different between CPUs takes it off its list.
        let dropped =
            sources.is_ok_and(|list| !list.split_ascii_whitespace().any(|one| one == "tsc"));
        if is_invariant(&raw_cpuid::CpuId::new()) && !dropped {
            return Ok(TscTrust::Invariant);
        }
        let clock_source = std::fs::read_to_string(format!("{SOURCES}/current_clocksource"))
            .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
        if clock_source == "tsc" {
            Ok(TscTrust::ClockSource)
        } else {
            Err(NotVouchedFor { clock_source })
        }
    }
}
