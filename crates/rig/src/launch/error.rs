//! Why processes cannot measure together.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::wire::WireError;
use crate::rig::benchmark::Failure;

/// Why a run of several processes does not begin, or ends.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Rank 0 runs elsewhere than where the others look for it.
    #[error(
        "rank 0 runs on a host that has none of the addresses at which the ranks would look for it ({looked}): give \
         --rendezvous HOST[:PORT] with the host of rank 0"
    )]
    NotHere {
        /// Where, and what is wrong there.
        looked: String,
    },
    /// Rank 0 cannot listen.
    #[error(
        "rank 0 cannot listen at {address}: {source}: give another port by --rendezvous HOST:PORT, to all ranks"
    )]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Rank 0 was not met.
    #[error(
        "rank 0 was not reached within {} s ({looked}): check that it runs, and that this host may connect to it",
        limit.as_secs()
    )]
    NotMet {
        /// How long it was tried.
        limit: Duration,
        /// Where, and what came of it.
        looked: String,
    },
    /// Rank 0 has another secret.
    #[error("rank 0 does not admit this rank: {0}")]
    NotAdmitted(WireError),
    /// Rank 0 does not want this process.
    #[error("rank 0 refuses this process: {0}")]
    Refused(String),
    /// Too few ranks for a pair.
    #[error("only {there} of {ranks} ranks are there, and a pair takes two: {missing}")]
    TooFew {
        /// How many came.
        there: usize,
        /// How many were to come.
        ranks: u32,
        /// What is known of the others.
        missing: String,
    },
    /// A rank serves where ranks on other hosts cannot reach it.
    #[error(
        "{rank} serves at {address}, which ranks on other hosts cannot reach: allowed for --bind is an address that they \
         can"
    )]
    OnlyHere {
        /// The rank, for people.
        rank: String,
        /// Its address.
        address: IpAddr,
    },
    /// Rank 0 is lost, or hung.
    #[error("rank 0 is lost: {0}")]
    Gone(WireError),
    /// Rank 0 ends the run before all is measured.
    #[error("rank 0 ends the run: {0}")]
    Ended(String),
    /// This rank cannot measure.
    #[error("{0}")]
    Unprepared(String),
    /// A signal came.
    #[error("interrupted by {0}")]
    Interrupted(Signal),
    /// The kernel refuses.
    #[error("{operation}: {source}")]
    Io {
        /// What was refused.
        operation: &'static str,
        /// Why.
        source: io::Error,
    },
    /// What was measured could not be kept.
    #[error(transparent)]
    Sink(#[from] Failure),
}

impl LaunchError {
    /// What has become of the connection to rank 0.
    pub(super) fn of_wire(error: WireError) -> Self {
        match error {
            WireError::Interrupted(signal) => LaunchError::Interrupted(signal),
            error => LaunchError::Gone(error),
        }
    }

    /// Whether another command line would help.
    pub fn is_misuse(&self) -> bool {
        use LaunchError::{Listen, NotHere, OnlyHere};
        matches!(self, NotHere { .. } | Listen { .. } | OnlyHere { .. })
    }

    pub(super) fn io(operation: &'static str, source: impl Into<io::Error>) -> Self {
        LaunchError::Io {
            operation,
            source: source.into(),
        }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Interrupted(signal) => Failure::Interrupted(signal.to_string()),
            LaunchError::Sink(failure) => failure,
            error if error.is_misuse() => Failure::Usage(error.to_string()),
            error => Failure::Run(error.to_string()),
        }
    }
}
