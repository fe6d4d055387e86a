//! The messages between rank 0 and the ranks, a line of JSON each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::identity::{Identity, Job};
use super::schedule::Pair;
use crate::results::Record;
use crate::results::document::Program;
use crate::results::finding::Finding;

/// What must be the same for all ranks of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The program, with its version and commit.
    pub program: Program,
    /// The engine's job and step.
    pub job: Job,
    /// How many ranks there are.
    pub ranks: u32,
    /// What was asked for, but for what differs between ranks.
    pub settings: Value,
}

/// Who a rank is: its first message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// What it has in common with the others.
    pub terms: Terms,
    /// Its number.
    pub rank: u32,
    /// The engine's name of its node.
    pub node: String,
    /// Where the node is in the network, if the engine reports it.
    pub topology: Option<String>,
    /// What the kernel of its host drew when it was booted.
    pub boot_id: String,
    /// Where it serves pair sessions. An address of all zeros: at the host from which it connects to rank 0.
    pub serves: SocketAddr,
    /// The CPUs that it may run on, as a list.
    pub cpus: String,
}

impl Hello {
    /// Of a process of this program.
    pub fn new(
        identity: &Identity,
        settings: Value,
        (boot_id, cpus): (String, String),
        serves: SocketAddr,
    ) -> Self {
        Hello {
            terms: Terms {
                program: Program::this(),
                job: identity.job.clone(),
                ranks: identity.ranks,
                settings,
            },
            rank: identity.rank,
            node: identity.node.clone(),
            topology: identity.topology.clone(),
            boot_id,
            serves,
            cpus,
        }
    }

    /// The rank, for people: `rank 3 (n4)`.
    pub fn name(&self) -> String {
        format!("rank {} ({})", self.rank, self.node.escape_default())
    }
}

/// What a rank learns when all have come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// An identifier of this run.
    pub run: String,
    /// Its place among the ranks on its host (those with its boot id), in the order of ranks, from 0.
    pub place: u32,
    /// Its place among those on its host that may run on the same CPUs, and how many these are.
    pub share: (u32, u32),
    /// Rank 0 is lost if nothing comes from it for this long, in ms.
    pub silence_ms: u64,
}

/// A pair is to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurementOrder {
    /// The round, from 0.
    pub round: u32,
    /// The pair: its lower rank gets the order.
    pub pair: Pair,
    /// The engine's name of the partner's node.
    pub partner_node: String,
    /// Where the partner serves.
    pub partner: SocketAddr,
    /// How long the measurement may take, in ms: a rank that takes longer than this and a grace is taken for hung.
    pub limit_ms: u64,
    /// Whether the report is to have the samples.
    pub samples: bool,
}

impl MeasurementOrder {
    /// How long the measurement may take.
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.limit_ms)
    }
}

/// What was measured between two ranks in a round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PairReport {
    /// When it began, in nanoseconds since 1970 by the clock of the lower rank's host.
    pub begun_unix_ns: u64,
    /// From the lower to the higher rank, and back.
    pub directions: [DirectionReport; 2],
}

/// One direction of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Its figures: columns of the schema.
    pub figures: Record,
    /// Why there are none, or not all.
    pub failure: Option<String>,
    /// What must be known to believe them, of either host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// By the name of their file, the rows of samples, if these were asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub samples: BTreeMap<String, String>,
}

/// From rank 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ToRank {
    /// The rank is part of the run, and waits for the others.
    Welcome,
    /// It is not, and why.
    Refused(String),
    /// All have come.
    Start(Start),
    Measure(MeasurementOrder),
    /// To be answered by a pong.
    Ping,
    /// All is measured; or why the run ends before.
    End(Option<String>),
}

/// To rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum FromRank {
    Hello(Box<Hello>),
    /// What it has prepared, or why it cannot measure.
    Ready(Result<Value, String>),
    Report {
        round: u32,
        pair: Pair,
        report: Box<Result<PairReport, String>>,
    },
    Pong,
}
