//! What a benchmark is, to whatever runs it: a plan, and a way to measure one point of it.
//!
//! The sweep, its rounds, the folders, `summary.csv` and `runs.csv`, the progress, signals between two points and the
//! exit code are the driver's. A benchmark plans what it would measure and what that takes, measures a point of its
//! plan on request, writes the samples of it into the folders it is given, and hands out the rest as data.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RigError;
use super::ports::Service;
use crate::results::Record;
use crate::results::finding::Finding;
use crate::results::hlog::RoundLog;
use crate::results::schema::Schema;
use crate::stats::LatencyHistogram;

/// Shows the user a line about what takes long.
pub type ShowWait = fn(&str);

pub trait Benchmark {
    fn schema(&self) -> &'static Schema;

    /// What would be measured, and what not and why. Everything that can be refused without a device is refused here.
    /// Takes no measure and locks no memory.
    fn plan(&mut self) -> Result<Plan, Failure>;

    /// How many CPUs the threads of a planned point keep busy at once, at the most; `None` if that is known of the
    /// command.
    fn busy_cpus(&self) -> Option<usize> {
        None
    }

    /// Opens devices, leaves out what they cannot do, checks what every point needs of the machine, and makes it ready
    /// (clocks, memory lock). Called once, before the first point of a process.
    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure>;

    /// Where [`prepare`](Self::prepare) takes long, it calls `show` with the reason.
    fn show_waits(&mut self, _show: ShowWait) {}

    /// Which service types [`prepare`](Self::prepare) found to be connected directly: a process of a round takes that
    /// over.
    fn direct_services(&self) -> Option<Vec<Service>> {
        None
    }

    /// Measures a point of the plan that [`prepare`](Self::prepare) gave back. A failure after the first sample is
    /// reported in the outcome, with what was measured until then.
    ///
    /// # Errors
    /// When there is nothing to show.
    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure>;
}

/// Why a benchmark cannot start, or go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Failure {
    /// Bad input: another value of an option would avoid it.
    #[error("{0}")]
    Usage(String),
    /// The machine, a device or the measurement failed.
    #[error("{0}")]
    Run(String),
    /// A limit on threads, files or memory is too low for a point: others may be measured.
    #[error("{0}")]
    Shortage(String),
    /// A library ended the process of a point: others may be measured.
    #[error("{0}")]
    Aborted(String),
    #[error("interrupted by {0}")]
    Interrupted(String),
}

impl Failure {
    /// Whether other points may be measured all the same.
    pub fn fails_its_point(&self) -> bool {
        matches!(self, Failure::Shortage(_) | Failure::Aborted(_))
    }
}

impl From<RigError> for Failure {
    /// An error that another value of an option would avoid is the user's.
    fn from(error: RigError) -> Self {
        match error {
            RigError::Interrupted(signal) => Failure::Interrupted(signal.to_string()),
            error if error.is_usage() => Failure::Usage(error.to_string()),
            error if error.is_shortage() => Failure::Shortage(error.to_string()),
            error => Failure::Run(error.to_string()),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Its points, in the order of the sweep.
    pub points: Vec<PlannedPoint>,
    /// The settings of points that are left out, each with [`REASON`](crate::results::schema::REASON).
    pub left_out: Vec<Record>,
}

/// What a round takes beside its points, about: its process starts, looks at the machine and compares clocks.
const BESIDE_POINTS: Duration = Duration::from_millis(80);

impl Plan {
    /// How long a round takes, about.
    pub fn time(&self) -> Duration {
        let points = self.points.iter().map(|point| point.time);
        points.fold(BESIDE_POINTS, Duration::saturating_add)
    }

    /// The names of all rows of the summary to be.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.points.iter().flat_map(PlannedPoint::names)
    }

    /// Bytes that a round leaves on disk, at the most.
    pub fn bytes(&self) -> u64 {
        self.points.iter().map(|point| point.bytes).sum()
    }
}

/// A point of the sweep: what is measured at once.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedPoint {
    /// What identifies it in its benchmark's own plan.
    pub index: usize,
    /// The rows that come of it, with the name of a folder each: one, or one for each CPU that is watched at once.
    pub rows: Vec<PlannedRow>,
    /// How long a round of it takes, about.
    pub time: Duration,
    /// Bytes that a round of it leaves on disk, at the most.
    pub bytes: u64,
    /// How many of these no further round of it adds to.
    pub bytes_once: u64,
    /// How many of these are there only if it loses all messages.
    pub bytes_of_losses: u64,
    /// Whether a library that it takes may end the process in which it is measured.
    pub may_abort: bool,
}

impl PlannedPoint {
    /// The names of its rows.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.name.as_str())
    }
}

/// A row of the summary to be.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRow {
    /// The name of its folder: unique in the sweep.
    pub name: String,
    /// Its settings: the schema's `point`.
    pub settings: Record,
}

/// A benchmark that can measure.
#[derive(Debug, Clone, Default)]
pub struct Ready {
    /// The plan, without what the devices cannot do.
    pub plan: Plan,
    /// What is the same for all points: devices, libraries, routes (an object; it is in `obtained`).
    pub obtained: Value,
    /// What is the same for all points of the instrument: the clock (an object, or null; it is in `instrument`).
    /// Calibrations differ from run to run, and what is obtained does not.
    pub instrument: Value,
    /// Lines for people that describe what is measured on: devices, clock.
    pub announcements: Vec<String>,
    /// What is known before the first point.
    pub findings: Vec<Finding>,
}

/// Where a point's samples go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleFolders {
    /// The round, from 0.
    pub round: u32,
    /// A folder for each row, in their order. Files of samples in it are added to
    /// ([`SampleWriter`](crate::results::SampleWriter)).
    pub folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Samples so far, or another measure.
    pub done: u64,
    /// The total number.
    pub of: u64,
    /// What is shown in their place.
    pub text: Option<String>,
}

/// What came of a point in one round.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Its rows, in the order of the plan.
    pub rows: Vec<RowOutcome>,
    /// Lines about the instrument for `--verbose`, each shown once.
    pub notes: Vec<String>,
    /// A table that only one round has, in place of that of the summary.
    pub text: Option<String>,
    /// Exit code 3 at the end: limits that are broken.
    pub broken_limits: Vec<String>,
}

/// One row of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RowOutcome {
    /// Its figures, and settings that are known only now; columns of the schema.
    pub figures: Record,
    pub findings: Vec<Finding>,
    pub failure: Option<String>,
    /// Whether the sweep ends with this failure. A queue that fails does not keep others from being measured.
    pub ends_sweep: bool,
    /// What was obtained for it (an object).
    pub obtained: Value,
    /// What the instrument costs (an object).
    pub instrument: Value,
    /// The benchmark's own tables (an object, or null).
    pub details: Value,
    /// Distributions by file name (`latency.hgrm`), in nanoseconds; those of all rounds are added up.
    pub histograms: Vec<(String, LatencyHistogram)>,
    /// Distributions by interval; those of each round go behind those of the others.
    pub interval_logs: Vec<RoundLog>,
}
