//! The order of a sweep: which point is measured when, over all rounds.
//!
//! One round takes the points in the order in which they were asked for. Several rounds take them shuffled, each round
//! in another order that follows from a seed: a machine that slows down or speeds up in the course of a round then
//! favours no point.

use std::time::Duration;

use crate::pacing::SplitMix64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    pub count: u32,
    /// What their orders follow from.
    pub seed: u64,
}

impl Rounds {
    /// The order of the points in a round, as places in the sweep. The same for the same seed, on any machine.
    pub fn order(&self, round: u32, points: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..points).collect();
        if self.count <= 1 {
            return order;
        }
        let seed = self.seed ^ u64::from(round).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        SplitMix64::new(seed).shuffle(&mut order);
        order
    }
}

/// The time that a sweep may take, spent in whole rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// All of it; none without a limit.
    pub limit: Option<Duration>,
    longest: Duration,
}

impl Budget {
    pub fn new(limit: Option<Duration>) -> Self {
        Budget {
            limit,
            longest: Duration::ZERO,
        }
    }

    /// A round took that long.
    pub fn spent(&mut self, round: Duration) {
        self.longest = self.longest.max(round);
    }

    /// Whether another round fits, `elapsed` after the sweep began: one as long as the longest so far. The first always
    /// does.
    pub fn allows_another(&self, elapsed: Duration) -> bool {
        self.longest.is_zero()
            || self
                .limit
                .is_none_or(|limit| elapsed + self.longest <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_keeps_the_order_and_several_shuffle_it() {
        let one = Rounds { count: 1, seed: 7 };
        assert_eq!(one.order(0, 4), [0, 1, 2, 3]);
        let rounds = Rounds { count: 8, seed: 7 };
        let orders: Vec<Vec<usize>> = (0..8).map(|round| rounds.order(round, 20)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        }
        assert!((1..8).all(|round| orders[round] != orders[0]));
        assert_eq!(
            orders,
            (0..8)
                .map(|round| rounds.order(round, 20))
                .collect::<Vec<_>>()
        );
        assert_ne!(orders[0], Rounds { count: 8, seed: 8 }.order(0, 20));
        assert!(rounds.order(0, 0).is_empty());
    }

    #[test]
    fn each_place_is_as_likely_for_each_point() {
        let mut at = [[0_u32; 5]; 5];
        for seed in 0..2000 {
            let order = Rounds { count: 2, seed }.order(1, 5);
            order
                .iter()
                .enumerate()
                .for_each(|(place, &point)| at[place][point] += 1);
        }
        // 400 expected, with a standard deviation of 18.
        assert!(
            at.as_flattened()
                .iter()
                .all(|count| (310..490).contains(count)),
            "{at:?}"
        );
    }

    #[test]
    fn a_budget_is_spent_in_whole_rounds() {
        let seconds = Duration::from_secs;
        let mut budget = Budget::new(Some(seconds(10)));
        assert!(budget.allows_another(seconds(60)), "the first");
        budget.spent(seconds(4));
        assert!(budget.allows_another(seconds(6)));
        assert!(!budget.allows_another(seconds(7)));
        let mut none = Budget::new(None);
        none.spent(seconds(4));
        assert!(none.allows_another(seconds(1 << 30)));
    }
}
