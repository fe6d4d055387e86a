//! The node benchmark as the rig runs it: which points there are, and one run of a point in each round.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::json;

use super::config::{Config, RunsAs};
use super::error::RunError;
use super::plan::{Plan as Points, Point, Sweep};
use super::result::{Lost, Outcome as Found, Received, Sent};
use super::run::{self, Machine, Run};
#[cfg(feature = "rdma")]
use super::verbs;
use super::{files, process, publisher, rows, subscriber};
use crate::host::MemoryLock;
use crate::results::schema::Schema;
use crate::results::schema::node as columns;
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Place, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
};
use crate::rig::error::RigError;
use crate::rig::memory::{Allowance, Need};

/// The distributions in a point's folder.
pub const LATENCY: &str = "latency.hgrm";
/// From when a sample was meant to be sent.
pub const INTENDED: &str = "intended.hgrm";

/// What else a point leaves on disk, in bytes.
const BYTES_PER_POINT: u64 = 512 << 10;
/// What a run takes beside its steps: threads, connections, memory.
const TIME_BESIDE: Duration = Duration::from_millis(200);
/// The same for each end that is a process.
const TIME_OF_A_PROCESS: Duration = Duration::from_millis(20);
/// More than this share of the steps being missed means that the rate was not had.
const MISSED_SHARE: f64 = 0.01;

/// The node benchmark.
#[derive(Debug)]
pub struct NodeBenchmark {
    config: Config,
    sweep: Sweep,
    /// Those that this program was started with.
    arguments: Vec<OsString>,
    plan: Points,
    machine: Option<Machine>,
}

impl NodeBenchmark {
    /// Of that sweep. `arguments`: with these this program is the same benchmark again.
    pub fn new(config: Config, sweep: Sweep, arguments: &[OsString]) -> Self {
        NodeBenchmark {
            config,
            sweep,
            arguments: arguments.to_vec(),
            plan: Points::default(),
            machine: None,
        }
    }

    /// Samples that a run of a point sends, those of the warm-up not counted, and the most that come of them.
    fn samples(&self, point: &Point) -> (u64, u64) {
        let steps = self.config.steps(point.rate_per_s);
        let sent = steps.saturating_mul(u64::from(point.wiring.publishers));
        (sent, sent.saturating_mul(point.wiring.copies()))
    }

    /// Memory that a run of a point takes.
    fn needs(&self, point: &Point) -> [Need; 4] {
        let (sent, received) = self.samples(point);
        let wiring = &point.wiring;
        let steps = self.config.steps(point.rate_per_s);
        let entries = (0..wiring.subscribers)
            .map(|number| subscriber::entries(wiring, steps, number) as u64)
            .fold(0, u64::saturating_add);
        // Beside the logs: two figures of each copy, and whether it came or that it did not.
        let stamps = [
            sent.saturating_mul(Sent::WORDS as u64 * 8),
            entries.saturating_mul(Received::WORDS as u64 * 8),
            received.saturating_mul(2 * 8 + 1),
            sent.saturating_add(received)
                .saturating_mul(size_of::<Lost>() as u64),
        ];
        let stamps = stamps.into_iter().fold(0, u64::saturating_add);
        let slots = u64::from(wiring.publishers) * publisher::slots(&self.config) as u64
            + u64::from(wiring.subscribers) * subscriber::slots(&self.config) as u64;
        [
            Need {
                what: "stamps",
                bytes: stamps,
            },
            Need {
                what: "samples",
                bytes: slots * (rows::sample_bytes(point) + 128),
            },
            Need {
                what: "rings",
                bytes: (point.node_type).memory(wiring, &point.settings(&self.config)),
            },
            Need {
                what: "processes",
                bytes: u64::from(processes(point)) * process::BYTES_BESIDE,
            },
        ]
    }

    fn check_memory(&self) -> Result<(), RunError> {
        let Some(allowance) = Allowance::of_this_process() else {
            return Ok(());
        };
        for point in &self.plan.points {
            let options = format!(
                "--rate {} for {} steps",
                point.rate_per_s,
                self.config.steps(point.rate_per_s)
            );
            let checked = allowance.require(
                &self.needs(point),
                &options,
                "lower --count, --duration, --rate, --receive-queue, --publishers or --subscribers",
            );
            checked.map_err(RigError::Memory)?;
        }
        Ok(())
    }

    /// Refuses what cannot be measured at all.
    fn check_points(&self) -> Result<(), RunError> {
        if let Some(reason) = self.plan.why_empty() {
            return Err(RunError::NothingToMeasure(reason));
        }
        #[cfg(feature = "rdma")]
        verbs::check(&self.plan, &self.config)?;
        Ok(())
    }

    /// The plan as the rig has it.
    fn outline(&self) -> Plan {
        let planned = |(index, point): (usize, &Point)| {
            let (sent, received) = self.samples(point);
            let lost = sent.saturating_add(received);
            let kept = if self.config.keep_samples {
                sent + received
            } else {
                0
            };
            PlannedPoint {
                index,
                rows: vec![PlannedRow {
                    name: point.to_string(),
                    settings: rows::settings(point, &self.config),
                }],
                time: TIME_BESIDE
                    .saturating_add(TIME_OF_A_PROCESS * processes(point))
                    .saturating_add(run::usual(point, &self.config)),
                bytes: (kept.saturating_mul(files::BYTES_PER_SAMPLE))
                    .saturating_add(lost.saturating_mul(files::BYTES_PER_LOST))
                    .saturating_add(BYTES_PER_POINT),
            }
        };
        Plan {
            points: self.plan.points.iter().enumerate().map(planned).collect(),
            left_out: self.plan.left_out.clone(),
        }
    }

    fn round(
        &self,
        point: &Point,
        place: &Place,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, RunError> {
        let machine = self.machine.as_ref().expect("the benchmark was prepared");
        let run = machine.run(point, &self.config, &self.arguments, progress)?;
        let folder = &place.folders[0];
        files::add_lost(folder, place.round, &run)?;
        if self.config.keep_samples {
            files::add_samples(folder, place.round, &machine.clock, &run)?;
        }
        let found = &run.outcome;
        let mut figures = rows::figures(point, found);
        rows::add_broker(&mut figures, run.broker.as_ref());
        let row = RowOutcome {
            figures,
            failure: failure(&run),
            obtained: json!({
                "within_the_latency": point.node_type.within(),
                "made_of": point.node_type.made_of(),
                "distributed_by": point.node_type.distributed_by(),
                "cpus": run.placement.cpus,
                "placement_warnings": run.placement.warnings,
                "pages": run.reports.least_pages(),
            }),
            details: json!({ "by_subscriber": found.by_subscriber }),
            histograms: vec![
                (LATENCY.to_owned(), found.latency.histogram.clone()),
                (INTENDED.to_owned(), found.intended.histogram.clone()),
            ],
            ..RowOutcome::default()
        };
        Ok(Outcome {
            rows: vec![row],
            warnings: warnings(point, found)
                .chain(run::placement_warnings(&run.placement))
                .collect(),
            ..Outcome::default()
        })
    }
}

/// Processes that a run of a point starts.
fn processes(point: &Point) -> u32 {
    match point.ends {
        RunsAs::Threads => 0,
        RunsAs::Processes => point.wiring.publishers + point.wiring.subscribers,
    }
}

/// What makes figures worthless, beside losses, which are results.
fn failure(run: &Run) -> Option<String> {
    let tally = &run.outcome.tally;
    let whole = (run.reports.publishers.iter().map(|it| it.pool_is_whole))
        .chain(run.reports.subscribers.iter().map(|it| it.pool_is_whole));
    let faults = [
        (
            tally.damaged,
            "samples arrived with other values than were sent",
        ),
        (
            tally.never_sent,
            "samples arrived that were never sent to there",
        ),
        (
            whole.filter(|whole| !whole).count() as u64,
            "pools were not whole at the end: the node-type kept samples",
        ),
    ];
    let faults = faults.into_iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = faults
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn warnings(point: &Point, found: &Found) -> impl Iterator<Item = String> {
    let steps = found.missed + found.sent + found.refused;
    let missed = found.missed as f64 > MISSED_SHARE * steps as f64;
    let missed = missed.then(|| {
        format!(
            "{point}: {} of {steps} steps were missed: the rate is more than the publisher can do",
            found.missed
        )
    });
    let lost = (found.tally.lost > 0).then(|| {
        format!(
            "{point}: {} of {} copies were lost",
            found.tally.lost, found.tally.sent
        )
    });
    let refused = (found.refused > 0).then(|| {
        format!(
            "{point}: {} samples were refused, as the node had no room for them",
            found.refused
        )
    });
    missed.into_iter().chain(lost).chain(refused)
}

impl Benchmark for NodeBenchmark {
    fn schema(&self) -> &'static Schema {
        &columns::SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        self.plan = Points::new(&self.sweep, &self.config);
        self.check_points()?;
        self.check_memory()?;
        Ok(self.outline())
    }

    fn prepare(&mut self, _plan: Plan) -> Result<Ready, Failure> {
        let raised = MemoryLock::raise().or_else(|_| MemoryLock::read());
        raised.map_err(RunError::from)?;
        #[cfg_attr(not(feature = "rdma"), expect(unused_mut))]
        let mut machine = Machine::new(&self.config)?;
        #[cfg(feature = "rdma")]
        let facts = {
            machine.fabric = verbs::open(&mut self.plan, &self.config)?;
            machine.fabric.as_ref().map(verbs::facts)
        };
        #[cfg(not(feature = "rdma"))]
        let facts: Option<serde_json::Value> = None;
        self.check_points()?;
        for point in &self.plan.points {
            machine.placement(point)?;
        }
        let ready = Ready {
            plan: self.outline(),
            obtained: json!({
                "latency_is_from": "the stamp of a sample to when it was read",
                "infiniband": facts,
            }),
            instrument: json!({ "clock": { "tsc": machine.clock.tsc_facts() } }),
            announcements: Vec::new(),
            warnings: Vec::new(),
        };
        self.machine = Some(machine);
        Ok(ready)
    }

    fn measure(
        &mut self,
        point: usize,
        place: &Place,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        Ok(self.round(&self.plan.points[point], place, progress)?)
    }
}
