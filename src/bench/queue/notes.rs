//! What the end of a queue notes while it runs, and what it tells afterwards.

use super::config::Measure;
use super::counters::Counts;
use super::floor::OperationFloors;
use super::measurer::Record;
use super::runner::Tally;
use super::task::SENDER;
use crate::buffer::{BufferError, Bytes, HugePagePolicy, PageKind, StampBuffer};
use crate::host::PageFaults;
use crate::rig::workers::Role;
use crate::time::{StampCost, Ticks};

/// What an end noted.
#[derive(Debug)]
pub(super) enum Notes {
    /// The clock.
    Times(StampBuffer<Record>),
    /// What elements carried.
    Numbers(StampBuffer<u64>),
}

impl Notes {
    /// How many an end takes.
    pub(super) fn room(role: Role, measure: Measure, elements: usize) -> usize {
        // Numbers that were sent are known without notes.
        if role == SENDER && measure != Measure::Time {
            0
        } else {
            elements
        }
    }

    /// The memory of so many.
    pub(super) fn length(measure: Measure, room: usize, policy: HugePagePolicy) -> Bytes {
        match measure {
            Measure::Time => StampBuffer::<Record>::length_for(room, policy),
            Measure::Throughput | Measure::Counters => StampBuffer::<u64>::length_for(room, policy),
        }
    }

    pub(super) fn new(
        measure: Measure,
        room: usize,
        policy: HugePagePolicy,
    ) -> Result<Self, BufferError> {
        Ok(match measure {
            Measure::Time => Notes::Times(StampBuffer::new(room, policy)?),
            Measure::Throughput | Measure::Counters => {
                Notes::Numbers(StampBuffer::new(room, policy)?)
            }
        })
    }

    pub(super) fn pages(&self) -> PageKind {
        match self {
            Notes::Times(buffer) => buffer.page_kind(),
            Notes::Numbers(buffer) => buffer.page_kind(),
        }
    }
}

/// What a thread tells of its end.
#[derive(Debug)]
pub(super) struct EndReport {
    pub(super) tally: Tally,
    pub(super) notes: Notes,
    /// When its schedule began.
    pub(super) started: Ticks,
    /// When the elements that count began, and ended.
    pub(super) span: [Ticks; 2],
    pub(super) stamp: StampCost,
    /// What the measurer of this end measures without a queue.
    pub(super) floors: OperationFloors,
    pub(super) faults: PageFaults,
    pub(super) pages: PageKind,
    /// Whether the memory of the queue is locked, as the sender knows.
    pub(super) queue_locked: bool,
    pub(super) counts: Option<Counts>,
    /// What the queue gave out beyond the last element.
    pub(super) leftovers: Vec<u64>,
}
