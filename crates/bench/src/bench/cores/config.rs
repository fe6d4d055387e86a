//! Settings of the benchmark.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::host::CpuSet;
use crate::time::ClockKind;

/// How long a pair is measured in a round, if not asked otherwise: all pairs of 256 CPUs then take four minutes.
pub const DEFAULT_DURATION: Duration = Duration::from_millis(1);
/// Rounds, if not asked otherwise: from six on a median has bounds.
pub const DEFAULT_ROUNDS: u32 = 6;

/// On which NUMA node lines lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LineNode {
    /// That of the CPU that writes them.
    Writer,
    /// That of the CPU that reads them.
    Reader,
    /// This one.
    Node(u32),
}

impl fmt::Display for LineNode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineNode::Writer => formatter.write_str("writer"),
            LineNode::Reader => formatter.write_str("reader"),
            LineNode::Node(node) => write!(formatter, "{node}"),
        }
    }
}

/// What is the same for all pairs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The CPUs whose pairs are measured; all that the process may use, if none are asked for.
    pub cpus: Option<CpuSet>,
    /// How long a pair is measured in a round, both directions together.
    pub duration: Duration,
    /// Where lines lie.
    pub memory_node: LineNode,
    /// The clock that is read.
    pub clock: ClockKind,
}
