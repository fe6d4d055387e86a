//! What the end of a queue notes while it runs, and what it tells afterwards.

use super::batches::BatchRecord;
use super::config::Config;
use super::measurer::Record;
use super::result::EndResult;
use super::roles::SENDER;
use crate::buffer::{BufferError, Bytes, PageKind, StampBuffer};
use crate::rig::role::Role;

/// The most elements of a part of a warm-up: their stamps are in a first-level cache.
pub(super) const WARM_UP_PART: usize = 1024;

#[derive(Debug)]
pub(super) enum Notes {
    /// The clock.
    Times(StampBuffer<Record>),
    /// What elements carried.
    Numbers(StampBuffer<u64>),
    /// What elements carried, and the clock around batches of them.
    Batches(StampBuffer<u64>, StampBuffer<BatchRecord>),
}

impl Notes {
    /// How many an end takes, those of a warm-up in parts.
    pub(super) fn room(role: Role, config: &Config, elements: usize) -> usize {
        // Numbers that were sent are known without notes.
        if role == SENDER && (!config.measure.is_timed(role) || config.has_batches()) {
            0
        } else {
            elements.max(WARM_UP_PART)
        }
    }

    /// The batches of a number of elements, or of a part of a warm-up.
    fn batches(config: &Config, elements: usize) -> usize {
        elements.max(WARM_UP_PART) / config.per_stamp as usize
    }

    /// The memory of these, of `elements` in a round.
    pub(super) fn length(role: Role, config: &Config, room: usize, elements: usize) -> Bytes {
        let policy = config.huge_pages;
        let numbers = StampBuffer::<u64>::length_for(room, policy);
        match config.measure.is_timed(role) {
            true if config.has_batches() => {
                let batches = Self::batches(config, elements);
                Bytes(numbers.0 + StampBuffer::<BatchRecord>::length_for(batches, policy).0)
            }
            true => StampBuffer::<Record>::length_for(room, policy),
            false => numbers,
        }
    }

    pub(super) fn new(
        role: Role,
        config: &Config,
        room: usize,
        elements: usize,
    ) -> Result<Self, BufferError> {
        let policy = config.huge_pages;
        Ok(match config.measure.is_timed(role) {
            true if config.has_batches() => Notes::Batches(
                StampBuffer::new(room, policy)?,
                StampBuffer::new(Self::batches(config, elements), policy)?,
            ),
            true => Notes::Times(StampBuffer::new(room, policy)?),
            false => Notes::Numbers(StampBuffer::new(room, policy)?),
        })
    }

    pub(super) fn pages(&self) -> PageKind {
        match self {
            Notes::Times(buffer) => buffer.page_kind(),
            Notes::Numbers(buffer) => buffer.page_kind(),
            Notes::Batches(_, buffer) => buffer.page_kind(),
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
            Notes::Numbers(numbers) | Notes::Batches(numbers, _) if numbers.is_empty() => {
                (1..=noted as u64).collect()
            }
            Notes::Numbers(numbers) | Notes::Batches(numbers, _) => numbers[..noted].to_vec(),
        }
    }

    /// What the sender noted of round trips; none where the receiver noted times, too.
    pub(super) fn round_trips(&self, receiver: &EndReport) -> Option<&[Record]> {
        match (&self.notes, &receiver.notes) {
            (Notes::Times(sent), Notes::Numbers(_)) => Some(&sent[..self.end.tally.noted]),
            _ => None,
        }
    }

    /// The times of its batches; none where operations were not timed in batches.
    pub(super) fn batches(&self) -> Option<&[BatchRecord]> {
        match &self.notes {
            Notes::Batches(_, times) => Some(&times[..self.end.tally.batches]),
            Notes::Times(_) | Notes::Numbers(_) => None,
        }
    }
}
