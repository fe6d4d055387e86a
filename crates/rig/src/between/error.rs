//! Why the other host cannot be measured with.

use std::net::SocketAddr;

use crate::launch::wire::WireError;
use crate::rig::benchmark::Failure;

/// The other host is not reached, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Another value of an option would avoid it.
    #[error("{0}")]
    Usage(String),
    /// It does not answer, or not as it should.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It cannot go on.
    #[error("{0}: {1}")]
    Peer(SocketAddr, Failure),
    /// Something here failed.
    #[error("{0}")]
    Here(String),
}

impl From<PeerError> for Failure {
    fn from(error: PeerError) -> Self {
        let text = error.to_string();
        match error {
            PeerError::Wire(WireError::Interrupted(signal)) => {
                Failure::Interrupted(signal.to_string())
            }
            PeerError::Usage(_) | PeerError::Peer(_, Failure::Usage(_)) => Failure::Usage(text),
            PeerError::Peer(_, Failure::Shortage(_)) => Failure::Shortage(text),
            _ => Failure::Run(text),
        }
    }
}
