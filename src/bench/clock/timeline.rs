//! The time of a watch: readings as ticks since its start, steps of the clock backwards taken out, and the time that was
//! not watched.

use crate::time::Ticks;

/// Steps of the clock backwards, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backward {
    /// How many.
    pub steps: u64,
    /// Their sizes together.
    pub total: u64,
    /// The largest.
    pub largest: u64,
}

#[derive(Debug)]
pub(super) struct Timeline {
    epoch: u64,
    pub(super) backward: Backward,
    /// Ticks between passes of the loop.
    pub(super) blind: u64,
    pub(super) longest_blind: u64,
}

/// What lay between two readings that were not watched.
pub(super) enum Unwatched {
    /// So many ticks.
    Blind(u64),
    /// The clock was set back, by so much.
    Back(u64),
}

impl Timeline {
    pub(super) fn since(epoch: Ticks) -> Self {
        Timeline {
            epoch: epoch.0,
            backward: Backward::default(),
            blind: 0,
            longest_blind: 0,
        }
    }

    /// Time since the start of the run.
    pub(super) fn at(&self, reading: Ticks) -> u64 {
        (reading.0.wrapping_sub(self.epoch)).wrapping_add(self.backward.total)
    }

    /// The clock was set back: its time goes on from where it stood.
    pub(super) fn step_back(&mut self, size: u64) {
        self.backward.steps += 1;
        self.backward.total += size;
        self.backward.largest = self.backward.largest.max(size);
    }

    /// Takes time that was not watched.
    pub(super) fn pass_blind(&mut self, from: Ticks, to: Ticks) -> Unwatched {
        let blind = to.0.wrapping_sub(from.0);
        if (blind as i64) < 0 {
            let size = blind.wrapping_neg();
            self.step_back(size);
            return Unwatched::Back(size);
        }
        self.blind += blind;
        Unwatched::Blind(blind)
    }
}
