//! What the threads of a run are told to do.

use std::sync::Arc;
use std::time::Duration;

use super::config::Config;
use super::plan::Point;
use crate::queues::arena::Arena;
use crate::time::AnyClock;

/// How long an end may take to make its queue and touch its memory.
pub(super) const PREPARATION: Duration = Duration::from_secs(120);
/// An element takes no longer than this, pauses aside, before a run counts as stuck.
pub(super) const SLOWEST_ELEMENT: Duration = Duration::from_micros(100);

/// Of several threads: elements between two looks at the time.
pub(super) const PART: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) clock: AnyClock,
    pub(super) point: Point,
    pub(super) config: Config,
    /// Elements that are measured; of several threads the most that one notes, which ends the run.
    pub(super) count: u64,
    /// The CPUs of the senders and of the receivers.
    pub(super) cpus: [Vec<usize>; 2],
    /// Where the queue is made, if it is not to lie wherever there is memory.
    pub(super) arena: Option<Arc<Arena>>,
    /// Whether all memory is to be locked, for that of the queue.
    pub(super) locks_memory: bool,
    /// How long nothing may go through.
    pub(super) patience: Duration,
    /// How long all of it may take.
    pub(super) limit: Duration,
}

impl Task {
    pub(super) fn new(
        clock: AnyClock,
        locks_memory: bool,
        point: &Point,
        config: &Config,
        count: u64,
    ) -> Self {
        let patience = config.timeout.saturating_add(point.longest_pause());
        let per_element = SLOWEST_ELEMENT
            .saturating_add(point.sender.longest_pause())
            .saturating_add(point.receiver.longest_pause());
        let elements = u32::try_from(count).unwrap_or(u32::MAX);
        // Of several threads one is served while all others at its end are.
        let turns = point
            .wiring
            .map_or(0, |it| it.publishers.max(it.subscribers));
        Task {
            clock,
            point: point.clone(),
            config: config.clone(),
            count,
            cpus: [vec![point.cpus.sender], vec![point.cpus.receiver]],
            arena: None,
            locks_memory,
            patience: patience.saturating_add(point.longest_pause().saturating_mul(turns)),
            // Whatever hangs is noticed sooner, by its silence.
            limit: PREPARATION
                .saturating_add(config.warmup.saturating_mul(2))
                .saturating_add(per_element.saturating_mul(elements))
                .saturating_add(patience),
        }
    }

    /// What one of several receivers can note: it goes on until the senders have seen that the run is over, and then
    /// takes what is left in its queue.
    pub(super) fn room_of_receiver(room: usize, senders: usize, capacity: usize) -> usize {
        room + (senders + 1) * PART + capacity
    }
}
