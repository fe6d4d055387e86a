//! The memory benchmark as the rig runs it.

use std::time::{Duration, Instant};

use serde_json::json;

use super::analysis::Analysis;
use super::config::{Bandwidth, Config, Sweep};
use super::error::RunError;
use super::plan::{Point, Setting, points};
use super::rows::{self, PointSetup};
use super::windows::{AGREEING, MeasuredWindows, MemoryInstruments};
use crate::buffer::PageKind;
use crate::generators::{BufferSettings, Chase, Generators};
use crate::host::uncore::Uncore;
use crate::host::{CpuSet, interrupt, pinning};
use crate::results::Record;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::{REASON, Schema, memory as columns};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
    SampleFolders,
};
use crate::rig::error::{RigError, unless_interrupted};
use crate::rig::findings::of_throttling;
use crate::rig::role::Role;

/// An upper estimate of a row of `windows.csv`, and of what else a point leaves, in bytes.
const BYTES_PER_WINDOW: u64 = 120;
const BYTES_PER_POINT: u64 = 64 << 10;
/// Each time that it is told wakes up who shows it.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(200);
/// What a point takes beside its windows and the fewest that it settles in, about (`ci/measure estimates`).
const TIME_BESIDE: Duration = Duration::from_millis(60);
/// What making the buffers takes for each MiB of the chase, about, in huge pages: its lines are linked at random.
const TO_MAKE_A_MEBIBYTE: Duration = Duration::from_micros(500);
const MEBIBYTE: f64 = 1048576.0;

/// The memory benchmark.
#[derive(Debug)]
pub struct MemoryBenchmark {
    config: Config,
    sweep: Sweep,
    points: Vec<Point>,
    setting: Option<Setting>,
    bench: Option<RoundSetup>,
}

/// What was made for a round.
#[derive(Debug)]
struct RoundSetup {
    bench: MemoryInstruments,
    pages: Vec<PageKind>,
    /// Why the memory controllers cannot be read, if they cannot.
    unread: Option<String>,
    /// How long it took; taken by the first point.
    time: Option<Duration>,
}

impl MemoryBenchmark {
    /// With what is asked for.
    pub fn new(config: Config, sweep: Sweep) -> Self {
        MemoryBenchmark {
            config,
            sweep,
            points: Vec::new(),
            setting: None,
            bench: None,
        }
    }

    fn setting(&self) -> &Setting {
        self.setting.as_ref().expect("a plan was made")
    }

    /// How long a round of a point takes, about.
    fn time(&self) -> Duration {
        let settle = (self.config.window * AGREEING as u32).min(self.config.settle);
        settle + self.config.window * self.config.windows + TIME_BESIDE
    }

    /// Makes all buffers, each by a thread on the CPU that will use it.
    fn make(&self) -> Result<RoundSetup, RunError> {
        let begun = Instant::now();
        let setting = self.setting();
        let room = BufferSettings {
            size: setting.size,
            page: self.config.page,
            node: self.config.memory_node,
        };
        let goes_on = || interrupt::requested().is_none();
        let make = || -> Result<Option<Chase>, RunError> {
            Ok(Chase::new(room.region()?, self.config.seed, goes_on))
        };
        let chase = pinning::on_cpu(setting.chase_cpu, make)??;
        unless_interrupted()?;
        let chase = chase.ok_or_else(|| {
            RunError::Refused(format!("--size {}: allowed is less", setting.size))
        })?;
        let generators = Generators::new(&setting.generators, room)?;
        let controllers = self.controllers()?;
        let unread = controllers.as_ref().err().cloned();
        let mut pages = generators.page_kinds().to_vec();
        pages.push(chase.region().page_kind());
        Ok(RoundSetup {
            bench: MemoryInstruments {
                chase,
                generators,
                controllers: controllers.ok(),
            },
            pages,
            unread,
            time: Some(begun.elapsed()),
        })
    }

    /// The counters of memory controllers, where they are wanted and can be read; else why not.
    fn controllers(&self) -> Result<Result<Uncore, String>, RunError> {
        let open = || Uncore::open(self.config.memory_node);
        match self.config.bandwidth {
            Bandwidth::Software => Ok(Err("they were not asked for".to_owned())),
            Bandwidth::Auto => Ok(open().map_err(|error| error.to_string())),
            Bandwidth::Uncore => open().map(Ok).map_err(|error| {
                RunError::Refused(format!(
                    "--bandwidth uncore: {error}: or use --bandwidth auto or software"
                ))
            }),
        }
    }

    fn round(
        &mut self,
        point: Point,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, RunError> {
        let setting = self.setting().clone();
        let load = point.load(setting.instruction_set);
        // The chase runs here. Nothing else of this process does meanwhile, but generators on their CPUs.
        pinning::pin_current_thread(setting.chase_cpu)?;
        let config = self.config.clone();
        let made = self.bench.as_mut().expect("the benchmark was prepared");
        let around = PointSetup {
            pages: made.pages.clone(),
            setup_ns: made.time.take().map(|time| time.as_nanos() as u64),
        };
        let mut told = Instant::now();
        let look = |done: usize| -> Result<(), RigError> {
            if told.elapsed() >= BETWEEN_PROGRESS {
                told = Instant::now();
                let text = match done {
                    0 => "waiting for a stable bandwidth".to_owned(),
                    done => format!("{done} of {} windows", config.windows),
                };
                progress(Progress {
                    done: done as u64,
                    of: config.windows.into(),
                    text: Some(text),
                });
            }
            unless_interrupted()
        };
        let (measured, ended) = made.bench.measure(load, &config, look)?;
        pinning::check_still_on(setting.chase_cpu).map_err(moved)?;
        let accesses = load.map(|load| load.accesses);
        let found = Analysis::of(&measured, load.as_ref(), config.outliers);
        rows::write_windows(
            &place.folders[0],
            place.round,
            &measured.windows,
            &found,
            accesses.as_ref(),
        )?;
        let row = RowOutcome {
            figures: rows::figures(&point, &setting, &measured, &found, &around),
            findings: findings(
                &setting,
                &measured,
                &found,
                point.pause != super::config::Pause::Off,
            ),
            ends_sweep: ended.is_some(),
            failure: ended.map(|error| error.to_string()),
            obtained: json!({ "pages": around.pages }),
            ..RowOutcome::default()
        };
        Ok(Outcome {
            rows: vec![row],
            ..Outcome::default()
        })
    }
}

fn moved(moved: pinning::ThreadMigration) -> RigError {
    RigError::Moved {
        role: Role::new("chase", "chase"),
        moved,
    }
}

fn findings(
    setting: &Setting,
    measured: &MeasuredWindows,
    found: &Analysis,
    is_loaded: bool,
) -> Vec<Finding> {
    let of_cache = match setting.in_cache {
        Some(true) => {
            Some(Finding::of(&kinds::IN_CACHE).measure("size_bytes", setting.size.0 as f64))
        }
        None => Some(Finding::of(&kinds::CACHE_UNKNOWN)),
        Some(false) => None,
    };
    let removed = found.count(|window| !window.stalled && !window.kept) as u64;
    let is_stalled = found.count(|window| window.stalled) > 0;
    let stated = [
        (!measured.settled).then(|| Finding::of(&kinds::UNSTABLE)),
        is_stalled.then(|| Finding::of(&kinds::STALLED)),
        Finding::counted(&kinds::WINDOWS_REMOVED, removed, None),
        of_cache,
        (is_loaded && setting.generators.len() == 1).then(|| Finding::of(&kinds::CORE_LIMITED)),
    ];
    let throttled = of_throttling(&measured.throttled, None);
    stated.into_iter().flatten().chain(throttled).collect()
}

impl Benchmark for MemoryBenchmark {
    fn schema(&self) -> &'static Schema {
        &columns::SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        let setting = Setting::find(&self.config, &self.sweep)?;
        // Refused before anything is made.
        let _unless_required = self.controllers()?;
        let (points, left_out) = points(&self.sweep);
        let settings = |point: &Point| rows::settings(point, &setting, &self.config);
        let planned = |(index, point): (usize, &Point)| PlannedPoint {
            index,
            rows: vec![PlannedRow {
                name: point.to_string(),
                settings: settings(point),
            }],
            time: match index {
                // The first point of a round makes the buffers.
                0 => self.time() + TO_MAKE_A_MEBIBYTE.mul_f64(setting.size.0 as f64 / MEBIBYTE),
                _ => self.time(),
            },
            bytes: u64::from(self.config.windows) * BYTES_PER_WINDOW + BYTES_PER_POINT,
            may_abort: false,
        };
        let plan = Plan {
            points: points.iter().enumerate().map(planned).collect(),
            left_out: left_out
                .iter()
                .map(|(point, reason)| {
                    let mut record: Record = settings(point);
                    record.set(&REASON, *reason);
                    record
                })
                .collect(),
        };
        self.points = points;
        self.setting = Some(setting);
        Ok(plan)
    }

    fn busy_cpus(&self) -> Option<usize> {
        // Beside the chase.
        Some(1 + self.setting().generators.len())
    }

    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure> {
        let made = self.make()?;
        let unread = made.unread.clone();
        let setting = self.setting();
        let pages = made.pages.iter().min().map_or("", |kind| kind.describe());
        let generators: CpuSet = setting.generators.iter().copied().collect();
        let announcements = vec![
            format!(
                "chase:    CPU {}, {} in {pages}",
                setting.chase_cpu, setting.size
            ),
            format!(
                "load:     CPU {generators}, {}, two buffers of {} each",
                setting.instruction_set.name(),
                setting.size
            ),
        ];
        let shared = setting
            .shares_core
            .then(|| Finding::of(&kinds::CORE_SHARED).listed("cpu", setting.chase_cpu.to_string()));
        self.bench = Some(made);
        Ok(Ready {
            plan,
            obtained: json!({ "latency_is": "a load that waits for the one before it, of a separate line",
                "memory_controllers_are_read": unread.is_none(),
                "memory_controllers_are_not_read_because": unread,
            }),
            instrument: json!({ "clock": { "name": "monotonic", "read": "at the ends of some 200 us of steps" } }),
            announcements,
            findings: shared.into_iter().collect(),
        })
    }

    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let point = self.points[point];
        Ok(self.round(point, place, progress)?)
    }
}
