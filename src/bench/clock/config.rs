//! What a watch is asked to do.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::buffer::HugePagePolicy;
use crate::time::{Nanos, ReadingKind, TscKilohertz};

use super::limit::Limit;

/// What is reported of the differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// The first ten and percentiles of all, each difference kept.
    Percentiles,
    /// The ten largest, with their times.
    Highest,
    /// Jumps summed over windows that slide.
    Cumulative,
    /// The distribution, in constant memory.
    Histogram,
}

impl Report {
    /// All of them.
    pub const ALL: [Report; 4] = [
        Report::Percentiles,
        Report::Highest,
        Report::Cumulative,
        Report::Histogram,
    ];

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Report::Percentiles => "percentiles",
            Report::Highest => "highest",
            Report::Cumulative => "cumulative",
            Report::Histogram => "histogram",
        }
    }
}

/// How long to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// So many readings on each CPU.
    Iterations(u64),
    /// For so long.
    Duration(Duration),
}

impl std::fmt::Display for Length {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Length::Iterations(iterations) => write!(formatter, "{iterations} iterations"),
            Length::Duration(duration) => humantime::format_duration(*duration).fmt(formatter),
        }
    }
}

/// A watch over the clock.
#[derive(Debug, Clone, Serialize)]
pub struct Config {
    /// How the clock is read.
    pub clock: ReadingKind,
    /// The rate of the TSC as the user gave it; measured otherwise.
    pub tsc_khz: Option<TscKilohertz>,
    /// What is reported.
    pub reports: BTreeSet<Report>,
    /// Whether all differences must be kept for the percentiles; else exact counts may stand in where memory is short.
    pub keep_all: bool,
    /// How long.
    pub length: Length,
    /// The CPUs, ascending, at least one.
    pub cpus: Vec<usize>,
    /// Length of the windows that slide, and of those by which clusters are told.
    pub window: Nanos,
    /// Differences for the baseline.
    pub baseline_iterations: u64,
    /// Longer differences are jumps; twice the mean difference if `None`.
    pub threshold: Option<Nanos>,
    /// Jumps of several CPUs that begin within this of each other coincide.
    pub coincidence: Nanos,
    /// Jumps kept for each CPU; if there are more, the longest.
    pub keep: usize,
    /// Pages for the differences that are kept.
    pub huge_pages: HugePagePolicy,
    /// What must not be exceeded.
    pub limits: Vec<Limit>,
}

impl Config {
    /// Whether a report is wanted.
    pub fn wants(&self, report: Report) -> bool {
        self.reports.contains(&report)
    }

    /// Whether all differences have to be counted, for the histogram or for a limit on a percentile.
    pub fn counts(&self) -> bool {
        self.wants(Report::Histogram)
            || (!self.wants(Report::Percentiles)
                && self.limits.iter().any(|limit| limit.percent.is_some()))
    }
}
