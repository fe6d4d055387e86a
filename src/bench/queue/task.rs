//! What the threads of a run are told to do.

use std::time::Duration;

use super::config::{Config, Measure};
use super::plan::Point;
use crate::buffer::HugePagePolicy;
use crate::pacing::EndLoad;
use crate::rig::workers::Role;
use crate::time::AnyClock;

/// Enqueues.
pub(super) const SENDER: Role = Role {
    name: "sender",
    thread: "hcabench-send",
};
/// Dequeues.
pub(super) const RECEIVER: Role = Role {
    name: "receiver",
    thread: "hcabench-recv",
};

/// How long an end may take to make its queue and touch its memory.
pub(super) const PREPARATION: Duration = Duration::from_secs(120);
/// An element takes no longer than this, pauses aside, before a run counts as stuck.
pub(super) const SLOWEST_ELEMENT: Duration = Duration::from_micros(100);

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
    /// A run of a point.
    pub(super) fn new(clock: AnyClock, point: &Point, config: &Config) -> Self {
        let (sending, receiving) = (point.sender.longest_pause(), point.receiver.longest_pause());
        let patience = config.timeout.saturating_add(sending.max(receiving));
        let per_element = SLOWEST_ELEMENT
            .saturating_add(sending)
            .saturating_add(receiving);
        let elements = u32::try_from(config.elements()).unwrap_or(u32::MAX);
        Task {
            clock,
            sender_cpu: point.cpus.sender,
            receiver_cpu: point.cpus.receiver,
            sender: point.sender,
            receiver: point.receiver,
            capacity: point.capacity,
            warmup: config.warmup as usize,
            count: config.count as usize,
            measure: config.measure,
            measure_failed: config.measure_failed,
            huge_pages: config.huge_pages,
            locks_memory: false,
            patience,
            // Whatever hangs is noticed sooner, by its silence.
            limit: PREPARATION
                .saturating_add(per_element.saturating_mul(elements))
                .saturating_add(patience),
        }
    }

    pub(super) fn elements(&self) -> usize {
        self.warmup + self.count
    }
}
