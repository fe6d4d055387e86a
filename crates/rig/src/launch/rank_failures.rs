//! Who is to blame for measurements that failed: of each only the pair is known.
//!
//! A rank is to blame when two of its failures, with nothing measured well in between, can hardly be the partner's: the
//! partner has measured well since then, or has failed with no other. A good rank that meets two bad ones is not, and
//! they are when they have met two good ones.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::schedule::Pair;

/// This many failures that are hardly the partner's are a rank's own.
const OWN: usize = 2;
/// A rank that failed with this many partners takes too much time, with or without a fault.
const MANY: usize = 4;

/// The partners with which each rank failed, and whether each of them has measured well since.
#[derive(Debug, Clone, Default)]
pub(super) struct RankFailures(BTreeMap<u32, BTreeMap<u32, bool>>);

impl RankFailures {
    /// A pair failed.
    pub(super) fn add(&mut self, pair: Pair) {
        for rank in pair.ranks() {
            let partners = self.0.entry(rank).or_default();
            partners.entry(pair.partner(rank)).or_default();
        }
    }

    /// A pair measured well: what its ranks failed in before is not theirs.
    pub(super) fn clear(&mut self, pair: Pair) {
        if self.0.is_empty() {
            return;
        }
        for rank in pair.ranks() {
            let failed_with: Vec<u32> = self.partners(rank).collect();
            for partner in failed_with {
                if let Some(works) = self.0.get_mut(&partner).and_then(|all| all.get_mut(&rank)) {
                    *works = true;
                }
            }
            self.0.remove(&rank);
        }
    }

    /// The partners with which a rank failed.
    pub(super) fn partners(&self, rank: u32) -> impl Iterator<Item = u32> {
        self.0
            .get(&rank)
            .into_iter()
            .flat_map(|partners| partners.keys().copied())
    }

    /// A rank takes part no more, and what others failed with it is not theirs.
    pub(super) fn forget(&mut self, rank: u32) {
        self.0.remove(&rank);
        self.0.retain(|_, partners| {
            partners.remove(&rank);
            !partners.is_empty()
        });
    }

    /// Who is to blame: of several the one that failed with most, then the one whose partners failed least.
    pub(super) fn worst(&self) -> Option<u32> {
        let failures = |rank: &u32| self.0.get(rank).map_or(0, BTreeMap::len);
        let is_to_blame = |partners: &BTreeMap<u32, bool>| {
            let own = partners
                .iter()
                .filter(|(partner, works)| **works || failures(partner) == 1);
            own.count() >= OWN || partners.len() >= MANY
        };
        let to_blame = self.0.iter().filter(|(_, partners)| is_to_blame(partners));
        let worst = to_blame.max_by_key(|(_, partners)| {
            let of_partners: usize = partners.keys().map(failures).sum();
            (partners.len(), Reverse(of_partners))
        });
        worst.map(|(rank, _)| *rank)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::launch::schedule::{Concurrency, Schedule};

    fn dropped(ranks: u32, bad: &BTreeSet<u32>) -> BTreeSet<u32> {
        let (mut blame, mut dropped) = (RankFailures::default(), BTreeSet::new());
        for batch in Schedule::new(ranks, Concurrency::Together).batches() {
            let there = batch
                .iter()
                .filter(|pair| !pair.ranks().iter().any(|rank| dropped.contains(rank)));
            for pair in there {
                match pair.ranks().iter().any(|rank| bad.contains(rank)) {
                    true => blame.add(*pair),
                    false => blame.clear(*pair),
                }
            }
            while let Some(rank) = blame.worst() {
                dropped.insert(rank);
                blame.forget(rank);
            }
        }
        dropped
    }

    #[test]
    fn failures_with_good_measurements_in_between_are_no_rank_s_own() {
        let mut blame = RankFailures::default();
        for partner in [1, 3, 5] {
            blame.add(Pair::of(0, partner));
            blame.clear(Pair::of(0, partner + 1));
            blame.clear(Pair::of(partner, 7));
            assert_eq!(blame.worst(), None);
        }
        for partner in [1, 3] {
            blame.add(Pair::of(0, partner));
        }
        assert_eq!(blame.worst(), Some(0));
    }

    #[test]
    fn all_bad_ranks_are_found_and_no_good_one() {
        for ranks in [5, 6, 8, 9, 16, 33] {
            for one in 0..ranks {
                for two in one..ranks {
                    for three in two..ranks {
                        let bad = BTreeSet::from([one, two, three]);
                        if 2 * bad.len() < ranks as usize {
                            assert_eq!(dropped(ranks, &bad), bad, "of {ranks}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn one_failure_blames_nobody_and_two_with_the_same_partner_do_not() {
        let mut blame = RankFailures::default();
        blame.add(Pair::of(1, 2));
        blame.add(Pair::of(2, 1));
        assert_eq!(blame.worst(), None);
        blame.add(Pair::of(1, 3));
        assert_eq!(blame.worst(), Some(1));
        assert_eq!(blame.partners(1).collect::<Vec<_>>(), [2, 3]);
        blame.forget(1);
        assert_eq!(blame.worst(), None);
        assert!(blame.0.is_empty());
    }
}
