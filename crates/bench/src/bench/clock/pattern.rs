//! The pattern of jumps in time: have they a period, and do they come in clusters?
//!
//! Jumps are looked at in classes by length, because each disturbance has a length of its own: a timer's interrupt of
//! a few microseconds every 4 ms would not be seen among thousands of shorter jumps.
//!
//! - **Period**: of the spacings between beginnings that follow each other, the value with the most of them within
//!   [`WIDTH`] around it. It is called a period when these are at least [`PERIODIC`] of all. Of jumps that come at
//!   random, at most 4 % lie so near to any value.
//! - **Clustering**: the share of jumps that begin within a window's length of the one before, and what that share
//!   would be if jumps came at random at the same rate (a Poisson process): `1 - exp(-rate * window)`. And the index of
//!   dispersion, the variance of the number of jumps in a window by its mean: 1 at random, more in clusters, less when
//!   regular.

use serde::Serialize;

/// Spacings within this share of a value, above and below, are taken for the same.
pub const WIDTH: f64 = 0.05;
/// From this share of all spacings on, a value is called a period.
pub const PERIODIC: f64 = 0.5;
/// With fewer jumps nothing is said of their pattern.
pub const FEWEST: usize = 10;

/// The lower ends of the classes, in nanoseconds, with their names.
pub const CLASSES: [(u64, &str); 5] = [
    (0, "below 1 us"),
    (1_000, "1 to 10 us"),
    (10_000, "10 to 100 us"),
    (100_000, "100 us to 1 ms"),
    (1_000_000, "1 ms and more"),
];

/// A value around which many spacings lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpacingMode {
    /// The median of those spacings, in nanoseconds.
    pub nanos: f64,
    /// Their share of all.
    pub share: f64,
}

/// How the jumps of one class lie in time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pattern {
    pub lengths: String,
    pub count: u64,
    pub per_second: f64,
    /// The most frequent spacing; `None` with too few jumps.
    pub mode: Option<SpacingMode>,
    /// The share of jumps within a window's length of the one before; `None` with too few jumps.
    pub following: Option<f64>,
    /// That share if they came at random.
    pub following_at_random: Option<f64>,
    /// Variance by mean of the number of jumps in a window; `None` with too few jumps.
    pub dispersion: Option<f64>,
}

/// The patterns of jumps, given as beginning and length in nanoseconds in the order of time, in a run of `elapsed`
/// nanoseconds. Classes without jumps are left out.
pub fn patterns(
    jumps: impl Iterator<Item = (u64, u64)> + Clone,
    elapsed: u64,
    window: u64,
) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for (index, &(from, lengths)) in CLASSES.iter().enumerate() {
        let below = CLASSES.get(index + 1).map_or(u64::MAX, |class| class.0);
        let begins: Vec<u64> = jumps
            .clone()
            .filter(|jump| (from..below).contains(&jump.1))
            .map(|jump| jump.0)
            .collect();
        if !begins.is_empty() {
            patterns.push(pattern(lengths, &begins, elapsed, window));
        }
    }
    patterns
}

fn pattern(lengths: &str, begins: &[u64], elapsed: u64, window: u64) -> Pattern {
    let rate = begins.len() as f64 / elapsed.max(1) as f64;
    let mut spacings: Vec<u64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    spacings.sort_unstable();
    let following = spacings.partition_point(|&spacing| spacing < window);
    let enough = begins.len() >= FEWEST;
    Pattern {
        lengths: lengths.to_owned(),
        count: begins.len() as u64,
        per_second: rate * 1e9,
        mode: mode(&spacings).filter(|_| enough),
        following: enough.then(|| following as f64 / spacings.len() as f64),
        following_at_random: enough.then(|| 1.0 - (-rate * window as f64).exp()),
        dispersion: dispersion(begins, elapsed, window).filter(|_| enough),
    }
}

/// The value with the most spacings around it.
fn mode(sorted: &[u64]) -> Option<SpacingMode> {
    let ratio = (1.0 + WIDTH) / (1.0 - WIDTH);
    let mut best = 0..0;
    let mut end = 0;
    for (start, &spacing) in sorted.iter().enumerate() {
        let is_near = |it: &&u64| **it as f64 <= spacing as f64 * ratio;
        end += sorted[end..].iter().take_while(is_near).count();
        if end - start > best.len() {
            best = start..end;
        }
    }
    let near = &sorted[best];
    Some(SpacingMode {
        nanos: *near.get(near.len() / 2)? as f64,
        share: near.len() as f64 / sorted.len() as f64,
    })
}

/// Over whole windows, one behind the other from the start of the run; `None` for fewer than two.
fn dispersion(begins: &[u64], elapsed: u64, window: u64) -> Option<f64> {
    let windows = elapsed / window.max(1);
    if windows < 2 {
        return None;
    }
    let whole = &begins[..begins.partition_point(|&begin| begin / window < windows)];
    let counts = whole.chunk_by(|one, next| one / window == next / window);
    let squares: f64 = counts.map(|jumps| (jumps.len() as f64).powi(2)).sum();
    let mean = whole.len() as f64 / windows as f64;
    let variance = (squares - windows as f64 * mean * mean) / (windows - 1) as f64;
    (mean > 0.0).then(|| variance / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::SplitMix64;

    const MS: u64 = 1_000_000;

    fn one(begins: &[u64], elapsed: u64) -> Pattern {
        let jumps: Vec<(u64, u64)> = begins.iter().map(|&begin| (begin, 5_000)).collect();
        let mut found = patterns(jumps.into_iter(), elapsed, MS);
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn a_tick_of_250_hz_is_found_although_some_are_missing_and_others_come_between() {
        let ticks = (0..250).filter(|tick| tick % 10 != 3);
        let mut begins: Vec<u64> = ticks.map(|tick| tick * 4 * MS + tick % 7 * 1000).collect();
        begins.extend([17 * MS + 300, 500 * MS + 77, 901 * MS]);
        begins.sort_unstable();
        let pattern = one(&begins, 1000 * MS);
        let mode = pattern.mode.unwrap();
        assert!(mode.share >= PERIODIC, "{mode:?}");
        assert!((mode.nanos / 4e6 - 1.0).abs() < 0.01, "{mode:?}");
        assert!(mode.share < 1.0);
        assert_eq!(pattern.count, 228);
        assert!((pattern.per_second - 228.0).abs() < 1e-6);
        assert!(pattern.following.unwrap() < 0.02);
        assert!(pattern.dispersion.unwrap() < 1.0);
    }

    #[test]
    fn jumps_at_random_have_no_period_and_no_clusters() {
        let mut generator = SplitMix64::new(1);
        let mut now = 0.0;
        let begins = [(); 5000].map(|()| {
            let random = generator.draw() as f64 / u64::MAX as f64;
            now += -(1.0 - random * 0.999_999).ln() * 2e6;
            now as u64
        });
        let pattern = one(&begins, now as u64);
        assert!(pattern.mode.unwrap().share < 0.06);
        let difference = pattern.following.unwrap() - pattern.following_at_random.unwrap();
        assert!(difference.abs() < 0.03, "{difference}");
        assert!((pattern.dispersion.unwrap() - 1.0).abs() < 0.1);
    }

    #[test]
    fn bursts_are_clusters() {
        let begins: Vec<u64> = (0..100)
            .flat_map(|burst| (0..5).map(move |n| burst * 100 * MS + n * 100_000))
            .collect();
        let pattern = one(&begins, 10_000 * MS);
        assert!(pattern.following.unwrap() > 0.79 && pattern.following_at_random.unwrap() < 0.06);
        assert!(pattern.dispersion.unwrap() > 4.5);
    }

    #[test]
    fn classes_are_kept_apart_and_few_jumps_say_nothing() {
        let jumps: Vec<(u64, u64)> = (0..100)
            .flat_map(|n| [(n * 4 * MS, 3_000), (n * 4 * MS + n * 31_000 + 20, 200)])
            .chain([(399 * MS, 2 * MS)])
            .collect();
        let found = patterns(jumps.into_iter(), 400 * MS, MS);
        let names: Vec<_> = found.iter().map(|pattern| &pattern.lengths).collect();
        assert_eq!(names, ["below 1 us", "1 to 10 us", "1 ms and more"]);
        let mode = found[1].mode.unwrap();
        assert_eq!((mode.nanos, mode.share), (4e6, 1.0));
        assert_eq!((found[2].count, found[2].mode), (1, None));
        assert_eq!(found[2].dispersion, None);
    }
}
