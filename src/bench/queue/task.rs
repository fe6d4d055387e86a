//! What the threads of a run are told to do.

use std::time::Duration;

use super::config::Measure;
use crate::buffer::HugePagePolicy;
use crate::pacing::EndLoad;
use crate::time::AnyClock;

/// A run to be made.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) clock: AnyClock,
    pub(super) sender_cpu: usize,
    pub(super) receiver_cpu: usize,
    pub(super) sender: EndLoad,
    pub(super) receiver: EndLoad,
    pub(super) capacity: usize,
    pub(super) warmup: usize,
    pub(super) count: usize,
    pub(super) measure: Measure,
    pub(super) measure_failed: bool,
    pub(super) huge_pages: HugePagePolicy,
    /// Whether all memory is to be locked, for that of the queue.
    pub(super) locks_memory: bool,
    /// How long nothing may go through.
    pub(super) patience: Duration,
    /// How long all of it may take.
    pub(super) limit: Duration,
}

impl Task {
    pub(super) fn elements(&self) -> usize {
        self.warmup + self.count
    }
}
