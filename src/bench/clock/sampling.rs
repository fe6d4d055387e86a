//! Reading the kernel's counters behind a jump, and which other differences what they say may belong to.

use crate::time::{AnyClock, Clock, Ticks};

use super::cause::{Cause, FAR, Jumped, Sampler};
use super::credit::SHORT;
use super::jump::Sample;

/// Counters, with the differences above baseline or threshold, and stops in blind time, since they were read before.
#[derive(Debug)]
pub(super) struct Sampling<S> {
    sampler: S,
    scale: AnyClock,
    short: u64,
    /// Differences above this are noticed.
    edge: u64,
    sampled_at: u64,
    all: u64,
    not_short: u64,
    longest: u64,
    samples: u64,
}

impl<S: Sampler> Sampling<S> {
    pub(super) fn new(sampler: S, scale: AnyClock, edge: u64) -> Self {
        Sampling {
            sampler,
            scale,
            short: scale.ticks_in(SHORT).0,
            edge,
            sampled_at: 0,
            all: 0,
            not_short: 0,
            longest: 0,
            samples: 0,
        }
    }

    /// Reads the counters as they stand: what they say belongs to nothing.
    pub(super) fn read_ahead(&mut self) {
        self.sampler.read();
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
        self.all += 1;
        self.not_short += u64::from(length >= self.short);
        self.longest = self.longest.max(length);
    }

    /// Reads the counters behind a difference that was noticed.
    pub(super) fn read(&mut self, length: u64, now: u64) -> (Cause, Sample) {
        let deltas = self.sampler.read();
        let (all, not_short) = (
            std::mem::take(&mut self.all),
            std::mem::take(&mut self.not_short),
        );
        let longest = std::mem::take(&mut self.longest);
        let rivals = if length < self.short { all } else { not_short };
        let sample = Sample {
            deltas,
            window: now - std::mem::replace(&mut self.sampled_at, now),
            // The jump itself is one of them.
            others: rivals - 1,
        };
        let jumped = Jumped {
            nanos: self.scale.to_nanos(Ticks(length)).0,
            longer_in_window: longest > length,
            rivals: sample.others,
            hidden_rivals: self.edge >= self.short && sample.window > length.saturating_mul(FAR),
        };
        self.samples += 1;
        (Cause::of(&deltas, jumped), sample)
    }

    /// How often counters were read behind a difference.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }
}
