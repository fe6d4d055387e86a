//! The benchmark as the rig sees it: its plan, and a point measured.

use std::time::Duration;

use serde_json::{Value, json};

use super::config::{Config, UcRouteRequest};
use super::crowded::leave_out_crowded;
use super::error::RunError;
use super::placement::Placement;
use super::plan::{self, Point};
use super::result::PointResult;
use super::rows::{CounterRow, MessageRow, figures, settings};
use super::run::Runner;
use super::warnings::{instrument_line, judge_clocks, judge_floor, judge_offer, warnings_of};
use crate::generators::Beside;
use crate::host::Topology;
use crate::host::idle_hold::IdleHold;
use crate::rdma::cm::{CmError, UcRoute};
use crate::results::folder::HISTOGRAM;
use crate::results::schema::hca::{COUNTERS, MESSAGES, SCHEMA};
use crate::results::schema::{REASON, Schema};
use crate::results::{ReportError, SampleWriter};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Place, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
};
use crate::rig::port_choice::{ChosenPort, Pair};

/// An upper estimate of a row of `messages.csv`, and of the other files of a point, in bytes.
const BYTES_PER_MESSAGE: u64 = 196;
const BYTES_PER_POINT: u64 = 64 << 10;
/// Connecting, placing threads, the floor, and writing the files of a point.
const TIME_PER_POINT: Duration = Duration::from_millis(500);
/// What a message takes beside its pauses.
const TIME_PER_MESSAGE: Duration = Duration::from_micros(10);

pub struct HcaBenchmark {
    config: Config,
    plan: plan::Plan,
    runner: Option<Runner>,
    /// The generators of memory load as they are planned, if a point is under load; the runner makes its own.
    beside: Option<Beside>,
    /// Held as long as it is measured.
    idle_hold: Option<IdleHold>,
}

impl HcaBenchmark {
    pub fn new(config: Config) -> Self {
        HcaBenchmark {
            config,
            plan: plan::Plan::default(),
            runner: None,
            beside: None,
            idle_hold: None,
        }
    }

    /// The plan without the points under memory load for which no CPU is left. On which nodes the devices are is not known
    /// yet, but how many CPUs threads have is.
    fn within_cpus(&mut self, plan: plan::Plan) -> Result<plan::Plan, RunError> {
        let topology = Topology::read()?;
        let (background, cpus) = (self.config.has_background(), self.config.cpus);
        let placement =
            |point: &Point| Placement::of_point(&topology, point, background, cpus, [None; 2]);
        let (plan, generators) = leave_out_crowded(plan, &topology, placement)?;
        let loads = plan.points.iter().map(|point| point.memory_load);
        self.beside = Beside::new(generators, loads, 0)?;
        Ok(plan)
    }

    /// The plan as the rig has it.
    fn outline(&self) -> Plan {
        let points = self.plan.points.iter().enumerate();
        let left_out = self.plan.left_out.iter().map(|left_out| {
            let mut record = settings(&left_out.point, &self.config);
            record.set(&REASON, left_out.reason.as_str());
            record
        });
        Plan {
            points: points
                .map(|(index, point)| planned(index, point, &self.config, self.beside.as_ref()))
                .collect(),
            left_out: left_out.collect(),
        }
    }

    fn keep(&mut self, plan: plan::Plan) -> Result<(), Failure> {
        plan.check().map_err(Failure::Usage)?;
        self.plan = plan;
        Ok(())
    }
}

/// A point as the rig plans it.
pub(super) fn planned(
    index: usize,
    point: &Point,
    config: &Config,
    beside: Option<&Beside>,
) -> PlannedPoint {
    let warmup = config.warmup;
    let messages = config.repeat * point.burst + warmup.messages(point.burst).unwrap_or(0);
    let pauses = point.mean_pause() + Duration::from_nanos(point.receiver_pause_ns.0);
    let preparation = beside.map(|beside| beside.share_of_preparation(point.memory_load));
    PlannedPoint {
        index,
        rows: vec![PlannedRow {
            name: point.to_string(),
            settings: settings(point, config),
        }],
        time: TIME_PER_POINT
            + preparation.unwrap_or_default()
            + warmup.time().unwrap_or_default()
            + (TIME_PER_MESSAGE + pauses) * messages,
        bytes: u64::from(config.repeat) * u64::from(point.burst) * BYTES_PER_MESSAGE
            + BYTES_PER_POINT,
    }
}

impl Benchmark for HcaBenchmark {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        // Asked for by name, so there are UC points.
        if self.config.uc_route == UcRouteRequest::Patched {
            UcRoute::Patched.check().map_err(|error| match error {
                CmError::Verbs(error) => Failure::Run(error.to_string()),
                error => Failure::Usage(format!("--uc-route patched: {error}")),
            })?;
        }
        let mut plan = plan::Plan::new(&self.config.sweep);
        if self.config.has_memory_load() {
            plan = self.within_cpus(plan)?;
        }
        self.keep(plan)?;
        Ok(self.outline())
    }

    fn prepare(&mut self, _plan: Plan) -> Result<Ready, Failure> {
        let mut runner = Runner::new(self.config.clone())?;
        let plan = runner.within_devices(std::mem::take(&mut self.plan))?;
        plan.check().map_err(Failure::Usage)?;
        runner.prepare(&plan)?;
        self.keep(plan)?;
        let (hold, idle_states, warning_of_idle) = IdleHold::unless(self.config.allow_idle_states);
        self.idle_hold = hold;
        let (pair, beside) = (runner.pair(), runner.beside());
        let software = [&pair.sender, &pair.receiver].map(|end| end.device.software);
        let warning = "this device is software (SoftRoCE): its figures test the tool and say nothing about an HCA";
        let mut ready = Ready {
            plan: self.outline(),
            obtained: json!({
                "devices": devices(pair),
                "libraries": crate::rdma::verbs::library_versions(),
                "environment": crate::rdma::environment::variables(),
                "completion_vectors": self.config.comp_vectors.unwrap_or_default().describe(pair),
                "idle_states": idle_states,
                "uc_route": runner.uc_route().map(UcRoute::name),
            }),
            instrument: serde_json::Value::Null,
            announcements: [
                format!("sender:   {}", pair.sender.describe()),
                format!("receiver: {}", pair.receiver.describe()),
            ]
            .into_iter()
            .chain(beside.map(Beside::announcement))
            .collect(),
            warnings: (software != [false; 2])
                .then(|| warning.to_owned())
                .into_iter()
                .chain(pair.doubt())
                .chain(warning_of_idle)
                .chain(beside.and_then(Beside::warning))
                .collect(),
        };
        if let Some(beside) = beside {
            ready.obtained["generators"] = json!(beside.cpus());
        }
        self.runner = Some(runner);
        Ok(ready)
    }

    fn measure(
        &mut self,
        point: usize,
        place: &Place,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let point = &self.plan.points[point];
        let runner = self.runner.as_mut().expect("prepared before");
        let result = runner.measure(point, place.round, progress)?;
        for folder in &place.folders {
            write_samples(folder, place.round, &result)
                .map_err(|error| Failure::Run(error.to_string()))?;
        }
        let doubts = [judge_floor(&result), judge_clocks(&result)]
            .into_iter()
            .flatten();
        let mut warnings = warnings_of(&result, &self.config);
        warnings.extend(doubts.clone());
        let mut notes = vec![instrument_line(&result)];
        notes.extend(doubts);
        notes.extend(judge_offer(&result));
        let (mut obtained, mut instrument) = (json!(result.circumstances), json!(result.costs));
        if let (Some(beside), true) = (runner.beside(), point.memory_load.is_on()) {
            obtained["memory_load"] = beside.obtained();
            instrument["memory_load"] = beside.calibration();
        }
        Ok(Outcome {
            warnings,
            notes,
            rows: vec![RowOutcome {
                figures: figures(&result),
                failure: result.failure.clone(),
                ends_sweep: result.failure.is_some(),
                obtained,
                instrument,
                details: json!({
                    "port_changes": result.ports.changes,
                    "stamp_shares_cpu": result.circumstances.placement.stamp_shares_cpu(),
                }),
                histograms: vec![(HISTOGRAM.to_owned(), result.histogram)],
            }],
            ..Outcome::default()
        })
    }
}

fn write_samples(
    folder: &std::path::Path,
    round: u32,
    result: &PointResult,
) -> Result<(), ReportError> {
    let mut file = SampleWriter::open(folder, &MESSAGES, round)?;
    for message in &result.messages {
        file.append(&MessageRow::new(round, message))?;
    }
    file.finish()?;
    let mut file = SampleWriter::open(folder, &COUNTERS, round)?;
    for row in CounterRow::of(round, &result.ports) {
        file.append(&row)?;
    }
    file.finish()
}

fn devices(pair: &Pair) -> Value {
    let end = |end: &ChosenPort| json!({ "port": end.port.number, "address": end.address, "device": end.device });
    json!({ "sender": end(&pair.sender), "receiver": end(&pair.receiver) })
}
