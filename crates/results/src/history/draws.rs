//! Pseudo-random numbers: the same for each run of the program, so that an answer can be had again.

/// The generator SplitMix64, of which one output cannot be foreseen from another.
#[derive(Debug, Clone)]
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Draws(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below a limit.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        // The high half of a product is even for all limits that occur, and needs no division.
        ((u128::from(self.draw()) * limit as u128) >> 64) as usize
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(place + 1));
        }
    }
}
