//! Several threads at each end, as the rig runs them.

use std::time::Duration;

use serde_json::json;

use super::judge::{Shares, judged};
use super::loops::{MakeAll, make_of};
use super::plan::{Seats, lines};
use super::run::{ManyTask, make_run};
use crate::bench::queue::benchmark::{arena, failed, obtained};
use crate::bench::queue::config::{Config, Length};
use crate::bench::queue::cpus::Cpus;
use crate::bench::queue::error::RunError;
use crate::bench::queue::memory::{self, Needs};
use crate::bench::queue::plan::{Plan as Points, Point, Sweep};
use crate::bench::queue::result::{RunResult, Times};
use crate::bench::queue::task::{RECEIVER, SENDER, Task};
use crate::bench::queue::{rows, warnings};
use crate::host::{HugePages, MemoryLock, Topology, interrupt, pinning};
use crate::node::wiring::Wiring;
use crate::results::schema::{Schema, queue as columns};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Place, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
};
use crate::rig::error::RigError;
use crate::rig::memory::Allowance;
use crate::rig::priority::Places;
use crate::time::{AnyClock, Clock, Ticks};

/// The most elements that a thread notes in a round.
pub(crate) const MOST_NOTED: usize = 1 << 20;
/// An upper estimate of what a point leaves on disk, in bytes.
const BYTES_PER_POINT: u64 = 256 << 10;
/// What a round takes beside what is measured, about.
const TIME_BESIDE: Duration = Duration::from_millis(50);

/// In so long each thread that shares a CPU has had it several times.
const SOME_TIME_SLICES: Duration = Duration::from_millis(100);

/// What the queues of a wiring take.
fn queue_bytes(wiring: &Wiring, (capacity, payload): (usize, usize)) -> u64 {
    let lines = lines(wiring);
    let senders = lines.iter().map(|line| line.producers.len());
    senders
        .map(|senders| memory::queue_bytes(capacity, payload, senders))
        .sum()
}

#[derive(Debug)]
pub struct ManyBenchmark {
    config: Config,
    /// How long elements count in a round.
    duration: Duration,
    sweep: Sweep,
    points: Vec<Point>,
    machine: Option<Machine>,
    pub(super) make_of: fn(&Point) -> MakeAll,
}

#[derive(Debug)]
struct Machine {
    topology: Topology,
    clock: AnyClock,
    /// Elements that each thread can note, of which the stamps can be locked.
    room: usize,
    /// Whether the memory of the queues can be locked.
    locks_memory: bool,
}

impl ManyBenchmark {
    /// Of a sweep with wirings and, in its configuration, a duration.
    pub fn new(config: Config, sweep: Sweep) -> Self {
        let duration = match config.length {
            Length::Time(time) => time,
            Length::Elements(_) => Duration::ZERO,
        };
        ManyBenchmark {
            config,
            duration,
            sweep,
            points: Vec::new(),
            machine: None,
            make_of,
        }
    }

    fn points(&self) -> Result<Points, RunError> {
        let topology = Topology::read()?;
        let allowed = topology.allowed().len();
        for wiring in &self.sweep.wirings {
            let threads = (wiring.publishers + wiring.subscribers) as usize;
            let places = Places {
                shares_cpu: threads > allowed,
                leaves_cpu: threads < allowed,
                options: "--producers and --consumers, together no more than CPUs",
            };
            places.permit(self.config.priority)?;
        }
        let sweep = self.sweep.clone();
        // No two CPUs have a meaning: each thread has its own.
        let cpus = [Cpus {
            sender: 0,
            receiver: 0,
            cores: None,
        }];
        let points = interrupt::unless_requested(move || Points::new(&sweep, &cpus))
            .map_err(RigError::Interrupted)?;
        match points.why_empty() {
            Some(reason) => Err(RunError::NothingToMeasure(format!("--queue: {reason}"))),
            None => Ok(points),
        }
    }

    /// What a run of a wiring takes where each thread can note so many elements.
    fn needs(&self, wiring: &Wiring, room: usize) -> Needs {
        let most = |of: fn(&Point) -> usize| self.points.iter().map(of).max().unwrap_or(1);
        let largest = (most(|point| point.capacity), most(|point| point.payload));
        let producers = wiring.publishers as usize;
        let has_times = self.config.measure.has_times();
        let of_producer = (SENDER, if has_times { room } else { 0 });
        let of_consumer = ManyTask::room_of_consumer(room, producers, largest.0);
        let mut rooms = vec![of_producer; producers];
        rooms.resize(
            producers + wiring.subscribers as usize,
            (RECEIVER, of_consumer),
        );
        Needs::of_many(&self.config, &rooms, queue_bytes(wiring, largest))
    }

    fn machine(&self) -> Result<Machine, RunError> {
        let clock = AnyClock::prepare(self.config.clock).map_err(RigError::Clock)?;
        let topology = Topology::read()?;
        let limit = MemoryLock::raise().or_else(|_| MemoryLock::read())?;
        let (allowed, pages) = (Allowance::of_this_process(), HugePages::read());
        let most = (self.duration.as_secs_f64() * memory::MOST_STAMPED_PER_S) as u64;
        let most = most.clamp(memory::FEWEST, MOST_NOTED as u64);
        let wirings = &self.sweep.wirings;
        let fits = |room: u64| {
            let needs = wirings
                .iter()
                .map(|wiring| self.needs(wiring, room as usize));
            let mut fits = needs.map(|it| it.fit(&self.config, allowed.as_ref(), &limit, pages));
            fits.all(|fits| fits)
        };
        let room = memory::largest(most, fits).max(memory::FEWEST) as usize;
        let mut locks_memory = true;
        for wiring in wirings {
            let needs = self.needs(wiring, room);
            if let Some(allowed) = &allowed {
                let Wiring {
                    publishers,
                    subscribers,
                    ..
                } = wiring;
                let options = format!("--producers {publishers} with --consumers {subscribers}");
                needs.require(allowed, &options).map_err(RigError::Memory)?;
            }
            needs.require_huge_pages(self.config.huge_pages, pages)?;
            locks_memory &= needs.require_lock(&limit, 0)?;
        }
        Ok(Machine {
            topology,
            clock,
            room,
            locks_memory,
        })
    }

    fn round(&self, point: &Point, round: u32) -> Result<Outcome, RunError> {
        let machine = self.machine.as_ref().expect("the benchmark was prepared");
        let wiring = point.wiring.expect("all points have a wiring");
        let seats = Seats::new(&machine.topology, &wiring)?;
        // The rest of the process stays off the measuring CPUs, where there are others.
        pinning::pin_current_thread_to(&seats.placement.supervisor)?;
        let room = machine.room;
        let mut task = Task::new(
            machine.clock,
            machine.locks_memory,
            point,
            &self.config,
            room as u64,
        );
        // One is served while all others at its end are.
        let turns = wiring.publishers.max(wiring.subscribers);
        task.patience = task
            .patience
            .saturating_add(point.longest_pause().saturating_mul(turns));
        if machine.locks_memory {
            let bytes = queue_bytes(&wiring, (point.capacity, point.payload));
            task.arena = arena(bytes, self.config.huge_pages, round)?;
        }
        let many = ManyTask {
            task,
            wiring,
            duration: self.duration,
            room,
        };
        let reports = make_run((self.make_of)(point), &many, &seats)?;
        // Many elements take seconds: a signal does not wait for them.
        let (run, shares) = interrupt::unless_requested(move || judged(&many, reports))
            .map_err(RigError::Interrupted)?;
        Ok(self.outcome(point, &run, &shares, &seats))
    }

    /// Whether it is the queue's doing if a thread has next to nothing: those that share a CPU have it in turn.
    fn tells_starved(&self, run: &RunResult, seats: &Seats) -> bool {
        let [first, last] = run.ends.sender.passed.span;
        let span = Ticks(last.0.saturating_sub(first.0));
        let clock = self.machine.as_ref().map(|machine| machine.clock);
        let span = clock.map_or(0, |clock| clock.to_nanos(span).0);
        !seats.placement.shares_cpu() || u128::from(span) >= SOME_TIME_SLICES.as_nanos()
    }

    fn outcome(&self, point: &Point, run: &RunResult, shares: &Shares, seats: &Seats) -> Outcome {
        let (config, machine) = (&self.config, self.machine.as_ref());
        let failure = run.failure(config);
        let mut figures = rows::figures(point, run, None);
        let mut warnings = warnings::of(point, run, &[], config);
        warnings.extend(seats.warnings(machine.map_or(0, |it| it.topology.allowed().len())));
        if failure.is_none() {
            shares.set(&mut figures);
            let starved = self.tells_starved(run, seats).then(|| shares.starved());
            figures.set(&columns::STARVED, starved.as_ref().map(Vec::len));
            let scenario = point.wiring.map_or("", |wiring| wiring.scenario.name());
            warnings.extend(starved.iter().flatten().map(|end| {
                format!(
                    "{}, {scenario}: in a round a {end} had less than {} % of an equal share: its row is marked UNFAIR",
                    point.queue,
                    columns::STARVED_PERCENT
                )
            }));
        }
        let mut obtained = obtained(point, run, &seats.placement.warnings, None);
        obtained["cpus"] = json!({ "producers": seats.producers, "consumers": seats.consumers });
        let row = RowOutcome {
            figures,
            failure,
            ends_sweep: false,
            obtained,
            instrument: json!({ "stamp": run.ends.map(|end| end.stamp), "floors": run.floors }),
            details: json!({ "verdict": run.verdict, "shares": shares }),
            histograms: run.times.as_ref().map_or_else(Vec::new, Times::files),
        };
        let most = shares.producers.iter().chain(&shares.consumers).max();
        let room = machine.map_or(usize::MAX, |machine| machine.room);
        let note_on_length = most.filter(|most| **most >= room as u64).map(|_| {
            format!(
                "a round ends for all threads when one of them has noted {room} elements, even if that is before \
                 --duration is over; of rounds below {} ms in which threads share CPUs it is not told who is starved",
                SOME_TIME_SLICES.as_millis()
            )
        });
        Outcome {
            rows: vec![row],
            warnings,
            notes: warnings::notes(point, run, config)
                .into_iter()
                .chain(note_on_length)
                .collect(),
            ..Outcome::default()
        }
    }
}

impl Benchmark for ManyBenchmark {
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
            // What was noted is sorted, which takes as long again and longer.
            time: TIME_BESIDE + self.config.warmup + self.duration * 4,
            bytes: BYTES_PER_POINT,
        };
        Ok(Plan {
            points: self.points.iter().enumerate().map(planned).collect(),
            left_out,
        })
    }

    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure> {
        let machine = self.machine()?;
        let [duration, warmup] =
            [self.duration, self.config.warmup].map(humantime::format_duration);
        let ready = Ready {
            plan,
            obtained: json!({
                "after_a_miss": { "sender": "catch-up", "receiver": "start-over" },
                "most_noted_by_a_thread": machine.room,
            }),
            instrument: json!({ "clock": { "tsc": machine.clock.tsc_facts() } }),
            announcements: vec![format!("a round:  {duration}, behind {warmup} of warm-up")],
            warnings: Vec::new(),
        };
        self.machine = Some(machine);
        Ok(ready)
    }

    fn measure(
        &mut self,
        point: usize,
        place: &Place,
        _progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        match self.round(&self.points[point], place.round) {
            Err(error) if error.fails_its_point() => {
                let failure = error.as_failure_of_point();
                Ok(failed(failure, error.leaves_thread_behind()))
            }
            outcome => Ok(outcome?),
        }
    }
}
