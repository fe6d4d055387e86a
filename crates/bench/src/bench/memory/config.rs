//! Settings of the memory benchmark.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::buffer::{Bytes, PageSize};
use crate::generators::{InstructionSet, LONGEST_PAUSE, Store};
use crate::host::CpuSet;
use crate::host::uncore::ChosenEvents;
use crate::rig::named::named;
use crate::stats::outliers::Outliers;
use crate::stats::smoothing::Smoothing;

named! {
    /// Where the measured bandwidth comes from.
    Bandwidth {
        /// The counters of the memory controllers, where they can be read.
        Auto = "auto",
        /// Nowhere: lines that are issued are counted, and no more.
        Software = "software",
        /// The counters, or an error.
        Uncore = "uncore",
    }
}

/// What is behind each group of a generator's accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Pause {
    /// So many nops, up to [`LONGEST_PAUSE`].
    Nops(u64),
    /// Generators rest.
    Off,
}

impl fmt::Display for Pause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pause::Nops(LONGEST_PAUSE) => formatter.write_str("max"),
            Pause::Nops(nops) => write!(formatter, "{nops}"),
            Pause::Off => formatter.write_str("off"),
        }
    }
}

/// What is the same for all points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The widest that there is, if none is asked for.
    pub instruction_set: Option<InstructionSet>,
    /// The largest that can be had, if none is asked for.
    pub page: Option<PageSize>,
    /// The CPU of the chase.
    pub chase_cpu: Option<usize>,
    /// The CPUs of generators; all that are left, if none are asked for.
    pub generators: Option<CpuSet>,
    /// The NUMA node of all buffers; that of each thread, if none is asked for.
    pub memory_node: Option<u32>,
    /// Whether the counters of memory controllers are read.
    pub bandwidth: Bandwidth,
    /// The events that count, where others are meant than those that are known.
    pub events: ChosenEvents,
    /// How long is waited for a stable bandwidth, at most.
    pub settle: Duration,
    /// Windows of a point in a round.
    pub windows: u32,
    /// How long each is.
    pub window: Duration,
    /// Which windows do not count.
    pub outliers: Outliers,
    /// How curves are smoothed.
    pub smooth: Smoothing,
    /// What the order of the chase follows from.
    pub seed: u64,
}

/// What is multiplied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Per cent of the accesses that read: even numbers.
    pub read_shares: Vec<u32>,
    /// Kinds of stores.
    pub stores: Vec<Store>,
    /// From full speed to none.
    pub pauses: Vec<Pause>,
    /// Of the buffer of the chase; four times the last level of cache, if it fits, if there is none.
    pub sizes: Vec<Bytes>,
    /// Whether the CPUs of each NUMA node are measured with the memory of each, in place of one choice of both.
    pub node_pairs: bool,
}
