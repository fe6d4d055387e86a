//! The x86 time stamp counter.
//!
//! Source of the reading's order: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, RDTSC: an
//! LFENCE before it lets all earlier instructions and loads finish, one behind it keeps later ones from starting.

use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

use serde::Serialize;

use super::{
    Calibration, CalibrationError, Clock, ClockError, MonotonicRaw, Nanos, RateSource, Ticks,
    TscFacts, TscKilohertz, TscRate, calibrate_against,
};

const FRACTION_BITS: u32 = 40;

/// The time stamp counter, with the rate it is converted by.
#[derive(Debug, Clone, Copy)]
pub struct Tsc {
    /// What vouches for it, and its rate.
    pub(super) facts: TscFacts,
    /// Nanoseconds per tick, as a fixed-point number with [`FRACTION_BITS`] behind the point.
    nanos_per_tick: u64,
}

/// What vouches for the counter: that it is constant, and the same on all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TscTrust {
    /// The processor says that its TSC is invariant (CPUID 8000_0007H, EDX bit 8).
    Invariant,
    /// The processor does not, but the kernel keeps its own time by it.
    ClockSource,
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

impl Tsc {
    /// Checks that the TSC can be trusted, and takes the given rate, or the measured one if none is given. It is
    /// measured in both cases.
    pub fn with_rate(given: Option<TscKilohertz>) -> Result<Self, ClockError> {
        let trust = TscTrust::find()?;
        let rate = TscRate::decide(given, measure_tsc_rate())?;
        Ok(Self::new(trust, rate))
    }

    /// Checks the same, and takes a rate that was measured elsewhere.
    pub(super) fn at_rate(hertz: f64) -> Result<Self, ClockError> {
        let rate = TscRate {
            hertz,
            source: RateSource::Measured,
            measured: None,
            given_off_ppm: None,
        };
        Ok(Self::new(TscTrust::find()?, rate))
    }

    fn new(trust: TscTrust, rate: TscRate) -> Self {
        let nanos_per_tick = (1e9 / rate.hertz * (1u64 << FRACTION_BITS) as f64).round() as u64;
        Tsc {
            facts: TscFacts { trust, rate },
            nanos_per_tick,
        }
    }
}

/// Measures the rate of the TSC against `CLOCK_MONOTONIC_RAW`, whoever vouches for it; takes 60 ms as a rule.
pub fn measure_tsc_rate() -> Result<Calibration, CalibrationError> {
    calibrate_against(
        || read_tsc().0,
        &MonotonicRaw::default(),
        std::thread::sleep,
    )
}

/// Reads the counter without a rate: earlier instructions have ended, and later ones have not begun.
#[inline(always)]
pub fn read_tsc() -> Ticks {
    // SAFETY: SSE2 (lfence) and the TSC are part of every x86-64 processor; where the kernel forbids RDTSC to user
    // space (PR_TSC_SIGSEGV) the process is killed by a signal, which is no memory error.
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

impl Clock for Tsc {
    #[inline(always)]
    fn now(&self) -> Ticks {
        read_tsc()
    }

    fn to_nanos(&self, reading: Ticks) -> Nanos {
        let nanos = reading.0 as u128 * self.nanos_per_tick as u128 + (1 << (FRACTION_BITS - 1));
        Nanos((nanos >> FRACTION_BITS) as u64)
    }

    fn ticks_in(&self, length: Nanos) -> Ticks {
        let per_tick = self.nanos_per_tick as u128;
        Ticks(((((length.0 as u128) << FRACTION_BITS) + per_tick / 2) / per_tick) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hertz: f64) -> Tsc {
        let rate = TscRate::decide(None, Ok(Calibration::of(hertz)));
        Tsc::new(TscTrust::Invariant, rate.unwrap())
    }

    #[test]
    fn ticks_become_nanoseconds_and_back() {
        let clock = at(2.5e9);
        assert_eq!(clock.to_nanos(Ticks(2_500_000_000)), Nanos(1_000_000_000));
        assert_eq!(clock.ticks_in(Nanos(50_000)), Ticks(125_000));
        // A year of ticks neither overflows nor drifts by more than the fraction's resolution.
        let year = 365 * 86_400;
        let nanos = at(3e9).to_nanos(Ticks(year * 3_000_000_000)).0;
        let error = nanos.abs_diff(year * 1_000_000_000) as f64 / (year as f64 * 1e9);
        assert!(error < 1e-11, "{error}");
    }
}
