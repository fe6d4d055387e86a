//! The benchmark as the rig sees it: its plan, and a point measured.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::PointRunner;
use super::clocks::Clocks;
use super::mode::RunMode;
use super::peer::Peer;
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan;
use crate::bench::hca::plan::Point;
use crate::bench::hca::plan::crowded::leave_out_crowded;
use crate::bench::hca::plan::placement::{Placement, RunThreads};
use crate::bench::hca::result::findings;
use crate::bench::hca::result::rows::{CounterRow, settings, write_rows};
use crate::bench::hca::settings::config::{Config, Poll, Service, Timestamp, UcRouteRequest};
use crate::generators::RunGenerators;
use crate::host::Topology;
use crate::host::idle_hold::IdleHold;
use crate::rdma::cm::{CmError, UcRoute};
use crate::results::Record;
use crate::results::schema::hca::COUNTERS;
use crate::results::schema::{REASON, Schema};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
    SampleFolders, ShowWait,
};
use crate::rig::findings::of_idle_states;

/// An upper estimate of a row of `messages.csv`, and of the other files of a point, in bytes.
const BYTES_PER_MESSAGE: u64 = 238;
const BYTES_PER_POINT: u64 = 64 << 10;
/// Connecting, placing threads, the floor, and writing the files of a point.
const TIME_PER_POINT: Duration = Duration::from_millis(500);

/// The benchmark, with a peer as its mode has it.
pub struct HcaBenchmark<M: RunMode> {
    config: Config,
    mode: M,
    plan: plan::Plan,
    runner: Option<PointRunner<M::Peer>>,
    show: Option<ShowWait>,
    /// The generators of memory load as they are planned, if a point is under load; the runner makes its own.
    beside: Option<RunGenerators>,
    /// Held as long as it is measured.
    idle_hold: Option<IdleHold>,
}

impl<M: RunMode> HcaBenchmark<M> {
    pub fn new(config: Config, mode: M) -> Self {
        HcaBenchmark {
            config,
            mode,
            plan: plan::Plan::default(),
            runner: None,
            show: None,
            beside: None,
            idle_hold: None,
        }
    }

    /// The plan without the points under memory load for which no CPU is left. On which nodes the devices are is not known
    /// yet, but how many CPUs threads have is.
    fn within_cpus(&mut self, plan: plan::Plan) -> Result<plan::Plan, RunError> {
        let topology = Topology::read()?;
        let (run, cpus) = (RunThreads::of(&self.config), self.config.cpus);
        let placement = |point: &Point| Placement::of_point(&topology, point, run, cpus, [None; 2]);
        let (plan, generators) = leave_out_crowded(plan, &topology, placement)?;
        let loads = plan.points.iter().map(|point| point.memory_load);
        self.beside = RunGenerators::new(generators, loads, 0)?;
        Ok(plan)
    }

    fn settings(&self, point: &Point) -> Record {
        let mut record = settings(point, &self.config);
        self.mode.set_of_point(&mut record);
        record
    }

    /// The plan as the rig has it.
    fn outline(&self) -> Plan {
        let points = self.plan.points.iter().enumerate();
        let left_out = self.plan.left_out.iter().map(|left_out| {
            let mut record = self.settings(&left_out.point);
            record.set(&REASON, left_out.reason.as_str());
            record
        });
        Plan {
            points: points
                .map(|(index, point)| self.planned(index, point))
                .collect(),
            left_out: left_out.collect(),
        }
    }

    /// A point as the rig plans it.
    fn planned(&self, index: usize, point: &Point) -> PlannedPoint {
        let Config { warmup, repeat, .. } = self.config;
        let beside = self.beside.as_ref();
        let preparation = beside.map(|beside| beside.share_of_preparation(point.memory_load));
        PlannedPoint {
            index,
            rows: vec![PlannedRow {
                name: point.to_string(),
                settings: self.settings(point),
            }],
            time: TIME_PER_POINT
                + preparation.unwrap_or_default()
                + point.time_of_bursts(repeat, warmup),
            bytes: u64::from(repeat) * u64::from(point.burst) * BYTES_PER_MESSAGE + BYTES_PER_POINT,
            bytes_once: BYTES_PER_POINT,
            bytes_of_losses: 0,
            may_abort: false,
        }
    }

    fn keep(&mut self, plan: plan::Plan) -> Result<(), Failure> {
        plan.check().map_err(Failure::Usage)?;
        self.plan = plan;
        Ok(())
    }
}

impl<M: RunMode> Benchmark for HcaBenchmark<M> {
    fn schema(&self) -> &'static Schema {
        self.mode.schema()
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
        if M::Peer::IS_LOCAL && self.config.has_memory_load() {
            plan = self.within_cpus(plan)?;
        }
        self.keep(plan)?;
        Ok(self.outline())
    }

    fn busy_cpus(&self) -> Option<usize> {
        let generators = self.beside.as_ref().map_or(0, |beside| beside.cpus().len());
        let busy = |point: &Point| {
            let polls = |poll: Poll| usize::from(poll == Poll::Busy);
            let receives = M::Peer::IS_LOCAL && point.operation.is_one_way();
            let stamps = point.timestamp == Timestamp::Send;
            // The sender is one of them.
            1 + if receives { polls(point.poll_recv) } else { 0 }
                + polls(point.poll_comp)
                + usize::from(stamps)
                + if point.memory_load.is_on() {
                    generators
                } else {
                    0
                }
        };
        self.plan.points.iter().map(busy).max()
    }

    fn prepare(&mut self, _plan: Plan) -> Result<Ready, Failure> {
        let peer = self.mode.peer(&self.config)?;
        let clocks = Arc::new(Clocks::new(self.config.tsc_khz));
        let mut runner = PointRunner::new(self.config.clone(), peer, clocks)?;
        let plan = runner.within_devices(std::mem::take(&mut self.plan), self.show)?;
        self.keep(plan)?;
        let mut known = runner.prepare(&self.plan)?;
        let (hold, idle_states, idle) = IdleHold::unless(self.config.allow_idle_states);
        self.idle_hold = hold;
        known.extend(idle.as_ref().map(of_idle_states));
        let ends = runner.peer.facts();
        let [sender, receiver] = ends;
        let named = |end: &Facts| match M::Peer::IS_LOCAL {
            true => end.description.clone(),
            false => format!("{}: {}", end.host, end.description),
        };
        let mut ready = Ready {
            plan: self.outline(),
            obtained: json!({
                "devices": { "sender": sender.details, "receiver": receiver.details },
                "libraries": crate::rdma::verbs::library_versions(),
                "environment": crate::rdma::environment::variables(),
                "idle_states": idle_states,
                "uc_route": runner.uc_route().map(UcRoute::name),
            }),
            instrument: Value::Null,
            announcements: vec![
                format!("sender:   {}", named(sender)),
                format!("receiver: {}", named(receiver)),
            ],
            findings: known,
        };
        let (config, plan) = (&self.config, &self.plan);
        self.mode.describe(&runner.peer, config, plan, &mut ready);
        if let Some(beside) = runner.beside() {
            ready.obtained["generators"] = json!(beside.cpus());
            ready.announcements.push(beside.announcement());
            ready.findings.extend(beside.finding());
        }
        self.runner = Some(runner);
        Ok(ready)
    }

    fn show_waits(&mut self, show: ShowWait) {
        self.show = Some(show);
    }

    fn direct_services(&self) -> Option<Vec<Service>> {
        self.runner.as_ref()?.direct_services().map(<[_]>::to_vec)
    }

    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let point = &self.plan.points[point];
        let runner = self.runner.as_mut().expect("prepared before");
        let (result, far) = M::measure(runner, point, place.round, progress)?;
        let (mut obtained, mut instrument) = (json!(result.circumstances), json!(result.costs));
        if let (Some(beside), true) = (runner.beside(), point.memory_load.is_on()) {
            obtained["memory_load"] = beside.obtained();
            instrument["memory_load"] = beside.calibration();
        }
        if let Some(stamps) = &result.hardware {
            let (sender, receiver) = (&stamps.sender, &stamps.receiver);
            instrument["hardware_stamps"] = json!({ "sender": sender, "receiver": receiver });
        }
        let mut outcome = Outcome {
            rows: vec![RowOutcome {
                figures: Record::new(),
                findings: findings::of(&result, &self.config),
                failure: result.failure.clone(),
                ends_sweep: result.failure.is_some(),
                obtained,
                instrument,
                details: json!({
                    "port_changes": result.ports.changes,
                    "stamp_shares_cpu": result.circumstances.placement.stamp_shares_cpu(),
                }),
                ..RowOutcome::default()
            }],
            ..Outcome::default()
        };
        let written = self.mode.conclude(&result, &far, place, &mut outcome);
        let counted = written.and_then(|()| {
            let rows = || CounterRow::of(place.round, &result.ports);
            write_rows(place, &COUNTERS, rows)
        });
        counted.map_err(|error| Failure::Run(error.to_string()))?;
        Ok(outcome)
    }
}
