//! The messages between the two processes, a line of JSON each.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::probing::Stamped;
use crate::bench::node::config::Config;
use crate::bench::node::ends::Common;
use crate::bench::node::point::Point;
use crate::bench::node::result::ReceivedSample;
use crate::bench::node::shared::FarState;
use crate::between::message::PeerMessage;
use crate::between::time_of_day::TimeOfDayOffset;
use crate::buffer::PageKind;
use crate::host::throttling::ThrottlingRecord;
use crate::results::finding::Finding;
use crate::rig::benchmark::Failure;

/// How often a run is looked at, and what there is to pass on is passed on.
pub(in crate::bench::node) const LOOK: Duration = Duration::from_millis(10);

/// A host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::bench::node) struct HostName {
    pub(in crate::bench::node) host: String,
    /// What the kernel drew when it was booted: two hosts have two.
    pub(in crate::bench::node) boot_id: String,
}

/// What a host is ready with.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::bench::node) struct PreparedHost {
    /// The device of infiniband, as `obtained.devices` of settings.json has it.
    pub(in crate::bench::node) device: Option<Value>,
    /// Why the point cannot be measured with it, if so.
    pub(in crate::bench::node) refusal: Option<String>,
}

/// What is to be made ready for a point.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) common: Common,
    /// The address to which probes are answered.
    pub(super) answer_to: Value,
}

/// What was made ready.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PreparedPoint {
    /// The addresses of the subscribers.
    pub(super) subscribers: Vec<Value>,
    /// The address to which probes are sent.
    pub(super) probes: Value,
    /// The CPUs of the subscribers.
    pub(super) cpus: Vec<Option<usize>>,
    /// How far the time of day is ahead of the point's clock.
    pub(super) time_of_day: TimeOfDayOffset,
    pub(super) findings: Vec<Finding>,
}

/// What a subscriber has noted.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NotedSamples {
    pub(super) count: usize,
    /// Samples that there was no room for.
    pub(super) overflown: u64,
    pub(super) pool_is_whole: bool,
    pub(super) pages: PageKind,
}

/// What came of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunOver {
    pub(super) subscribers: Vec<NotedSamples>,
    /// What CPU quotas did there.
    pub(super) throttled: ThrottlingRecord,
}

/// All that is sent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NodeMessage {
    /// What keeps this end from going on.
    Failed(Failure),
    /// The host that serves, whether processes of other hosts can connect to it without a secret, and the names of the
    /// node-types that it has.
    Welcome(HostName, bool, Vec<String>),
    /// Prepare the clock, and look whether there are a CPU and a port for a point of the run.
    Prepare(Box<Config>, Box<Point>),
    Prepared(Box<PreparedHost>),
    Point(Box<Order>),
    Made(Box<PreparedPoint>),
    /// Answer that many probes from the first on.
    Probe {
        first: u32,
        count: u32,
    },
    /// They are answered from now on.
    Answering,
    ProbesOver,
    Probed(Vec<Stamped>),
    /// Start the subscribers.
    Begin,
    /// Meanwhile: how far they are.
    Far(FarState),
    /// This end is there.
    Waiting,
    /// All publishers have ended, and have sent this many samples each.
    Published(Vec<u64>),
    Over(Box<RunOver>),
    /// Send what a subscriber has noted, from an entry on.
    Fetch {
        subscriber: u32,
        from: usize,
    },
    /// Entries of a log, with stamps in nanoseconds.
    Noted(Vec<[u64; ReceivedSample::WORDS]>),
    PointOver,
}

impl PeerMessage for NodeMessage {
    fn failure(self) -> Result<Failure, Self> {
        match self {
            NodeMessage::Failed(failure) => Ok(failure),
            other => Err(other),
        }
    }
}
