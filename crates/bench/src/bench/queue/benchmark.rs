//! The queue benchmark as the rig runs it: which points there are, and one run of a point in each round.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use self::outcome::{failed, write_elements};
use super::config::{Config, Measure, RoundLength};
use super::counters::Counters;
use super::crowded::leave_out_crowded;
use super::ends::{self, EndsMaker};
use super::error::RunError;
use super::memory::{self, Needs};
use super::plan::{Plan as Points, Point, Sweep};
use super::result::RunResult;
use super::roles::SENDER;
use super::round::measure_run;
use super::seats::Seats;
use super::task::Task;
use super::{estimate, rows, several};
use crate::buffer::{BufferError, HugePagePolicy};
use crate::generators::RunGenerators;
use crate::host::{HugePages, MemoryLock, Topology, interrupt, pinning};
use crate::node::wiring::Wiring;
use crate::pacing::SplitMix64;
use crate::queues::arena::Arena;
use crate::results::hlog;
use crate::results::schema::Schema;
use crate::results::schema::queue as columns;
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Plan, PlannedPoint, PlannedRow, Progress, Ready, SampleFolders,
};
use crate::rig::clock_offset::{ClockOffset, measure_offset};
use crate::rig::error::RigError;
use crate::rig::memory::Allowance;
use crate::rig::priority::SpinPlacement;
use crate::stats::interval_of;
use crate::time::AnyClock;

mod outcome;
mod rates;

/// Elements that are kept of a round with a duration, for an estimate of the disk space: ten million in a second.
const KEPT_PER_S: f64 = 1e7;
/// An upper estimate of a row of `elements.csv`, and of what else a point leaves, in bytes.
const BYTES_PER_ELEMENT: u64 = 160;
const BYTES_PER_POINT: u64 = 256 << 10;
/// Logs by interval of a round: enqueue, dequeue, latency and latency from the intended time.
const LOGS: u64 = 4;

#[derive(Debug)]
pub struct QueueBenchmark {
    config: Config,
    sweep: Sweep,
    points: Vec<Point>,
    /// The most elements that a round may have; of several threads the most that one of them notes.
    most_elements: u64,
    /// The generators of memory load, if any point has one.
    beside: Option<RunGenerators>,
    machine: Option<QueueMachine>,
    pub(super) make_of: fn(&Point) -> EndsMaker,
    /// The elements a second that were found for points, in runs before those that count, or why none were.
    rates: HashMap<String, Result<f64, String>>,
    /// How far the receiver's clock is ahead of the sender's, by their CPUs.
    offsets: HashMap<[usize; 2], Option<ClockOffset>>,
}

/// What is had of the machine once it is ready.
#[derive(Debug)]
struct QueueMachine {
    topology: Topology,
    clock: AnyClock,
    /// Whether the memory of the queues can be locked.
    locks_memory: bool,
}

impl QueueBenchmark {
    pub fn new(config: Config, sweep: Sweep) -> Self {
        QueueBenchmark {
            config,
            sweep,
            points: Vec::new(),
            most_elements: 0,
            beside: None,
            machine: None,
            make_of: ends::make_of,
            rates: HashMap::new(),
            offsets: HashMap::new(),
        }
    }

    /// Whether several threads share queues.
    fn is_shared(&self) -> bool {
        !self.sweep.wirings.is_empty()
    }

    fn points(&mut self) -> Result<Points, RunError> {
        let topology = Topology::read()?;
        let (cpus, absent, option) = if self.is_shared() {
            several::permit(&self.config, &self.sweep.wirings, &topology)?;
            (vec![several::ANY_CPUS], Vec::new(), "--queue")
        } else {
            self.most_elements = self.most_of_pair()?;
            let (cpus, absent) = self.sweep.cpus.pairs(&topology)?;
            (cpus, absent, "--capacity")
        };
        let sweep = self.sweep.clone();
        // Large queues take a while to be made.
        let mut points = interrupt::unless_requested(move || Points::new(&sweep, &cpus))
            .map_err(RigError::Interrupted)?;
        if let Some(reason) = points.why_empty() {
            return Err(RunError::NothingToMeasure(format!("{option}: {reason}")));
        }
        let generators = leave_out_crowded(&mut points, &self.config, &topology);
        if let Some(reason) = points.why_empty() {
            return Err(RunError::NothingToMeasure(reason));
        }
        let needs = self.needs(&points.points);
        let loads = points.points.iter().map(|point| point.memory_load);
        let most = needs.iter().map(Needs::total).max().unwrap_or(0);
        self.beside = RunGenerators::new(generators, loads, most)?;
        points.left_out.extend(absent);
        Ok(points)
    }

    /// The most elements that a round of one sender and one receiver may have.
    fn most_of_pair(&self) -> Result<u64, RunError> {
        let most = |list: &[usize]| list.iter().copied().max().unwrap_or(0);
        let largest = (most(&self.sweep.capacities), most(&self.sweep.payloads));
        let limit = MemoryLock::raise().or_else(|_| MemoryLock::read())?;
        let (allowed, pages) = (Allowance::of_this_process(), HugePages::read());
        let most = memory::most_elements(&self.config, largest, allowed.as_ref(), &limit, pages);
        Ok(most.map_err(RigError::Memory)?)
    }

    /// What the largest run of these points takes: with several threads, that of each wiring.
    fn needs(&self, points: &[Point]) -> Vec<Needs> {
        let (config, most) = (&self.config, self.most_elements);
        let largest = largest(points);
        match self.sweep.wirings.as_slice() {
            [] => vec![Needs::of(config, most, largest)],
            all => {
                let needs = |wiring| several::needs(config, wiring, largest, most);
                all.iter().map(needs).collect()
            }
        }
    }

    fn machine(&mut self) -> Result<QueueMachine, RunError> {
        if self.config.measure == Measure::Counters {
            Counters::open()?;
        }
        let clock = AnyClock::prepare(self.config.clock).map_err(RigError::Clock)?;
        let topology = Topology::read()?;
        let limit = MemoryLock::raise().or_else(|_| MemoryLock::read())?;
        if self.is_shared() {
            let (wirings, largest) = (&self.sweep.wirings, largest(&self.points));
            self.most_elements = several::room(&self.config, wirings, largest, &limit)?;
        } else {
            for point in &self.points {
                let placement = point.cpus.placement(&topology)?;
                let shares_cpu = placement.shares_cpu();
                SpinPlacement::of(
                    &placement.warnings,
                    shares_cpu,
                    "--sender-cpu, --receiver-cpu",
                )
                .permit(self.config.priority)?;
            }
        }
        let of_generators = self.beside.as_ref().map_or(0, RunGenerators::bytes);
        let mut locks_memory = true;
        for needs in self.needs(&self.points) {
            needs.require_huge_pages(self.config.huge_pages, HugePages::read())?;
            locks_memory &= needs.require_lock(&limit, of_generators)?;
        }
        Ok(QueueMachine {
            topology,
            clock,
            locks_memory,
        })
    }

    /// Elements that are written of a round, about.
    fn kept_elements(&self) -> u64 {
        match self.config.length {
            _ if !self.config.keep_elements => 0,
            RoundLength::Elements(count) => count,
            RoundLength::Time(time) => (time.as_secs_f64() * KEPT_PER_S) as u64,
        }
    }

    /// Bytes of the logs by interval of a round of a point, at the most; of a number of elements its time is estimated.
    fn log_bytes(&self, point: &Point) -> u64 {
        let time = match self.config.length {
            RoundLength::Elements(_) => self.time(point),
            RoundLength::Time(time) => time,
        };
        interval_of(time, self.config.hlog_interval)
            .map_or(0, |interval| LOGS * hlog::most_bytes(time, interval))
    }

    /// How long a round of a point takes, about.
    fn time(&self, point: &Point) -> Duration {
        let most = match self.is_shared() {
            true => several::MOST_NOTED as u64,
            false => self.most_elements,
        };
        let beside = self.beside.as_ref();
        let preparation = beside.map(|beside| beside.share_of_preparation(point.memory_load));
        estimate::time_of_round(point, &self.config, most)
            .saturating_add(preparation.unwrap_or_default())
    }

    /// Makes a run of a point with its rate and so many elements; beside it, where its threads ran.
    fn run(&self, point: &Point, count: u64, round: u32) -> Result<(RunResult, Seats), RunError> {
        let machine = self.machine.as_ref().expect("the benchmark was prepared");
        let seats = Seats::of(&machine.topology, point)?;
        // The rest of the process stays off the measuring CPUs, where there are others.
        let supervisor = &seats.placement.supervisor;
        let beside = self.beside.as_ref();
        let free = beside.map(|beside| beside.without_generators(supervisor));
        pinning::pin_current_thread_to(free.as_ref().unwrap_or(supervisor))?;
        let mut task = Task::new(
            machine.clock,
            machine.locks_memory,
            point,
            &self.config,
            count,
        );
        task.cpus.clone_from(&seats.cpus);
        if machine.locks_memory {
            task.arena = arena(several::queue_bytes(point), self.config.huge_pages, round)?;
        }
        let load = beside.and_then(|beside| beside.load(point.memory_load));
        let run = measure_run((self.make_of)(point), task, round, load)?;
        Ok((run, seats))
    }

    /// How far the receiver's clock is ahead of the sender's, where that is in a figure and there is one of each; once
    /// in a process for each pair of CPUs.
    fn offset(&mut self, point: &Point) -> Result<Option<ClockOffset>, RunError> {
        if !self.config.has_latencies() || point.wiring.is_some() {
            return Ok(None);
        }
        let cpus = [point.cpus.sender, point.cpus.receiver];
        if let Some(known) = self.offsets.get(&cpus) {
            return Ok(*known);
        }
        let machine = self.machine.as_ref().expect("the benchmark was prepared");
        let found = measure_offset(&machine.clock, cpus[0], cpus[1])?;
        self.offsets.insert(cpus, found);
        Ok(found)
    }

    /// A run of a point, written down. A queue that loses elements, or worse, is no error here: the row says so.
    fn round(&mut self, mut point: Point, place: &SampleFolders) -> Result<Outcome, RunError> {
        if let (true, Some(beside)) = (point.memory_load.is_on(), &mut self.beside) {
            beside.prepare()?;
        }
        let mut saturation = None;
        if point.percent_of_saturation.is_some() {
            match self.saturation(&point)? {
                Ok(found) => {
                    point = point.with_saturation(found);
                    saturation = Some(found);
                }
                Err(failure) => return Ok(failed(failure, false)),
            }
        }
        let count = match self.count(&point)? {
            Ok(count) => count,
            Err(failure) => return Ok(failed(failure, false)),
        };
        let offset = self.offset(&point)?;
        let (run, seats) = self.run(&point, count, place.round)?;
        if self.config.keep_elements {
            write_elements(&place.folders[0], place.round, &run.rows)?;
        }
        Ok(self.outcome(&point, &run, &seats, count, saturation, offset))
    }
}

/// The largest capacity and payload of these points.
fn largest(points: &[Point]) -> (usize, usize) {
    let most = |of: fn(&Point) -> usize| points.iter().map(of).max().unwrap_or(0);
    (most(|point| point.capacity), most(|point| point.payload))
}

/// Memory for the queues of a run, at an address that follows from the round, so that all queues of a round have it in
/// common. `None` where it cannot be locked.
fn arena(
    bytes: u64,
    huge_pages: HugePagePolicy,
    round: u32,
) -> Result<Option<Arc<Arena>>, RunError> {
    let place = SplitMix64::new(u64::from(round)).draw();
    match Arena::new(bytes, huge_pages, place) {
        Ok(arena) => Ok(arena.map(Arc::new)),
        Err(BufferError::Lock { .. }) => Ok(None),
        Err(error) => Err(RunError::Thread(SENDER, error.into())),
    }
}

impl Benchmark for QueueBenchmark {
    fn schema(&self) -> &'static Schema {
        &columns::SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        let Points { points, left_out } = self.points()?;
        self.points = points;
        let planned = |(index, point): (usize, &Point)| PlannedPoint {
            index,
            rows: vec![PlannedRow {
                name: point.to_string(),
                settings: rows::settings(point, &self.config),
            }],
            time: self.time(point),
            bytes: self.kept_elements() * BYTES_PER_ELEMENT
                + self.log_bytes(point)
                + BYTES_PER_POINT,
            bytes_once: BYTES_PER_POINT,
            bytes_of_losses: 0,
            may_abort: false,
        };
        Ok(Plan {
            points: self.points.iter().enumerate().map(planned).collect(),
            left_out,
        })
    }

    fn busy_cpus(&self) -> Option<usize> {
        let generators = self.beside.as_ref().map_or(0, |beside| beside.cpus().len());
        let busy = |point: &Point| {
            let ends = |wiring: &Wiring| (wiring.publishers + wiring.subscribers) as usize;
            let beside = if point.memory_load.is_on() {
                generators
            } else {
                0
            };
            point.wiring.as_ref().map_or(2, ends) + beside
        };
        self.points.iter().map(busy).max()
    }

    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure> {
        let machine = self.machine()?;
        let beside = self.beside.as_ref();
        let warmup = humantime::format_duration(self.config.warmup);
        let elements = match self.config.length {
            RoundLength::Elements(count) => format!("{count} elements"),
            RoundLength::Time(time) => humantime::format_duration(time).to_string(),
        };
        let elements = format!("a round:  {elements}, behind {warmup} of warm-up");
        let generators = beside.map(RunGenerators::announcement);
        let mut ready = Ready {
            plan,
            obtained: json!({
                "after_a_miss": { "sender": "catch-up", "receiver": "start-over" },
            }),
            instrument: json!({ "clock": { "tsc": machine.clock.tsc_facts() } }),
            announcements: std::iter::once(elements).chain(generators).collect(),
            findings: beside
                .and_then(RunGenerators::finding)
                .into_iter()
                .collect(),
        };
        if self.is_shared() {
            ready.obtained["most_noted_by_a_thread"] = json!(self.most_elements);
        } else {
            let has_latencies = self.config.has_latencies();
            let is_from = has_latencies.then_some("the first attempt to enqueue");
            ready.obtained["latency_is_from"] = json!(is_from);
        }
        if let Some(beside) = beside {
            ready.obtained["generators"] = json!(beside.cpus());
        }
        self.machine = Some(machine);
        Ok(ready)
    }

    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        _progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let point = self.points[point].clone();
        match self.round(point, place) {
            Err(error) if error.fails_its_point() => {
                let failure = error.as_failure_of_point();
                Ok(failed(failure, error.leaves_thread_behind()))
            }
            outcome => Ok(outcome?),
        }
    }
}

#[cfg(test)]
mod tests;
