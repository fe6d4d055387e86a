//! The spread of each of many alike, of which each has a few figures only: what all have in common steadies what each
//! shows by itself.
//!
//! Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray experiments",
//! Statistical Applications in Genetics and Molecular Biology 3 (2004): true variances are taken to be a scaled inverse
//! chi-squared sample; the moments of the logarithms of the measured ones show its centre and its degrees of freedom.
//! A measured variance with d degrees of freedom then counts d, and what all have in common counts those. Deviations in
//! units of the result follow Student's t with the sum of both. The more the spreads differ, the less is shared, and the
//! larger a deviation has to be.
//!
//! One that varies far more than hundreds of others does not show in these moments, and would count as usual. So what is
//! shared counts at most twice what each shows by itself, and no variance is made smaller than it was measured.

use super::student::MANY;

/// What is shared counts this many times what each shows by itself, at most.
const MOST_SHARED: f64 = 2.0;
/// It counts this many degrees of freedom at least, if it has them.
const LEAST_SHARED: f64 = 4.0;

/// A variance that was estimated, with the degrees of freedom that are behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variance {
    /// In the square of the figures' unit.
    pub value: f64,
    /// How many independent deviations it is the mean of.
    pub freedom: f64,
}

impl Variance {
    /// Of figures around their mean; `None` of fewer than two.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let freedom = figures.len().checked_sub(2)? as f64 + 1.0;
        let mean = figures.iter().sum::<f64>() / figures.len() as f64;
        let squares: f64 = figures.iter().map(|it| (it - mean).powi(2)).sum();
        Some(Variance {
            value: squares / freedom,
            freedom,
        })
    }

    /// What all have in common; `None` without any. A variance below `least` counts as that.
    pub fn common(all: &[Variance], least: f64) -> Option<Self> {
        let count = all.len() as f64;
        let log = |it: &Variance| {
            let half = it.freedom / 2.0;
            it.value.max(least).ln() - digamma(half) + half.ln()
        };
        let mean = all.iter().map(log).sum::<f64>() / count;
        let expected = all.iter().map(|it| trigamma(it.freedom / 2.0)).sum::<f64>() / count;
        let spread: f64 = all.iter().map(|it| (log(it) - mean).powi(2)).sum();
        let beyond = match all.len() {
            0 => return None,
            1 => 0.0,
            _ => spread / (count - 1.0) - expected,
        };
        // All have the same variance, as far as can be seen.
        if beyond <= trigamma(MANY / 2.0) {
            return Some(Variance {
                value: mean.exp().max(least),
                freedom: MANY,
            });
        }
        let half = inverse_trigamma(beyond);
        Some(Variance {
            value: (mean + digamma(half) - half.ln()).exp().max(least),
            freedom: 2.0 * half,
        })
    }

    /// This one, steadied by what all have in common.
    pub fn steadied(self, common: Variance) -> Self {
        let most = (MOST_SHARED * self.freedom).max(LEAST_SHARED);
        let shared = common.freedom.min(most);
        let freedom = self.freedom + shared;
        let steadied = (self.value * self.freedom + common.value * shared) / freedom;
        Variance {
            value: steadied.max(self.value),
            freedom,
        }
    }
}

/// The derivative of the logarithm of the gamma function: Abramowitz and Stegun, 6.3.5 and 6.3.18.
fn digamma(value: f64) -> f64 {
    let (mut x, mut below) = (value, 0.0);
    while x < 20.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = inverse
        * (1.0 / 12.0 - inverse * (1.0 / 120.0 - inverse * (1.0 / 252.0 - inverse / 240.0)));
    x.ln() - 0.5 / x - series - below
}

/// The derivative of that: 6.4.6 and 6.4.12.
fn trigamma(value: f64) -> f64 {
    let (mut x, mut below) = (value, 0.0);
    while x < 20.0 {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = 1.0 / 6.0 - inverse * (1.0 / 30.0 - inverse * (1.0 / 42.0 - inverse / 30.0));
    1.0 / x + inverse / 2.0 + series * inverse / x + below
}

/// Where the trigamma function, which falls, has this value.
fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (1e-8_f64, MANY);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        match trigamma(middle) > value {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    #[test]
    fn the_functions_have_their_known_values() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-13);
        assert!((digamma(0.5) + euler + 2.0 * 2_f64.ln()).abs() < 1e-13);
        let pi = std::f64::consts::PI;
        assert!((trigamma(1.0) - pi * pi / 6.0).abs() < 1e-13);
        assert!((trigamma(0.5) - pi * pi / 2.0).abs() < 1e-12);
        for value in [0.1, 1.0, 7.5, 3000.0] {
            let found = inverse_trigamma(trigamma(value));
            assert!((found / value - 1.0).abs() < 1e-9, "{value}: {found}");
        }
    }

    fn samples(
        noise: &mut Noise,
        count: usize,
        spread: impl Fn(&mut Noise) -> f64,
    ) -> Vec<Variance> {
        let one = |noise: &mut Noise| {
            let spread = spread(noise);
            let figures: Vec<f64> = (0..5).map(|_| spread * noise.normal()).collect();
            Variance::of(&figures).unwrap()
        };
        (0..count).map(|_| one(noise)).collect()
    }

    #[test]
    fn equals_share_all_and_different_ones_little() {
        let mut noise = Noise::new(3);
        let equals = samples(&mut noise, 400, |_| 2.0);
        let common = Variance::common(&equals, 0.0).unwrap();
        assert!((common.value / 4.0 - 1.0).abs() < 0.1, "{common:?}");
        assert!(common.freedom > 40.0, "{common:?}");
        // Eight degrees of freedom of what is shared, and four of their own.
        let own = equals.iter().find(|it| it.value < common.value).unwrap();
        let steadied = own.steadied(common);
        let expected = (own.value + 2.0 * common.value) / 3.0;
        assert!(
            (steadied.value / expected - 1.0).abs() < 1e-9,
            "{steadied:?}"
        );
        assert!((steadied.freedom - 12.0).abs() < 1e-9, "{steadied:?}");
        // One that varies more keeps that.
        let noisy = Variance {
            value: 64.0,
            freedom: 4.0,
        };
        assert_eq!(noisy.steadied(common).value, 64.0);

        // Variances that are inverse chi-squared with 4 degrees of freedom.
        let different = samples(&mut noise, 2000, |noise| {
            let squares: f64 = (0..4).map(|_| noise.normal().powi(2)).sum();
            (4.0 / squares).sqrt()
        });
        let common = Variance::common(&different, 0.0).unwrap();
        assert!((3.0..5.4).contains(&common.freedom), "{common:?}");
        assert!((0.85..1.18).contains(&common.value), "{common:?}");
    }

    #[test]
    fn figures_that_are_all_the_same_have_the_least_spread() {
        assert_eq!(Variance::of(&[1.0]), None);
        let same = Variance::of(&[7.0; 4]).unwrap();
        assert_eq!((same.value, same.freedom), (0.0, 3.0));
        let common = Variance::common(&[same; 9], 1e-6).unwrap();
        assert!(
            (common.value - 1e-6).abs() < 2e-6 && common.value >= 1e-6,
            "{common:?}"
        );
        assert_eq!(Variance::common(&[], 1.0), None);
    }
}
