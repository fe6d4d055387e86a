//! Whether the time stamp counter of this machine can be trusted as a clock.
//!
//! | what is asked | module |
//! | --- | --- |
//! | what processor, kernel and hypervisor say of it | [`sources`] |
//! | the offset of each CPU's counter against the first's: a cache line is handed to and fro | [`exchange`] |
//! | whether it goes backwards: in one thread that is moved from CPU to CPU, and between all CPUs at once | [`reads`] |
//! | what it comes to | [`verdict`] |
//!
//! What cannot be found out is in the [`Report`] with the reason. Left out: changes over hours (a live migration, a
//! suspend), which a look of seconds cannot see.

pub mod exchange;
pub mod reads;
#[cfg(target_arch = "x86_64")]
pub mod sources;
pub mod verdict;

#[cfg(target_arch = "x86_64")]
mod examine;

#[cfg(target_arch = "x86_64")]
pub use examine::examine;
pub use verdict::{Judgement, Reason, Verdict};

use std::time::Duration;

use serde::Serialize;

use self::reads::{Crossed, Shared};
use crate::host::HostError;
use crate::host::fingerprint;
use crate::time::trust::frequency::Frequencies;
use crate::time::trust::offset::Offset;
use crate::time::{TscKilohertz, TscRate};

/// Readings for the monotony if nobody asks for another number.
pub const DEFAULT_READS: u64 = 4_000_000;

/// What is to be examined, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Readings for the monotony, both with migrations and between CPUs.
    pub reads: u64,
    /// The rate that the user gives.
    pub given: Option<TscKilohertz>,
}

/// Why nothing could be examined.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// This is no x86-64.
    #[error(
        "there is no TSC on this architecture ({}), so there is nothing to trust: the clocks monotonic, monotonic-raw and \
         realtime work here",
        std::env::consts::ARCH
    )]
    NoTsc,
    /// A thread could not be pinned.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}; look at ulimit -u")]
    Spawn(std::io::Error),
    /// A signal came.
    #[error("interrupted before the verdict")]
    Interrupted,
}

/// Something that was found out, or why it was not.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding<T> {
    /// It was.
    Found(T),
    /// It was not, for this reason.
    Missing(String),
}

impl<T> Finding<T> {
    /// What was found.
    pub fn found(&self) -> Option<&T> {
        match self {
            Finding::Found(found) => Some(found),
            Finding::Missing(_) => None,
        }
    }
}

/// The counter of a CPU against that of the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuOffset {
    /// The CPU.
    pub cpu: usize,
    /// In counts.
    pub offset: Finding<Offset>,
    /// In nanoseconds; `None` where the offset or the rate is missing.
    pub offset_ns: Option<f64>,
    /// Half of the shortest round trip, in nanoseconds.
    pub uncertainty_ns: Option<f64>,
}

/// The counters of all CPUs against that of the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuOffsets {
    /// The CPU that the others are compared with.
    pub against_cpu: usize,
    /// Each of the others.
    pub cpus: Vec<CpuOffset>,
}

/// All that was found out of the counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What it comes to.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The kernel's clock and the flags.
    pub clock: fingerprint::Clock,
    /// Whether the processor has the instruction rdtscp.
    pub rdtscp: bool,
    /// What stands below the kernel.
    pub virtualisation: fingerprint::Virtualisation,
    /// The rate by each source.
    pub frequencies: Frequencies,
    /// The rate that the suite converts time stamps by; `None` where it did not settle and none was given.
    pub rate: Option<TscRate>,
    /// The CPUs that this process may use, and that were examined.
    pub cpus: crate::host::CpuSet,
    /// Their offsets.
    pub offsets: Finding<CpuOffsets>,
    /// Readings by a thread that is moved from CPU to CPU.
    pub migrations: Finding<Crossed>,
    /// Readings on all CPUs at once, each against the latest of all.
    pub shared: Finding<Shared>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// Examines the counter: there is none here.
///
/// # Errors
/// Always [`TrustError::NoTsc`].
#[cfg(not(target_arch = "x86_64"))]
pub fn examine(
    _settings: Settings,
    _stop: &(dyn Fn() -> bool + Sync),
) -> Result<Report, TrustError> {
    Err(TrustError::NoTsc)
}

/// Counts per second; without a rate in use, any source's does to show how long an offset is.
fn hertz(rate: Option<TscRate>, frequencies: &Frequencies) -> Option<f64> {
    rate.map(|rate| rate.hertz)
        .or_else(|| frequencies.sources.iter().find_map(|it| it.hertz))
}

/// How long reading a counter may take: far more than it does, so that a machine under load comes to an end too.
fn time_for(reads: u64) -> Duration {
    Duration::from_secs(10) + Duration::from_micros(reads)
}
