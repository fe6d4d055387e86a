//! Completion vectors: which interrupt of a device tells that a completion queue has something, for threads that wait
//! for events.

use std::fmt;

/// The completion vectors of both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CompletionVectors {
    /// Of the sender's completion queues.
    pub sender: u32,
    /// Of the receiver's completion queues.
    pub receiver: u32,
}

impl fmt::Display for CompletionVectors {
    /// As the command line has it: `1,2`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{},{}", self.sender, self.receiver)
    }
}
