//! The x86 time stamp counter.
//!
//! Source of the reading's order: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, RDTSC: an
//! LFENCE before it lets all earlier instructions and loads finish, one behind it keeps later ones from starting.

use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

use super::{
    Calibration, CalibrationError, Clock, MonotonicRaw, Nanos, Ticks, TscKilohertz, TscRate,
    TscTrust, calibrate_against, trust::cpuid::has_rdtscp, trust::voucher::NotVouchedFor,
};

const FRACTION_BITS: u32 = 40;

/// The time stamp counter, with the rate it is converted by.
#[derive(Debug, Clone, Copy)]
pub struct Tsc {
    rate: TscRate,
    trust: TscTrust,
    /// Nanoseconds per tick, as a fixed-point number with [`FRACTION_BITS`] behind the point.
    nanos_per_tick: u64,
}

/// Why the time stamp counter cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TscError {
    /// Neither the processor nor the kernel vouches for it.
    #[error(transparent)]
    NotTrusted(#[from] NotVouchedFor),
    /// Its rate could not be measured.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
}

impl Tsc {
    /// Checks that the TSC can be trusted, and takes the given rate, or the measured one if none is given. It is
    /// measured in both cases.
    ///
    /// # Errors
    /// When it cannot be trusted, or no rate is given and the measured one does not settle.
    pub fn with_rate(given: Option<TscKilohertz>) -> Result<Self, TscError> {
        let trust = TscTrust::find()?;
        let rate = TscRate::decide(given, measure_tsc_rate())?;
        Ok(Self::new(trust, rate))
    }

    fn new(trust: TscTrust, rate: TscRate) -> Self {
        let nanos_per_tick = (1e9 / rate.hertz * (1u64 << FRACTION_BITS) as f64).round() as u64;
        Tsc {
            rate,
            trust,
            nanos_per_tick,
        }
    }

    /// What vouches for it.
    pub fn trust(&self) -> TscTrust {
        self.trust
    }

    /// The rate, and where it comes from.
    pub fn rate(&self) -> TscRate {
        self.rate
    }
}

/// Measures the rate of the TSC against `CLOCK_MONOTONIC_RAW`, whoever vouches for it; takes 60 ms as a rule.
///
/// # Errors
/// When the rate does not settle within about a second.
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
        has_rdtscp(&raw_cpuid::CpuId::new()).then_some(Self(()))
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

    #[test]
    fn a_given_rate_is_what_ticks_are_converted_by() {
        let measured = at(2e9).rate().measured.unwrap();
        let rate = TscRate::decide(TscKilohertz::new(4_000_000), Ok(measured)).unwrap();
        let clock = Tsc::new(TscTrust::Invariant, rate);
        assert_eq!(clock.to_nanos(Ticks(4_000_000)), Nanos(1_000_000));
        assert_eq!(clock.ticks_in(Nanos(1_000)), Ticks(4_000));
    }

    #[test]
    fn the_real_counter_agrees_with_the_raw_clock_or_says_why_not() {
        let clock = match Tsc::with_rate(None) {
            Ok(clock) => clock,
            Err(reason) => {
                assert!(reason.to_string().contains("--clock monotonic"));
                return;
            }
        };
        let raw = MonotonicRaw::default();
        let (tsc_before, raw_before) = (clock.now(), raw.now());
        std::thread::sleep(std::time::Duration::from_millis(100));
        let (tsc_after, raw_after) = (clock.now(), raw.now());
        let by_tsc = clock.to_nanos(tsc_after).0 - clock.to_nanos(tsc_before).0;
        let by_raw = raw_after.0 - raw_before.0;
        // The readings of a pair can be torn apart by the scheduler: a loose bound, the strict ones use a script.
        let ratio = by_tsc as f64 / by_raw as f64;
        assert!((0.9..1.1).contains(&ratio), "{by_tsc} against {by_raw}");
    }
}
