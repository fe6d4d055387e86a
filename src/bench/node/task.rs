//! What an end is told, whatever it runs in.

use std::sync::Arc;

use super::config::Config;
use super::sample::Epoch;
use super::shared::Shared;
use crate::buffer::{BufferError, Plain, SharedMemory, StampBuffer};

/// What a publisher or a subscriber is told.
pub(super) struct Task<C> {
    pub(super) number: u32,
    pub(super) clock: C,
    pub(super) epoch: Epoch,
    pub(super) config: Config,
    pub(super) shared: Arc<Shared>,
    pub(super) rate_per_s: f64,
    pub(super) words: usize,
    /// Whether it has no CPU of its own, and lets others run while it waits.
    pub(super) yields: bool,
    /// Memory for its log that another process reads.
    pub(super) log: Option<SharedMemory>,
}

impl<C> Task<C> {
    /// Asked while it waits.
    pub(super) fn go_on(&self) -> bool {
        if self.yields {
            std::thread::yield_now();
        }
        !self.shared.run.stopped()
    }

    /// A log of so many entries.
    pub(super) fn log<T: Plain>(&mut self, entries: usize) -> Result<StampBuffer<T>, BufferError> {
        match self.log.take() {
            None => StampBuffer::new(entries, self.config.huge_pages),
            Some(memory) => StampBuffer::in_shared(memory, entries),
        }
    }
}
