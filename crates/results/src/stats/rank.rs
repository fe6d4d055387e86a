//! Whether two sets of figures differ by more than chance, by ranks: no assumption about the shape of what they vary
//! by.
//!
//! A figure is that of one round. The shift is that of Hodges and Lehmann, its interval that of Moses: both are order
//! statistics of one list of effects, and the interval's bounds are where the same test has its critical value. A
//! difference is therefore shown exactly when the interval leaves zero outside.
//!
//! | test | takes | effects |
//! | --- | --- | --- |
//! | [`Test::MannWhitney`] | two samples | all differences of a figure of one and a figure of the other |
//! | [`Test::SignedRank`] | the differences of pairs | all means of two of them, or of one with itself |
//!
//! Equal figures count against a difference: an effect of exactly zero counts for neither side. A test by mid-ranks
//! would find a little more among many ties, and would not agree with any interval.
//!
//! Samples that share a drift (taken in turn) make Mann and Whitney's test careful, not wrong: the drift widens both
//! alike. Samples with a drift between them (one after the other) look different, and no test can know better.

use std::f64::consts::PI;

use super::modes::median;

/// Which test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Of two independent samples, by Mann and Whitney.
    MannWhitney,
    /// Of differences of pairs, by Wilcoxon.
    SignedRank,
}

/// By how much one differs from the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The median effect: how far the second lies above the first, in the figures' unit.
    pub value: f64,
    /// Bounds that hold with the asked error; infinite where there are too few figures for any.
    pub interval: (f64, f64),
    /// The probability of a difference as large, or larger, between equals.
    pub p_value: f64,
    /// Whether any figures, however far apart, could be distinguished with that error.
    pub can_be_shown: bool,
}

impl Shift {
    /// How far `new` lies above `base`, with an interval that fails with a probability of at most `error`; `None` where
    /// either is empty.
    pub fn of_samples(base: &[f64], new: &[f64], error: f64) -> Option<Self> {
        let against_all = |new: &f64| base.iter().map(move |base| new - base).collect::<Vec<_>>();
        let effects = new.iter().flat_map(against_all).collect();
        Self::of(
            effects,
            &NullDistribution::mann_whitney(base.len(), new.len()),
            error,
        )
    }

    /// How far differences of pairs lie above zero; `None` without any.
    pub fn of_pairs(differences: &[f64], error: f64) -> Option<Self> {
        let walsh = |(place, one): (usize, &f64)| {
            let others = differences[place..].iter();
            others
                .map(|other| f64::midpoint(*one, *other))
                .collect::<Vec<_>>()
        };
        let effects = differences.iter().enumerate().flat_map(walsh).collect();
        Self::of(
            effects,
            &NullDistribution::signed_rank(differences.len()),
            error,
        )
    }

    fn of(mut effects: Vec<f64>, null: &NullDistribution, error: f64) -> Option<Self> {
        let last = effects.len().checked_sub(1)?;
        effects.sort_by(f64::total_cmp);
        let at_most_zero = effects.partition_point(|effect| *effect <= 0.0);
        let at_least_zero = effects.len() - effects.partition_point(|effect| *effect < 0.0);
        let p_value = (2.0 * null.at_most(at_most_zero.min(at_least_zero))).min(1.0);
        let critical = null.critical(error / 2.0);
        Some(Shift {
            value: median(&effects),
            interval: critical.map_or((f64::NEG_INFINITY, f64::INFINITY), |critical| {
                (effects[critical], effects[last - critical])
            }),
            p_value,
            can_be_shown: critical.is_some(),
        })
    }

    /// Whether there is a difference: the interval leaves zero outside.
    pub fn is_shown(&self) -> bool {
        self.interval.0 > 0.0 || self.interval.1 < 0.0
    }
}

/// How many rounds (of either side) it takes so that any difference could be shown with that error.
pub fn rounds_needed(test: Test, error: f64) -> usize {
    // All effects on one side have this probability, twice for both sides.
    let (mut rounds, mut extreme) = (1, 1.0);
    loop {
        extreme *= match test {
            Test::MannWhitney => rounds as f64 / (2.0 * (2 * rounds - 1) as f64),
            Test::SignedRank => 0.5,
        };
        if 2.0 * extreme <= error || rounds >= MOST_ROUNDS {
            return rounds;
        }
        rounds += 1;
    }
}

/// How many rounds of either side would show with that error that `new` lies above `base`, in `POWER` of all tries, if
/// the two differ as these figures do; `None` where it would take more than [`MOST_ROUNDS`], or where they do not
/// favour `new`. Equal figures count for neither, as in the test.
///
/// It is an estimate. Few figures show little of how much two differ, and of two equals one has the higher figures by
/// chance. Where two hardly overlap the formula asks for a few too many.
///
/// Noether, "Sample Size Determination for Some Common Nonparametric Tests", Journal of the American Statistical
/// Association 82 (1987).
pub fn rounds_to_show(base: &[f64], new: &[f64], error: f64) -> Option<usize> {
    let pairs = base.len() * new.len();
    let both = new
        .iter()
        .flat_map(|new| base.iter().map(move |base| new > base));
    let above = both.filter(|is_above| *is_above).count();
    if above == pairs && pairs > 0 {
        return Some(rounds_needed(Test::MannWhitney, error));
    }
    let above = above as f64 / pairs as f64;
    let deviations = normal_quantile(1.0 - error / 2.0) + normal_quantile(POWER);
    let rounds = deviations.powi(2) / (6.0 * (above - 0.5).powi(2));
    (above > 0.5 && rounds <= MOST_ROUNDS as f64).then_some(rounds.ceil() as usize)
}

/// The share of tries in which a difference is found that is there.
const POWER: f64 = 0.8;

/// More rounds are never asked for.
pub const MOST_ROUNDS: usize = 1000;

/// Up to this many figures of both sides together (or pairs) have their distribution counted exactly: the counts fit
/// 127 bits. Beyond, it is as good as normal.
pub(crate) const EXACT_FIGURES: usize = 128;
const EXACT_PAIRS: usize = 120;

/// The distribution of the number of effects on one side of zero between equals.
pub(crate) enum NullDistribution {
    /// The share of all orders with at most this many.
    Exact(Vec<f64>),
    /// That of a normal variable, with the correction for whole numbers.
    Normal { mean: f64, deviation: f64 },
}

impl NullDistribution {
    /// Of samples of these sizes.
    pub(crate) fn mann_whitney(one: usize, other: usize) -> Self {
        let effects = one * other;
        if one + other > EXACT_FIGURES {
            return Self::approximate(effects, one + other + 1);
        }
        // The counts are the coefficients of the Gaussian binomial: the product of (1 - q^(more + i)) / (1 - q^i).
        let (fewer, more) = (one.min(other), one.max(other));
        let mut counts = vec![0_i128; effects + 1];
        counts[0] = 1;
        for factor in 1..=fewer {
            for place in (more + factor..=effects).rev() {
                counts[place] -= counts[place - more - factor];
            }
            for place in factor..=effects {
                counts[place] += counts[place - factor];
            }
        }
        Self::counted(&counts)
    }

    fn signed_rank(pairs: usize) -> Self {
        let effects = pairs * (pairs + 1) / 2;
        if pairs > EXACT_PAIRS {
            return Self::approximate(effects, 2 * pairs + 1);
        }
        // Each rank has either sign.
        let mut counts = vec![0_i128; effects + 1];
        counts[0] = 1;
        for rank in 1..=pairs {
            for place in (rank..=effects).rev() {
                counts[place] += counts[place - rank];
            }
        }
        Self::counted(&counts)
    }

    /// A normal variable of the same mean, and of the variance that is `factor` twelfths of the effects.
    fn approximate(effects: usize, factor: usize) -> Self {
        NullDistribution::Normal {
            mean: effects as f64 / 2.0,
            deviation: (effects as f64 * factor as f64 / 12.0).sqrt(),
        }
    }

    fn counted(counts: &[i128]) -> Self {
        let all: i128 = counts.iter().sum();
        let cumulated = counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum as f64 / all as f64)
        });
        NullDistribution::Exact(cumulated.collect())
    }

    /// The probability of at most this many.
    pub(crate) fn at_most(&self, effects: usize) -> f64 {
        match self {
            NullDistribution::Exact(shares) => shares[effects.min(shares.len() - 1)],
            NullDistribution::Normal { mean, deviation } => {
                normal((effects as f64 + 0.5 - mean) / deviation)
            }
        }
    }

    /// The most effects whose probability is still at most `error`; `None` where even none is more likely.
    fn critical(&self, error: f64) -> Option<usize> {
        let above = match self {
            NullDistribution::Exact(shares) => shares.partition_point(|share| *share <= error),
            NullDistribution::Normal { mean, .. } => {
                let (mut low, mut high) = (0, *mean as usize);
                while low < high {
                    let middle = usize::midpoint(low, high);
                    if self.at_most(middle) <= error {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                low
            }
        };
        above.checked_sub(1)
    }
}

/// The probability that a standard normal variable is at most `z`.
pub(crate) fn normal(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * PI).sqrt();
    let distance = z.abs();
    let beyond = if distance < 3.0 {
        // 1/2 less density times z + z^3/3 + z^5/15 and so on.
        let (mut term, mut sum, mut odd) = (distance, 0.0, 1.0);
        while term > 1e-17 {
            sum += term;
            odd += 2.0;
            term *= distance * distance / odd;
        }
        0.5 - density * sum
    } else {
        // Laplace's continued fraction, from its far end.
        let fraction = (1..=60)
            .rev()
            .fold(distance, |rest, step| distance + f64::from(step) / rest);
        density / fraction
    };
    if z < 0.0 { beyond } else { 1.0 - beyond }
}

/// Where a standard normal variable is below with that probability.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if normal(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests;
