//! One run of a queue: the floor of its latency, the run itself, and what is made of it.

use super::analysis::{self, ElementRecords};
use super::batches;
use super::config::{Config, Measure};
use super::control::Ending;
use super::ends::{self, EndsMaker};
use super::error::RunError;
use super::floor::{self, Handoff, QueueFloor};
use super::interval_logs;
use super::judge::{ObservedElements, Outcome, Verdict};
use super::notes::{EndReport, Notes};
use super::per_second;
use super::plan::Point;
use super::result::{PerEnd, PerOperation, RunResult, Times};
use super::shared::{self, EndReports};
use super::stage::ThreadPosition;
use super::supervisor::make_run;
use super::task::Task;
use crate::generators::ActiveLoad;
use crate::host::interrupt;
use crate::host::throttling::ThrottlingRecord;
use crate::pacing::{EndLoad, Load};
use crate::queues::element::Words;
use crate::rig::error::RigError;
use std::time::Duration;

impl RunResult {
    /// What kept it from being clean, in words.
    pub(super) fn failure(&self, config: &Config) -> Option<String> {
        let words = self.verdict.in_words(self.elements);
        match self.outcome {
            Outcome::Clean => None,
            Outcome::Wrong => Some(format!(
                "this queue is broken, and its figures are left out: {words}"
            )),
            Outcome::GaveUp => Some(format!(
                "the run was given up: {words}, and nothing went through for {} ms: a thread had no CPU for so long, or \
                 the queue is stuck: check the load of the machine, or raise --timeout",
                config.timeout.as_millis()
            )),
            Outcome::Unjudged => Some(format!(
                "the run cannot be judged: {words}: the clock {} is too coarse for it: use --clock tsc, or a load with \
                 pauses",
                config.clock_name()
            )),
        }
    }
}

/// Makes one run, checks it, and works out its figures. Those of many elements take seconds: a signal does not wait for
/// them. A memory load begins and ends with the run, not before the floor of its latency.
pub(super) fn measure_run(
    make: EndsMaker,
    task: Task,
    round: u32,
    mut load: Option<ActiveLoad<'_>>,
) -> Result<RunResult, RunError> {
    // Of round trips as well.
    let config = &task.config;
    let has_bare = config.times_each() && !config.unfenced && task.point.wiring.is_none();
    let bare = match has_bare {
        true => times_of_handoff(&task)?,
        false => None,
    };
    let (ends, throttled) = make_run(make, &task, load.as_mut())?;
    let drawn = load.and_then(|load| load.drawn());
    let figures = move || RunResult {
        drawn,
        throttled,
        ..figures_of(&task, ends, bare, round)
    };
    interrupt::unless_requested(figures).map_err(|signal| RigError::Interrupted(signal).into())
}

/// Checks a run and works out its figures; `bare` are the times of the bare hand-over.
fn figures_of(task: &Task, mut reports: EndReports, bare: Option<Times>, round: u32) -> RunResult {
    let config = &task.config;
    let wiring = task.point.wiring.as_ref();
    if let Some(wiring) = wiring {
        shared::take_back_unfinished(wiring, &mut reports);
    }
    let (verdict, elements) = match wiring {
        Some(wiring) => {
            let verdict = shared::verdict(wiring, &reports);
            (verdict, verdict.elements.sent)
        }
        None => (verdict_of(config.measure, &reports), task.count),
    };
    let outcome = verdict.outcome(elements);
    let is_clean = outcome == Outcome::Clean;
    let noted = noted(task, &reports).filter(|_| is_clean);
    let [senders, receivers] = [&reports.sender, &reports.receiver]
        .map(|all| Vec::from_iter(all.iter().map(|one| &one.end.passed)));
    let passed = PerEnd {
        sender: &*senders,
        receiver: &*receivers,
    };
    let per_second = per_second::of(&task.point, &task.clock, passed);
    let ends = reports.map(|all| shared::merged(all.as_slice()));
    let PerEnd { sender, receiver } = &ends;
    // The floor of what most enqueues were: the median is one of them.
    let enqueue = if sender.tally.extended as u64 * 2 > elements {
        sender.floors.with_flush
    } else {
        sender.floors.plain
    };
    let latencies = bare.map(|times| {
        times
            .figures
            .map(|figure| figure.as_ref().map(QueueFloor::of))
    });
    let floors = PerOperation {
        enqueue: Some(enqueue),
        dequeue: Some(receiver.floors.plain),
        enqueue_batch: sender.batch_floor,
        dequeue_batch: receiver.batch_floor,
        ..latencies.unwrap_or_default()
    };
    let has_latencies = config.has_latencies();
    let one_way =
        (noted.as_ref()).and_then(|noted| analysis::times(&task.clock, noted, has_latencies));
    let times = match wiring {
        Some(_) if config.measure.has_times() && is_clean => shared::times(task, &reports),
        Some(_) => None,
        None if !is_clean => None,
        None => one_way
            .or_else(|| round_trips(task, &reports))
            .or_else(|| batches(task, &reports)),
    };
    let interval_logs = match is_clean {
        true => interval_logs::of(task, &reports, noted.as_ref(), round),
        false => Vec::new(),
    };
    let has_floors = config.measure.has_times() && (wiring.is_none() || is_clean);
    let kept = noted.filter(|_| config.keep_elements);
    RunResult {
        outcome,
        verdict,
        elements,
        times,
        interval_logs,
        throughput_per_s: per_second.receiver.filter(|_| is_clean),
        sent_per_s: per_second.sender.filter(|_| is_clean),
        floors: has_floors.then_some(floors),
        shares: wiring.map(|_| shared::shares(&reports)),
        ends,
        rows: kept.map_or_else(Vec::new, |noted| analysis::rows(&task.clock, &noted, round)),
        drawn: None,
        throttled: ThrottlingRecord::default(),
    }
}

/// What the loops measure between the CPUs of a point where an element is handed over by a bare store. `None` if that
/// was disturbed.
fn times_of_handoff(task: &Task) -> Result<Option<Times>, RunError> {
    let point = Point {
        capacity: floor::HANDOFFS as usize,
        sender: EndLoad {
            load: Load::ConstantRate {
                rate_per_s: floor::RATE_PER_S,
            },
            ..EndLoad::NONE
        },
        receiver: EndLoad::NONE,
        ..task.point.clone()
    };
    let config = Config {
        warmup: Duration::ZERO,
        measure_failed: false,
        ..task.config.clone()
    };
    let count = floor::HANDOFFS;
    let task = Task::new(task.clock, task.locks_memory, &point, &config, count);
    let ended = make_run(ends::make::<Handoff, Words<1>>, &task, None);
    let clean = unless_disturbed(ended.map(|(ends, _)| ends))?
        .filter(|ends| verdict_of(config.measure, ends).outcome(count) == Outcome::Clean);
    Ok(clean.and_then(|ends| match noted(&task, &ends) {
        Some(noted) => analysis::times(&task.clock, &noted, true),
        None => round_trips(&task, &ends),
    }))
}

/// The ends of a run that is not the queue's; `None` where something else had the CPUs for too long.
fn unless_disturbed(ended: Result<EndReports, RunError>) -> Result<Option<EndReports>, RunError> {
    match ended {
        Ok(ends) => Ok(Some(ends)),
        Err(RunError::Rig(RigError::Silent { .. }) | RunError::TooSlow { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The times of round trips, if the sender alone noted times.
fn round_trips(task: &Task, ends: &EndReports) -> Option<Times> {
    let noted = ends.sender[0].round_trips(&ends.receiver[0])?;
    Some(analysis::round_trips(&task.clock, noted))
}

/// The times of batches, if both ends noted them.
fn batches(task: &Task, ends: &EndReports) -> Option<Times> {
    let noted = [ends.sender[0].batches()?, ends.receiver[0].batches()?];
    Some(batches::times(&task.clock, task.config.per_stamp, noted))
}

/// What both ends of a queue noted, if that are times and they have it alone.
fn noted<'a>(task: &Task, ends: &'a EndReports) -> Option<ElementRecords<'a>> {
    let (sender, receiver) = (&ends.sender[0], &ends.receiver[0]);
    let (Notes::Times(sent), Notes::Times(received)) = (&sender.notes, &receiver.notes) else {
        return None;
    };
    if task.point.wiring.is_some() {
        return None;
    }
    Some(ElementRecords {
        sent: &sent[..sender.end.tally.noted],
        received: &received[..receiver.end.tally.noted],
        intended: ThreadPosition::Sender(0).intended_starts(task, &sender.end),
    })
}

fn verdict_of(measure: Measure, ends: &EndReports) -> Verdict {
    let (sender, receiver) = (&ends.sender[0], &ends.receiver[0]);
    let [sent, received] = [sender, receiver].map(EndReport::stamps);
    let gave_up = [sender, receiver]
        .iter()
        .any(|report| report.end.tally.ending == Ending::GaveUp);
    let there = Verdict::of(ObservedElements {
        sent: &sent,
        received: &received,
        leftovers: &receiver.leftovers,
        damaged: receiver.end.tally.damaged,
        gave_up,
        warmed_up: [sender, receiver].map(|report| report.end.passed.warmed_up),
    });
    if measure != Measure::RoundTrip {
        return there;
    }
    // An answer that was not the one to its question counts as damaged.
    let answered = |stamps: &'_ [u64], report: &EndReport| {
        stamps.len() - usize::from(report.end.tally.unanswered)
    };
    there.with_answers(&Verdict::of(ObservedElements {
        sent: &received[..answered(&received, receiver)],
        received: &sent[..answered(&sent, sender)],
        leftovers: &sender.leftovers,
        damaged: sender.end.tally.damaged,
        gave_up,
        ..ObservedElements::default()
    }))
}

#[cfg(test)]
mod tests;
