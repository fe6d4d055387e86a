//! Which of several figures are outliers. Nothing is removed here: the caller keeps all of them, and gets those that
//! count.

use serde::{Deserialize, Serialize};

use super::modes::median_of;

/// From this many deviations on a figure is an outlier by its modified z-score (Iglewicz and Hoaglin, 1993).
pub const MAD_LIMIT: f64 = 3.5;
/// The standard deviation of a normal distribution in units of its median absolute deviation.
pub const DEVIATIONS_PER_MAD: f64 = 1.4826;
/// From this many standard deviations on a figure is an outlier.
pub const SIGMA_LIMIT: f64 = 3.0;

/// How outliers are found.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Outliers {
    /// By the distance from the median, in median absolute deviations: it works from a handful of figures on.
    #[default]
    Mad,
    /// By the distance from the mean, in standard deviations. An outlier moves both, so that of n figures none is
    /// farther from the mean than (n - 1) / sqrt(n) of them: with fewer than 11 figures nothing is ever an outlier.
    Sigma3,
    /// Nothing is one.
    None,
}

impl Outliers {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Mad, Self::Sigma3, Self::None];

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mad => "mad",
            Self::Sigma3 => "sigma3",
            Self::None => "none",
        }
    }
}

/// Of each figure, in any order, whether it counts. Where more than half of them are the same, the median absolute
/// deviation is 0 and of no use: then all count.
pub fn kept(figures: &[f64], by: Outliers) -> Vec<bool> {
    let limits = match by {
        Outliers::Mad => around_median(figures),
        Outliers::Sigma3 => around_mean(figures),
        Outliers::None => None,
    };
    let counts =
        |figure: &f64| limits.is_none_or(|(middle, distance)| (figure - middle).abs() <= distance);
    figures.iter().map(counts).collect()
}

/// The median, and how far from it a figure may be.
fn around_median(figures: &[f64]) -> Option<(f64, f64)> {
    let median = median_of(figures)?;
    let distances: Vec<f64> = figures.iter().map(|it| (it - median).abs()).collect();
    let mad = median_of(&distances)?;
    (mad > 0.0).then_some((median, MAD_LIMIT * DEVIATIONS_PER_MAD * mad))
}

/// The mean, and how far from it a figure may be.
fn around_mean(figures: &[f64]) -> Option<(f64, f64)> {
    let (mean, deviation) = mean_and_deviation(figures)?;
    Some((mean, SIGMA_LIMIT * deviation?))
}

/// The mean and the sample standard deviation (divisor n - 1) of figures; `None` without any, and no deviation of a
/// single one.
pub fn mean_and_deviation(figures: &[f64]) -> Option<(f64, Option<f64>)> {
    let count = figures.len() as f64;
    if figures.is_empty() {
        return None;
    }
    let mean = figures.iter().sum::<f64>() / count;
    let squares: f64 = figures.iter().map(|it| (it - mean).powi(2)).sum();
    let deviation = (count > 1.0).then(|| (squares / (count - 1.0)).sqrt());
    Some((mean, deviation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn removed(figures: &[f64], by: Outliers) -> Vec<f64> {
        let kept = kept(figures, by);
        assert_eq!(kept.len(), figures.len());
        let both = figures.iter().zip(kept);
        both.filter_map(|(figure, kept)| (!kept).then_some(*figure))
            .collect()
    }

    #[test]
    fn the_median_absolute_deviation_finds_one_of_five_and_its_limit_is_exact() {
        let figures = [100.0, 250.0, 101.0, 99.0, 102.0];
        assert_eq!(removed(&figures, Outliers::Mad), [250.0]);
        assert_eq!(removed(&figures, Outliers::None), [0.0; 0]);
        // Median 0, deviation 1: up to 5.1891 counts.
        let about = |edge: f64| [-1.0, 0.0, 1.0, edge, -1.0, 1.0, 0.0];
        assert_eq!(removed(&about(5.189), Outliers::Mad), [0.0; 0]);
        assert_eq!(removed(&about(5.190), Outliers::Mad), [5.190]);
        assert_eq!(removed(&about(-5.190), Outliers::Mad), [-5.190]);
    }

    #[test]
    fn where_most_figures_are_the_same_all_count() {
        assert_eq!(removed(&[7.0, 7.0, 7.0, 900.0], Outliers::Mad), [0.0; 0]);
        for by in Outliers::ALL {
            assert_eq!(kept(&[], *by), [true; 0]);
            assert_eq!(kept(&[5.0], *by), [true]);
            assert_eq!(kept(&[5.0; 20], *by), [true; 20]);
        }
    }

    #[test]
    fn three_deviations_from_the_mean_need_eleven_figures() {
        for count in 2..30 {
            let mut figures = vec![100.0; count];
            figures[0] = 1e9;
            let found = removed(&figures, Outliers::Sigma3);
            assert_eq!(found.len(), usize::from(count >= 11), "{count}");
        }
    }

    #[test]
    fn means_and_deviations() {
        assert_eq!(mean_and_deviation(&[]), None);
        assert_eq!(mean_and_deviation(&[3.0]), Some((3.0, None)));
        let known = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let (mean, deviation) = mean_and_deviation(&known).unwrap();
        assert!(mean == 5.0 && (deviation.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn at_least_half_are_kept_whatever_the_unit(
            figures in prop::collection::vec(-1e6_f64..1e6, 1..60),
        ) {
            for by in [Outliers::Mad, Outliers::Sigma3] {
                let found = kept(&figures, by);
                prop_assert!(2 * found.iter().filter(|kept| **kept).count() >= figures.len());
                let moved: Vec<f64> = figures.iter().map(|figure| 4.0 * figure).collect();
                prop_assert_eq!(&kept(&moved, by), &found);
            }
        }
    }
}
