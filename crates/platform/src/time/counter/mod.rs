//! The processor's own counter: the time stamp counter of x86-64, the generic timer's of Arm, one file each.
//!
//! Its name on the command line and in results is `tsc` on x86-64 and `counter` elsewhere; `counter` is understood
//! everywhere.

use serde::Serialize;

use super::{
    Calibration, CalibrationError, Clock, ClockError, Nanos, Posix, RateSource, Ticks, TscFacts,
    TscKilohertz, TscRate, calibrate_against,
};

mod generic_timer;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod processor;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "none.rs"]
mod processor;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod processor;

pub use generic_timer::GenericTimer;
#[cfg(target_arch = "aarch64")]
pub use processor::SelfSynchronised;
#[cfg(target_arch = "aarch64")]
pub(super) use processor::read_behind_isb;
pub use processor::{COUNTER_IN_WORDS, CounterReader};
#[cfg(target_arch = "x86_64")]
pub use processor::{RdtscpInstruction, read_tsc};

const FRACTION_BITS: u32 = 40;

/// The processor's counter, with the rate it is converted by.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    reader: CounterReader,
    /// What vouches for it, and its rate.
    pub(super) facts: TscFacts,
    /// Nanoseconds per tick, as a fixed-point number with [`FRACTION_BITS`] behind the point.
    nanos_per_tick: u64,
}

/// What vouches for the counter: that it is constant, and the same on all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TscTrust {
    /// The processor reports that its TSC is invariant (CPUID 8000_0007H, EDX bit 8).
    Invariant,
    /// The processor does not, but the kernel keeps its own time by it.
    ClockSource,
    /// The architecture does: Arm's generic timer has one constant counter for all processors of a system (Arm
    /// Architecture Reference Manual, D12, the system counter).
    Architecture,
}

impl Counter {
    /// Checks that the counter can be trusted, and takes the given rate, or the one that the processor reports, or the
    /// measured one. It is measured in all cases.
    pub fn with_rate(given: Option<TscKilohertz>) -> Result<Self, ClockError> {
        let trust = TscTrust::find()?;
        let rate = TscRate::decide(given, processor::reported_hertz(), measure_tsc_rate())?;
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
        Counter {
            reader: CounterReader::find(),
            facts: TscFacts { trust, rate },
            nanos_per_tick,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Counter {
    /// One of a rate that nothing vouches for.
    pub fn of_made_up_rate(hertz: f64) -> Self {
        let rate = TscRate::decide(None, None, Ok(Calibration::of(hertz)));
        Counter::new(TscTrust::Invariant, rate.expect("a rate that was measured"))
    }
}

/// Measures the rate of the counter against `CLOCK_MONOTONIC_RAW`, also where it is not trusted; takes 60 ms as a rule.
pub fn measure_tsc_rate() -> Result<Calibration, CalibrationError> {
    let reader = CounterReader::find();
    calibrate_against(
        || reader.read().0,
        &Posix::MONOTONIC_RAW,
        std::thread::sleep,
    )
}

/// Counts per second as the processor itself reports them, where it does.
pub fn reported_counter_rate() -> Option<f64> {
    processor::reported_hertz()
}

/// The counter read without fences.
///
/// For operations that take little more than a fence. Without it a processor that executes out of order may read the
/// counter before instructions in front of it have ended, or after some behind it have begun: as many as it has under
/// way at once, some hundred. So a time may be too short or too long by that, which is as long as a line of another
/// core's cache takes to come, and what is between two times is as uncertain. The readings of a thread were not seen to
/// fall (a test below, AMD EPYC, 29 November 2026); the manuals do not promise it.
#[derive(Debug, Clone, Copy)]
pub struct UnfencedCounter(Counter);

impl UnfencedCounter {
    /// Its name on the command line and in results.
    pub const NAME: &'static str = if cfg!(target_arch = "x86_64") {
        "tsc-unfenced"
    } else {
        "counter-unfenced"
    };
}

impl Counter {
    /// The same counter at the same rate, read without fences.
    pub fn unfenced(&self) -> UnfencedCounter {
        UnfencedCounter(*self)
    }
}

impl Clock for UnfencedCounter {
    #[inline(always)]
    fn now(&self) -> Ticks {
        self.0.reader.read_unfenced()
    }

    fn to_nanos(&self, reading: Ticks) -> Nanos {
        self.0.to_nanos(reading)
    }

    fn ticks_in(&self, length: Nanos) -> Ticks {
        self.0.ticks_in(length)
    }
}

impl Clock for Counter {
    #[inline(always)]
    fn now(&self) -> Ticks {
        self.reader.read()
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

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn the_counter_rises_and_never_falls_in_a_thread() {
        let reader = CounterReader::find();
        for read in [CounterReader::read, CounterReader::read_unfenced] {
            let begun = read(reader);
            std::thread::sleep(std::time::Duration::from_millis(1));
            let mut before = read(reader);
            assert!(before > begun);
            for _ in 0..10_000 {
                let now = read(reader);
                assert!(now >= before);
                before = now;
            }
        }
    }

    #[test]
    fn ticks_become_nanoseconds_and_back() {
        let clock = Counter::of_made_up_rate(2.5e9);
        assert_eq!(clock.to_nanos(Ticks(2_500_000_000)), Nanos(1_000_000_000));
        assert_eq!(clock.ticks_in(Nanos(50_000)), Ticks(125_000));
        // A year of ticks neither overflows nor drifts by more than the fraction's resolution.
        let year = 365 * 86_400;
        let nanos = Counter::of_made_up_rate(3e9)
            .to_nanos(Ticks(year * 3_000_000_000))
            .0;
        let error = nanos.abs_diff(year * 1_000_000_000) as f64 / (year as f64 * 1e9);
        assert!(error < 1e-11, "{error}");
    }
}
