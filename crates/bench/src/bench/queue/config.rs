//! What a run of the queue benchmark is asked to do.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::retry::Retry;
use super::roles::SENDER;
use crate::buffer::HugePagePolicy;
use crate::rig::named::named;
use crate::rig::role::Role;
use crate::time::{ClockKind, UnfencedCounter};

pub const PAYLOADS: [usize; 3] = [8, 64, 256];
/// The most elements of a run.
pub const MOST_ELEMENTS: u64 = 1 << 30;
/// The most operations between two readings of the clock: those of a part of the warm-up.
pub const MOST_PER_STAMP: u32 = 1024;

named! {
    #[derive(clap::ValueEnum)]
    Measure {
        /// The clock before and after each operation.
        Time = "time",
        /// There and back: how long an element takes through a queue and its answer through another one of the same
        /// kind.
        RoundTrip = "round-trip",
        /// Only how many elements go through in a second.
        Throughput = "throughput",
        /// The processor's counters over the loops of each end, without time stamps.
        Counters = "counters",
    }
}

impl Measure {
    /// Whether the clock is read around what this end does. An answer is timed by who asked.
    pub(super) fn is_timed(self, role: Role) -> bool {
        match self {
            Measure::Time => true,
            Measure::RoundTrip => role == SENDER,
            Measure::Throughput | Measure::Counters => false,
        }
    }

    /// Whether any end reads the clock.
    pub(super) fn has_times(self) -> bool {
        self.is_timed(SENDER)
    }
}

/// How much is measured in each round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum RoundLength {
    /// So many elements.
    Elements(u64),
    /// As many as go through in this time, at the rate that a short run finds before.
    Time(Duration),
}

/// What is the same for all points of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub length: RoundLength,
    /// How long elements go through before those that are measured.
    pub warmup: Duration,
    pub measure: Measure,
    /// Whether the time of failed attempts belongs to the operation that succeeded at last.
    pub measure_failed: bool,
    /// What an end does between two attempts.
    pub retry: Retry,
    pub clock: ClockKind,
    /// Whether the processor's counter is read without fences around each operation.
    pub unfenced: bool,
    /// Operations between two readings of the clock: with more than one a batch of them is timed.
    pub per_stamp: u32,
    /// The SCHED_FIFO priority of both ends, if any.
    pub priority: Option<u8>,
    /// How long nothing may go through before a run is given up, beside the pauses of the load.
    pub timeout: Duration,
    /// The pages of stamps and queues.
    pub huge_pages: HugePagePolicy,
    /// Whether the stamps of all elements are kept, for `elements.csv`.
    pub keep_elements: bool,
    /// The length of intervals in logs, where one was asked for.
    pub hlog_interval: Option<Duration>,
    /// Whether any point is under memory load.
    pub has_memory_load: bool,
}

impl Config {
    /// Whether one time is that of several operations.
    pub fn has_batches(&self) -> bool {
        self.per_stamp > 1
    }

    /// Whether each operation is timed by itself, at one end at least.
    pub(super) fn times_each(&self) -> bool {
        self.measure.has_times() && !self.has_batches()
    }

    /// Whether each element has a latency, and the queue a depth: both compare stamps of two CPUs, which a processor
    /// that may execute instructions across a stamp does not order.
    pub(super) fn has_latencies(&self) -> bool {
        self.measure == Measure::Time && self.times_each() && !self.unfenced
    }

    /// The clock, and how it is read, as it is named in options and results.
    pub fn clock_name(&self) -> &'static str {
        match self.unfenced {
            true => UnfencedCounter::NAME,
            false => self.clock.name(),
        }
    }

    /// How long elements count, where it is not their number that ends a round.
    pub(super) fn duration(&self) -> Duration {
        match self.length {
            RoundLength::Time(time) => time,
            RoundLength::Elements(_) => Duration::ZERO,
        }
    }
}
