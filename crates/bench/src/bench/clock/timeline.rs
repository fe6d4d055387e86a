//! The time of a watch: readings as ticks since its start, steps of the clock backwards taken out, and the time that
//! was not watched.

use crate::time::Ticks;

#[derive(Debug, Default)]
pub(super) struct Timeline {
    epoch: u64,
    /// How often the clock was set back.
    pub steps_back: u64,
    /// By how much together.
    pub set_back: u64,
    pub largest_step_back: u64,
    /// Time between passes of the loop.
    pub blind: u64,
    /// The longest time between two passes.
    pub longest_blind: u64,
}

impl Timeline {
    pub(super) fn since(epoch: Ticks) -> Self {
        Timeline {
            epoch: epoch.0,
            ..Timeline::default()
        }
    }

    /// Time since the start of the run.
    pub(super) fn at(&self, reading: Ticks) -> u64 {
        (reading.0.wrapping_sub(self.epoch)).wrapping_add(self.set_back)
    }

    /// The clock was set back: its time goes on from where it stood.
    pub(super) fn step_back(&mut self, size: u64) {
        self.steps_back += 1;
        self.set_back += size;
        self.largest_step_back = self.largest_step_back.max(size);
    }

    /// Takes time that was not watched, and returns how long it was; or by how much the clock was set back in it.
    pub(super) fn pass_blind(&mut self, from: Ticks, to: Ticks) -> Result<u64, u64> {
        let blind = to.0.wrapping_sub(from.0);
        if (blind as i64) < 0 {
            let size = blind.wrapping_neg();
            self.step_back(size);
            return Err(size);
        }
        self.blind += blind;
        Ok(blind)
    }
}
