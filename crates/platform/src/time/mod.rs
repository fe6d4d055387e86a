//! Time stamps: what a clock is, what it returns, and what reading it costs.
//!
//! A benchmark stores raw [`Ticks`] while it measures and turns them into [`Nanos`] afterwards, so that the hot loop
//! holds nothing but the reading itself.

mod anchors;
pub mod between;
mod calibrate;
mod cost;
mod counter;
mod counter_line;
mod posix;
mod rate;
mod reading;

pub use anchors::{Anchors, raw_now};
pub use calibrate::{Calibration, CalibrationError, calibrate_against};
pub use cost::{StampCost, measure_stamp_cost};
#[cfg(target_arch = "aarch64")]
pub use counter::SelfSynchronised;
pub use counter::{
    COUNTER_IN_WORDS, Counter, CounterReader, GenericTimer, TscTrust, UnfencedCounter,
    measure_tsc_rate, reported_counter_rate,
};
#[cfg(target_arch = "x86_64")]
pub use counter::{RdtscpInstruction, read_tsc};
pub use counter_line::{CounterKind, CounterLine, CounterPair, drift_ns, greatest_drift_ns};
pub use posix::Posix;
pub use rate::{RateDoubt, RateSource, TscKilohertz, TscRate};
pub use reading::{AnyReading, PosixReading, Reading, ReadingKind, ReadingUser};

use serde::{Deserialize, Serialize};

/// A raw reading of a clock, in that clock's own unit (nanoseconds for POSIX clocks, counts for the processor's counter).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[repr(transparent)]
pub struct Ticks(pub u64);

/// A number of nanoseconds: a point on a clock or a length of time, by its name.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl From<std::time::Duration> for Nanos {
    /// Lengths beyond 584 years are cut to the largest value.
    fn from(length: std::time::Duration) -> Self {
        Nanos(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The clocks a run can be timed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// `CLOCK_MONOTONIC`: steered by NTP in rate, never stepped.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`: the same without the steering.
    MonotonicRaw,
    /// The processor's counter, read with a fence on either side: the TSC of x86-64, the generic timer's of Arm.
    #[cfg_attr(target_arch = "x86_64", serde(rename = "tsc", alias = "counter"))]
    #[cfg_attr(not(target_arch = "x86_64"), serde(alias = "tsc"))]
    Counter,
}

impl ClockKind {
    /// The processor's counter, or `CLOCK_MONOTONIC` where nothing vouches for it, or where there is none.
    pub fn finest() -> Self {
        match TscTrust::find() {
            Ok(_) => ClockKind::Counter,
            Err(_) => ClockKind::Monotonic,
        }
    }

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            ClockKind::Monotonic => "monotonic",
            ClockKind::MonotonicRaw => "monotonic-raw",
            ClockKind::Counter if cfg!(target_arch = "x86_64") => "tsc",
            ClockKind::Counter => "counter",
        }
    }
}

/// A source of time stamps that are comparable between the CPUs of one host.
pub trait Clock: Copy + Send + Sync + 'static {
    /// Reads the clock. Instructions before the call have been executed before the reading, but for
    /// [`UnfencedCounter`].
    fn now(&self) -> Ticks;

    /// The point in nanoseconds that a reading stands for; a tick is a nanosecond unless the clock defines it
    /// otherwise.
    fn to_nanos(&self, reading: Ticks) -> Nanos {
        Nanos(reading.0)
    }

    /// The number of ticks in a length of time, rounded to the nearest.
    fn ticks_in(&self, length: Nanos) -> Ticks {
        Ticks(length.0)
    }

    /// By how much its rate may change while it is read, as a share of it: an oscillator is that steady over seconds.
    fn rate_change(&self) -> f64 {
        1e-6
    }
}

/// Something to be done with whichever clock a configuration names; the way from a value to a type.
pub trait ClockUser {
    /// What comes of it.
    type Output;
    /// Called with the clock.
    fn with<C: Clock>(self, clock: C) -> Self::Output;
}

/// A clock that is ready to be read, chosen at run time.
#[derive(Debug, Clone, Copy)]
pub enum AnyClock {
    /// `CLOCK_MONOTONIC` or `CLOCK_MONOTONIC_RAW`.
    Posix(Posix),
    /// The processor's counter, calibrated.
    Counter(Counter),
}

/// Why the processor's counter is used, and at which rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TscFacts {
    /// What vouches for it.
    pub trust: TscTrust,
    /// The rate, and where it comes from.
    #[serde(flatten)]
    pub rate: TscRate,
}

/// Why a clock cannot be used here.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// Neither the processor nor the kernel vouches for the TSC.
    #[error(
        "the TSC cannot be used as a clock: the processor does not call it invariant or the kernel has dropped it, and \
         the kernel's clock source is {clock_source}, not tsc: use --clock monotonic"
    )]
    NotVouchedFor {
        /// The kernel's current clock source.
        clock_source: String,
    },
    /// The rate of the TSC could not be measured.
    #[error(transparent)]
    Unsettled(#[from] CalibrationError),
    /// The counter of this architecture is not known here.
    #[error(
        "the processor's counter is a clock on x86-64 (tsc) and aarch64 (counter) only: use --clock monotonic or \
         monotonic-raw"
    )]
    NoCounter,
    /// Firmware does not report the rate of Arm's generic timer, so it may not have set it up either.
    #[error(
        "the counter cannot be used as a clock: CNTFRQ_EL0, where firmware writes its rate, is 0: use --clock monotonic"
    )]
    NoRate,
    /// The same, for a way of reading it.
    #[error(
        "the clock {name} reads a counter that this architecture ({}) does not have: use --clock monotonic-raw, \
         monotonic or realtime",
        std::env::consts::ARCH
    )]
    NotThisArchitecture {
        /// The reading's name.
        name: &'static str,
    },
    /// The register is missing.
    #[error(
        "this processor has no register CNTVCTSS_EL0 (FEAT_ECV): use --clock counter or monotonic-raw"
    )]
    NoSelfSynchronised,
    /// The instruction is missing.
    #[error("this processor has no RDTSCP instruction: use --clock rdtsc or monotonic-raw")]
    NoRdtscp,
}

impl AnyClock {
    /// Makes the clock ready. For the counter this checks that it can be trusted and calibrates it (a fraction of a
    /// second).
    pub fn prepare(kind: ClockKind) -> Result<Self, ClockError> {
        Self::prepare_with(kind, None)
    }

    /// As [`AnyClock::prepare`], with the rate of the counter given; the POSIX clocks have no use for it.
    pub fn prepare_with(
        kind: ClockKind,
        tsc_rate: Option<TscKilohertz>,
    ) -> Result<Self, ClockError> {
        match kind {
            ClockKind::Monotonic => Ok(AnyClock::Posix(Posix::MONOTONIC)),
            ClockKind::MonotonicRaw => Ok(AnyClock::Posix(Posix::MONOTONIC_RAW)),
            ClockKind::Counter => Ok(AnyClock::Counter(Counter::with_rate(tsc_rate)?)),
        }
    }

    /// The clock as another process of the same run has it, which has found the counter to be trusted, and its counts a
    /// second.
    ///
    /// # Errors
    /// When the counter cannot be trusted.
    pub fn at_rate(kind: ClockKind, tsc_hertz: Option<f64>) -> Result<Self, ClockError> {
        match (kind, tsc_hertz) {
            (ClockKind::Counter, Some(hertz)) => Ok(AnyClock::Counter(Counter::at_rate(hertz)?)),
            _ => Self::prepare(kind),
        }
    }

    /// Which clock it is.
    pub fn kind(&self) -> ClockKind {
        match self {
            AnyClock::Posix(clock) if clock.is_raw() => ClockKind::MonotonicRaw,
            AnyClock::Posix(_) => ClockKind::Monotonic,
            AnyClock::Counter(_) => ClockKind::Counter,
        }
    }

    /// Hands the clock to `user` as its own type, so that what follows is compiled for that clock alone.
    pub fn visit<U: ClockUser>(self, user: U) -> U::Output {
        match self {
            AnyClock::Posix(clock) => user.with(clock),
            AnyClock::Counter(clock) => user.with(clock),
        }
    }

    /// Nanoseconds in a tick.
    pub fn nanos_per_tick(&self) -> f64 {
        self.tsc_facts().map_or(1.0, |facts| 1e9 / facts.rate.hertz)
    }

    /// What there is to know of the counter; `None` for the POSIX clocks.
    pub fn tsc_facts(&self) -> Option<TscFacts> {
        match self {
            AnyClock::Counter(clock) => Some(clock.facts),
            _ => None,
        }
    }
}

/// As a clock itself it asks at each reading which one it is: for readings that are in no sample.
impl Clock for AnyClock {
    #[inline]
    fn now(&self) -> Ticks {
        match self {
            AnyClock::Posix(clock) => clock.now(),
            AnyClock::Counter(clock) => clock.now(),
        }
    }

    fn to_nanos(&self, reading: Ticks) -> Nanos {
        match self {
            AnyClock::Counter(clock) => clock.to_nanos(reading),
            _ => Nanos(reading.0),
        }
    }

    fn rate_change(&self) -> f64 {
        match self {
            AnyClock::Posix(clock) => clock.rate_change(),
            AnyClock::Counter(clock) => clock.rate_change(),
        }
    }

    fn ticks_in(&self, length: Nanos) -> Ticks {
        match self {
            AnyClock::Counter(clock) => clock.ticks_in(length),
            _ => Ticks(length.0),
        }
    }
}
