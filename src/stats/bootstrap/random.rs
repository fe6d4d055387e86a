//! The random numbers of replicates.

use crate::pacing::SplitMix64;

/// A stream of random numbers that a seed decides.
#[derive(Debug)]
pub(super) struct Draws(SplitMix64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Draws(SplitMix64::new(seed))
    }

    /// One of `0..count`, each equally likely but for less than `count / 2^64`.
    #[inline]
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.0.draw()) * count as u128) >> 64) as usize
    }

    /// Above 0 and at most 1.
    fn unit(&mut self) -> f64 {
        ((self.0.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Of the standard normal distribution (Box and Muller, 1958).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Of the chi-squared distribution with `freedom` degrees of freedom, at least 2: twice a gamma variate of half of
    /// them (Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 26, 2000).
    pub(super) fn chi_squared(&mut self, freedom: f64) -> f64 {
        let d = freedom / 2.0 - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let normal = self.normal();
            let v = (1.0 + c * normal).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * normal * normal + d - d * v + d * v.ln() {
                return 2.0 * d * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chi_squared_has_its_mean_and_variance() {
        for freedom in [2.0, 5.0, 31.0] {
            let mut draws = Draws::new(3);
            let drawn: Vec<f64> = (0..40_000).map(|_| draws.chi_squared(freedom)).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let variance = drawn
                .iter()
                .map(|value| (value - mean).powi(2))
                .sum::<f64>()
                / drawn.len() as f64;
            assert!((mean / freedom - 1.0).abs() < 0.02, "{freedom}: {mean}");
            assert!(
                (variance / (2.0 * freedom) - 1.0).abs() < 0.06,
                "{freedom}: {variance}"
            );
        }
    }

    #[test]
    fn all_places_are_drawn_alike() {
        let mut draws = Draws::new(1);
        let mut counts = [0; 5];
        for _ in 0..50_000 {
            counts[draws.below(5)] += 1;
        }
        assert!(
            counts.iter().all(|count| (9_600..10_400).contains(count)),
            "{counts:?}"
        );
    }
}
