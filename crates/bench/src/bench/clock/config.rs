//! What a watch is asked to do.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::buffer::HugePagePolicy;
use crate::rig::limit::Limit;
use crate::rig::named::named;
use crate::time::{Nanos, ReadingKind, TscKilohertz};

use super::jump::JumpStore;

/// Bytes that a difference takes where all are kept.
pub(super) const BYTES_PER_READING: u64 = 4;

/// The memory that the jumps of all CPUs may take if nobody asks for more, in bytes.
const JUMPS_TOGETHER: u64 = 32 << 20;
/// Jumps of a CPU that are kept by default, at the most and at the least.
const MOST_JUMPS: usize = 1 << 18;
const FEWEST_JUMPS: usize = 1 << 8;

named! {
    /// What is reported of the differences.
    Report {
        /// The first ten and percentiles of all, each difference kept in memory.
        Percentiles = "percentiles",
        /// The ten largest, with their times.
        Highest = "highest",
        /// Jumps summed over windows that slide.
        Cumulative = "cumulative",
        /// The distribution, in constant memory.
        Histogram = "histogram",
        /// How late a timer wakes a thread.
        Wakeup = "wakeup",
    }
}

named! {
    /// What is looked at to find out what causes a jump.
    Causes {
        /// Nothing: hardly any time goes unwatched.
        Off = "off",
        /// The kernel's counters.
        Counters = "counters",
        /// The kernel's tracepoints, which tell exactly who ran and for how long.
        Trace = "trace",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Length {
    Iterations(u64),
    Duration(Duration),
    /// Until each CPU has so many jumps.
    Jumps(u64),
}

impl std::fmt::Display for Length {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Length::Iterations(iterations) => write!(formatter, "{iterations} iterations"),
            Length::Jumps(jumps) => write!(formatter, "until {jumps} jumps"),
            Length::Duration(duration) => humantime::format_duration(*duration).fmt(formatter),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Config {
    pub clock: ReadingKind,
    /// The rate of the TSC as the user gave it; measured otherwise.
    pub tsc_khz: Option<TscKilohertz>,
    pub reports: BTreeSet<Report>,
    pub length: Length,
    /// The CPUs, ascending, at least one.
    pub cpus: Vec<usize>,
    /// Length of the windows that slide, and of those by which clusters are told.
    pub window: Nanos,
    /// Readings for the baseline; as many as fit into [`baseline::QUICK`](super::baseline::QUICK) if `None`.
    pub baseline_iterations: Option<u64>,
    /// Longer differences are jumps; twice the mean difference if `None`.
    pub threshold: Option<Nanos>,
    /// Jumps of several CPUs that begin within this of each other coincide.
    pub coincidence: Nanos,
    /// Jumps kept for each CPU, the longest; if `None`, as many as fit into what all may take together.
    pub keep: Option<usize>,
    pub huge_pages: HugePagePolicy,
    pub limits: Vec<Limit>,
    pub causes: Causes,
    /// Between two wake-ups by a timer.
    pub interval: Nanos,
    /// The SCHED_FIFO priority of the threads that watch.
    pub priority: Option<u8>,
    /// Whether idle CPUs may sleep deeply.
    pub allow_idle_states: bool,
    /// The length of intervals in logs, where one was asked for.
    pub hlog_interval: Option<Duration>,
}

#[cfg(test)]
impl Config {
    pub(crate) fn made_up(reports: &[Report], length: Length) -> Self {
        Config {
            clock: ReadingKind::MonotonicRaw,
            tsc_khz: None,
            reports: reports.iter().copied().collect(),
            length,
            cpus: vec![0],
            window: Nanos(1_000_000),
            baseline_iterations: Some(10_000),
            threshold: None,
            coincidence: Nanos(100),
            keep: Some(100),
            huge_pages: HugePagePolicy::Off,
            limits: Vec::new(),
            causes: Causes::Counters,
            interval: Nanos(1_000_000),
            priority: None,
            allow_idle_states: true,
            hlog_interval: None,
        }
    }
}

impl Config {
    pub fn wants(&self, report: Report) -> bool {
        self.reports.contains(&report)
    }

    /// Whether a clock is watched at all.
    pub fn watches(&self) -> bool {
        self.reports.iter().any(|report| *report != Report::Wakeup)
    }

    /// Bytes of differences that are known to be kept on each CPU; of a time it is not known yet how many it has.
    pub fn kept_bytes(&self) -> u64 {
        match self.length {
            Length::Iterations(readings) if self.wants(Report::Percentiles) => {
                readings.saturating_mul(BYTES_PER_READING)
            }
            _ => 0,
        }
    }

    /// The jumps to keep for each CPU.
    pub fn kept_jumps(&self) -> usize {
        let fits =
            |room: &usize| JumpStore::bytes(*room) * self.cpus.len() as u64 <= JUMPS_TOGETHER;
        let rooms = std::iter::successors(Some(MOST_JUMPS), |room| Some(room / 2));
        let default = || rooms.take_while(|room| *room > FEWEST_JUMPS).find(fits);
        self.keep.or_else(default).unwrap_or(FEWEST_JUMPS)
    }

    /// Whether all differences have to be counted, for the histogram or for a limit on a percentile.
    pub fn counts(&self) -> bool {
        self.wants(Report::Histogram)
            || (!self.wants(Report::Percentiles)
                && self.limits.iter().any(|limit| limit.percent.is_some()))
    }
}
