//! From points to results, one after the other.

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::analysis::{self, Noted};
use super::config::{Config, Measure};
use super::control::Ending;
use super::counters::{CounterError, Counters};
use super::floor::{self, Floor, Floors, Handoff};
use super::judge::{Outcome, Seen, Verdict};
use super::memory::Needs;
use super::notes::{EndReport, Notes};
use super::plan::{Plan, Point};
use super::result::{Histograms, PerEnd, PointResult, RunResult, over_runs};
use super::supervisor::{GRACE, make_run};
use super::task::Task;
use super::threads::{self, PREPARATION, Start, ThreadError};
use crate::host::{
    HostError, HugePages, MemoryLock, Placement, PlacementRequest, Role, RoleRequest, Topology,
    interrupt, pinning,
};
use crate::pacing::{AfterMiss, EndLoad, Load, Pacing};
use crate::queues::element::Words;
use crate::queues::registry::{self, AllPayloads, QueueUser};
use crate::time::{AnyClock, Clock, ClockError, Ticks};

/// An element takes no longer than this, pauses aside, before a run counts as stuck.
pub(super) const SLOWEST_ELEMENT: Duration = Duration::from_micros(100);
/// Runs that saturation is the median of.
const SATURATION_RUNS: u32 = 3;
/// A run cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The clock cannot be used.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The machine refuses.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The counters cannot be used.
    #[error("--measure counters: {0}")]
    Counters(#[from] CounterError),
    /// The notes of a run would not fit into memory.
    #[error(
        "--count {count} with --warmup {warmup} and --capacity {capacity} is impossible here: it takes {needed} of memory, \
         and half of what this machine has, {allowed}, is allowed: {advice}"
    )]
    TooLarge {
        /// Elements that are measured.
        count: u64,
        /// Elements before them.
        warmup: u64,
        /// The largest capacity.
        capacity: usize,
        /// What it takes, with its unit.
        needed: String,
        /// What it may take, with its unit.
        allowed: String,
        /// What to do.
        advice: String,
    },
    /// Huge pages are required, and there are too few.
    #[error(
        "--hugepages required: the stamps need {needed} huge pages of 2 MiB, {free} are free: reserve them (sysctl \
         vm.nr_hugepages={pool}), or use --hugepages try"
    )]
    TooFewHugePages {
        /// Pages that are needed.
        needed: u64,
        /// Pages that are free.
        free: u64,
        /// The size of the pool that would do.
        pool: u64,
    },
    /// There is no such queue.
    #[error("there is no queue {0}")]
    UnknownQueue(String),
    /// There is no such size of an element.
    #[error("elements of {0} bytes cannot be had")]
    UnknownPayload(usize),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Spawn(std::io::Error),
    /// A thread could not do its work.
    #[error("{0}: {1}")]
    Thread(Role, ThreadError),
    /// A thread does not get ready.
    #[error(
        "the {role} was not ready within {} s: making the queue, or touching the memory for its stamps, takes too long",
        PREPARATION.as_secs()
    )]
    NotReady {
        /// Whose thread it is.
        role: Role,
    },
    /// A thread was silent for too long.
    #[error(
        "nothing was heard of the {role} for {} s: an operation of the queue took so long, or something else has its CPU: \
         a longer --timeout allows more",
        silence.as_secs_f64()
    )]
    Stalled {
        /// Whose thread it is.
        role: Role,
        /// So long.
        silence: Duration,
    },
    /// A thread does not answer.
    #[error(
        "the {role} did not leave its loop within {} s after it was told to: an operation of the queue blocks",
        GRACE.as_secs()
    )]
    Stuck {
        /// Whose thread it is.
        role: Role,
    },
    /// A queue panicked.
    #[error("a thread panicked in an operation of the queue")]
    Panicked,
    /// Elements went through, but by far too slowly.
    #[error(
        "the run was not over within {} s: the CPUs are too busy, or --count is too large for this queue",
        limit.as_secs()
    )]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// A signal came.
    #[error("interrupted by {0}")]
    Interrupted(Signal),
}

impl RunError {
    /// Whether a queue failed in a way that leaves nothing behind, so that others can be measured. A thread that is stuck
    /// in a queue is not of that kind: it may take the CPU of the next one.
    fn leaves_nothing_behind(&self) -> bool {
        matches!(
            self,
            RunError::Panicked | RunError::Stalled { .. } | RunError::TooSlow { .. }
        )
    }
}

/// Measures queues on this machine.
#[derive(Debug)]
pub struct Bench {
    config: Config,
    topology: Topology,
    clock: AnyClock,
    /// Whether the memory of the queues can be locked.
    locks_memory: bool,
    start_of: fn(&Point) -> Result<Start, RunError>,
    /// What was found for points without their load, or why nothing was.
    saturations: HashMap<String, Result<f64, String>>,
}

impl Bench {
    /// Makes the clock ready and looks at the machine.
    ///
    /// # Errors
    /// When the clock, the counters or the machine cannot be used.
    pub fn new(config: Config, topology: Topology) -> Result<Self, RunError> {
        if config.measure == Measure::Counters {
            Counters::open()?;
        }
        Ok(Bench {
            clock: AnyClock::prepare(config.clock)?,
            topology,
            config,
            locks_memory: false,
            start_of,
            saturations: HashMap::new(),
        })
    }

    /// The clock of stamps and waiters.
    pub fn clock(&self) -> &AnyClock {
        &self.clock
    }

    /// Checks what every point needs of the machine: CPUs, huge pages if they are required, and memory that can be locked.
    /// Raises the limit for that as far as this process may.
    ///
    /// # Errors
    /// With what is missing and how to get it.
    pub fn prepare(&mut self, plan: &Plan) -> Result<(), RunError> {
        for point in &plan.points {
            self.placement(point)?;
        }
        let needs = Needs::of_plan(&self.config, plan);
        needs.require_huge_pages(self.config.huge_pages, HugePages::read())?;
        let limit = MemoryLock::raise().or_else(|_| MemoryLock::read())?;
        self.locks_memory = needs.require_lock(&limit)?;
        Ok(())
    }

    fn placement(&self, point: &Point) -> Result<Placement, RunError> {
        let on = |cpu| RoleRequest {
            cpu: Some(cpu),
            ..RoleRequest::default()
        };
        let request = PlacementRequest {
            sender: on(point.cpus.sender),
            receiver: on(point.cpus.receiver),
            completion: None,
            stamp: None,
        };
        Ok(Placement::plan(&self.topology, &request)?)
    }

    /// Measures one point; `progress` is told the number of each run before it begins. A queue that loses elements, panics, or
    /// worse, is no error here: the result says so. On a load curve it then may have no saturation, and no runs.
    ///
    /// # Errors
    /// When there is nothing to show.
    pub fn measure(
        &mut self,
        point: &Point,
        progress: &mut dyn FnMut(u32),
    ) -> Result<PointResult, RunError> {
        if point.percent_of_saturation.is_none() {
            return self.runs(point, self.config.repeat, progress);
        }
        match self.saturation(point, progress)? {
            Ok(saturation) => {
                let point = point.with_saturation(saturation);
                let mut result = self.runs(&point, self.config.repeat, progress)?;
                result.saturation_per_s = Some(saturation);
                Ok(result)
            }
            Err(failure) => Ok(PointResult {
                failure: Some(format!("the saturation could not be found: {failure}")),
                ..PointResult::of(point.clone())
            }),
        }
    }

    /// How many elements a second go through when nobody waits, measured by the loops of the points: with time stamps and a
    /// schedule that is less than without. Or why that could not be found, which is the queue's fault.
    fn saturation(
        &mut self,
        point: &Point,
        progress: &mut dyn FnMut(u32),
    ) -> Result<Result<f64, String>, RunError> {
        let fastest = point.at_saturation();
        let key = fastest.to_string();
        if let Some(known) = self.saturations.get(&key) {
            return Ok(known.clone());
        }
        let result = self.runs(&fastest, SATURATION_RUNS, progress)?;
        let found = match result.failure {
            Some(failure) => Err(failure),
            None => over_runs(&result.runs, |run| run.throughput_per_s)
                .map(|found| found.median)
                .ok_or_else(|| "there was no run".to_owned()),
        };
        self.saturations.insert(key, found.clone());
        Ok(found)
    }

    fn runs(
        &self,
        point: &Point,
        repeat: u32,
        progress: &mut dyn FnMut(u32),
    ) -> Result<PointResult, RunError> {
        let placement = self.placement(point)?;
        // The rest of the process stays off the measuring CPUs, where there are others.
        pinning::pin_current_thread_to(&placement.supervisor)?;
        let start = (self.start_of)(point)?;
        let mut result = PointResult {
            placement_warnings: placement.warnings,
            ..PointResult::of(point.clone())
        };
        for number in 0..repeat {
            progress(number);
            let task = Task {
                locks_memory: self.locks_memory,
                ..task_of(self.clock, point, &self.config)
            };
            let failure = match measure_run(start, task, &self.config, number, &mut result) {
                Ok(run) => {
                    let failure = failure_of(&run, &self.config);
                    result.runs.push(run);
                    failure
                }
                Err(error) if error.leaves_nothing_behind() => Some(format!("failed: {error}")),
                Err(error) => return Err(error),
            };
            // A queue that failed once is not worth another run, and what came of those before it is not to be believed.
            if let Some(failure) = failure {
                result.failure = Some(format!("run {} {failure}", number + 1));
                result.histograms = Histograms::default();
                result.elements = Vec::new();
                break;
            }
        }
        Ok(result)
    }
}

/// What kept a run from being clean, in words.
fn failure_of(run: &RunResult, config: &Config) -> Option<String> {
    let words = run.verdict.in_words(config.elements());
    match run.outcome {
        Outcome::Clean => None,
        Outcome::Wrong => Some(format!("is wrong: {words}")),
        Outcome::GaveUp => Some(format!(
            "was given up: {words}, and nothing went through for {} ms: a thread had no CPU for so long, or the queue is \
             stuck: look at the load of the machine, or raise --timeout",
            config.timeout.as_millis()
        )),
        Outcome::Unjudged => Some(format!(
            "cannot be judged: {words}: the clock {} is too coarse for it: use --clock tsc, or a load with pauses",
            config.clock.name()
        )),
    }
}

/// Starts runs with elements of so many bytes.
struct StartOf(usize);

impl QueueUser for StartOf {
    type Output = Option<Start>;

    fn with<Q: AllPayloads>(self) -> Self::Output {
        match self.0 {
            8 => Some(threads::start::<Q, Words<1>>),
            64 => Some(threads::start::<Q, Words<8>>),
            256 => Some(threads::start::<Q, Words<32>>),
            _ => None,
        }
    }
}

fn start_of(point: &Point) -> Result<Start, RunError> {
    registry::visit(&point.queue, StartOf(point.payload))
        .ok_or_else(|| RunError::UnknownQueue(point.queue.clone()))?
        .ok_or(RunError::UnknownPayload(point.payload))
}

fn task_of(clock: AnyClock, point: &Point, config: &Config) -> Task {
    let (sending, receiving) = (point.sender.longest_pause(), point.receiver.longest_pause());
    let patience = config.timeout.saturating_add(sending.max(receiving));
    let per_element = SLOWEST_ELEMENT
        .saturating_add(sending)
        .saturating_add(receiving);
    let elements = u32::try_from(config.elements()).unwrap_or(u32::MAX);
    Task {
        clock,
        sender_cpu: point.cpus.sender,
        receiver_cpu: point.cpus.receiver,
        sender: point.sender,
        receiver: point.receiver,
        capacity: point.capacity,
        warmup: config.warmup as usize,
        count: config.count as usize,
        measure: config.measure,
        measure_failed: config.measure_failed,
        huge_pages: config.huge_pages,
        locks_memory: false,
        patience,
        // Whatever hangs is noticed sooner, by its silence.
        limit: PREPARATION
            .saturating_add(per_element.saturating_mul(elements))
            .saturating_add(patience),
    }
}

/// Makes one run, checks it, and works out its figures; its elements go to `result`.
///
/// The figures of many elements take seconds: a signal does not wait for them.
pub(super) fn measure_run(
    start: Start,
    task: Task,
    config: &Config,
    number: u32,
    result: &mut PointResult,
) -> Result<RunResult, RunError> {
    let one_way = match config.measure {
        Measure::Time => floor_of_latency(&task, &result.point, config)?,
        Measure::Throughput | Measure::Counters => None,
    };
    let ends = make_run(start, &task)?;
    let config = config.clone();
    let mut kept = std::mem::replace(result, PointResult::of(result.point.clone()));
    let (run, kept) = interrupt::unless_requested(move || {
        let run = figures_of(&task, ends, one_way, &config, number, &mut kept);
        (run, kept)
    })
    .map_err(RunError::Interrupted)?;
    *result = kept;
    Ok(run)
}

/// Checks a run and works out its figures.
fn figures_of(
    task: &Task,
    ends: PerEnd<EndReport>,
    one_way: Option<(Floor, Floor)>,
    config: &Config,
    number: u32,
    result: &mut PointResult,
) -> RunResult {
    let clock = task.clock;
    let PerEnd { sender, receiver } = ends;
    let verdict = verdict_of(&sender, &receiver);
    let outcome = verdict.outcome(config.elements());
    let is_clean = outcome == Outcome::Clean;
    let mut times = None;
    if let (Notes::Times(sent), Notes::Times(received)) = (&sender.notes, &receiver.notes)
        && is_clean
    {
        let intended = intended_starts(task, sender.started);
        let noted = Noted {
            sent,
            received,
            intended: intended.as_deref(),
            warmup: task.warmup,
        };
        times = analysis::times(&clock, noted, &mut result.histograms);
        if config.keep_elements {
            let rows = analysis::rows(&clock, noted, number);
            result.elements.extend(rows);
        }
    }
    let [began, ended] = receiver.span;
    let span = clock.to_nanos(Ticks(ended.0.saturating_sub(began.0)));
    let counters = sender
        .counts
        .zip(receiver.counts)
        .filter(|_| is_clean)
        .map(|(sender, receiver)| PerEnd { sender, receiver });
    let both = |of: fn(&EndReport) -> u64| PerEnd {
        sender: of(&sender),
        receiver: of(&receiver),
    };
    RunResult {
        outcome,
        elements: config.count,
        times,
        throughput_per_s: is_clean.then(|| config.count as f64 * 1e9 / span.0.max(1) as f64),
        failed: both(|end| end.tally.failed),
        missed: both(|end| end.tally.missed),
        stamp: PerEnd {
            sender: sender.stamp,
            receiver: receiver.stamp,
        },
        floors: (config.measure == Measure::Time).then(|| Floors {
            // The floor of what most enqueues were: the median is one of them.
            enqueue: if sender.tally.extended * 2 > task.count {
                sender.floors.with_flush
            } else {
                sender.floors.plain
            },
            dequeue: receiver.floors.plain,
            latency: one_way.map(|(latency, _)| latency),
            intended: one_way.map(|(_, intended)| intended),
        }),
        handed_over: sender.tally.extended as u64,
        page_faults: PerEnd {
            sender: sender.faults,
            receiver: receiver.faults,
        },
        pages: PerEnd {
            sender: sender.pages,
            receiver: receiver.pages,
        },
        queue_locked: sender.queue_locked,
        counters,
        verdict,
    }
}

/// What the loops measure between the CPUs of a point where an element is handed over by a bare store: the latency, and
/// that from the intended time. `None` if that was disturbed.
fn floor_of_latency(
    task: &Task,
    point: &Point,
    config: &Config,
) -> Result<Option<(Floor, Floor)>, RunError> {
    let point = Point {
        capacity: (floor::WARMUP + floor::HANDOFFS) as usize,
        sender: EndLoad {
            load: Load::ConstantRate {
                rate_per_s: floor::RATE_PER_S,
            },
            ..EndLoad::NONE
        },
        receiver: EndLoad::NONE,
        ..point.clone()
    };
    let config = Config {
        count: floor::HANDOFFS,
        warmup: floor::WARMUP,
        measure_failed: false,
        ..config.clone()
    };
    let clock = task.clock;
    let task = Task {
        locks_memory: task.locks_memory,
        ..task_of(clock, &point, &config)
    };
    let ended = make_run(threads::start::<Handoff, Words<1>>, &task);
    let Some(PerEnd { sender, receiver }) = unless_disturbed(ended)? else {
        return Ok(None);
    };
    let verdict = verdict_of(&sender, &receiver);
    let (Notes::Times(sent), Notes::Times(received)) = (&sender.notes, &receiver.notes) else {
        return Ok(None);
    };
    if verdict.outcome(config.elements()) != Outcome::Clean {
        return Ok(None);
    }
    let intended = intended_starts(&task, sender.started);
    let noted = Noted {
        sent,
        received,
        intended: intended.as_deref(),
        warmup: task.warmup,
    };
    let times = analysis::times(&clock, noted, &mut Histograms::default());
    Ok(times.and_then(|times| Some((Floor::of(&times.latency), Floor::of(&times.intended?)))))
}

/// The ends of a run that is not the queue's; `None` where something else had the CPUs for too long.
fn unless_disturbed(
    ended: Result<PerEnd<EndReport>, RunError>,
) -> Result<Option<PerEnd<EndReport>>, RunError> {
    match ended {
        Ok(ends) => Ok(Some(ends)),
        Err(RunError::Stalled { .. } | RunError::TooSlow { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn intended_starts(task: &Task, started: Ticks) -> Option<Vec<Ticks>> {
    let waiter = task.sender.waiter(&task.clock, AfterMiss::CatchUp);
    waiter.intended_starts(started, task.elements())
}

fn verdict_of(sender: &EndReport, receiver: &EndReport) -> Verdict {
    Verdict::of(Seen {
        sent: &stamps_sent(sender),
        received: &stamps_received(receiver),
        leftovers: &receiver.leftovers,
        damaged: receiver.tally.damaged,
        gave_up: [sender, receiver]
            .iter()
            .any(|end| end.tally.ending == Ending::GaveUp),
    })
}

/// What the sender put in.
fn stamps_sent(report: &EndReport) -> Vec<u64> {
    match &report.notes {
        Notes::Times(records) => records[..report.tally.noted]
            .iter()
            .map(|record| record[0].0)
            .collect(),
        Notes::Numbers(_) => (1..=report.tally.noted as u64).collect(),
    }
}

/// What the receiver got.
fn stamps_received(report: &EndReport) -> Vec<u64> {
    match &report.notes {
        Notes::Times(records) => records[..report.tally.noted]
            .iter()
            .map(|record| record[0].0)
            .collect(),
        Notes::Numbers(numbers) => numbers[..report.tally.noted].to_vec(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
