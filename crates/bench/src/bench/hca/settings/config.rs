//! What can be set.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::background::Background;
use super::comp_vector::CompletionVectors;
use super::limits::SMALLEST_SIZE;
use super::path::{Connect, PathSettings};
use super::resources::{ResourceOption, ResourceSettings};
pub use super::switch::Switch;
use super::warmup::Warmup;
use crate::buffer::HugePagePolicy;
use crate::generators::MemoryLoad;
use crate::pacing::LONGEST_INTERVAL;
use crate::rig::named::named;
pub use crate::rig::ports::{PortRequest, Service, UcRouteRequest};
use crate::time::{ClockKind, Nanos, TscKilohertz};

named! {
    /// The operation that carries a message, or brings something back.
    Operation {
        /// Send with immediate data.
        Send = "send",
        /// RDMA write with immediate data.
        Write = "write",
        /// RDMA write without immediate data, found by looking at the memory.
        WritePolled = "write-polled",
        /// RDMA read.
        Read = "read",
        /// Atomic compare and swap.
        CompareSwap = "compare-swap",
        /// Atomic fetch and add.
        FetchAdd = "fetch-add",
    }
}

impl Operation {
    /// Whether it brings messages to a receiver. The others bring something back, and the receiver sees nothing of it.
    pub fn is_one_way(self) -> bool {
        matches!(
            self,
            Operation::Send | Operation::Write | Operation::WritePolled
        )
    }

    /// Whether it changes 8 bytes of the receiver's memory in one step.
    pub fn is_atomic(self) -> bool {
        matches!(self, Operation::CompareSwap | Operation::FetchAdd)
    }

    /// Whether its messages have immediate data.
    pub fn has_immediate_data(self) -> bool {
        matches!(self, Operation::Send | Operation::Write)
    }
}

named! {
    /// How completions are waited for.
    Poll {
        /// The completion queue is polled without a break.
        Busy = "busy",
        /// The thread sleeps until the completion channel has an event.
        Event = "event",
    }
}

named! {
    /// Which moment a message carries.
    Timestamp {
        /// Before the work request is posted.
        Submit = "submit",
        /// As close as can be to the moment when the HCA reads the memory.
        Send = "send",
    }
}

named! {
    /// How messages that are posted at a rate are spread over time.
    Arrivals {
        /// The same time from post to post.
        Constant = "constant",
        /// The times from post to post are random and independent of each other: a Poisson process.
        Poisson = "poisson",
    }
}

/// Messages are posted at a rate, whatever a post takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// Messages a second.
    pub per_second: u32,
    /// How they are spread over time.
    pub arrivals: Arrivals,
}

impl Rate {
    /// The mean time from post to post.
    pub fn interval(self) -> Duration {
        Duration::from_secs(1) / self.per_second
    }

    /// The longest time from post to post.
    pub fn longest_interval(self) -> Duration {
        match self.arrivals {
            Arrivals::Constant => self.interval(),
            Arrivals::Poisson => self.interval() * LONGEST_INTERVAL,
        }
    }
}

/// The message sizes in bytes that a range stands for: 8 times a power of two.
pub fn doubled_sizes(within: RangeInclusive<u32>) -> impl Iterator<Item = u32> {
    let doubled = std::iter::successors(Some(SMALLEST_SIZE), |size| size.checked_mul(2));
    doubled.filter(move |size| within.contains(size))
}

/// Lists of settings whose product is the sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Service types.
    pub services: Vec<Service>,
    /// Operations.
    pub operations: Vec<Operation>,
    /// Whether data is copied into the work request.
    pub inline: Vec<Switch>,
    /// Whether only the last message of a queue's length is signalled.
    pub unsignaled: Vec<Switch>,
    /// Poll modes of the receiving and of the completion side.
    pub polls: Vec<(Poll, Poll)>,
    /// Which moment is stamped.
    pub timestamps: Vec<Timestamp>,
    /// Clocks.
    pub clocks: Vec<ClockKind>,
    /// Time between two posts.
    pub pauses: Vec<Nanos>,
    /// Rates at which messages are posted; `None`: there is a pause between two. With a rate the only pause is 0.
    pub rates: Vec<Option<Rate>>,
    /// Times that the receiver is away for before each look at its completion queue.
    pub receiver_pauses: Vec<Nanos>,
    /// Messages in one test.
    pub bursts: Vec<u32>,
    /// Messages in flight at most; `None`: a whole burst.
    pub depths: Vec<Option<u32>>,
    /// Message sizes in bytes.
    pub sizes: Vec<u32>,
    /// How the queue pairs are connected.
    pub connects: Vec<Connect>,
    /// Attributes of the path.
    pub paths: Vec<PathSettings>,
    /// What the ends are made with.
    pub resources: Vec<ResourceSettings>,
    /// Queue pairs that the messages are spread over.
    pub queue_pairs: Vec<u32>,
    /// What is sent in the background; `None`: nothing.
    pub backgrounds: Vec<Option<Background>>,
    /// What generators on other CPUs draw of memory bandwidth meanwhile.
    pub memory_loads: Vec<MemoryLoad>,
}

/// CPUs as the user names them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuRequest {
    /// For the sending thread.
    pub sender: Option<usize>,
    /// For the receiving thread.
    pub receiver: Option<usize>,
    /// For the completion thread.
    pub completion: Option<usize>,
    /// For the thread that rewrites the stamps of `--timestamp send`.
    pub stamp: Option<usize>,
    /// For the thread that sends in the background.
    pub background: Option<usize>,
}

/// Everything that is set for a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Config {
    /// The settings that make the points.
    pub sweep: Sweep,
    /// What comes before the measured messages of each point.
    pub warmup: Warmup,
    /// Bursts per point.
    pub repeat: u32,
    /// What the times of Poisson arrivals follow from.
    pub seed: u64,
    /// How long without an arrival before what is missing counts as lost.
    pub timeout: Duration,
    /// SCHED_FIFO priority of the measuring threads.
    pub priority: Option<u8>,
    /// What to do about huge pages.
    pub huge_pages: HugePagePolicy,
    /// Whether adapters stamp completions by their own clock.
    pub hw_timestamps: bool,
    /// The completion vectors, where they are asked for.
    pub comp_vectors: Option<CompletionVectors>,
    /// Whether idle CPUs may sleep deeply.
    pub allow_idle_states: bool,
    /// The route to UC.
    pub uc_route: UcRouteRequest,
    /// The service types that [`Connect::Auto`] connects directly; `None`: a trial of the connection manager shows
    /// which. A process of a round has them from its parent.
    pub direct_services: Option<Vec<Service>>,
    /// The sending port.
    pub sender: Option<PortRequest>,
    /// The receiving port.
    pub receiver: Option<PortRequest>,
    /// The CPUs.
    pub cpus: CpuRequest,
    /// The rate of the TSC, if the user gives it.
    pub tsc_khz: Option<TscKilohertz>,
}

impl Config {
    /// Whether any point has traffic in its background.
    pub fn has_background(&self) -> bool {
        self.sweep.backgrounds.iter().any(Option::is_some)
    }

    /// Whether any point has this option of [`ResourceSettings`] on.
    pub fn uses(&self, option: ResourceOption) -> bool {
        let mut points = self.sweep.resources.iter();
        points.any(|resources| resources.value(option).is_on())
    }

    /// Whether any point is under memory load.
    pub fn has_memory_load(&self) -> bool {
        self.sweep.memory_loads.iter().any(|load| load.is_on())
    }
}
