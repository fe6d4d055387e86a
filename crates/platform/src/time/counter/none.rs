//! An architecture whose counter is not known here.

use super::TscTrust;
use crate::time::{ClockError, Ticks};

/// What the counter is called in messages.
pub const COUNTER_IN_WORDS: &str = "counter";

/// How the counter would be read. It is not trusted, so that no clock is made of it.
#[derive(Debug, Clone, Copy)]
pub struct CounterReader(());

impl CounterReader {
    /// For what takes one.
    pub fn find() -> Self {
        CounterReader(())
    }

    /// Stands still.
    pub fn read(self) -> Ticks {
        Ticks(0)
    }

    /// The same.
    pub(super) fn read_unfenced(self) -> Ticks {
        Ticks(0)
    }
}

/// It is unknown.
pub(super) fn reported_hertz() -> Option<f64> {
    None
}

impl TscTrust {
    /// Nothing vouches for it.
    pub fn find() -> Result<Self, ClockError> {
        Err(ClockError::NoCounter)
    }
}
