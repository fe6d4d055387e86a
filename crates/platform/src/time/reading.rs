//! Ways of reading a clock over and over, for a loop that watches the clock itself.
//!
//! A [`Clock`](super::Clock) gives stamps that are comparable and fenced on both sides. A [`Reading`] is one exact
//! sequence of instructions, named by it, and nothing more: what is asked here is how often a clock that is read
//! without pause jumps. Those of the processor's counter use the suite's one calibration ([`Counter`](super::Counter)).
//!
//! Source of the sequences: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, RDTSC, RDTSCP and
//! CPUID. RDTSCP waits for the instructions before it by itself, RDTSC needs an LFENCE or CPUID in front. Arm Architecture
//! Reference Manual for A-profile, CNTVCT_EL0, which needs an ISB in front, and CNTVCTSS_EL0, which does not.

use serde::{Deserialize, Serialize};

#[cfg(target_arch = "x86_64")]
use super::RdtscpInstruction;
#[cfg(target_arch = "aarch64")]
use super::SelfSynchronised;
use super::{AnyClock, ClockError, ClockKind, Posix, Ticks, TscKilohertz, posix};

/// The sequences a clock can be read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadingKind {
    /// `clock_gettime(CLOCK_REALTIME)`; can be stepped, backwards too.
    Realtime,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    Monotonic,
    /// `clock_gettime(CLOCK_MONOTONIC_RAW)`.
    MonotonicRaw,
    /// `lfence; rdtsc`.
    Rdtsc,
    /// `cpuid; rdtscp`.
    Rdtscp,
    /// `rdtscp; lfence`.
    RdtscpLfence,
    /// `isb; mrs cntvct_el0`.
    Counter,
    /// `mrs cntvctss_el0`.
    CounterSs,
}

impl ReadingKind {
    /// All of this architecture.
    pub const ALL: &'static [ReadingKind] = &[
        ReadingKind::Realtime,
        ReadingKind::Monotonic,
        ReadingKind::MonotonicRaw,
        #[cfg(target_arch = "x86_64")]
        ReadingKind::Rdtsc,
        #[cfg(target_arch = "x86_64")]
        ReadingKind::Rdtscp,
        #[cfg(target_arch = "x86_64")]
        ReadingKind::RdtscpLfence,
        #[cfg(target_arch = "aarch64")]
        ReadingKind::Counter,
        #[cfg(target_arch = "aarch64")]
        ReadingKind::CounterSs,
    ];

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        self.described().0
    }

    /// The instructions or the call.
    pub const fn sequence(self) -> &'static str {
        self.described().1
    }

    const fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Realtime => ("realtime", "clock_gettime(CLOCK_REALTIME)"),
            Self::Monotonic => ("monotonic", "clock_gettime(CLOCK_MONOTONIC)"),
            Self::MonotonicRaw => ("monotonic-raw", "clock_gettime(CLOCK_MONOTONIC_RAW)"),
            Self::Rdtsc => ("rdtsc", "lfence; rdtsc"),
            Self::Rdtscp => ("rdtscp", "cpuid; rdtscp"),
            Self::RdtscpLfence => ("rdtscp-lfence", "rdtscp; lfence"),
            Self::Counter => ("counter", "isb; mrs cntvct_el0"),
            Self::CounterSs => ("counter-ss", "mrs cntvctss_el0"),
        }
    }

    /// Whether it reads the processor's counter, which does not count nanoseconds.
    pub const fn is_counter(self) -> bool {
        !matches!(
            self,
            ReadingKind::Realtime | ReadingKind::Monotonic | ReadingKind::MonotonicRaw
        )
    }
}

/// One sequence of instructions that reads a clock.
pub trait Reading: Copy + Send + Sync + 'static {
    /// Reads the clock and does `work` beside it: behind the reading and independent of it, so that a processor that
    /// executes out of order does both at once, and still in front of a fence that ends the sequence.
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T);

    /// Reads the clock.
    #[inline(always)]
    fn read(&self) -> Ticks {
        self.read_beside(|| ()).0
    }
}

/// `lfence; rdtsc`.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Rdtsc;

/// `cpuid; rdtscp`. In a guest, each `cpuid` exits to the hypervisor.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Rdtscp(RdtscpInstruction);

/// `rdtscp; lfence`.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct RdtscpLfence(RdtscpInstruction);

#[cfg(target_arch = "x86_64")]
impl Reading for Rdtsc {
    #[inline(always)]
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        use std::arch::x86_64::{_mm_lfence, _rdtsc};
        // SAFETY: SSE2 (lfence) and the TSC are part of every x86-64 processor; where the kernel forbids RDTSC to user
        // space (PR_TSC_SIGSEGV) the process is killed by a signal, which is not a memory error.
        let ticks = unsafe {
            _mm_lfence();
            _rdtsc()
        };
        (Ticks(ticks), work())
    }
}

#[cfg(target_arch = "x86_64")]
impl Reading for Rdtscp {
    #[inline(always)]
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        use std::arch::asm;
        use std::arch::x86_64::__rdtscp;
        let mut processor = 0;
        // SAFETY: every x86-64 processor has CPUID with leaf 0, which changes four registers: RBX is put back, because
        // the compiler keeps it for itself, the others are named. RDTSCP is there (`RdtscpInstruction`), and writes to
        // a variable of ours.
        let ticks = unsafe {
            asm!(
                "mov {saved}, rbx",
                "cpuid",
                "mov rbx, {saved}",
                saved = out(reg) _,
                inout("eax") 0 => _,
                inout("ecx") 0 => _,
                out("edx") _,
                options(nostack),
            );
            __rdtscp(&mut processor)
        };
        (Ticks(ticks), work())
    }
}

#[cfg(target_arch = "x86_64")]
impl Reading for RdtscpLfence {
    #[inline(always)]
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        use std::arch::x86_64::{__rdtscp, _mm_lfence};
        let mut processor = 0;
        // SAFETY: RDTSCP is there (`RdtscpInstruction`), and writes to a variable of ours.
        let ticks = unsafe { __rdtscp(&mut processor) };
        let done = work();
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { _mm_lfence() };
        (Ticks(ticks), done)
    }
}

/// `isb; mrs cntvct_el0`.
#[cfg(target_arch = "aarch64")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cntvct;

#[cfg(target_arch = "aarch64")]
impl Reading for Cntvct {
    #[inline(always)]
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        (super::counter::read_behind_isb(), work())
    }
}

/// `mrs cntvctss_el0`.
#[cfg(target_arch = "aarch64")]
impl Reading for SelfSynchronised {
    #[inline(always)]
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        (self.read_alone(), work())
    }
}

/// Any POSIX clock, as a [`Reading`]. `CLOCK_REALTIME`, the time of day, can be stepped in both directions: it is not a
/// [`Clock`](super::Clock), of whose stamps differences are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PosixReading(libc::clockid_t);

impl PosixReading {
    /// `CLOCK_REALTIME`.
    pub const REALTIME: Self = PosixReading(libc::CLOCK_REALTIME);
}

impl From<Posix> for PosixReading {
    fn from(clock: Posix) -> Self {
        PosixReading(clock.0)
    }
}

impl Reading for PosixReading {
    #[inline(always)]
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        // SAFETY: every Linux has the three clocks that a `PosixReading` can name.
        (unsafe { posix::read(self.0) }, work())
    }
}

/// Something to be done with whichever reading was chosen; the way from a value to a type.
pub trait ReadingUser {
    /// What comes of it.
    type Output;
    /// Called with the reading.
    fn with<R: Reading>(self, reading: R) -> Self::Output;
}

/// A reading that was found to work here, with the length of its ticks.
#[derive(Debug, Clone, Copy)]
pub struct AnyReading {
    scale: AnyClock,
    sequence: Sequence,
}

#[derive(Debug, Clone, Copy)]
enum Sequence {
    Posix(PosixReading),
    #[cfg(target_arch = "x86_64")]
    Rdtsc(Rdtsc),
    #[cfg(target_arch = "x86_64")]
    Rdtscp(Rdtscp),
    #[cfg(target_arch = "x86_64")]
    RdtscpLfence(RdtscpLfence),
    #[cfg(target_arch = "aarch64")]
    Counter(Cntvct),
    #[cfg(target_arch = "aarch64")]
    CounterSs(SelfSynchronised),
}

impl AnyReading {
    /// Makes a reading ready. For those of the counter this checks that it can be trusted and measures its rate, unless
    /// that is given.
    pub fn prepare(kind: ReadingKind, tsc_khz: Option<TscKilohertz>) -> Result<Self, ClockError> {
        #[cfg(target_arch = "x86_64")]
        let rdtscp = || RdtscpInstruction::find().ok_or(ClockError::NoRdtscp);
        let sequence = match kind {
            ReadingKind::Realtime => Sequence::Posix(PosixReading::REALTIME),
            ReadingKind::Monotonic => Sequence::Posix(Posix::MONOTONIC.into()),
            ReadingKind::MonotonicRaw => Sequence::Posix(Posix::MONOTONIC_RAW.into()),
            #[cfg(target_arch = "x86_64")]
            ReadingKind::Rdtsc => Sequence::Rdtsc(Rdtsc),
            #[cfg(target_arch = "x86_64")]
            ReadingKind::Rdtscp => Sequence::Rdtscp(Rdtscp(rdtscp()?)),
            #[cfg(target_arch = "x86_64")]
            ReadingKind::RdtscpLfence => Sequence::RdtscpLfence(RdtscpLfence(rdtscp()?)),
            #[cfg(target_arch = "aarch64")]
            ReadingKind::Counter => Sequence::Counter(Cntvct),
            #[cfg(target_arch = "aarch64")]
            ReadingKind::CounterSs => {
                Sequence::CounterSs(SelfSynchronised::find().ok_or(ClockError::NoSelfSynchronised)?)
            }
            _ => return Err(ClockError::NotThisArchitecture { name: kind.name() }),
        };
        let scale = if kind.is_counter() {
            ClockKind::Counter
        } else {
            ClockKind::Monotonic
        };
        Ok(AnyReading {
            scale: AnyClock::prepare_with(scale, tsc_khz)?,
            sequence,
        })
    }

    /// A clock whose ticks are as long.
    pub fn scale(&self) -> AnyClock {
        self.scale
    }

    /// Hands the reading to `user` as its own type, so that what follows is compiled for it alone.
    pub fn visit<U: ReadingUser>(self, user: U) -> U::Output {
        match self.sequence {
            Sequence::Posix(reading) => user.with(reading),
            #[cfg(target_arch = "x86_64")]
            Sequence::Rdtsc(reading) => user.with(reading),
            #[cfg(target_arch = "x86_64")]
            Sequence::Rdtscp(reading) => user.with(reading),
            #[cfg(target_arch = "x86_64")]
            Sequence::RdtscpLfence(reading) => user.with(reading),
            #[cfg(target_arch = "aarch64")]
            Sequence::Counter(reading) => user.with(reading),
            #[cfg(target_arch = "aarch64")]
            Sequence::CounterSs(reading) => user.with(reading),
        }
    }

    /// Reads the clock once: what is read again and again visits it.
    pub fn read(self) -> Ticks {
        struct Once;
        impl ReadingUser for Once {
            type Output = Ticks;
            fn with<R: Reading>(self, reading: R) -> Ticks {
                reading.read()
            }
        }
        self.visit(Once)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Clock;

    #[test]
    fn each_reading_rises_by_the_time_slept_or_says_why_it_cannot_be_used() {
        for &kind in ReadingKind::ALL {
            let reading = match AnyReading::prepare(kind, None) {
                Ok(reading) => reading,
                Err(reason) => {
                    assert!(kind.is_counter() && reason.to_string().contains("--clock"));
                    continue;
                }
            };
            assert_eq!(reading.scale().tsc_facts().is_some(), kind.is_counter());
            let begun = std::time::Instant::now();
            let [first, second, third] = [(); 3].map(|()| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                reading.read()
            });
            let most = begun.elapsed().as_nanos() as u64 / 100 * 105;
            for difference in [second.0 - first.0, third.0 - second.0] {
                let nanos = reading.scale().to_nanos(Ticks(difference)).0;
                assert!((950_000..most).contains(&nanos), "{}: {nanos}", kind.name());
            }
        }
    }
}
