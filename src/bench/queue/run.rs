//! From points to results, one after the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::analysis::{self, Noted};
use super::config::{Config, EndLoad, Load, Measure};
use super::control::{Control, Ending};
use super::counters::{CounterError, Counters};
use super::element::Words;
use super::floor::{self, Floor, Floors, Handoff};
use super::judge::{Outcome, Seen, Verdict};
use super::plan::{Plan, Point};
use super::registry::{self, AllPayloads, QueueUser};
use super::result::{Ends, Histograms, PointResult, RunResult, over_runs};
use super::threads::{self, EndReport, Notes, PREPARATION, Start, Task, ThreadError};
use crate::buffer::Bytes;
use crate::host::{
    HostError, MemoryLock, Placement, PlacementRequest, Role, RoleRequest, Topology, interrupt,
    memory_lock, pinning,
};
use crate::pacing::{AfterMiss, Pacing};
use crate::time::{AnyClock, Clock, ClockError, Ticks};

/// How long a thread may take to leave its loop after it was told to.
const GRACE: Duration = Duration::from_secs(2);
/// How often the supervisor looks for a signal.
const LOOK: Duration = Duration::from_millis(50);
/// An element takes no longer than this, pauses aside, before a run counts as stuck.
const SLOWEST_ELEMENT: Duration = Duration::from_micros(100);
/// Runs that saturation is the median of.
const SATURATION_RUNS: u32 = 3;
/// Bytes that an element takes while it is measured and analysed: two records, four samples and the sender's stamps.
const BYTES_PER_ELEMENT: u64 = 2 * 24 + 4 * 8 + 16;
/// Beside that, where the elements are kept.
const BYTES_PER_ROW: u64 = 88;

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
         this machine has {total}: use smaller ones, or no --elements"
    )]
    TooLarge {
        /// Elements that are measured.
        count: u64,
        /// Elements before them.
        warmup: u64,
        /// The largest capacity.
        capacity: usize,
        /// What it takes.
        needed: Bytes,
        /// What there is.
        total: Bytes,
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
    /// A queue that fails cannot be saturated.
    #[error("the saturation could not be found: {0}")]
    NoSaturation(String),
    /// A signal came.
    #[error("interrupted by {0}")]
    Interrupted(Signal),
}

/// Measures queues on this machine.
#[derive(Debug)]
pub struct Bench {
    config: Config,
    topology: Topology,
    clock: AnyClock,
    saturations: HashMap<String, f64>,
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
            saturations: HashMap::new(),
        })
    }

    /// The clock of stamps and waiters.
    pub fn clock(&self) -> &AnyClock {
        &self.clock
    }

    /// Checks what every point needs of the machine: CPUs, and memory that can be locked. Raises the limit for that as
    /// far as this process may.
    ///
    /// # Errors
    /// With what is missing and how to get it.
    pub fn prepare(&self, plan: &Plan) -> Result<(), RunError> {
        for point in &plan.points {
            self.placement(point)?;
        }
        let limit = MemoryLock::raise().or_else(|_| MemoryLock::read())?;
        // Both ends, each in whole huge pages and one for the alignment.
        let notes = self.config.elements() * 24 + (4 << 20);
        limit.require(2 * notes)?;
        Ok(())
    }

    /// Checks that this machine has memory for elements and queues of this size, before a queue is made.
    ///
    /// # Errors
    /// When it has too little.
    pub fn check_memory(
        config: &Config,
        largest_capacity: usize,
        largest_payload: usize,
    ) -> Result<(), RunError> {
        let rows = if config.keep_elements {
            config.count * u64::from(config.repeat) * BYTES_PER_ROW
        } else {
            0
        };
        // Some queues have a cache line a slot.
        let queue = largest_capacity as u64 * (largest_payload as u64 + 64);
        let needed = config.elements() * BYTES_PER_ELEMENT + rows + queue;
        match memory_lock::physical_memory() {
            Some(total) if needed > total / 2 => Err(RunError::TooLarge {
                count: config.count,
                warmup: config.warmup,
                capacity: largest_capacity,
                needed: Bytes(needed),
                total: Bytes(total),
            }),
            _ => Ok(()),
        }
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

    /// Measures one point; `progress` is told the number of each run before it begins. A queue that loses elements, or
    /// worse, is no error here: the result says so.
    ///
    /// # Errors
    /// When there is nothing to show.
    pub fn measure(
        &mut self,
        point: &Point,
        progress: &mut dyn FnMut(u32),
    ) -> Result<PointResult, RunError> {
        let saturation = match point.percent_of_saturation {
            Some(_) => Some(self.saturation(point, progress)?),
            None => None,
        };
        let point = match saturation {
            Some(saturation) => point.with_saturation(saturation),
            None => point.clone(),
        };
        let mut result = self.runs(&point, self.config.repeat, progress)?;
        result.saturation_per_s = saturation;
        Ok(result)
    }

    /// How many elements a second go through when nobody waits, measured by the loops of the points: with time stamps and a
    /// schedule that is less than without.
    fn saturation(
        &mut self,
        point: &Point,
        progress: &mut dyn FnMut(u32),
    ) -> Result<f64, RunError> {
        let fastest = point.at_saturation();
        let key = fastest.to_string();
        if let Some(&known) = self.saturations.get(&key) {
            return Ok(known);
        }
        let result = self.runs(&fastest, SATURATION_RUNS, progress)?;
        if let Some(failure) = result.failure {
            return Err(RunError::NoSaturation(failure));
        }
        let found = over_runs(&result.runs, |run| run.throughput_per_s)
            .ok_or_else(|| RunError::NoSaturation("there was no run".to_owned()))?;
        self.saturations.insert(key, found.median);
        Ok(found.median)
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
        let start = registry::visit(&point.queue, StartOf(point.payload))
            .ok_or_else(|| RunError::UnknownQueue(point.queue.clone()))?
            .ok_or(RunError::UnknownPayload(point.payload))?;
        let mut result = PointResult {
            point: point.clone(),
            saturation_per_s: None,
            runs: Vec::with_capacity(repeat as usize),
            histograms: Histograms::default(),
            elements: Vec::new(),
            placement_warnings: placement.warnings,
            failure: None,
        };
        for number in 0..repeat {
            progress(number);
            let run = measure_run(self.clock, start, &self.config, number, &mut result)?;
            let failure = failure_of(&run, &self.config);
            result.runs.push(run);
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
        patience,
        limit: PREPARATION
            .saturating_add(per_element.saturating_mul(elements))
            .saturating_add(patience),
    }
}

/// Makes one run, checks it, and works out its figures; its elements go to `result`.
pub(super) fn measure_run(
    clock: AnyClock,
    start: Start,
    config: &Config,
    number: u32,
    result: &mut PointResult,
) -> Result<RunResult, RunError> {
    let task = task_of(clock, &result.point, config);
    let one_way = match config.measure {
        Measure::Time => floor_of_latency(clock, &result.point, config)?,
        Measure::Throughput | Measure::Counters => None,
    };
    let Ends { sender, receiver } = make_run(start, &task)?;
    let verdict = verdict_of(&sender, &receiver);
    let outcome = verdict.outcome(config.elements());
    let is_clean = outcome == Outcome::Clean;
    let mut times = None;
    if let (Notes::Times(sent), Notes::Times(received)) = (&sender.notes, &receiver.notes)
        && is_clean
    {
        let intended = intended_starts(&task, sender.started);
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
        .map(|(sender, receiver)| Ends { sender, receiver });
    let both = |of: fn(&EndReport) -> u64| Ends {
        sender: of(&sender),
        receiver: of(&receiver),
    };
    Ok(RunResult {
        outcome,
        elements: config.count,
        times,
        throughput_per_s: is_clean.then(|| config.count as f64 * 1e9 / span.0.max(1) as f64),
        failed: both(|end| end.tally.failed),
        missed: both(|end| end.tally.missed),
        stamp: Ends {
            sender: sender.stamp,
            receiver: receiver.stamp,
        },
        floors: (config.measure == Measure::Time).then(|| Floors {
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
        page_faults: Ends {
            sender: sender.faults,
            receiver: receiver.faults,
        },
        pages: Ends {
            sender: sender.pages,
            receiver: receiver.pages,
        },
        counters,
        verdict,
    })
}

/// What the loops measure between the CPUs of a point where an element is handed over by a bare store: the latency, and
/// that from the intended time. `None` if that was disturbed.
fn floor_of_latency(
    clock: AnyClock,
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
    let task = task_of(clock, &point, &config);
    let Ends { sender, receiver } = make_run(threads::start::<Handoff, Words<1>>, &task)?;
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

/// Runs both threads to their end. They leave their loops by themselves; the supervisor sees to signals, and to
/// operations of a queue that never return.
fn make_run(start: Start, task: &Task) -> Result<Ends<EndReport>, RunError> {
    if let Some(signal) = interrupt::requested() {
        return Err(RunError::Interrupted(signal));
    }
    let control = Arc::new(Control::default());
    let (reports, incoming) = channel();
    let handles = start(task, &control, &reports).map_err(|error| {
        control.stop();
        RunError::Spawn(error)
    })?;
    drop(reports);
    let began = Instant::now();
    let mut told: Option<Instant> = None;
    let (mut sender, mut receiver) = (None, None);
    let mut failure = None;
    while sender.is_none() || receiver.is_none() {
        match incoming.recv_timeout(LOOK) {
            Ok((role, Ok(report))) => {
                let end = if role == Role::Sender {
                    &mut sender
                } else {
                    &mut receiver
                };
                *end = Some(Some(report));
            }
            Ok((role, Err(error))) => {
                let end = if role == Role::Sender {
                    &mut sender
                } else {
                    &mut receiver
                };
                *end = Some(None);
                // Of two, one is only that the other one failed.
                if failure.is_none() || !matches!(error, ThreadError::Alone) {
                    failure = Some(RunError::Thread(role, error));
                }
            }
            // A thread has ended without a report: joining it says why.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let interrupted = interrupt::requested().is_some();
                if told.is_none() && (interrupted || began.elapsed() >= task.limit) {
                    control.stop();
                    told = Some(Instant::now());
                }
                if told.is_some_and(|at| at.elapsed() >= GRACE) {
                    let role = if sender.is_none() {
                        Role::Sender
                    } else {
                        Role::Receiver
                    };
                    return Err(RunError::Stuck { role });
                }
            }
        }
    }
    for handle in handles {
        handle.join().map_err(|_| RunError::Panicked)?;
    }
    if let Some(signal) = interrupt::requested() {
        return Err(RunError::Interrupted(signal));
    }
    match (sender.flatten(), receiver.flatten(), failure) {
        (_, _, Some(failure)) => Err(failure),
        (Some(sender), Some(receiver), None) => {
            let stopped = [&sender, &receiver]
                .iter()
                .any(|end| end.tally.ending == Ending::Stopped);
            if stopped {
                return Err(RunError::TooSlow { limit: task.limit });
            }
            Ok(Ends { sender, receiver })
        }
        (_, receiver, None) => Err(RunError::Thread(
            if receiver.is_none() {
                Role::Receiver
            } else {
                Role::Sender
            },
            ThreadError::Alone,
        )),
    }
}

#[cfg(test)]
mod tests;
