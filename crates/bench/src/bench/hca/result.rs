//! What comes out of a point.

use serde::Serialize;

#[cfg(feature = "rdma")]
use super::background::running::Delivered;
use super::floor::Floor;
use super::in_flight::InFlight;
use super::placement::Placement;
use super::plan::Point;
use super::schedule::Schedule;
use crate::buffer::PageKind;
use crate::generators::Drawn;
use crate::rig::clock_offset::ClockOffset;
use crate::stats::{LatencyHistogram, Summary};
#[cfg(feature = "rdma")]
use crate::time::Nanos;
use crate::time::{StampCost, TscFacts};

/// What became of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Arrived, whole.
    Received,
    /// Did not arrive in time.
    #[default]
    Lost,
    /// Arrived with other bytes, another length or another stamp than was sent.
    Corrupted,
}

/// A message: its stamps on the point's clock, in nanoseconds; what was not measured is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Message {
    /// The burst, counted from 0.
    pub repeat: u32,
    /// Its number in the burst, counted from 0.
    pub sequence: u32,
    pub fate: Fate,
    /// Before it was posted.
    pub submitted_ns: u64,
    /// When the HCA read it, as far as the stamp thread can tell.
    pub sent_ns: Option<u64>,
    /// It was received before the stamp thread came to it: there is no t_send to count a latency from.
    pub never_restamped: bool,
    /// When its completion was found in the receive queue's completion queue.
    pub received_ns: Option<u64>,
    /// When its completion was found in the send queue's completion queue.
    pub completed_ns: Option<u64>,
    /// When it was meant to be posted.
    pub intended_ns: Option<u64>,
    /// Messages of its burst that were in flight when it was posted.
    pub in_flight: u32,
}

impl Message {
    /// One-way latency in nanoseconds: from t_subm, or from t_send where that was asked for. Negative when the clock ran
    /// backwards between the two CPUs.
    pub fn latency_ns(&self) -> Option<i64> {
        let from = self.sent_ns.unwrap_or(self.submitted_ns);
        let counts = self.fate == Fate::Received && !self.never_restamped;
        let to = self.received_ns.filter(|_| counts)?;
        Some(to as i64 - from as i64)
    }

    /// Completion latency in nanoseconds, from t_subm.
    pub fn completion_latency_ns(&self) -> Option<i64> {
        let to = self.completed_ns?;
        Some(to as i64 - self.submitted_ns as i64)
    }
}

/// How many messages ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub sent: u64,
    /// Arrived, whole.
    pub received: u64,
    /// Did not arrive in time.
    pub lost: u64,
    /// Arrived, but not as they were sent.
    pub corrupted: u64,
    /// Arrived a second time.
    pub duplicated: u64,
    /// Of an earlier burst, and arrived when that was over.
    pub late: u64,
    /// Not of this run: of another queue pair, with a number that was never posted, or larger than any message.
    pub foreign: u64,
    /// Send requests that completed with an error.
    pub failed_completions: u64,
    /// Received, and their stamp was never rewritten, though it should have been.
    pub not_restamped: u64,
}

impl Counts {
    /// The share of sent messages that arrived whole.
    pub fn delivery_rate(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.received as f64 / self.sent as f64)
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.late += other.late;
        self.foreign += other.foreign;
        self.failed_completions += other.failed_completions;
        self.not_restamped += other.not_restamped;
    }
}

/// Page faults inside the hot loops, by thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LoopFaults {
    pub sender: u64,
    pub receiver: u64,
    /// In the completion loop, if it has a thread.
    pub completion: u64,
}

impl std::ops::AddAssign for LoopFaults {
    fn add_assign(&mut self, other: Self) {
        self.sender += other.sender;
        self.receiver += other.receiver;
        self.completion += other.completion;
    }
}

impl LoopFaults {
    pub fn total(&self) -> u64 {
        self.sender + self.receiver + self.completion
    }
}

/// What the instrument costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct InstrumentCosts {
    /// A time stamp, on the sender's CPU.
    pub stamp: StampCost,
    /// The same loops over shared memory between the same two CPUs; `None` where there is no receiving loop.
    pub floor: Option<Floor>,
    /// The same from the receiver's CPU to the sender's.
    pub floor_back: Option<Floor>,
    /// How far the receiver's clock is ahead of the sender's; `None` where both are one CPU, none answered in time, or
    /// there is no receiving loop.
    pub offset: Option<ClockOffset>,
    /// What there is to know of the TSC, if it is the clock.
    pub tsc: Option<TscFacts>,
}

/// The circumstances of a point that were not asked for but obtained.
#[derive(Debug, Clone, Serialize)]
pub struct Circumstances {
    pub placement: Placement,
    pub completion_by: &'static str,
    /// The pages of the stamps, and of the payload of sender and receiver.
    pub pages: [PageKind; 3],
    pub priority: Option<u8>,
    pub granted_inline: u32,
    pub loop_faults: LoopFaults,
    /// Messages before the measured ones.
    pub warmup_messages: u64,
    /// Mean time between two rewritings of a stamp, in nanoseconds: how old t_send can be.
    pub stamp_refresh_ns: Option<f64>,
    /// How the queue pairs were connected: function and port space.
    pub connection: String,
    /// The name of the route to UC that was taken; `None` for the other service types.
    pub uc_route: Option<&'static str>,
    /// The queue pairs and GIDs, as the kernel has them.
    #[cfg(feature = "rdma")]
    pub path: super::path_proof::Path,
}

#[derive(Debug, Clone)]
pub struct PointResult {
    pub point: Point,
    /// Every message that was posted.
    pub messages: Vec<Message>,
    pub counts: Counts,
    /// One-way latency of the received ones.
    pub latency: Option<Summary>,
    pub histogram: LatencyHistogram,
    /// Completion latency of the signalled ones.
    pub completion_latency: Option<Summary>,
    /// Messages per second while posting, over all bursts.
    pub post_rate: Option<f64>,
    /// What became of a rate; `None` where there is none.
    pub schedule: Option<Schedule>,
    /// How far the messages queued.
    pub in_flight: InFlight,
    pub circumstances: Circumstances,
    pub costs: InstrumentCosts,
    /// What the ports tell of the bursts.
    #[cfg(feature = "rdma")]
    pub ports: super::path_proof::PortRecord,
    /// What was done in the background.
    #[cfg(feature = "rdma")]
    pub background: Option<Delivered>,
    /// What generators issued meanwhile, under memory load.
    pub drawn: Option<Drawn>,
    /// What ended the point early, if anything did.
    pub failure: Option<String>,
}

#[cfg(feature = "rdma")]
impl PointResult {
    /// What came of the bursts of a point. Stamps of two clocks make no latency, nor the number of messages in flight.
    pub(super) fn new(
        point: Point,
        tally: Tally,
        circumstances: Circumstances,
        costs: InstrumentCosts,
        one_clock: bool,
    ) -> Self {
        let of = |latency: fn(&Message) -> Option<i64>| -> Vec<i64> {
            tally.messages.iter().filter_map(latency).collect()
        };
        let latencies = match one_clock {
            true => of(Message::latency_ns),
            false => Vec::new(),
        };
        PointResult {
            point,
            counts: tally.counts,
            latency: Summary::of(&latencies),
            histogram: LatencyHistogram::of(&latencies),
            completion_latency: Summary::of(&of(Message::completion_latency_ns)),
            post_rate: tally.post_rate(),
            schedule: point
                .rate
                .filter(|_| one_clock)
                .map(|rate| Schedule::of(&tally.messages, rate.interval())),
            in_flight: match one_clock {
                true => InFlight::of(&tally.messages, point.burst),
                false => InFlight::default(),
            },
            circumstances,
            costs,
            messages: tally.messages,
            ports: tally.ports,
            background: tally.background,
            drawn: tally.drawn,
            failure: tally.failure,
        }
    }
}

/// What the bursts of a point add up to.
#[cfg(feature = "rdma")]
#[derive(Debug, Default)]
pub struct Tally {
    pub(super) messages: Vec<Message>,
    pub(super) counts: Counts,
    pub(super) faults: LoopFaults,
    /// From the first to the last post of each burst.
    posting_ns: u64,
    /// Times between two posts, which these are the sum of.
    between_posts: u64,
    pub(super) rewritten: u64,
    pub(super) rewriting_ns: u64,
    /// Messages before the measured ones.
    pub(super) warmed_up: u64,
    pub(super) ports: super::path_proof::PortRecord,
    pub(super) background: Option<Delivered>,
    /// What generators issued meanwhile, under memory load.
    pub(super) drawn: Option<Drawn>,
    /// What ended the point early, if anything did.
    pub(super) failure: Option<String>,
}

#[cfg(feature = "rdma")]
impl Tally {
    /// Adds the posting of a burst of so many messages, from the first t_subm to the last.
    pub(super) fn add_posting(&mut self, messages: usize, first: Nanos, last: Nanos) {
        self.posting_ns += last.0.saturating_sub(first.0);
        self.between_posts += messages.saturating_sub(1) as u64;
    }

    /// Posts in a second, from start to start: a burst of one has none.
    pub(super) fn post_rate(&self) -> Option<f64> {
        (self.posting_ns > 0).then(|| self.between_posts as f64 * 1e9 / self.posting_ns as f64)
    }

    /// With room for so many messages: grown as they come, they would take up to twice the memory.
    pub(super) fn with_room_for(messages: usize) -> Self {
        Tally {
            messages: Vec::with_capacity(messages),
            ..Tally::default()
        }
    }

    /// The mean time between two rewritings of a stamp, in nanoseconds. Stamps of lost messages were rewritten as well,
    /// for a time that nobody knows.
    pub(super) fn stamp_refresh_ns(&self) -> Option<f64> {
        (self.rewritten > 0 && self.counts.lost == 0)
            .then(|| self.rewriting_ns as f64 / self.rewritten as f64)
    }
}

#[cfg(all(test, feature = "rdma"))]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_from_start_to_start() {
        let mut tally = Tally::default();
        assert_eq!(tally.post_rate(), None);
        tally.add_posting(1, Nanos(7), Nanos(7));
        assert_eq!(tally.post_rate(), None);
        // As `--burst 2 --pause 50us` posts them.
        tally.add_posting(2, Nanos(1000), Nanos(51_000));
        assert_eq!(tally.post_rate(), Some(20_000.0));
        tally.add_posting(4, Nanos(0), Nanos(150_000));
        assert_eq!(tally.post_rate(), Some(20_000.0));
    }
}
