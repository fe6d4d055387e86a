//! What a run of the queue benchmark is asked to do.

use std::time::Duration;

use super::retry::Retry;
use crate::buffer::HugePagePolicy;
use crate::time::ClockKind;

pub const PAYLOADS: [usize; 3] = [8, 64, 256];
/// The most elements of a run, and as many may come before them to warm up.
pub const MOST_ELEMENTS: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Measure {
    /// The clock before and after each operation.
    Time,
    /// Only how many elements go through in a second.
    Throughput,
    /// The processor's counters over the loops of each end, without time stamps.
    Counters,
}

impl Measure {
    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Time => "time",
            Measure::Throughput => "throughput",
            Measure::Counters => "counters",
        }
    }
}

/// What is the same for all points of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Elements that are measured in each round.
    pub count: u64,
    /// Elements that go through before them.
    pub warmup: u64,
    pub measure: Measure,
    /// Whether the time of failed attempts belongs to the operation that succeeded at last.
    pub measure_failed: bool,
    /// What an end does between two attempts.
    pub retry: Retry,
    pub clock: ClockKind,
    /// How long nothing may go through before a run is given up, beside the pauses of the load.
    pub timeout: Duration,
    /// The pages that stamps are noted in.
    pub huge_pages: HugePagePolicy,
    /// Whether the stamps of all elements are kept, for `elements.csv`.
    pub keep_elements: bool,
    /// Whether any point is under memory load.
    pub has_memory_load: bool,
}

impl Config {
    /// Elements of a run, with those that warm up.
    pub fn elements(&self) -> u64 {
        self.count + self.warmup
    }

    /// Elements whose stamps are kept.
    pub fn kept_elements(&self) -> u64 {
        if self.keep_elements { self.count } else { 0 }
    }
}
