//! From what the threads noted to what came of a run.

use super::log::LogError;
use super::microseconds::Microseconds;
use super::result::{
    LatencyDistribution, LossCause, LostSample, REFUSED, ReceivedSample, Reports, RunOutcome,
    SentSample,
};
use super::sample::Epoch;
use crate::node::{Wiring, WorkRequestCounts};
use crate::rig::ledger::{Arrival, Ledger, Tally};
use crate::sorting::sort_by_key;
use crate::stats::{LatencyHistogram, Summary, TimedSamples};
use crate::time::between::Message;
use crate::time::{Clock, Nanos};

/// What a run is judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge<C> {
    pub clock: C,
    pub epoch: Epoch,
    pub wiring: Wiring,
    /// Whether subscribers are on another host: their stamps are in nanoseconds of its clock.
    pub is_far: bool,
    /// Whether the moments of samples are wanted, too.
    pub is_timed: bool,
}

impl<C: Clock> Judge<C> {
    /// When a sample was read, moved as the stamps that samples carry.
    fn read_at(&self, sample: &ReceivedSample) -> u64 {
        match self.is_far {
            true => self.epoch.of_nanos(Nanos(sample.stamp.0)),
            false => self.epoch.at(&self.clock, sample.stamp),
        }
    }

    /// From when the first step that counts was due to a period behind the last, of all publishers, as stamps count.
    fn span(&self, reports: &Reports) -> [u64; 2] {
        let steps = reports.publishers.iter().map(|publisher| {
            let due = |step| {
                let moment = publisher.schedule.due(publisher.warmup_steps + step);
                self.epoch.at(&self.clock, moment)
            };
            [due(0), due(publisher.steps)]
        });
        let all = steps.reduce(|all, one| [all[0].min(one[0]), all[1].max(one[1])]);
        all.unwrap_or_default()
    }

    /// What came of it.
    pub(super) fn outcome(&self, reports: &Reports) -> Result<RunOutcome, LogError> {
        let mut books = Books::new(&self.wiring, reports)?;
        // Latencies and those from the intended time; in `by_time` instead where their moments are wanted.
        let mut untimed = [Vec::new(), Vec::new()];
        let [begin, end] = self.span(reports);
        let mut by_time = [begin, begin].map(|begin| TimedSamples::within(begin, end));
        let (mut crossed, mut place) = (Vec::new(), 0);
        let mut arrived = Span::default();
        for (subscriber, report) in reports.subscribers.iter().enumerate() {
            for sample in report.received() {
                let sample = sample?;
                let at = self.read_at(&sample);
                arrived.add(at);
                place += 1;
                let Some(step) = books.arrived(subscriber as u32, &sample) else {
                    continue;
                };
                if self.is_far {
                    let message = Message::forward(Nanos(sample.sent_ns), Nanos(at));
                    crossed.push((place - 1, message));
                    continue;
                }
                let publisher = &reports.publishers[sample.header.publisher() as usize];
                let due = publisher.schedule.due(publisher.warmup_steps + step);
                let begun = [sample.sent_ns, self.epoch.at(&self.clock, due)];
                for (place, from) in begun.into_iter().enumerate() {
                    let time = at.wrapping_sub(from) as i64;
                    match self.is_timed {
                        true => by_time[place].push(from, time),
                        false => untimed[place].push(time),
                    }
                }
            }
        }
        let (mut published, mut begun) = (Span::default(), Span::default());
        for publisher in &reports.publishers {
            for sent in publisher.sent() {
                let sent = sent?;
                if sent.number != REFUSED {
                    let moment = publisher.schedule.due(publisher.warmup_steps + sent.step);
                    published.add(self.epoch.at(&self.clock, sent.stamp));
                    begun.add(self.epoch.at(&self.clock, moment));
                }
            }
        }
        let sum = |of: fn(&super::result::PublisherReport) -> u64| -> u64 {
            reports.publishers.iter().map(of).sum()
        };
        let steps = sum(|it| it.steps);
        let (tally, lost) = books.close()?;
        let by_subscriber = reports.subscribers.iter().map(|it| it.log.len() as u64);
        let by_subscriber: Vec<u64> = by_subscriber.collect();
        // Of one metric at a time, for the memory of a long run.
        let mut samples_of = |place: usize| match self.is_timed {
            true => by_time[place].samples().collect(),
            false => std::mem::take(&mut untimed[place]),
        };
        let latencies: Vec<i64> = samples_of(0);
        let microseconds = Microseconds::of(&latencies);
        let latency = times(latencies);
        let intended = times(samples_of(1));
        Ok(RunOutcome {
            tally,
            nominal: steps * self.wiring.copies(),
            sent: sum(|it| it.taken),
            refused: sum(|it| it.log.len() as u64 - it.taken),
            acknowledged: (reports.publishers.iter()).map(|it| it.acknowledged).sum(),
            missed: steps - sum(|it| it.log.len() as u64),
            late: sum(|it| it.late),
            arrivals: by_subscriber.iter().sum(),
            by_subscriber,
            microseconds,
            latency,
            intended,
            send_rate_per_s: published.rate_per_s(1, begun.first()),
            // All copies of a sample come at once, about.
            receive_rate_per_s: arrived.rate_per_s(self.wiring.copies(), arrived.first()),
            work: (reports.publishers.iter())
                .filter_map(|it| it.work)
                .reduce(WorkRequestCounts::and),
            lost,
            crossed,
            by_time,
        })
    }
}

/// From the first of several moments to the last.
#[derive(Debug, Default)]
struct Span {
    first_and_last: Option<(u64, u64)>,
    count: u64,
}

impl Span {
    fn add(&mut self, at: u64) {
        let (first, last) = self.first_and_last.unwrap_or((at, at));
        self.first_and_last = Some((first.min(at), last.max(at)));
        self.count += 1;
    }

    fn first(&self) -> u64 {
        self.first_and_last.map_or(0, |(first, _)| first)
    }

    /// Moments in a second, up to the last, where `at_once` come together: between N of them there are N-1 intervals.
    /// `from` is when the first came, or was to come: from there on a first one that is late makes no higher rate.
    fn rate_per_s(&self, at_once: u64, from: u64) -> Option<f64> {
        let intervals = self.count.checked_sub(at_once).filter(|&count| count > 0)?;
        let length = self.first_and_last?.1.saturating_sub(from);
        (length > 0).then(|| intervals as f64 * 1e9 / length as f64)
    }
}

fn times(mut samples: Vec<i64>) -> LatencyDistribution {
    samples.sort_unstable();
    LatencyDistribution {
        summary: Summary::of_sorted(&samples),
        histogram: LatencyHistogram::of(&samples),
    }
}

/// A ledger for each subscriber; one for all where each sample goes to one of them, whichever it is.
struct Books<'a> {
    reports: &'a Reports,
    wiring: &'a Wiring,
    ledgers: Vec<Ledger>,
    /// By publisher: the steps of its samples, by their numbers less that of the first.
    steps: Vec<Vec<u64>>,
    overflown: u64,
}

impl<'a> Books<'a> {
    fn new(wiring: &'a Wiring, reports: &'a Reports) -> Result<Self, LogError> {
        let mut steps = Vec::with_capacity(reports.publishers.len());
        for publisher in &reports.publishers {
            let taken = |sent: &Result<SentSample, LogError>| !matches!(sent, Ok(sent) if sent.number == REFUSED);
            let taken = publisher.sent().filter(taken);
            let all: Result<Vec<u64>, LogError> = taken.map(|it| it.map(|it| it.step)).collect();
            steps.push(all?);
        }
        let sent_to = |subscriber: Option<u32>| -> Vec<usize> {
            let heard = |publisher| subscriber.is_none_or(|it| wiring.receives_from(it, publisher));
            let counts = steps.iter().enumerate();
            counts
                .map(|(publisher, steps)| {
                    if heard(publisher as u32) {
                        steps.len()
                    } else {
                        0
                    }
                })
                .collect()
        };
        let ledgers = if wiring.takes_turns() {
            vec![Ledger::shared(&sent_to(None), reports.subscribers.len())]
        } else {
            (0..wiring.subscribers)
                .map(|subscriber| Ledger::new(&sent_to(Some(subscriber))))
                .collect()
        };
        Ok(Books {
            reports,
            wiring,
            ledgers,
            steps,
            overflown: reports.subscribers.iter().map(|it| it.overflown).sum(),
        })
    }

    /// Books a sample; the step that it was made at, if it came for the first time and unharmed.
    fn arrived(&mut self, subscriber: u32, sample: &ReceivedSample) -> Option<u64> {
        let (book, receiver) = match self.wiring.takes_turns() {
            true => (0, subscriber as usize),
            false => (subscriber as usize, 0),
        };
        let publisher = sample.header.publisher() as usize;
        let first = self
            .reports
            .publishers
            .get(publisher)
            .map_or(0, |it| it.first);
        // One from before the first that counts is none that there is.
        let place = sample.header.number().checked_sub(first);
        let place = place
            .and_then(|place| usize::try_from(place).ok())
            .unwrap_or(usize::MAX);
        let ledger = &mut self.ledgers[book];
        if ledger.arrived_at(receiver, publisher, place) != Arrival::First {
            return None;
        }
        if !sample.intact {
            ledger.damaged();
            return None;
        }
        Some(self.steps[publisher][place])
    }

    /// What became of all, and the samples that did not come.
    fn close(self) -> Result<(Tally, Vec<LostSample>), LogError> {
        let mut lost = Vec::new();
        for (publisher, report) in self.reports.publishers.iter().enumerate() {
            let publisher = publisher as u32;
            let not_sent = |step, cause| LostSample {
                publisher,
                subscriber: None,
                step,
                cause,
            };
            let mut next = 0;
            for sent in report.sent() {
                let sent = sent?;
                lost.extend((next..sent.step).map(|step| not_sent(step, LossCause::Missed)));
                next = sent.step + 1;
                if sent.number == REFUSED {
                    lost.push(not_sent(sent.step, LossCause::Refused));
                }
            }
            lost.extend((next..report.steps).map(|step| not_sent(step, LossCause::Missed)));
        }
        for (book, ledger) in self.ledgers.iter().enumerate() {
            let subscriber = (!self.wiring.takes_turns()).then_some(book as u32);
            lost.extend(ledger.missing().map(|(publisher, place)| LostSample {
                publisher: publisher as u32,
                subscriber,
                step: self.steps[publisher][place],
                cause: LossCause::Lost,
            }));
        }
        sort_by_key(&mut lost, |lost| {
            (lost.publisher, lost.step, lost.subscriber)
        });
        let tallies = self.ledgers.into_iter().map(Ledger::close);
        let mut tally = tallies.fold(Tally::default(), |sum, one| sum.plus(&one));
        // They came beside all that had room.
        tally.duplicated += self.overflown;
        Ok((tally, lost))
    }
}

#[cfg(test)]
mod tests;
