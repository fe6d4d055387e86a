//! The clock benchmark as the rig runs it: all CPUs are watched at once, so that the plan has one point with a row for
//! each.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::buffer::Bytes;
use crate::host::HostError;
use crate::host::cpu_set::CpuSet;
use crate::host::fingerprint::Fingerprint;
use crate::host::idle_hold::IdleHold;
use crate::host::placement::{Placement, RoleSpec};
use crate::host::topology::Topology;
use crate::results::Record;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::{REASON, Schema, clock as schema};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
    SampleFolders,
};

use crate::rig::error::RigError;
use crate::rig::findings::of_idle_states;
use crate::time::ReadingKind;

use super::baseline;
use super::config::{Config, Length, Report};
use super::files::{self, DISTRIBUTION};
use super::result::{ClockResult, CpuResult};
use super::run::{RunError, WatchSession};
use super::wakeup::{self, Timer};
use super::{details, figures, findings};

/// Room for jumps, of all CPUs together, beyond which none is asked for before the run. That all CPUs keep all the
/// jumps they may is no usual run: where the disk cannot take them, the run ends with that error.
const MOST_BYTES_OF_JUMPS: u64 = 256 << 20;
/// What a reading takes, about, where its number is given and not its time.
const NANOS_OF_READING: u64 = 25;

/// Which CPUs to watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchedCpus {
    /// The one that placement would choose for a thread that must not be disturbed.
    Chosen,
    /// All that this process may use.
    All,
    These(CpuSet),
}

/// What is watched; clock and CPUs of the settings do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// A point each.
    pub clocks: Vec<ReadingKind>,
    /// Whether clocks that cannot be read are left out.
    pub lenient: bool,
    pub cpus: WatchedCpus,
    /// How often the progress is told. Each time the supervisor wakes up for it; without, it sleeps to the end.
    pub look: Option<Duration>,
}

#[derive(Debug)]
pub struct ClockBenchmark {
    config: Config,
    sweep: Sweep,
    sessions: Vec<Option<WatchSession>>,
    /// CPUs that are not watched.
    free: CpuSet,
    idle_hold: Option<IdleHold>,
}

impl ClockBenchmark {
    pub fn new(config: Config, sweep: Sweep) -> Self {
        ClockBenchmark {
            config,
            sweep,
            sessions: Vec::new(),
            free: CpuSet::new(),
            idle_hold: None,
        }
    }

    /// The rows of a point: a clock that is watched, or timers that wake.
    fn rows(&self, clock: &str, timer: Option<Timer>) -> impl Iterator<Item = PlannedRow> {
        let prefix = match (timer, self.sweep.clocks.len()) {
            (None, 1) => String::new(),
            (None, _) => format!("{clock}-"),
            (Some(timer), _) => format!("{}-", timer.name()),
        };
        self.config.cpus.iter().map(move |&cpu| {
            let mut settings = Record::new();
            settings
                .set(&schema::CLOCK, clock)
                .set(&schema::TIMER, timer.map(Timer::name))
                .set(&schema::CPU, cpu);
            PlannedRow {
                name: format!("{prefix}cpu{cpu}"),
                settings,
            }
        })
    }

    /// Makes all clocks ready. Those that cannot be read are left out of the plan, or end it.
    fn get_ready(&mut self, plan: &mut Plan, allowed: &CpuSet) -> Result<(), Failure> {
        let guest = Fingerprint::collect().virtualisation.guest == Some(true);
        for (at, &clock) in self.sweep.clocks.iter().enumerate() {
            let mut config = self.config.clone();
            config.clock = clock;
            let session = if config.watches() {
                WatchSession::prepare(config, allowed, guest).map(Some)
            } else {
                Ok(None)
            };
            self.sessions.push(match session {
                Err(error @ (RunError::Rig(RigError::Clock(_)) | RunError::TraceOfRealtime))
                    if self.sweep.lenient =>
                {
                    let (left_out, points) = plan.points.drain(..).partition(|it| it.index == at);
                    plan.points = points;
                    let rows = Vec::from_iter(left_out)
                        .into_iter()
                        .flat_map(|it: PlannedPoint| it.rows);
                    plan.left_out.extend(rows.map(|mut row| {
                        row.settings.set(&REASON, error.to_string());
                        row.settings
                    }));
                    None
                }
                session => session?,
            });
        }
        Ok(())
    }
}

impl Benchmark for ClockBenchmark {
    fn schema(&self) -> &'static Schema {
        &schema::SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        let topology = Topology::read().map_err(RunError::from)?;
        self.config.cpus = choose_cpus(&self.sweep.cpus, &topology).map_err(RunError::from)?;
        let cpus = self.config.cpus.len() as u64;
        let of_readings =
            |readings: u64| Duration::from_nanos(readings.saturating_mul(NANOS_OF_READING));
        let keep = self.config.kept_jumps() as u64;
        let (watch, most_jumps) = match self.config.length {
            Length::Duration(duration) => (duration, keep),
            Length::Iterations(readings) => (of_readings(readings), readings.min(keep)),
            // How many come in a time is not known.
            Length::Jumps(jumps) => (Duration::ZERO, jumps.saturating_add(2).min(keep)),
        };
        let jumps = (most_jumps * files::BYTES_PER_JUMP).saturating_mul(cpus);
        let baseline = match self.config.baseline_iterations {
            Some(readings) => of_readings(readings).min(baseline::LONGEST),
            None => baseline::QUICK,
        };
        let clocks = self.sweep.clocks.iter().enumerate();
        let watches = clocks
            .filter(|_| self.config.watches())
            .map(|(index, clock)| PlannedPoint {
                index,
                rows: self.rows(clock.name(), None).collect(),
                time: watch + baseline,
                bytes: jumps.min(MOST_BYTES_OF_JUMPS) + files::BYTES_PER_CPU * cpus,
                bytes_once: 0,
                bytes_of_losses: 0,
                may_abort: false,
            });
        let timers = Timer::ALL
            .iter()
            .filter(|_| self.config.wants(Report::Wakeup));
        let timers = timers.enumerate().map(|(at, &timer)| PlannedPoint {
            index: self.sweep.clocks.len() + at,
            rows: self.rows(wakeup::CLOCK.name(), Some(timer)).collect(),
            time: match self.config.length {
                Length::Iterations(number) => {
                    Duration::from_nanos(self.config.interval.0).mul_f64(number as f64)
                }
                _ => watch,
            },
            bytes: files::BYTES_PER_CPU * cpus,
            bytes_once: 0,
            bytes_of_losses: 0,
            may_abort: false,
        });
        Ok(Plan {
            points: watches.chain(timers).collect(),
            left_out: Vec::new(),
        })
    }

    fn prepare(&mut self, mut plan: Plan) -> Result<Ready, Failure> {
        let topology = Topology::read().map_err(RunError::from)?;
        let cpus: CpuSet = self.config.cpus.iter().copied().collect();
        self.free = topology.allowed().difference(&cpus);
        self.get_ready(&mut plan, &topology.allowed())?;
        let (hold, idle_states, idle) = IdleHold::unless(self.config.allow_idle_states);
        self.idle_hold = hold;
        // Threads that read the clock without pause do not idle: who is not woken need not know.
        let idle = idle.filter(|_| self.config.wants(Report::Wakeup));
        let sessions = || self.sessions.iter().flatten();
        let shared = shared_cores(&topology, &self.config.cpus);
        let findings = shared.into_iter().chain(idle.as_ref().map(of_idle_states));
        let mut announcements = Vec::new();
        for session in sessions() {
            announcements.push(session.in_words());
            let kept = session.kept_bytes().map(|bytes| {
                let bytes = Bytes(bytes);
                format!("memory:   {bytes}, locked, for --report percentiles, which keeps all differences")
            });
            announcements.extend(kept);
            // Who would rather take another clock should not have to wait for the end.
            let known = session.findings.iter();
            announcements.extend(known.map(|found| format!("note: {}", found.line(1))));
        }
        if self.config.wants(Report::Wakeup) {
            let (interval, length) = (
                Duration::from_nanos(self.config.interval.0),
                self.config.length,
            );
            let interval = humantime::format_duration(interval);
            announcements.push(format!(
                "wake-ups: every {interval}, CPU {cpus}, {length}, by each timer in turn"
            ));
        }
        let clocks: Vec<Value> = sessions().map(WatchSession::instrument).collect();
        let instrument = match &clocks[..] {
            [] => Value::Null,
            [clock] => json!({ "clock": clock }),
            clocks => json!({ "clocks": clocks }),
        };
        Ok(Ready {
            plan,
            obtained: json!({"keep_jumps": self.config.kept_jumps(), "idle_states": idle_states}),
            instrument,
            announcements,
            findings: findings.collect(),
        })
    }

    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let observer = self.sweep.look.map(|look| (look, progress));
        if let Some(&timer) = point
            .checked_sub(self.sweep.clocks.len())
            .and_then(|at| Timer::ALL.get(at))
        {
            return Ok(wakeup::outcome(&self.config, &self.free, timer, observer)?);
        }
        let not_ready = || Failure::Run("the watch was not prepared".to_owned());
        let session = self
            .sessions
            .get(point)
            .cloned()
            .flatten()
            .ok_or_else(not_ready)?;
        let result = session.watch(observer)?;
        let rows = result.cpus.iter().zip(&place.folders);
        let rows = rows.map(|(cpu, folder)| {
            let mut row = self.row(&result, cpu);
            row.interval_logs
                .extend(files::interval_log(place.round, &result, cpu, &self.config));
            let histogram = self.config.wants(Report::Histogram);
            if let Err(error) = files::add(folder, place.round, &result, cpu, histogram) {
                row.failure = Some(error.to_string());
                row.ends_sweep = true;
            }
            row
        });
        Ok(Outcome {
            rows: rows.collect(),
            notes: Vec::new(),
            text: None,
            broken_limits: findings::broken_limits(
                result.cpus.iter().flat_map(|cpu| &cpu.judgements),
            ),
        })
    }
}

impl ClockBenchmark {
    fn row(&self, result: &ClockResult, cpu: &CpuResult) -> RowOutcome {
        let moved = cpu.moved.as_ref();
        let moved = moved.map(|moved| format!("the thread watch-{} {moved}", cpu.cpu));
        let nanos_per_tick = result.scale.nanos_per_tick();
        let distribution = cpu.stored.distribution.as_ref();
        let distribution = distribution.filter(|_| self.config.wants(Report::Histogram));
        let histograms = distribution
            .map(|it| (DISTRIBUTION.to_owned(), it.histogram(nanos_per_tick)))
            .into_iter();
        RowOutcome {
            figures: figures::of(result, cpu, self.config.wants(Report::Histogram)),
            findings: findings::of(result, cpu, &self.config),
            ends_sweep: result.interrupted.is_some(),
            failure: result.interrupted.clone().or(moved),
            // How much they hold follows from what was measured, and stands in the details.
            obtained: json!({"cpu": cpu.cpu, "pages": cpu.stored.kept_in.as_ref().map(|kept| kept.pages)}),
            instrument: json!({"baseline": cpu.baseline, "nanos_per_tick": nanos_per_tick}),
            details: details::of(result, cpu, &self.config),
            histograms: histograms.collect(),
            interval_logs: Vec::new(),
        }
    }
}

fn choose_cpus(cpus: &WatchedCpus, topology: &Topology) -> Result<Vec<usize>, HostError> {
    // Each by itself: watchers do not keep a distance from each other.
    let place = |cpu| {
        let watcher = RoleSpec::new("watcher", "--cpu", cpu);
        Ok(Placement::plan(topology, &[watcher])?.cpu(0))
    };
    match cpus {
        WatchedCpus::All => Ok(topology.allowed().iter().collect()),
        WatchedCpus::Chosen => Ok(vec![place(None)?]),
        WatchedCpus::These(wanted) => wanted.iter().map(|cpu| place(Some(cpu))).collect(),
    }
}

/// Watched CPUs that slow each other down.
fn shared_cores(topology: &Topology, cpus: &[usize]) -> Vec<Finding> {
    let shared = cpus.iter().filter_map(|&cpu| {
        let siblings = topology.cpu(cpu)?.siblings.iter();
        let watched = siblings.filter(move |sibling| *sibling > cpu && cpus.contains(sibling));
        let pairs = watched.map(move |sibling| format!("CPU {cpu} and CPU {sibling}"));
        Some(pairs.map(|pair| Finding::of(&kinds::SMT_SIBLINGS).listed("threads", pair)))
    });
    shared.flatten().collect()
}
