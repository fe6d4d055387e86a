//! The two ends of a queue.

use std::fmt;

/// What a thread of a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Enqueues.
    Sender,
    /// Dequeues.
    Receiver,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Role::Sender => "sender",
            Role::Receiver => "receiver",
        })
    }
}
