//! What comes out of a point.

pub mod analysis;
#[cfg(feature = "rdma")]
pub mod findings;
#[allow(missing_docs)]
pub mod hardware;
#[allow(missing_docs)]
pub mod in_flight;
#[cfg(feature = "rdma")]
#[allow(missing_docs)]
pub mod rows;
pub mod schedule;

use serde::Serialize;

#[cfg(feature = "rdma")]
use crate::bench::hca::loops::background::BackgroundTraffic;
use crate::bench::hca::loops::floor::Floor;
use crate::bench::hca::message::{Counts, Message};
use crate::bench::hca::plan::Point;
use crate::bench::hca::plan::placement::Placement;
use crate::bench::hca::result::hardware::HardwareStampTally;
use crate::bench::hca::result::in_flight::InFlight;
use crate::bench::hca::result::schedule::ScheduleResult;
use crate::buffer::PageKind;
use crate::generators::LoadTraffic;
use crate::host::throttling::ThrottlingRecord;
use crate::rig::clock_offset::ClockOffset;
use crate::stats::{LatencyHistogram, Summary};
#[cfg(feature = "rdma")]
use crate::time::Nanos;
use crate::time::{StampCost, TscFacts};

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
    pub path: crate::bench::hca::ends::path_proof::Path,
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
    pub schedule: Option<ScheduleResult>,
    /// How far the messages queued.
    pub in_flight: InFlight,
    pub circumstances: Circumstances,
    pub costs: InstrumentCosts,
    /// What the ports tell of the bursts.
    #[cfg(feature = "rdma")]
    pub ports: crate::bench::hca::ends::path_proof::PortRecord,
    /// What adapters stamped, if they were asked to.
    pub hardware: Option<HardwareStampTally>,
    /// What was done in the background.
    #[cfg(feature = "rdma")]
    pub background: Option<BackgroundTraffic>,
    /// What generators issued meanwhile, under memory load.
    pub drawn: Option<LoadTraffic>,
    /// What CPU quotas did during the bursts.
    pub throttled: ThrottlingRecord,
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
                .map(|rate| ScheduleResult::of(&tally.messages, rate.interval())),
            in_flight: match one_clock {
                true => InFlight::of(&tally.messages, point.burst),
                false => InFlight::default(),
            },
            circumstances,
            costs,
            messages: tally.messages,
            ports: tally.ports,
            hardware: tally.hardware,
            background: tally.background,
            drawn: tally.drawn,
            throttled: tally.throttled,
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
    /// From the first to the last post of each burst; of a schedule from its begin.
    posting_ns: u64,
    /// Times between two posts, which these are the sum of.
    between_posts: u64,
    pub(super) rewritten: u64,
    pub(super) rewriting_ns: u64,
    /// Messages before the measured ones.
    pub(super) warmed_up: u64,
    pub(super) ports: crate::bench::hca::ends::path_proof::PortRecord,
    /// What adapters stamped, if they were asked to.
    pub(super) hardware: Option<HardwareStampTally>,
    pub(super) background: Option<BackgroundTraffic>,
    /// What generators issued meanwhile, under memory load.
    pub(super) drawn: Option<LoadTraffic>,
    /// What CPU quotas did during the bursts.
    pub(super) throttled: ThrottlingRecord,
    /// What ended the point early, if anything did.
    pub(super) failure: Option<String>,
}

#[cfg(feature = "rdma")]
impl Tally {
    /// Adds the posting of a burst of so many messages, from the first t_subm, or the begin of its schedule, to the last
    /// t_subm.
    pub(super) fn add_posting(&mut self, messages: usize, first: Nanos, last: Nanos) {
        self.posting_ns += last.0.saturating_sub(first.0);
        self.between_posts += messages.saturating_sub(1) as u64;
    }

    /// Posts in a second, from start to start: between the N posts of a burst there are N-1 times, and a burst of one
    /// has none.
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
        for rate in [1, 2, 10, 200, 1000, 10_000, 1_000_000, 5_000_000] {
            let mut tally = Tally::default();
            for messages in [2, 3, 1000] {
                let last = (messages as u64 - 1) * (1_000_000_000 / rate);
                tally.add_posting(messages, Nanos(5), Nanos(5 + last));
            }
            assert_eq!(tally.post_rate(), Some(rate as f64));
            // Posts that come too early are seen as such.
            let mut early = Tally::default();
            early.add_posting(1001, Nanos(5), Nanos(5 + 900 * (1_000_000_000 / rate)));
            assert!(early.post_rate() > Some(1.1 * rate as f64));
        }
    }
}
