//! What became of the elements of several producers at several consumers, and whether the threads had alike.
//!
//! Every element tells who put it in and its number among those, so each that comes out is booked. Of the order only that
//! of one producer at one consumer is judged: no queue for several threads promises more to who looks from outside.

use super::plan::{Line, lines};
use super::run::{ManyTask, Report, Reports, load_of};
use crate::bench::queue::analysis::{self, Noted};
use crate::bench::queue::config::Measure;
use crate::bench::queue::control::Ending;
use crate::bench::queue::judge::{Outcome, Verdict};
use crate::bench::queue::measurer::{Carried, Record};
use crate::bench::queue::notes::Notes;
use crate::bench::queue::passage::Passed;
use crate::bench::queue::result::{End, PerEnd, PerOperation, RunResult, Times};
use crate::bench::queue::runner::Tally;
use crate::bench::queue::tagging::Tag;
use crate::pacing::{AfterMiss, Pacing};
use crate::results::Record as Row;
use crate::results::schema::queue as columns;
use crate::rig::ledger::{self, Arrival, Ledger};
use crate::stats::{fairness, least_percent};
use crate::time::{Clock, Ticks};

/// Elements that each thread of an end put in, or took out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(super) struct Shares {
    pub(super) producers: Vec<u64>,
    pub(super) consumers: Vec<u64>,
}

impl Shares {
    fn of(reports: &Reports) -> Self {
        let counts = |all: &[Report]| {
            all.iter()
                .map(|one| one.end.end.tally.noted as u64)
                .collect()
        };
        Shares {
            producers: counts(&reports.producers),
            consumers: counts(&reports.consumers),
        }
    }

    /// Their columns.
    pub(super) fn set(&self, row: &mut Row) {
        row.set(&columns::FAIRNESS_PRODUCERS, fairness(&self.producers))
            .set(&columns::FAIRNESS_CONSUMERS, fairness(&self.consumers))
            .set(&columns::LEAST_PRODUCER, least_percent(&self.producers))
            .set(&columns::LEAST_CONSUMER, least_percent(&self.consumers));
    }

    /// The threads that were starved, by what they are.
    pub(super) fn starved(&self) -> Vec<&'static str> {
        let of = |end: &'static str, counts: &[u64]| {
            let equal = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
            let least = equal * columns::STARVED_PERCENT / 100.0;
            let starved = counts
                .iter()
                .filter(|count| (**count as f64) < least)
                .count();
            vec![end; starved]
        };
        [
            of("producer", &self.producers),
            of("consumer", &self.consumers),
        ]
        .concat()
    }
}

/// Checks a run, and works out its figures and shares.
pub(super) fn judged(many: &ManyTask, mut reports: Reports) -> (RunResult, Shares) {
    take_back_unfinished(many, &mut reports);
    let shares = Shares::of(&reports);
    (result(many, &reports), shares)
}

/// Takes back what a producer had put into some of its queues and not into all when the run was over: it is none of those
/// that it has put in.
fn take_back_unfinished(many: &ManyTask, reports: &mut Reports) {
    if many.wiring.copies() == 1 {
        return;
    }
    let sent = reports.producers.iter().map(|one| one.end.end.tally.noted);
    let unfinished: Vec<Tag> = sent
        .enumerate()
        .map(|(producer, noted)| Tag::new(producer, noted as u64))
        .collect();
    for Report { end, .. } in &mut reports.consumers {
        let noted = &mut end.end.tally.noted;
        for tag in &unfinished {
            let is_it = |stamp: u64| stamp == tag.0;
            let found = match &end.notes {
                Notes::Times(records) => records[..*noted].iter().position(|it| is_it(it[0].0)),
                Notes::Numbers(numbers) => numbers[..*noted].iter().position(|it| is_it(*it)),
            };
            if let Some(at) = found {
                match &mut end.notes {
                    Notes::Times(records) => records.copy_within(at + 1..*noted, at),
                    Notes::Numbers(numbers) => numbers.copy_within(at + 1..*noted, at),
                }
                *noted -= 1;
            } else if let Some(at) = end.leftovers.iter().position(|it| is_it(*it)) {
                end.leftovers.remove(at);
            }
        }
    }
}

fn result(many: &ManyTask, reports: &Reports) -> RunResult {
    let verdict = verdict(&lines(&many.wiring), reports);
    let expected = verdict.elements.sent;
    let outcome = verdict.outcome(expected);
    let is_clean = outcome == Outcome::Clean;
    let has_times = is_clean && many.task.config.measure == Measure::Time;
    let ends = PerEnd {
        sender: merged(&reports.producers),
        receiver: merged(&reports.consumers),
    };
    let floors = PerOperation {
        enqueue: Some(ends.sender.floors.plain),
        dequeue: Some(ends.receiver.floors.plain),
        ..PerOperation::default()
    };
    // Of all, from the first element that counts.
    let first = ends.sender.passed.span[0];
    let per_s = |all: &[Report], last: Ticks| {
        let elements: usize = all.iter().map(|one| one.in_span).sum();
        let span = many
            .task
            .clock
            .to_nanos(Ticks(last.0.saturating_sub(first.0)));
        (is_clean && elements > 0).then(|| elements as f64 * 1e9 / span.0.max(1) as f64)
    };
    RunResult {
        outcome,
        verdict,
        elements: expected,
        times: has_times.then(|| times(many, reports)).flatten(),
        throughput_per_s: per_s(&reports.consumers, ends.receiver.passed.span[1]),
        sent_per_s: per_s(&reports.producers, ends.sender.passed.span[1]),
        floors: has_times.then_some(floors),
        ends,
        rows: Vec::new(),
        drawn: None,
    }
}

/// What elements carried, in the order in which they came out at a consumer.
fn tags(report: &Report) -> impl Iterator<Item = Tag> + '_ {
    let noted = report.end.end.tally.noted;
    let (times, numbers) = match &report.end.notes {
        Notes::Times(records) => (&records[..noted], &[][..]),
        Notes::Numbers(numbers) => (&[][..], &numbers[..noted]),
    };
    let times = times.iter().map(|record: &Record| record[0].0);
    times.chain(numbers.iter().copied()).map(Tag)
}

fn verdict(lines: &[Line], reports: &Reports) -> Verdict {
    let Reports {
        producers,
        consumers,
    } = reports;
    let all = || producers.iter().chain(consumers);
    let gave_up = all().any(|one| one.end.end.tally.ending == Ending::GaveUp);
    let mut elements = ledger::Tally::default();
    let (mut put_in, mut came_out) = (Carried::default(), Carried::default());
    for line in lines {
        let mut sent = vec![0; producers.len()];
        for &producer in &line.producers {
            sent[producer] = producers[producer].end.end.tally.noted;
            put_in += producers[producer].end.end.passed.warmed_up;
        }
        let mut ledger = Ledger::shared(&sent, line.consumers.len());
        for (place, &consumer) in line.consumers.iter().enumerate() {
            for tag in tags(&consumers[consumer]) {
                let (producer, number) = tag.parts();
                ledger.arrived_at(place, producer, number);
            }
            came_out += consumers[consumer].end.end.passed.warmed_up;
        }
        // Behind all that came out in time, wherever it did.
        for (place, &consumer) in line.consumers.iter().enumerate() {
            for tag in consumers[consumer].end.leftovers.iter().copied().map(Tag) {
                let (producer, number) = tag.parts();
                let is_first = tag.is_warm_up()
                    || ledger.arrived_at(place, producer, number) == Arrival::First;
                // Who gave up left before its time.
                if is_first && !gave_up {
                    ledger.late();
                }
            }
        }
        elements = elements.plus(&ledger.close());
    }
    elements.damaged = consumers.iter().map(|one| one.end.end.tally.damaged).sum();
    Verdict {
        elements,
        in_time: consumers
            .iter()
            .map(|one| one.end.end.tally.noted as u64)
            .sum(),
        indistinguishable: 0,
        is_warm_up_wrong: !gave_up && put_in != came_out,
        gave_up,
    }
}

/// All threads of an end as one.
fn merged(all: &[Report]) -> End {
    let ends = || all.iter().map(|report| &report.end.end);
    let first = all[0].end.end.clone();
    let mut tally = Tally::default();
    let mut passed = Passed {
        span: [Ticks(u64::MAX), Ticks(0)],
        ..Passed::default()
    };
    for end in ends() {
        tally.noted += end.tally.noted;
        tally.extended += end.tally.extended;
        tally.failed += end.tally.failed;
        tally.damaged += end.tally.damaged;
        tally.missed += end.tally.missed;
        passed.faults += end.passed.faults;
        passed.span[0] = passed.span[0].min(end.passed.span[0]);
        passed.span[1] = passed.span[1].max(end.passed.span[1]);
    }
    End {
        tally,
        passed,
        pages: ends().map(|end| end.pages).min().unwrap_or(first.pages),
        ..first
    }
}

/// The times of a clean run: what each consumer noted of an element, beside what its producer did.
fn times(many: &ManyTask, reports: &Reports) -> Option<Times> {
    let clock = &many.task.clock;
    let of_producers: Vec<_> = (reports.producers.iter().enumerate())
        .map(|(number, report)| {
            let End { passed, tally, .. } = &report.end.end;
            let waiter = load_of(&many.task.point.sender, number).waiter(clock, AfterMiss::CatchUp);
            let warmed_up = passed.warmed_up.elements as usize;
            let all = waiter.intended_starts(passed.started, warmed_up + tally.noted);
            let intended = all.map(|mut all| all.split_off(warmed_up));
            match &report.end.notes {
                Notes::Times(records) => Some((&records[..tally.noted], intended)),
                Notes::Numbers(_) => None,
            }
        })
        .collect::<Option<_>>()?;
    let (mut sent, mut received, mut intended) = (Vec::new(), Vec::new(), Vec::new());
    for report in &reports.consumers {
        let Notes::Times(records) = &report.end.notes else {
            return None;
        };
        for record in &records[..report.end.end.tally.noted] {
            let (producer, number) = Tag(record[0].0).parts();
            let (of_producer, moments) = &of_producers[producer];
            sent.push(of_producer[number]);
            received.push(*record);
            intended.extend(moments.as_ref().map(|moments| moments[number]));
        }
    }
    let noted = Noted {
        sent: &sent,
        received: &received,
        intended: (!intended.is_empty()).then_some(intended),
    };
    let mut times = analysis::times(clock, &noted)?;
    // Elements are not in the order in which they were put in, and may be of several queues.
    times.depth = None;
    Some(times)
}
