//! Why a run cannot start or go on.

use std::net::SocketAddr;

use crate::bench::hca::loops::floor::FloorError;
use crate::between::error::PeerError;
use crate::buffer::BufferError;
use crate::generators::GeneratorsError;
use crate::host::HostError;
use crate::launch::wire::WireError;
use crate::rdma::cm::CmError;
use crate::rdma::verbs::VerbsError;
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::in_threads::ThreadsError;
use crate::rig::port_choice::ChoiceError;
use crate::rig::role::Role;
use crate::time::ClockError;

/// A run cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// For a reason that every benchmark knows.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// Another value of an option would avoid it.
    #[error("{0}")]
    Usage(String),
    /// The devices do not suit the configuration.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A thread could not do its work.
    #[error("{0}: {1}")]
    Worker(Role, Box<RunError>),
    /// There is not enough memory.
    #[error("memory for --burst messages of --size bytes: {0}")]
    Buffer(#[from] BufferError),
    /// The ends could not be connected.
    #[error(transparent)]
    Connection(#[from] CmError),
    /// Less inline data was granted than asked for.
    #[error(
        "--inline needs {wanted} bytes, {device} granted {granted} to this queue pair: use a smaller --size"
    )]
    Inline {
        /// The device.
        device: String,
        /// Bytes asked for.
        wanted: u32,
        /// Bytes granted.
        granted: u32,
    },
    /// The connection manager lacks an IP address, or did not tell the peer's UD address.
    #[error("the connection manager has no address of one of the ends")]
    NoAddress,
    /// No GID of the one port reaches one of the other.
    #[error(
        "no GIDs of the two ports are of one kind: give both ports an IPv4 address, or name --gid-index"
    )]
    NoGid,
    /// The other host does not answer, or not as it should.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The other host cannot go on.
    #[error("{0}: {1}")]
    Peer(SocketAddr, Failure),
    /// A device refuses.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// Receive requests cannot be posted.
    #[error("{0}")]
    Post(String),
    /// The clocks of the two CPUs could not be compared.
    #[error("the clocks of sender and receiver: {0}")]
    Offset(#[from] ThreadsError),
    /// The floor could not be measured.
    #[error(transparent)]
    Floor(#[from] FloorError),
    /// Generators of memory load could not be had, or do not answer.
    #[error("memory load: {0}")]
    Generators(GeneratorsError),
}

impl From<PeerError> for RunError {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::Usage(text) => RunError::Usage(text),
            PeerError::Wire(error) => RunError::Wire(error),
            PeerError::Peer(peer, failure) => RunError::Peer(peer, failure),
            PeerError::Here(text) => RunError::Post(text),
        }
    }
}

impl From<GeneratorsError> for RunError {
    fn from(error: GeneratorsError) -> Self {
        match error {
            GeneratorsError::Rig(error) => error.into(),
            other => RunError::Generators(other),
        }
    }
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> Self {
        RigError::from(error).into()
    }
}

impl From<ClockError> for RunError {
    fn from(error: ClockError) -> Self {
        RigError::from(error).into()
    }
}

impl RunError {
    fn is_shortage(&self) -> bool {
        match self {
            RunError::Rig(error) => error.is_shortage(),
            RunError::Buffer(error) => error.is_shortage(),
            RunError::Worker(_, error) => error.is_shortage(),
            _ => false,
        }
    }
}

impl From<RunError> for Failure {
    /// An error that another value of an option would avoid is the user's.
    fn from(error: RunError) -> Self {
        let text = error.to_string();
        match error {
            RunError::Wire(WireError::Interrupted(signal))
            | RunError::Rig(RigError::Interrupted(signal)) => {
                Failure::Interrupted(signal.to_string())
            }
            // Limits of the machine, as long as no option lowers what is locked.
            RunError::Rig(
                RigError::Host(HostError::MemoryLockLimit { .. })
                | RigError::TooFewHugePages { .. },
            ) => Failure::Run(text),
            RunError::Rig(error) if error.is_usage() => Failure::Usage(text),
            error if error.is_shortage() => Failure::Shortage(text),
            RunError::Usage(_)
            | RunError::Peer(_, Failure::Usage(_))
            | RunError::Choice(ChoiceError::Named { .. } | ChoiceError::Apart { .. }) => {
                Failure::Usage(text)
            }
            _ => Failure::Run(text),
        }
    }
}
