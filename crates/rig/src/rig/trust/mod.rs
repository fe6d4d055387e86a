//! Whether the counter of this machine's processor can be trusted as a clock.
//!
//! | what is asked | module |
//! | --- | --- |
//! | what processor, kernel and hypervisor say of its rate, and how far apart they are | `frequency`, `cpuid` |
//! | the offset of each CPU's counter against the first's | [`exchange`](crate::rig::exchange) |
//! | whether it goes backwards: in one thread that is moved from CPU to CPU, and between all CPUs at once | `reads` |
//! | what it comes to | `verdict` |
//!
//! What cannot be found out is in the `Report` with the reason. Left out: changes over hours (a live migration, a
//! suspend), which a look of seconds cannot see.

pub mod frequency;
pub mod reads;
mod verdict;

#[cfg(target_arch = "x86_64")]
mod cpuid;
mod examine;

pub use examine::examine;
pub use verdict::{Judgement, Reason, Verdict};

use serde::Serialize;

use self::reads::{MigrationReadings, Monotony};
use crate::host::HostError;
use crate::host::fingerprint;
use crate::rig::exchange::Offset;
use crate::rig::in_threads::ThreadsError;
use crate::rig::trust::frequency::Frequencies;
use crate::time::TscRate;

/// Readings for the monotony by default.
pub const DEFAULT_READS: u64 = 4_000_000;

/// Why nothing could be examined.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// This is neither x86-64 nor aarch64.
    #[error(
        "this architecture ({}) has no known counter to check: use the clocks monotonic, monotonic-raw or realtime",
        std::env::consts::ARCH
    )]
    NoCounter,
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

/// Something that was found out, or why it was not.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding<T> {
    Found(T),
    Missing(String),
}

impl<T> Finding<T> {
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
    pub cpu: usize,
    /// In counts.
    pub offset: Finding<Offset>,
    /// In nanoseconds; `None` where the offset or the rate is missing.
    pub offset_ns: Option<f64>,
    /// Half of the shortest round trip, in nanoseconds.
    pub uncertainty_ns: Option<f64>,
}

impl CpuOffset {
    pub fn new(cpu: usize, offset: Finding<Offset>, hertz: Option<f64>) -> Self {
        let in_ns = |ticks: fn(&Offset) -> f64| Some(ticks(offset.found()?) * 1e9 / hertz?);
        CpuOffset {
            cpu,
            offset_ns: in_ns(|it| it.ticks),
            uncertainty_ns: in_ns(|it| it.uncertainty_ticks),
            offset,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuOffsets {
    pub against_cpu: usize,
    pub cpus: Vec<CpuOffset>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub judgement: Judgement,
    pub clock: fingerprint::ClockFacts,
    pub rdtscp: bool,
    pub virtualisation: fingerprint::Virtualisation,
    pub frequencies: Frequencies,
    /// The rate that the suite converts time stamps by; `None` where it did not settle and none was given.
    pub rate: Option<TscRate>,
    /// The CPUs that this process may use, and that were examined.
    pub cpus: crate::host::CpuSet,
    pub offsets: Finding<CpuOffsets>,
    /// Readings by a thread that is moved from CPU to CPU.
    pub migrations: Finding<MigrationReadings>,
    /// Readings on all CPUs at once, each against the latest of all: a backward step is one behind the latest of any
    /// CPU, a crossing a reading whose latest was another CPU's. Only those compare CPUs.
    pub shared: Finding<Monotony>,
    pub seconds: f64,
}

/// Counts per second; without a rate in use, any source's does to show how long an offset is.
fn hertz(rate: Option<TscRate>, frequencies: &Frequencies) -> Option<f64> {
    let told = || frequencies.sources.iter().find_map(|it| it.hertz);
    rate.map(|rate| rate.hertz).or_else(told)
}
