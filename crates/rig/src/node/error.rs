//! What can go wrong in any node-type.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::buffer::BufferError;
use crate::host::HostError;
use crate::host::remedies::remedy;

use super::fallback::ConnectFailure;

/// A node cannot start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Another value of an option would avoid it.
    #[error("{0}")]
    Setting(String),
    /// A broker does not answer: it is a wrong one, or has ended.
    #[error("{0}")]
    NoBroker(String),
    /// The pool could not be allocated.
    #[error("the samples of --values: {0}")]
    Buffer(#[from] BufferError),
    /// The system refused something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// An operation failed.
    #[error("{operation} {object}: {source}: {advice}")]
    Io {
        /// What was done: `bind`.
        operation: &'static str,
        /// To what: an address, a file.
        object: String,
        /// The system's reason.
        source: io::Error,
        /// What to do.
        advice: String,
    },
    /// The HCA or the connection manager refused something.
    #[error("{0}")]
    Verbs(String),
    /// An active end of infiniband cannot connect, and is not to fall back to listening.
    #[error("{} ({peer}): {reason}", why.name())]
    NotConnected {
        /// Which of the connection manager's errors it was.
        why: ConnectFailure,
        /// Where it was to connect to.
        peer: SocketAddr,
        /// The error.
        reason: String,
    },
    /// The other end, or a broker between, has ended.
    #[error("{0}")]
    Gone(String),
    /// The other end has closed the connection: why, that end reports.
    #[error("{0}")]
    PeerEnded(String),
    /// Within the time of --timeout too few of the other ends have done what this one waits for.
    #[error("{came} of {all} {what} within {} s: a higher --timeout waits longer", patience.as_secs_f64())]
    TooFew {
        /// How many have.
        came: usize,
        /// How many were to.
        all: usize,
        /// Who has done what: `publishers have connected`.
        what: String,
        /// The time.
        patience: Duration,
    },
    /// It was stopped before it was ready.
    #[error("the connection was given up before it was there")]
    GivenUp,
}

impl NodeError {
    /// Whether a limit of this process or of the machine is reached, which something smaller may keep.
    pub fn is_shortage(&self) -> bool {
        match self {
            NodeError::Host(error) => error.is_shortage(),
            NodeError::Buffer(error) => error.is_shortage(),
            NodeError::Io { source, .. } => remedy(source).is_some(),
            _ => false,
        }
    }

    /// For `map_err`: that operation on that object failed.
    pub fn io(
        operation: &'static str,
        object: impl ToString,
        advice: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let object = object.to_string();
        move |source| NodeError::Io {
            operation,
            object,
            advice: remedy(&source).unwrap_or_else(|| advice.to_owned()),
            source,
        }
    }
}
