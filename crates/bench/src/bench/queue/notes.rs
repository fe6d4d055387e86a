//! What the end of a queue notes while it runs, and what it tells afterwards.

use super::config::Measure;
use super::measurer::Record;
use super::result::EndResult;
use super::roles::SENDER;
use crate::buffer::{BufferError, Bytes, HugePagePolicy, PageKind, StampBuffer};
use crate::rig::role::Role;

/// The most elements of a part of a warm-up: their stamps are in a first-level cache.
pub(super) const WARM_UP_PART: usize = 1024;

#[derive(Debug)]
pub(super) enum Notes {
    /// The clock.
    Times(StampBuffer<Record>),
    /// What elements carried.
    Numbers(StampBuffer<u64>),
}

impl Notes {
    /// How many an end takes, those of a warm-up in parts.
    pub(super) fn room(role: Role, measure: Measure, elements: usize) -> usize {
        // Numbers that were sent are known without notes.
        if role == SENDER && !measure.is_timed(role) {
            0
        } else {
            elements.max(WARM_UP_PART)
        }
    }

    /// The memory of so many.
    pub(super) fn length(
        role: Role,
        measure: Measure,
        room: usize,
        policy: HugePagePolicy,
    ) -> Bytes {
        match measure.is_timed(role) {
            true => StampBuffer::<Record>::length_for(room, policy),
            false => StampBuffer::<u64>::length_for(room, policy),
        }
    }

    pub(super) fn new(
        role: Role,
        measure: Measure,
        room: usize,
        policy: HugePagePolicy,
    ) -> Result<Self, BufferError> {
        Ok(match measure.is_timed(role) {
            true => Notes::Times(StampBuffer::new(room, policy)?),
            false => Notes::Numbers(StampBuffer::new(room, policy)?),
        })
    }

    pub(super) fn pages(&self) -> PageKind {
        match self {
            Notes::Times(buffer) => buffer.page_kind(),
            Notes::Numbers(buffer) => buffer.page_kind(),
        }
    }
}

#[derive(Debug)]
pub(super) struct EndReport {
    pub(super) end: EndResult,
    pub(super) notes: Notes,
    /// What the queue gave out beyond the last element.
    pub(super) leftovers: Vec<u64>,
}

impl EndReport {
    /// What its elements carried: those that were sent without time stamps are numbered.
    pub(super) fn stamps(&self) -> Vec<u64> {
        let noted = self.end.tally.noted;
        match &self.notes {
            Notes::Times(records) => records[..noted].iter().map(|record| record[0].0).collect(),
            Notes::Numbers(numbers) if numbers.is_empty() => (1..=noted as u64).collect(),
            Notes::Numbers(numbers) => numbers[..noted].to_vec(),
        }
    }
}
