//! What the two processes tell each other, a line of JSON each.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ping_pong::Stamped;
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::verbs_port::RemoteSlots;
use crate::bench::hca::loops::receiver::Strays;
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::between::message::PeerMessage;
use crate::between::time_of_day::TimeOfDayOffset;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::throttling::ThrottlingRecord;
use crate::launch::message::DirectionReport;
use crate::rdma::cm::UcRoute;
use crate::rdma::direct::QueuePairAddress;
use crate::rdma::verbs::{CounterReading, EndPlan, PortCounters};
use crate::results::finding::Finding;
use crate::rig::benchmark::Failure;
use crate::time::ClockKind;

/// What is to be made ready for a point.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) point: Point,
    pub(super) uc_route: UcRoute,
    pub(super) comp_vectors: CompletionVectors,
    pub(super) huge_pages: HugePagePolicy,
    pub(super) priority: Option<u8>,
    /// The CPU of the receiving thread, if it is named.
    pub(super) cpu: Option<usize>,
}

/// What was made ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PreparedPoint {
    /// The CPU of the receiving thread.
    pub(super) cpu: usize,
    /// The pages of the stamps, and of the payload.
    pub(super) pages: [PageKind; 2],
    /// What the kernel has of this end of the path.
    pub(super) path: Value,
    /// How far the time of day is ahead of the point's clock.
    pub(super) time_of_day: TimeOfDayOffset,
    /// What is known of this end.
    pub(super) findings: Vec<Finding>,
}

/// What the far receiver has of a burst.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ReceivedBurst {
    /// Of each arrival: when, in nanoseconds of the receiver's clock.
    pub(super) stamps: Vec<u64>,
    /// Of each: its immediate data.
    pub(super) labels: Vec<u32>,
    /// Of each: the ticks of the sender's clock that it brought, if it is as it was sent.
    pub(super) delivered: Vec<Option<u64>>,
    pub(super) strays: Strays,
    pub(super) faults: u64,
    pub(super) failure: Option<String>,
    /// What ends the other end's connection as well.
    pub(super) root_cause: Option<String>,
}

/// All that is said.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WireMessage {
    /// The port, and whether processes of other hosts can connect without a secret.
    Welcome(Box<Facts>, bool),
    /// What keeps this end from going on.
    Failed(Failure),
    /// Try a receiving end.
    Try(EndPlan),
    /// Try a route to UC.
    Route(UcRoute),
    /// Why it was refused.
    Tried(Option<String>),
    /// Prepare these clocks and lock so much memory.
    Prepare {
        clocks: Vec<ClockKind>,
        bytes: u64,
        /// The CPU of the receiving thread, if it is named.
        cpu: Option<usize>,
        /// Whether idle CPUs may sleep deeply.
        allow_idle_states: bool,
        /// A point of the run.
        point: Box<Point>,
    },
    /// What is known of this host.
    Prepared(Vec<Finding>),
    Point(Box<Order>),
    /// While connecting: where to connect to.
    Listening(SocketAddr),
    /// While connecting without the manager: where the queue pairs are.
    Addresses(Vec<QueuePairAddress>),
    /// The numbers of the sending queue pairs.
    Senders(Vec<u32>),
    /// Where what is sent will lie.
    Slots(RemoteSlots),
    Made(Box<PreparedPoint>),
    /// Answer so many probes from the first on.
    Probe {
        first: u32,
        count: u32,
    },
    /// The probes are over.
    ProbesOver,
    Probed {
        /// In nanoseconds.
        stamped: Vec<Stamped>,
        failure: Option<String>,
    },
    Burst {
        number: u32,
        count: usize,
    },
    /// The receiver takes messages from now on.
    Receiving,
    /// Meanwhile: how far it is, and what went wrong.
    Far {
        received: u32,
        trouble: Option<String>,
    },
    Stop,
    /// The other end is there, and waits.
    Waiting,
    /// What came of it.
    BurstOver(Box<ReceivedBurst>),
    Counters(CounterReading),
    Counted(PortCounters),
    /// Tell what changed of the port.
    Changes,
    Changed(Vec<String>),
    /// Make the memory ready for the reads or atomics of a burst.
    Fill {
        burst: u32,
    },
    Filled,
    /// Tell the word that atomics change.
    Word,
    Told(u64),
    /// Report how CPU quotas stopped this end since the first measured burst.
    Throttling,
    Throttled(Box<ThrottlingRecord>),
    PointOver,
    /// Measure towards the other end, which serves there. An address of all zeros: at the host that says so.
    Back {
        serves: SocketAddr,
        round: u32,
        samples: bool,
        limit_ms: u64,
    },
    /// What came of it.
    BackOver(Box<DirectionReport>),
}

impl PeerMessage for WireMessage {
    fn failure(self) -> Result<Failure, Self> {
        match self {
            WireMessage::Failed(failure) => Ok(failure),
            other => Err(other),
        }
    }
}
