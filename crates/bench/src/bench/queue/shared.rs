//! What became of the elements of several producers at several consumers.
//!
//! Every element tells who put it in and its number among those, so each that comes out is booked. Of the order only that
//! of one producer at one consumer is judged: no queue for several threads promises more to who looks from outside.

use super::analysis::{self, ElementRecords};
use super::control::Ending;
use super::judge::Verdict;
use super::measurer::{CarriedElements, Record};
use super::notes::{EndReport, Notes};
use super::result::{EndResult, PassageResult, PerEnd, Times};
use super::runner::EndTally;
use super::shares::Shares;
use super::sharing::lines;
use super::stage::ThreadPosition;
use super::tagging::ElementTag;
use super::task::Task;
use crate::node::wiring::Wiring;
use crate::rig::ledger::{self, Arrival, Ledger};
use crate::time::Ticks;

/// The reports of all threads.
pub(super) type EndReports = PerEnd<Vec<EndReport>>;

/// What each thread had.
pub(super) fn shares(reports: &EndReports) -> Shares {
    let counts = |all: &[EndReport]| all.iter().map(|one| one.end.tally.noted as u64).collect();
    Shares {
        producers: counts(&reports.sender),
        consumers: counts(&reports.receiver),
    }
}

/// Takes back what a producer had put into some of its queues and not into all when the run was over: it is none of those
/// that it has put in.
pub(super) fn take_back_unfinished(wiring: &Wiring, reports: &mut EndReports) {
    if wiring.copies() == 1 {
        return;
    }
    let sent = reports.sender.iter().map(|one| one.end.tally.noted);
    let unfinished: Vec<ElementTag> = sent
        .enumerate()
        .map(|(producer, noted)| ElementTag::new(producer, noted as u64))
        .collect();
    for end in &mut reports.receiver {
        let noted = &mut end.end.tally.noted;
        for tag in &unfinished {
            let is_it = |stamp: u64| stamp == tag.0;
            let found = match &end.notes {
                Notes::Times(records) => records[..*noted].iter().position(|it| is_it(it[0].0)),
                Notes::Numbers(numbers) | Notes::Batches(numbers, _) => {
                    numbers[..*noted].iter().position(|it| is_it(*it))
                }
            };
            if let Some(at) = found {
                match &mut end.notes {
                    Notes::Times(records) => records.copy_within(at + 1..*noted, at),
                    Notes::Numbers(numbers) | Notes::Batches(numbers, _) => {
                        numbers.copy_within(at + 1..*noted, at)
                    }
                }
                *noted -= 1;
            } else if let Some(at) = end.leftovers.iter().position(|it| is_it(*it)) {
                end.leftovers.remove(at);
            }
        }
    }
}

/// What elements carried, in the order in which they came out at a consumer.
fn tags(report: &EndReport) -> impl Iterator<Item = ElementTag> + '_ {
    let noted = report.end.tally.noted;
    let (times, numbers) = match &report.notes {
        Notes::Times(records) => (&records[..noted], &[][..]),
        Notes::Numbers(numbers) | Notes::Batches(numbers, _) => (&[][..], &numbers[..noted]),
    };
    let times = times.iter().map(|record: &Record| record[0].0);
    times.chain(numbers.iter().copied()).map(ElementTag)
}

pub(super) fn verdict(wiring: &Wiring, reports: &EndReports) -> Verdict {
    let PerEnd {
        sender: producers,
        receiver: consumers,
    } = reports;
    let all = || producers.iter().chain(consumers);
    let gave_up = all().any(|one| one.end.tally.ending == Ending::GaveUp);
    let mut elements = ledger::Tally::default();
    let (mut put_in, mut came_out) = (CarriedElements::default(), CarriedElements::default());
    for line in &lines(wiring) {
        let mut sent = vec![0; producers.len()];
        for &producer in &line.producers {
            sent[producer] = producers[producer].end.tally.noted;
            put_in += producers[producer].end.passed.warmed_up;
        }
        let mut ledger = Ledger::shared(&sent, line.consumers.len());
        for (place, &consumer) in line.consumers.iter().enumerate() {
            for tag in tags(&consumers[consumer]) {
                let (producer, number) = tag.parts();
                ledger.arrived_at(place, producer, number);
            }
            came_out += consumers[consumer].end.passed.warmed_up;
        }
        // Behind all that came out in time, wherever it did.
        for (place, &consumer) in line.consumers.iter().enumerate() {
            for tag in consumers[consumer]
                .leftovers
                .iter()
                .copied()
                .map(ElementTag)
            {
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
    elements.damaged = consumers.iter().map(|one| one.end.tally.damaged).sum();
    Verdict {
        elements,
        in_time: consumers.iter().map(|one| one.end.tally.noted as u64).sum(),
        indistinguishable: 0,
        is_warm_up_wrong: !gave_up && put_in != came_out,
        gave_up,
    }
}

/// All threads of an end as one.
pub(super) fn merged(all: &[EndReport]) -> EndResult {
    if let [one] = all {
        return one.end.clone();
    }
    let ends = || all.iter().map(|report| &report.end);
    let first = all[0].end.clone();
    let mut tally = EndTally::default();
    let mut passed = PassageResult {
        span: [Ticks(u64::MAX), Ticks(0)],
        ..PassageResult::default()
    };
    for end in ends() {
        tally.noted += end.tally.noted;
        tally.extended += end.tally.extended;
        tally.failed += end.tally.failed;
        tally.damaged += end.tally.damaged;
        tally.missed += end.tally.missed;
        passed.faults += end.passed.faults;
        passed.intervals += end.passed.intervals;
        passed.span[0] = passed.span[0].min(end.passed.span[0]);
        passed.span[1] = passed.span[1].max(end.passed.span[1]);
    }
    EndResult {
        tally,
        passed,
        batch_floor: first.batch_floor,
        pages: ends().map(|end| end.pages).min().unwrap_or(first.pages),
        ..first
    }
}

/// What was noted of the elements of a clean run.
pub(super) struct SharedRecords {
    sent: Vec<Record>,
    received: Vec<Record>,
    intended: Vec<Ticks>,
}

impl SharedRecords {
    /// To be called once.
    pub(super) fn records(&mut self) -> ElementRecords<'_> {
        let intended = std::mem::take(&mut self.intended);
        ElementRecords {
            sent: &self.sent,
            received: &self.received,
            intended: (!intended.is_empty()).then_some(intended),
        }
    }
}

/// What each consumer noted of an element, beside what its producer did; `None` where these are no times.
pub(super) fn records(task: &Task, reports: &EndReports) -> Option<SharedRecords> {
    let of_producers: Vec<_> = (reports.sender.iter().enumerate())
        .map(|(number, report)| {
            let noted = report.end.tally.noted;
            let intended = ThreadPosition::Sender(number).intended_starts(task, &report.end);
            match &report.notes {
                Notes::Times(records) => Some((&records[..noted], intended)),
                Notes::Numbers(_) | Notes::Batches(..) => None,
            }
        })
        .collect::<Option<_>>()?;
    let (mut sent, mut received, mut intended) = (Vec::new(), Vec::new(), Vec::new());
    for report in &reports.receiver {
        let Notes::Times(records) = &report.notes else {
            return None;
        };
        for record in &records[..report.end.tally.noted] {
            let (producer, number) = ElementTag(record[0].0).parts();
            let (of_producer, moments) = &of_producers[producer];
            sent.push(of_producer[number]);
            received.push(*record);
            intended.extend(moments.as_ref().map(|moments| moments[number]));
        }
    }
    Some(SharedRecords {
        sent,
        received,
        intended,
    })
}

/// The times of a clean run.
pub(super) fn times(task: &Task, reports: &EndReports) -> Option<Times> {
    let mut records = records(task, reports)?;
    let mut times = analysis::times(&task.clock, &records.records(), true)?;
    // Elements are not in the order in which they were put in, and may be of several queues.
    times.depth = None;
    Some(times)
}

#[cfg(test)]
mod tests;
