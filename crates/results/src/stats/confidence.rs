//! How far the median of the rounds may be from the median of what they are samples of.
//!
//! The interval lies between two of the figures themselves (order statistics) and needs no assumption about the shape
//! of the distribution: the number of samples below the true median is binomial with one half, so that the k-th
//! smallest and the k-th largest sample enclose it with a probability that only the number of samples decides.
//!
//! It does assume independent samples. Latencies of neighbouring messages are often correlated (a disturbance hits
//! several in a row), which is why the figures of whole rounds are taken, and not the messages of one.

/// The probability that the interval is meant to hold.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Up to this many samples the binomial distribution is summed exactly; beyond, the normal approximation with
/// continuity correction picks the same ranks or ranks next to them. (From 1075 on, 2^-n is no longer a normal f64.)
const EXACT_UP_TO: usize = 1000;

/// The 97.5 % point of the standard normal distribution.
const NORMAL_975: f64 = 1.959_963_984_540_054;

/// The largest rank k, counted from 1, such that the k-th smallest and the k-th largest of `count` samples enclose the
/// median with at least [`CONFIDENCE`]; `None` for fewer than six samples.
pub(crate) fn lower_rank(count: usize) -> Option<usize> {
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

    /// The probability that at most `most` of `count` fair coins show heads, through logarithms of factorials.
    fn at_most(count: usize, most: usize) -> f64 {
        let mut ln_factorial = vec![0.0];
        ln_factorial.extend((1..=count).scan(0.0, |sum, i| {
            *sum += (i as f64).ln();
            Some(*sum)
        }));
        let exactly = |k: usize| {
            let ways = ln_factorial[count] - ln_factorial[k] - ln_factorial[count - k];
            (ways - count as f64 * 2_f64.ln()).exp()
        };
        (0..=most).map(exactly).sum()
    }

    #[test]
    fn known_ranks() {
        assert!((0..6).all(|count| lower_rank(count).is_none()));
        // Of the sign test's tables; for 9 samples P(at most 1 head) = 10/512 <= 0.025 < P(at most 2) = 46/512.
        let counts = [6, 8, 9, 10, 12, 20, 25, 50, 100];
        let ranks = [1, 1, 2, 2, 3, 6, 8, 18, 40];
        assert_eq!(counts.map(|count| lower_rank(count).unwrap()), ranks);
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
            let holds = |rank: &usize| at_most(count, rank - 1) <= 0.025;
            let exact = (1..count).take_while(holds).last().unwrap();
            let rank = lower_rank(count).unwrap();
            let off = rank.abs_diff(exact);
            assert!(off <= 1, "{count}: {rank}, exactly {exact}");
            let held = 1.0 - 2.0 * at_most(count, rank - 1);
            assert!(held > 0.9495, "{count} samples: {held}");
        }
    }
}
