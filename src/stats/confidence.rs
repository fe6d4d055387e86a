//! How far the median of the samples may be from the median of what was sampled.
//!
//! The interval lies between two of the samples themselves (order statistics) and needs no assumption about the shape
//! of the distribution: the number of samples below the true median is binomial with one half, so that the k-th smallest
//! and the k-th largest sample enclose it with a probability that only the number of samples decides.
//!
//! It does assume independent samples. Latencies of neighbouring messages are often correlated (a disturbance hits
//! several in a row), and then the true interval is wider than the one given here. Repetitions of a whole run show that.

use serde::Serialize;

/// The probability that the interval is meant to hold.
pub const CONFIDENCE: f64 = 0.95;

/// Up to this many samples the binomial distribution is summed exactly; beyond, the normal approximation with continuity
/// correction picks the same ranks or ranks next to them. (From 1075 on, 2^-n is no longer a normal f64.)
const EXACT_UP_TO: usize = 1000;

/// The 97.5 % point of the standard normal distribution.
const NORMAL_975: f64 = 1.959_963_984_540_054;

/// A distribution-free 95 % confidence interval of the median, bounds included, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MedianInterval {
    /// The lower bound.
    pub low_ns: i64,
    /// The upper bound.
    pub high_ns: i64,
}

impl MedianInterval {
    /// The interval for `samples` in any order; `None` for fewer than six, of which even the extremes hold the median
    /// with less than 95 %.
    pub fn of(samples: &[i64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        Self::of_sorted(&sorted)
    }

    /// As [`of`](Self::of), for samples already in ascending order.
    pub fn of_sorted(sorted: &[i64]) -> Option<Self> {
        debug_assert!(sorted.is_sorted());
        let rank = lower_rank(sorted.len())?;
        Some(Self {
            low_ns: sorted[rank - 1],
            high_ns: sorted[sorted.len() - rank],
        })
    }
}

/// The largest rank k, counted from 1, such that the k-th smallest and the k-th largest of `count` samples enclose the
/// median with at least [`CONFIDENCE`]; `None` for fewer than six samples.
pub fn lower_rank(count: usize) -> Option<usize> {
    if count > EXACT_UP_TO {
        let n = count as f64;
        return Some((0.5 * (n + 1.0 - NORMAL_975 * n.sqrt())).floor() as usize);
    }
    // The interval fails on one side when fewer than k samples lie below the median.
    let allowed = (1.0 - CONFIDENCE) / 2.0;
    let mut exactly = 0.5_f64.powi(count as i32);
    let mut at_most = exactly;
    let mut rank = 0;
    while at_most <= allowed {
        rank += 1;
        exactly *= (count + 1 - rank) as f64 / rank as f64;
        at_most += exactly;
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The probability that at most `most` of `count` fair coins show heads, through logarithms of factorials.
    fn at_most(count: usize, most: usize) -> f64 {
        let ln_factorial: Vec<f64> = std::iter::once(0.0)
            .chain((1..=count).scan(0.0, |sum, i| {
                *sum += (i as f64).ln();
                Some(*sum)
            }))
            .collect();
        (0..=most)
            .map(|k| {
                (ln_factorial[count]
                    - ln_factorial[k]
                    - ln_factorial[count - k]
                    - count as f64 * 2_f64.ln())
                .exp()
            })
            .sum()
    }

    #[test]
    fn no_interval_below_six_samples() {
        for count in 0..6 {
            assert_eq!(MedianInterval::of(&vec![1; count]), None);
        }
        let interval = MedianInterval::of(&[6, 1, 5, 2, 4, 3]).unwrap();
        assert_eq!((interval.low_ns, interval.high_ns), (1, 6));
    }

    #[test]
    fn known_ranks() {
        // Of the sign test's tables; for 9 samples P(at most 1 head) = 10/512 <= 0.025 < P(at most 2) = 46/512.
        for (count, rank) in [
            (6, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (12, 3),
            (20, 6),
            (25, 8),
            (50, 18),
            (100, 40),
        ] {
            assert_eq!(lower_rank(count), Some(rank), "{count} samples");
        }
    }

    #[test]
    fn exact_ranks_are_the_tightest_that_hold() {
        for count in 6..=400 {
            let rank = lower_rank(count).unwrap();
            assert!(at_most(count, rank - 1) <= 0.025 + 1e-12, "{count} samples");
            assert!(at_most(count, rank) > 0.025 - 1e-12, "{count} samples");
        }
    }

    #[test]
    fn the_approximation_picks_the_exact_rank_or_its_neighbour() {
        for count in [1001, 1002, 1500, 2000, 4999, 8192, 10_000] {
            let exact = (1..count)
                .take_while(|rank| at_most(count, rank - 1) <= 0.025)
                .last()
                .unwrap();
            let rank = lower_rank(count).unwrap();
            assert!(
                rank.abs_diff(exact) <= 1,
                "{count} samples: {rank}, exactly {exact}"
            );
            let held = 1.0 - 2.0 * at_most(count, rank - 1);
            assert!(held > 0.9495, "{count} samples: {held}");
        }
    }

    #[test]
    fn covers_the_median_as_often_as_it_says() {
        // A fixed generator (SplitMix64), uniform samples with the median at 0.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) as i64 >> 8
        };
        let rounds = 2000;
        let held = (0..rounds)
            .filter(|_| {
                let samples: Vec<i64> = (0..101).map(|_| next()).collect();
                let interval = MedianInterval::of(&samples).unwrap();
                interval.low_ns <= 0 && 0 <= interval.high_ns
            })
            .count();
        let share = held as f64 / f64::from(rounds);
        assert!((0.94..0.98).contains(&share), "{share}");
    }

    proptest! {
        #[test]
        fn encloses_the_samples_own_median(samples in prop::collection::vec(any::<i64>(), 6..1500)) {
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let interval = MedianInterval::of(&samples).unwrap();
            prop_assert!(interval.low_ns <= sorted[(sorted.len() - 1) / 2]);
            prop_assert!(interval.high_ns >= sorted[sorted.len() / 2]);
        }
    }
}
