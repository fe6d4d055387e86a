//! Percentiles of sorted samples, by linear interpolation between closest ranks.
//!
//! Of the nine definitions in Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996), this is type 7, the
//! default of `numpy.percentile`, pandas and R. A notebook that reads the samples back therefore computes the same
//! figures, to the last bit as long as neighbouring samples differ by less than 2^53 ns.

/// The value at `percent` (0 to 100) of samples in ascending order, in the samples' unit, or `None` without samples.
///
/// The rank is `(n - 1) * percent / 100`; between two ranks the value is interpolated linearly.
///
/// # Panics
/// When `percent` is not within 0 and 100.
pub fn percentile_of_sorted(sorted: &[i64], percent: f64) -> Option<f64> {
    assert!(
        (0.0..=100.0).contains(&percent),
        "a percentile lies between 0 and 100, not at {percent}"
    );
    debug_assert!(sorted.is_sorted());
    let last = sorted.len().checked_sub(1)?;
    let rank = last as f64 * (percent / 100.0);
    let below = (rank.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let fraction = rank - below as f64;
    let (low, high) = (sorted[below], sorted[above]);
    let distance = (i128::from(high) - i128::from(low)) as f64;
    // From the nearer end, as numpy does: both ends are hit exactly, and the result is monotone in `fraction`.
    Some(if fraction < 0.5 {
        low as f64 + distance * fraction
    } else {
        high as f64 - distance * (1.0 - fraction)
    })
}

/// Whether `count` samples can distinguish the given percentile from the maximum: at least one sample lies beyond it.
///
/// With 1000 samples the 99.9th percentile is resolvable, with 999 it is the maximum under another name.
pub fn resolvable(percent: f64, count: u64) -> bool {
    // 100 - 99.9 is a little less than 0.1 in binary; the margin is far below one sample.
    count as f64 * (100.0 - percent) >= 100.0 * (1.0 - 1e-9)
}

/// The value at a percentile, of ascending ones that are known, each a percentile and its value: between two of them by
/// the logarithm of the share above, beyond the last the greatest.
pub fn between_known(percent: f64, known: impl Iterator<Item = (f64, f64)>, greatest: f64) -> f64 {
    let mut below: Option<(f64, f64)> = None;
    for (at, value) in known {
        if at < percent {
            below = Some((at, value));
            continue;
        }
        let Some((from, lower)) = below.filter(|_| at > percent) else {
            return value;
        };
        let above = |percent: f64| (100.0 - percent).ln();
        let way = (above(from) - above(percent)) / (above(from) - above(at));
        return lower + way * (value - lower);
    }
    greatest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_percentile_between_those_that_are_known_goes_by_the_share_above() {
        let at = |percent| {
            between_known(
                percent,
                [(50.0, 1.0), (99.0, 5.0), (99.9, 9.0)].into_iter(),
                20.0,
            )
        };
        assert_eq!([50.0, 99.0, 99.9].map(at), [1.0, 5.0, 9.0]);
        // Half of the way from 1 % above to 0.1 % above.
        assert!((at(100.0 - 0.1_f64.sqrt()) - 7.0).abs() < 1e-9);
        // One sample lost of a million changes next to nothing.
        assert!((at(99.0 / (1.0 - 1e-6)) - 5.0).abs() < 1e-3);
        assert_eq!(at(99.95), 20.0);
    }

    #[test]
    fn interpolates_between_closest_ranks() {
        let all = [i64::MIN, i64::MAX];
        for (sorted, percent, value) in [
            (&[10, 20, 30, 40][..], 0.0, 10.0),
            (&[10, 20, 30, 40], 50.0, 25.0),
            (&[10, 20, 30, 40], 100.0, 40.0),
            // Rank 0.75: three quarters of the way from 10 to 20.
            (&[10, 20, 30, 40], 25.0, 17.5),
            (&[-7], 99.99, -7.0),
            (&all, 0.0, i64::MIN as f64),
            (&all, 50.0, 0.0),
            (&all, 100.0, i64::MAX as f64),
        ] {
            assert_eq!(percentile_of_sorted(sorted, percent), Some(value));
        }
        assert_eq!(percentile_of_sorted(&[], 50.0), None);
    }

    #[test]
    #[should_panic(expected = "between 0 and 100")]
    fn refuses_a_percentile_above_100() {
        percentile_of_sorted(&[1], 100.1);
    }

    #[test]
    fn resolvable_needs_one_sample_beyond() {
        let percents = [50.0, 90.0, 99.0, 99.9, 99.99];
        for (percent, enough) in percents.into_iter().zip([2, 10, 100, 1000, 10_000]) {
            assert!(resolvable(percent, enough), "{percent} of {enough}");
            let fewer = enough - 1;
            assert!(!resolvable(percent, fewer), "{percent} of {fewer}");
        }
        assert!(!resolvable(100.0, u64::MAX));
    }

    proptest! {
        /// Type 7 in exact integers: for thousandths of a percent the interpolation rounds in its last division only.
        #[test]
        fn equals_exact_integer_arithmetic(
            mut samples in prop::collection::vec(-1_000_000_000_000_i64..1_000_000_000_000, 1..200),
            thousandths in 0_u32..=100_000,
        ) {
            samples.sort_unstable();
            let position = (samples.len() as i128 - 1) * i128::from(thousandths);
            let (rank, rest) = ((position / 100_000) as usize, position % 100_000);
            let low = i128::from(samples[rank]);
            let high = i128::from(samples[(rank + 1).min(samples.len() - 1)]);
            let exact = (low * 100_000 + (high - low) * rest) as f64 / 100_000.0;
            let got = percentile_of_sorted(&samples, f64::from(thousandths) / 1000.0).unwrap();
            // The rank itself is rounded to an f64: its error times the distance of the two neighbours.
            let tolerance = 1e-3_f64.max((high - low) as f64 * 1e-12) + exact.abs() * 1e-14;
            prop_assert!((got - exact).abs() <= tolerance, "{} instead of {}", got, exact);
        }

        #[test]
        fn grows_with_the_percentile(
            mut samples in prop::collection::vec(any::<i64>(), 1..50),
            a in 0.0..=100.0_f64,
            b in 0.0..=100.0_f64,
        ) {
            samples.sort_unstable();
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(percentile_of_sorted(&samples, low) <= percentile_of_sorted(&samples, high));
        }
    }
}
