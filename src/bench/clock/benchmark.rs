//! The clock benchmark as the rig runs it: all CPUs are watched at once, so that the plan has one point with a row for
//! each.

use std::time::Duration;

use serde_json::json;

use crate::buffer::Bytes;
use crate::host::HostError;
use crate::host::cpu_set::CpuSet;
use crate::host::fingerprint::Fingerprint;
use crate::host::placement::{Placement, RoleSpec};
use crate::host::topology::Topology;
use crate::results::Record;
use crate::results::schema::{Schema, clock as schema};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Place, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
};

use super::baseline;
use super::config::{Config, Length, Report};
use super::files::{self, DISTRIBUTION};
use super::result::{ClockResult, CpuResult};
use super::run::{RunError, Session};
use super::{details, figures, notes};

/// Room for jumps, of all CPUs together, beyond which none is asked for before the run. That all CPUs keep all the
/// jumps they may is no usual run: where the disk cannot take them, the run ends with that error.
const MOST_BYTES_OF_JUMPS: u64 = 256 << 20;
/// What a reading takes, about, where its number is given and not its time.
const NANOS_OF_READING: u64 = 50;

/// Which CPUs to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cpus {
    /// The one that placement would choose for a thread that must not be disturbed.
    Chosen,
    /// All that this process may use.
    All,
    These(CpuSet),
}

#[derive(Debug)]
pub struct ClockBenchmark {
    config: Config,
    cpus: Cpus,
    look: Option<Duration>,
    session: Option<Session>,
}

impl ClockBenchmark {
    /// A watch of `cpus`; those of `config` do not count. `look`: how often the progress is told. Each time the
    /// supervisor wakes up for it; without, it sleeps to the end.
    pub fn new(config: Config, cpus: Cpus, look: Option<Duration>) -> Self {
        ClockBenchmark {
            config,
            cpus,
            look,
            session: None,
        }
    }

    /// Bytes of differences that are known to be kept on each CPU; of a time it is not known yet how many it has.
    pub fn kept_bytes(&self) -> u64 {
        match self.config.length {
            Length::Iterations(readings) if self.config.wants(Report::Percentiles) => {
                readings.saturating_mul(super::memory::BYTES_PER_READING)
            }
            _ => 0,
        }
    }
}

impl Benchmark for ClockBenchmark {
    fn schema(&self) -> &'static Schema {
        &schema::SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        let topology = Topology::read().map_err(RunError::from)?;
        self.config.cpus = choose_cpus(&self.cpus, &topology).map_err(RunError::from)?;
        let rows = self.config.cpus.iter().map(|&cpu| {
            let mut settings = Record::new();
            settings
                .set(&schema::CLOCK, self.config.clock.name())
                .set(&schema::CPU, cpu);
            PlannedRow {
                name: format!("cpu{cpu}"),
                settings,
            }
        });
        let rows: Vec<PlannedRow> = rows.collect();
        let cpus = rows.len() as u64;
        let of_readings =
            |readings: u64| Duration::from_nanos(readings.saturating_mul(NANOS_OF_READING));
        let keep = self.config.kept_jumps() as u64;
        let (watch, most_jumps) = match self.config.length {
            Length::Duration(duration) => (duration, keep),
            Length::Iterations(readings) => (of_readings(readings), readings.min(keep)),
        };
        let jumps = (most_jumps * files::BYTES_PER_JUMP).saturating_mul(cpus);
        let baseline = match self.config.baseline_iterations {
            Some(readings) => of_readings(readings).min(baseline::LONGEST),
            None => baseline::QUICK,
        };
        let point = PlannedPoint {
            index: 0,
            rows,
            time: watch + baseline,
            bytes: jumps.min(MOST_BYTES_OF_JUMPS) + files::BYTES_PER_CPU * cpus,
        };
        Ok(Plan {
            points: vec![point],
            left_out: Vec::new(),
        })
    }

    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure> {
        let topology = Topology::read().map_err(RunError::from)?;
        let guest = Fingerprint::collect().virtualisation.guest == Some(true);
        let session = Session::prepare(self.config.clone(), &topology.allowed(), guest)?;
        let scale = session.reading.scale();
        let facts = scale.tsc_facts();
        let mut warnings = shared_cores(&topology, &self.config.cpus);
        warnings.extend(session.doubt());
        let rate = facts.map_or_else(String::new, |facts| {
            format!(", {:.3} MHz", facts.rate.hertz / 1e6)
        });
        let cpus: CpuSet = self.config.cpus.iter().copied().collect();
        let (clock, length) = (self.config.clock, &self.config.length);
        let watch = format!(
            "watch:    {} ({}){rate}, CPU {cpus}, {length}",
            clock.name(),
            clock.sequence()
        );
        // Who would rather take another clock should not have to wait for the notes.
        let notes = session.notes.iter().map(|note| format!("note: {note}"));
        let kept = session.kept_bytes().map(|bytes| {
            let bytes = Bytes(bytes);
            format!(
                "memory:   {bytes}, locked, for --report percentiles, which keeps all differences"
            )
        });
        let lines = std::iter::once(watch).chain(kept);
        let announcements = lines.chain(notes).collect();
        let instrument = json!({"clock": {
            "name": clock.name(),
            "sequence": clock.sequence(),
            "nanos_per_tick": scale.nanos_per_tick(),
            "tsc": facts,
        }});
        self.session = Some(session);
        Ok(Ready {
            plan,
            obtained: json!({"keep_jumps": self.config.kept_jumps()}),
            instrument,
            announcements,
            warnings,
        })
    }

    fn measure(
        &mut self,
        _point: usize,
        place: &Place,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let not_ready = || Failure::Run("the watch was not prepared".to_owned());
        let session = self.session.clone().ok_or_else(not_ready)?;
        let doubt = session.doubt();
        let observer = self.look.map(|look| (look, progress));
        let mut result = session.watch(observer)?;
        // Who reads the result must know it as well.
        let doubt = doubt.map(|doubt| format!("the rate of the TSC is in doubt: {doubt}"));
        result.notes.extend(doubt);
        let rows = result.cpus.iter().zip(&place.folders);
        let rows = rows.map(|(cpu, folder)| {
            let mut row = self.row(&result, cpu);
            let histogram = self.config.wants(Report::Histogram);
            if let Err(error) = files::add(folder, place.round, &result, cpu, histogram) {
                row.failure = Some(error.to_string());
                row.ends_sweep = true;
            }
            row
        });
        Ok(Outcome {
            rows: rows.collect(),
            warnings: Vec::new(),
            notes: result.notes.clone(),
            text: None,
            broken_limits: notes::broken_limits(&result),
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
            ends_sweep: result.interrupted.is_some(),
            failure: result.interrupted.clone().or(moved),
            // How much they hold follows from what was measured, and stands in the details.
            obtained: json!({"cpu": cpu.cpu, "pages": cpu.stored.kept_in.as_ref().map(|kept| kept.pages)}),
            instrument: json!({"baseline": cpu.baseline, "nanos_per_tick": nanos_per_tick}),
            details: details::of(result, cpu, &self.config),
            histograms: histograms.collect(),
        }
    }
}

fn choose_cpus(cpus: &Cpus, topology: &Topology) -> Result<Vec<usize>, HostError> {
    // Each by itself: watchers do not keep a distance from each other.
    let place = |cpu| {
        let watcher = RoleSpec::new("watcher", "--cpu", cpu);
        Ok(Placement::plan(topology, &[watcher])?.cpu(0))
    };
    match cpus {
        Cpus::All => Ok(topology.allowed().iter().collect()),
        Cpus::Chosen => Ok(vec![place(None)?]),
        Cpus::These(wanted) => wanted.iter().map(|cpu| place(Some(cpu))).collect(),
    }
}

/// Watched CPUs that slow each other down.
fn shared_cores(topology: &Topology, cpus: &[usize]) -> Vec<String> {
    let shared = cpus.iter().filter_map(|&cpu| {
        let siblings = topology.cpu(cpu)?.siblings.iter();
        let watched = siblings.filter(|sibling| *sibling > cpu && cpus.contains(sibling));
        let watched: Vec<String> = watched.map(|sibling| sibling.to_string()).collect();
        (!watched.is_empty()).then(|| {
            format!(
                "CPU {cpu} shares a physical core with CPU {}: their loops slow each other down",
                watched.join(", ")
            )
        })
    });
    shared.collect()
}
