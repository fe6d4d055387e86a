//! One run of a queue: the floor of its latency, the run itself, and what is made of it.

use super::analysis::{self, Noted};
use super::config::{Config, Measure};
use super::error::RunError;
use super::floor::{self, Floor, Floors, Handoff};
use super::judge::{Outcome, Seen, Verdict};
use super::notes::{EndReport, Notes};
use super::patience::Ending;
use super::plan::Point;
use super::result::{Histograms, PerEnd, Round, RunResult};
use super::supervisor::make_run;
use super::task::Task;
use super::threads::{self, Start};
use crate::host::interrupt;
use crate::pacing::{AfterMiss, EndLoad, Load, Pacing};
use crate::queues::element::Words;
use crate::queues::registry::{self, AllPayloads, QueueUser};
use crate::rig::error::RigError;
use crate::time::{Clock, Ticks};

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

/// Starts runs of this queue and this size of an element.
pub(super) fn start_of(point: &Point) -> Result<Start, RunError> {
    let start = registry::visit(&point.queue, StartOf(point.payload));
    start.flatten().ok_or_else(|| RunError::NoSuchQueue {
        queue: point.queue.clone(),
        payload: point.payload,
    })
}

impl RunResult {
    /// What kept it from being clean, in words.
    pub(super) fn failure(&self, config: &Config) -> Option<String> {
        let words = self.verdict.in_words(config.elements());
        match self.outcome {
            Outcome::Clean => None,
            Outcome::Wrong => Some(format!(
                "this queue is broken, and its figures are left out: {words}"
            )),
            Outcome::GaveUp => Some(format!(
                "the run was given up: {words}, and nothing went through for {} ms: a thread had no CPU for so long, or \
                 the queue is stuck: look at the load of the machine, or raise --timeout",
                config.timeout.as_millis()
            )),
            Outcome::Unjudged => Some(format!(
                "the run cannot be judged: {words}: the clock {} is too coarse for it: use --clock tsc, or a load with \
                 pauses",
                config.clock.name()
            )),
        }
    }
}

/// Makes one run, checks it, and works out its figures. Those of many elements take seconds: a signal does not wait for
/// them.
pub(super) fn measure_run(
    start: Start,
    task: Task,
    point: &Point,
    config: &Config,
    round: u32,
) -> Result<Round, RunError> {
    let one_way = match config.measure {
        Measure::Time => floor_of_latency(&task, point, config)?,
        Measure::Throughput | Measure::Counters => None,
    };
    let ends = make_run(start, &task)?;
    let config = config.clone();
    interrupt::unless_requested(move || figures_of(&task, ends, one_way, &config, round))
        .map_err(|signal| RigError::Interrupted(signal).into())
}

/// Checks a run and works out its figures.
fn figures_of(
    task: &Task,
    ends: PerEnd<EndReport>,
    one_way: Option<(Floor, Floor)>,
    config: &Config,
    round: u32,
) -> Round {
    let clock = task.clock;
    let PerEnd { sender, receiver } = ends;
    let verdict = verdict_of(&sender, &receiver);
    let outcome = verdict.outcome(config.elements());
    let is_clean = outcome == Outcome::Clean;
    let (mut times, mut histograms) = (None, Histograms::default());
    let mut elements = Vec::new();
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
        times = analysis::times(&clock, noted, &mut histograms);
        if config.keep_elements {
            elements = analysis::rows(&clock, noted, round);
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
    let run = RunResult {
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
    };
    Round {
        run,
        histograms,
        elements,
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
        ..Task::new(clock, &point, &config)
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
        Err(RunError::Rig(RigError::Silent { .. }) | RunError::TooSlow { .. }) => Ok(None),
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
