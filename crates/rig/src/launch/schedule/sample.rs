//! A sample takes some of the rounds, drawn at random, of the ranks in an order that is drawn as well: in their own order the
//! partners of neighbours would be neighbours. Each pair is as likely as any other to be in the sample. With an odd number
//! of ranks it takes one round more, in which some rest, so that none has fewer partners than were asked for.

use super::Partners;
use crate::pacing::SplitMix64;

/// Which of all pairs are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// As many rounds.
    partners: u32,
    /// By which they are drawn.
    seed: u64,
}

impl Sample {
    /// `None` where the partners are all others.
    pub(super) fn of(partners: Partners, ranks: u32, seed: u64) -> Option<Self> {
        match partners {
            Partners::AtMost(count) if count.get() < ranks.saturating_sub(1) => Some(Sample {
                partners: count.get(),
                seed,
            }),
            _ => None,
        }
    }

    pub(super) fn partners(self) -> u32 {
        self.partners
    }

    /// The rank at each place of the circle.
    pub(super) fn order(self, ranks: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..ranks).collect();
        SplitMix64::new(!self.seed).shuffle(&mut order);
        order
    }

    /// `count` of all rounds, in order.
    pub(super) fn rounds(self, all: u32, count: usize) -> Vec<u32> {
        let mut rounds: Vec<u32> = (0..all).collect();
        SplitMix64::new(self.seed).shuffle(&mut rounds);
        rounds.truncate(count);
        rounds.sort_unstable();
        rounds
    }
}
