//! Why a run of the node benchmark cannot start or go on.

use std::time::Duration;

use super::log::LogError;
use crate::between::error::PeerError;
use crate::buffer::BufferError;
use crate::host::HostError;
use crate::launch::wire::WireError;
use crate::node::NodeError;
use crate::results::ReportError;
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::role::Role;

#[derive(Debug, thiserror::Error)]
pub enum NodeThreadError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(
        "no sample of publisher {publisher} arrived at subscriber {subscriber} within {} s (--timeout)",
        within.as_secs_f64()
    )]
    NotReached {
        publisher: u32,
        subscriber: u32,
        within: Duration,
    },
    /// That of the process in which the end ran.
    #[error(transparent)]
    Process(#[from] Failure),
    /// Something else ended the run; that says more.
    #[error("the run was stopped early")]
    Stopped,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Rig(#[from] RigError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("{0}: {1}")]
    Thread(Role, NodeThreadError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(
        "no sample arrived for {} s: the CPUs are too busy, the node-type hangs, or it loses all: try a lower --rate",
        limit.as_secs()
    )]
    Silent { limit: Duration },
    /// That of a process that was to make an end.
    #[error(transparent)]
    Process(#[from] Failure),
    /// The other host is not reached, or cannot go on.
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("shared memory: {0}")]
    Memory(#[from] BufferError),
    #[error("{0}")]
    BrokerGone(String),
    #[error("{0}")]
    NothingToMeasure(String),
    #[error(transparent)]
    NotWritten(#[from] ReportError),
}

impl From<WireError> for RunError {
    fn from(error: WireError) -> Self {
        RunError::Peer(error.into())
    }
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> Self {
        RunError::Rig(error.into())
    }
}

impl RunError {
    fn is_shortage(&self) -> bool {
        match self {
            RunError::Node(error) | RunError::Thread(_, NodeThreadError::Node(error)) => {
                error.is_shortage()
            }
            RunError::Thread(_, NodeThreadError::Host(error)) => error.is_shortage(),
            RunError::Log(error) | RunError::Thread(_, NodeThreadError::Log(error)) => {
                error.is_shortage()
            }
            RunError::Memory(error) => error.is_shortage(),
            _ => false,
        }
    }
}

impl From<RunError> for Failure {
    /// An error that another value of an option would avoid is the user's.
    fn from(error: RunError) -> Self {
        let text = error.to_string();
        match error {
            error if error.is_shortage() => Failure::Shortage(text),
            RunError::Process(failure) => failure,
            RunError::Peer(error) => error.into(),
            RunError::Thread(_, NodeThreadError::Process(failure)) if failure.fails_its_point() => {
                failure
            }
            RunError::Rig(error) => error.into(),
            RunError::NothingToMeasure(_)
            | RunError::Node(NodeError::Setting(_) | NodeError::NoBroker(_)) => {
                Failure::Usage(text)
            }
            _ => Failure::Run(text),
        }
    }
}
