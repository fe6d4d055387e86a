//! What comes out of a point.

use serde::Serialize;

use super::floor::Floor;
use super::placement::{CompletionBy, Placement};
use super::plan::Point;
#[cfg(feature = "rdma")]
use super::session::Tally;
use crate::buffer::PageKind;
use crate::stats::{LatencyHistogram, MedianInterval, Summary};
use crate::time::{StampCost, TscFacts};

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Arrived, whole.
    Received,
    /// Did not arrive in time.
    Lost,
    /// Arrived with other bytes, another length or another stamp than was sent.
    Corrupted,
}

/// A message: its stamps on the point's clock, in nanoseconds; what was not measured is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The burst, counted from 0.
    pub repeat: u32,
    /// Its number in the burst, counted from 0.
    pub sequence: u32,
    /// What became of it.
    pub fate: Fate,
    /// Before it was posted.
    pub submitted_ns: u64,
    /// When the HCA read it, as far as the stamp thread can tell.
    pub sent_ns: Option<u64>,
    /// When its completion was found in the receive queue's completion queue.
    pub received_ns: Option<u64>,
    /// When its completion was found in the send queue's completion queue.
    pub completed_ns: Option<u64>,
}

impl Message {
    /// One-way latency in nanoseconds: from t_send where it was measured, else from t_subm. Negative when the clock ran
    /// backwards between the two CPUs.
    pub fn latency_ns(&self) -> Option<i64> {
        let from = self.sent_ns.unwrap_or(self.submitted_ns);
        (self.fate == Fate::Received).then_some(())?;
        self.received_ns.map(|to| to as i64 - from as i64)
    }

    /// Completion latency in nanoseconds, from t_subm.
    pub fn completion_latency_ns(&self) -> Option<i64> {
        self.completed_ns
            .map(|to| to as i64 - self.submitted_ns as i64)
    }
}

/// How many messages ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Posted.
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
    }
}

/// Page faults inside the hot loops, by thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LoopFaults {
    /// In the sending loop.
    pub sender: u64,
    /// In the receiving loop.
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
    /// All of them.
    pub fn total(&self) -> u64 {
        self.sender + self.receiver + self.completion
    }
}

/// What the instrument costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct InstrumentCosts {
    /// A time stamp, on the sender's CPU.
    pub stamp: StampCost,
    /// The same loops over shared memory between the same two CPUs.
    pub floor: Floor,
    /// What there is to know of the TSC, if it is the clock.
    pub tsc: Option<TscFacts>,
}

/// The circumstances of a point that were not asked for but obtained.
#[derive(Debug, Clone, Serialize)]
pub struct Circumstances {
    /// Where the threads ran.
    pub placement: Placement,
    /// Who took the send completions.
    pub completion_by: CompletionBy,
    /// The pages of the stamps, and of the payload of sender and receiver.
    pub pages: [PageKind; 3],
    /// SCHED_FIFO priority, if one was set.
    pub priority: Option<u8>,
    /// Inline bytes that the queue pair was granted.
    pub granted_inline: u32,
    /// Page faults in the hot loops.
    pub loop_faults: LoopFaults,
    /// Mean time between two rewritings of a stamp, in nanoseconds: how old t_send can be.
    pub stamp_refresh_ns: Option<f64>,
    /// How the queue pairs were connected: function and port space.
    pub connection: String,
    /// The name of the route to UC that was taken; `None` for the other service types.
    pub uc_route: Option<&'static str>,
}

/// A measured point.
#[derive(Debug, Clone)]
pub struct PointResult {
    /// Its settings.
    pub point: Point,
    /// Every message that was posted.
    pub messages: Vec<Message>,
    /// What became of them.
    pub counts: Counts,
    /// One-way latency of the received ones.
    pub latency: Option<Summary>,
    /// 95 % confidence interval of its median.
    pub median_interval: Option<MedianInterval>,
    /// The same as a histogram.
    pub histogram: LatencyHistogram,
    /// Completion latency of the signalled ones.
    pub completion_latency: Option<Summary>,
    /// Messages per second while posting, over all bursts.
    pub post_rate: Option<f64>,
    /// What was obtained.
    pub circumstances: Circumstances,
    /// What the instrument costs.
    pub costs: InstrumentCosts,
    /// What ended the point early, if anything did.
    pub failure: Option<String>,
}

#[cfg(feature = "rdma")]
impl PointResult {
    /// What came of the bursts of a point.
    pub(super) fn new(
        point: Point,
        tally: Tally,
        circumstances: Circumstances,
        costs: InstrumentCosts,
    ) -> Self {
        let of = |latency: fn(&Message) -> Option<i64>| -> Vec<i64> {
            tally.messages.iter().filter_map(latency).collect()
        };
        let latencies = of(Message::latency_ns);
        PointResult {
            point,
            counts: tally.counts,
            latency: Summary::of(&latencies),
            median_interval: MedianInterval::of(&latencies),
            histogram: LatencyHistogram::of(&latencies),
            completion_latency: Summary::of(&of(Message::completion_latency_ns)),
            post_rate: tally.post_rate(),
            circumstances,
            costs,
            messages: tally.messages,
            failure: tally.failure,
        }
    }
}
