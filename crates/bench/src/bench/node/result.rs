//! What the ends of a run note, and what comes of it.

use serde::{Deserialize, Serialize};

use super::log::{Entries, LogError};
use super::microseconds::Microseconds;
use super::sample::Header;
use super::timer::Schedule;
use crate::buffer::PageKind;
use crate::node::WorkRequestCounts;
use crate::rig::ledger::Tally;
use crate::stats::{LatencyHistogram, Summary, TimedSamples};
use crate::time::Ticks;
use crate::time::between::Message;

/// The number of a sample that the node did not take.
pub(super) const REFUSED: u64 = u64::MAX;

/// A step, as its publisher notes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentSample {
    /// From 0, those of the warm-up not counted.
    pub step: u64,
    pub stamp: Ticks,
    /// The number that the sample carries, or [`REFUSED`].
    pub number: u64,
}

impl SentSample {
    pub(super) const WORDS: usize = 3;

    #[inline(always)]
    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        [self.step, self.stamp.0, self.number]
    }

    pub(super) fn of_words([step, stamp, number]: [u64; Self::WORDS]) -> Self {
        let stamp = Ticks(stamp);
        SentSample {
            step,
            stamp,
            number,
        }
    }
}

/// A sample that has come, as its subscriber notes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReceivedSample {
    pub header: Header,
    /// What it carries as its stamp, in nanoseconds since the Unix epoch.
    pub sent_ns: u64,
    pub stamp: Ticks,
    /// Whether its values are those that were sent.
    pub intact: bool,
}

impl ReceivedSample {
    pub(super) const WORDS: usize = 4;

    #[inline(always)]
    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        [
            self.header.0,
            self.sent_ns,
            self.stamp.0,
            u64::from(self.intact),
        ]
    }

    pub(super) fn of_words([header, sent_ns, stamp, intact]: [u64; Self::WORDS]) -> Self {
        ReceivedSample {
            header: Header(header),
            sent_ns,
            stamp: Ticks(stamp),
            intact: intact == 1,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PublisherReport {
    /// The steps that were not missed.
    pub log: Entries<{ SentSample::WORDS }>,
    /// Samples of them that the node took.
    pub taken: u64,
    /// The number of the first of them, or that it would have.
    pub first: u64,
    /// Samples of them that were acknowledged, where there is such a thing.
    pub acknowledged: Option<u64>,
    /// Steps that were due before they were waited for.
    pub late: u64,
    pub schedule: Schedule,
    pub warmup_steps: u64,
    /// Steps that there were to be.
    pub steps: u64,
    /// Work requests, those before the start included.
    pub work: Option<WorkRequestCounts>,
    pub pool_is_whole: bool,
}

impl PublisherReport {
    /// The steps that were not missed, in order.
    pub(super) fn sent(&self) -> impl Iterator<Item = Result<SentSample, LogError>> + '_ {
        self.log.iter().map(|entry| entry.map(SentSample::of_words))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SubscriberReport {
    pub log: Entries<{ ReceivedSample::WORDS }>,
    /// Samples that there was no room for in it.
    pub overflown: u64,
    pub pool_is_whole: bool,
}

impl SubscriberReport {
    /// The samples that have come, in their order.
    pub(super) fn received(&self) -> impl Iterator<Item = Result<ReceivedSample, LogError>> + '_ {
        self.log
            .iter()
            .map(|entry| entry.map(ReceivedSample::of_words))
    }
}

/// A sample that has come, as a row of `out.csv`.
#[derive(Debug, Serialize)]
pub(super) struct OutRow {
    pub round: u32,
    pub subscriber: u32,
    pub publisher: u32,
    pub seq: i64,
    pub t_sent_ns: u64,
    pub t_received_ns: u64,
    pub latency_ns: i64,
    pub intact: bool,
}

/// What an end reports when it is done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Publisher(PublisherReport),
    Subscriber(SubscriberReport),
}

/// The reports of a run, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Reports {
    pub publishers: Vec<PublisherReport>,
    pub subscribers: Vec<SubscriberReport>,
}

impl Reports {
    /// Of the ends of each side, in the order of their numbers.
    pub(super) fn of(all: Vec<Report>) -> Self {
        let mut reports = Reports {
            publishers: Vec::new(),
            subscribers: Vec::new(),
        };
        for report in all {
            match report {
                Report::Publisher(report) => reports.publishers.push(report),
                Report::Subscriber(report) => reports.subscribers.push(report),
            }
        }
        reports
    }

    /// The least pages that any log got which was written here: those of subscribers on another host are copies.
    pub(super) fn least_pages(&self, are_far: bool) -> Option<PageKind> {
        let publishers = self.publishers.iter().map(|it| it.log.page_kind());
        let subscribers = self.subscribers.iter().filter(|_| !are_far);
        publishers
            .chain(subscribers.map(|it| it.log.page_kind()))
            .min()
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
pub(super) struct RunOutcome {
    /// Copies that were sent against those that came.
    pub tally: Tally,
    /// Copies that would have been sent if no step had been missed and none refused.
    pub nominal: u64,
    /// Samples that were sent, whatever their copies.
    pub sent: u64,
    /// Samples that the nodes did not take.
    pub refused: u64,
    /// Samples that were acknowledged, where there is such a thing.
    pub acknowledged: Option<u64>,
    /// Steps that were missed, of all publishers.
    pub missed: u64,
    /// Steps that were due before they were waited for.
    pub late: u64,
    /// All that arrived, duplicates included.
    pub arrivals: u64,
    /// The same by subscriber.
    pub by_subscriber: Vec<u64>,
    /// From stamp to stamp.
    pub latency: LatencyDistribution,
    /// The same in microseconds.
    pub microseconds: Microseconds,
    /// From the moment when a sample was meant to be sent.
    pub intended: LatencyDistribution,
    /// Samples a second, from when the first was due to when the last was sent.
    pub send_rate_per_s: Option<f64>,
    /// Copies that came in a second, from the first to the last.
    pub receive_rate_per_s: Option<f64>,
    /// Work requests of all publishers, where the node-type has some.
    pub work: Option<WorkRequestCounts>,
    /// Samples that never came, in order.
    pub lost: Vec<LostSample>,
    /// Of samples from another host, in place of latencies: each that came first and unharmed, with its place among all
    /// arrivals.
    pub crossed: Vec<(usize, Message)>,
    /// Latencies by when their samples were sent, and those from the intended time by that; empty unless wanted.
    pub by_time: [TimedSamples; 2],
}

/// A distribution.
#[derive(Debug, Clone)]
pub(super) struct LatencyDistribution {
    pub summary: Option<Summary>,
    pub histogram: LatencyHistogram,
}

/// Why a sample did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LossCause {
    /// The step was missed: nothing was made.
    Missed,
    /// The node did not take it.
    Refused,
    /// It was sent and never came.
    Lost,
}

/// A sample that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostSample {
    pub publisher: u32,
    /// Whose copy it is; none where it was not sent, or where no subscriber was to get it rather than another.
    pub subscriber: Option<u32>,
    pub step: u64,
    pub cause: LossCause,
}
