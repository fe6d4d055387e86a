//! Reading the kernel's counters behind a jump, and which other differences what they say may belong to.

use crate::host::counters::Deltas;
use crate::time::{AnyClock, Clock, Ticks};

use super::cause::{Cause, FAR, JumpEvidence};
use super::credit::SHORT;
use super::jump::Sample;

/// Counters, with the differences above baseline or threshold, and stops in blind time, since they were read before.
#[derive(Debug)]
pub(super) struct Sampling<S> {
    counters: S,
    scale: AnyClock,
    short: u64,
    /// Differences above this are noticed.
    edge: u64,
    sampled_at: u64,
    noticed: NoticedDifferences,
}

/// Differences to which the next reading may belong.
#[derive(Debug, Default)]
struct NoticedDifferences {
    all: u64,
    not_short: u64,
    longest: u64,
}

impl<S: FnMut() -> Deltas> Sampling<S> {
    /// `counters`: reads what was added to each since the last time.
    pub(super) fn new(counters: S, scale: AnyClock, edge: u64) -> Self {
        Sampling {
            counters,
            scale,
            short: scale.ticks_in(SHORT).0,
            edge,
            sampled_at: 0,
            noticed: NoticedDifferences::default(),
        }
    }

    /// Reads the counters as they stand: what they say belongs to nothing.
    pub(super) fn read_ahead(&mut self) {
        (self.counters)();
    }

    /// Windows count from here on.
    pub(super) fn begin(&mut self, start: u64) {
        self.sampled_at = start;
    }

    /// Whether a difference of this length can have been an interrupt.
    pub(super) fn can_be_interrupt(&self, length: u64) -> bool {
        length >= self.short
    }

    /// A difference to which the next reading may belong.
    pub(super) fn notice(&mut self, length: u64) {
        let noticed = &mut self.noticed;
        noticed.all += 1;
        noticed.not_short += u64::from(length >= self.short);
        noticed.longest = noticed.longest.max(length);
    }

    /// Reads the counters behind a difference that was noticed.
    pub(super) fn read(&mut self, length: u64, now: u64) -> (Cause, Sample) {
        let deltas = (self.counters)();
        let noticed = std::mem::take(&mut self.noticed);
        let rivals = if length < self.short {
            noticed.all
        } else {
            noticed.not_short
        };
        let sample = Sample {
            deltas,
            window: now - std::mem::replace(&mut self.sampled_at, now),
            // The jump itself is one of them.
            others: rivals - 1,
        };
        let jumped = JumpEvidence {
            nanos: self.scale.to_nanos(Ticks(length)).0,
            longer_in_window: noticed.longest > length,
            rivals: sample.others,
            hidden_rivals: self.edge >= self.short && sample.window > length.saturating_mul(FAR),
        };
        (Cause::of(&deltas, jumped), sample)
    }
}
