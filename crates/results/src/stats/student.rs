//! Student's t distribution: from which value on a deviation cannot be chance where the spread itself is estimated from a
//! few figures.
//!
//! The tail is the regularised incomplete beta function (Abramowitz and Stegun, Handbook of Mathematical Functions,
//! 26.7.1), by its continued fraction (26.5.8), evaluated by Lentz's method; the gamma function by Stirling's series
//! (6.1.41).

use std::f64::consts::PI;

/// From this many degrees of freedom on it is as good as normal.
pub const MANY: f64 = 1e6;
/// Terms of the continued fraction at most.
const MOST_TERMS: u32 = 500;

/// The probability that a variable with these degrees of freedom is above `value`.
pub fn above(value: f64, freedom: f64) -> f64 {
    let freedom = freedom.min(MANY);
    let both_sides = incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + value * value));
    if value < 0.0 {
        1.0 - both_sides / 2.0
    } else {
        both_sides / 2.0
    }
}

/// The value that a variable with these degrees of freedom exceeds with that probability, at most one half; infinite
/// for a probability of 0.
pub fn quantile_above(probability: f64, freedom: f64) -> f64 {
    if probability <= 0.0 {
        return f64::INFINITY;
    }
    let mut high = 1.0;
    while above(high, freedom) > probability {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        match above(middle, freedom) > probability {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The regularised incomplete beta function.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction is short where x is below the mean of the distribution.
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front * fraction(a, b, x) / a,
        false => 1.0 - front * fraction(b, a, 1.0 - x) / b,
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut upper = 1.0;
    let mut lower = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = lower;
    for term in 1..=MOST_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for part in [even, odd] {
            lower = 1.0 / away_from_zero(1.0 + part * lower);
            upper = away_from_zero(1.0 + part / upper);
            change = lower * upper;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function of a positive number.
fn ln_gamma(value: f64) -> f64 {
    // The series is exact to 1e-15 from 20 on.
    let (mut x, mut below) = (value, 0.0);
    while x < 20.0 {
        below += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0
        - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse * (1.0 / 1680.0))))
        / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series - below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // One-sided, of tables of t; the last row is normal.
        for (freedom, probability, expected) in [
            (1.0, 0.05, 6.313_752),
            (2.0, 0.01, 6.964_557),
            (3.0, 0.005, 5.840_909),
            (5.0, 0.000_5, 6.868_827),
            (9.0, 0.025, 2.262_157),
            (30.0, 0.001, 3.385_185),
            (120.0, 0.05, 1.657_651),
            (f64::INFINITY, 0.025, 1.959_964),
            (f64::INFINITY, 0.000_5, 3.290_527),
        ] {
            let found = quantile_above(probability, freedom);
            let off = (found - expected).abs();
            assert!(off < 2e-5, "{freedom}, {probability}: {found}, {expected}");
        }
        assert_eq!(quantile_above(0.0, 5.0), f64::INFINITY);
    }

    #[test]
    fn tails_are_exact_where_there_is_a_formula() {
        for step in -40..=40 {
            let value = f64::from(step) / 4.0;
            let cauchy = 0.5 - value.atan() / PI;
            assert!((above(value, 1.0) - cauchy).abs() < 1e-13, "{value}");
            let of_two = 0.5 - value / (2.0 * (2.0 + value * value).sqrt());
            assert!((above(value, 2.0) - of_two).abs() < 1e-13, "{value}");
        }
        assert!((ln_gamma(0.5) - PI.sqrt().ln()).abs() < 1e-14);
        assert!((ln_gamma(11.0) - 3_628_800_f64.ln()).abs() < 1e-13);
    }
}
