//! How large the largest score of a series is without a change: each order of the runs is as likely as any other.

use super::draws::Draws;
use super::scan::Scan;

/// The permutations are the same for all series of a length: where they are off, they are off in all of them. This many
/// standard errors keep them on the safe side.
const SURE: f64 = 2.0;

/// The largest scores of permutations, in ascending order.
#[derive(Debug, Clone)]
pub struct NullScores(Vec<f64>);

impl NullScores {
    /// Of a series of this many runs, by this many permutations.
    pub fn of(scan: &Scan, runs: usize, permutations: usize) -> Self {
        // The same each time: two reports of one series agree.
        let mut draws = Draws::new(0x4869_7374_6f72_7900 ^ runs as u64);
        let mut order: Vec<usize> = (0..runs).collect();
        let mut ranks = vec![0; runs];
        let mut scores: Vec<f64> = (0..permutations)
            .map(|_| {
                draws.shuffle(&mut order);
                scan.largest_of_order(&order, &mut ranks)
            })
            .collect();
        scores.sort_by(f64::total_cmp);
        NullScores(scores)
    }

    /// The probability of a score as large, or larger, in a series without a change: what the permutations show, and
    /// [`SURE`] standard errors more. Never 0, as the series itself is one of the orders.
    pub fn probability(&self, score: f64) -> f64 {
        let below = self.0.partition_point(|it| *it < score);
        let all = (self.0.len() + 1) as f64;
        let shown = (self.0.len() - below + 1) as f64 / all;
        (shown + SURE * (shown * (1.0 - shown) / all).sqrt()).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_all_orders() {
        // With 8 runs there is one window: all can be counted.
        let scan = Scan::new(8);
        let null = NullScores::of(&scan, 8, 20_000);
        let mut order: Vec<usize> = (0..8).collect();
        let mut all = Vec::new();
        let mut ranks = [0; 8];
        each_order(&mut order, 8, &mut |order| {
            all.push(scan.largest_of_order(order, &mut ranks));
        });
        assert_eq!(all.len(), 40_320);
        for score in [1.0, 2.0, 3.0, scan.most()] {
            let exact = all.iter().filter(|it| **it >= score).count() as f64 / 40_320.0;
            let found = null.probability(score);
            let error = (exact * (1.0 - exact) / 20_000.0).sqrt() + 1e-5;
            let off = (found - exact) / error;
            assert!((-2.0..6.0).contains(&off), "{score}: {found}, {exact}");
        }
        let least = null.probability(f64::INFINITY);
        assert!(1.0 / 20_001.0 < least && least < 4.0 / 20_001.0, "{least}");
        assert_eq!(null.probability(0.0), 1.0);
    }

    fn each_order(order: &mut [usize], left: usize, take: &mut impl FnMut(&[usize])) {
        if left == 1 {
            return take(order);
        }
        for place in 0..left {
            order.swap(place, left - 1);
            each_order(order, left - 1, take);
            order.swap(place, left - 1);
        }
    }
}
