//! At which run a change is, and between which runs it may be.
//!
//! The place is that of least squares between two levels. Figures beyond both levels are clipped first: one wild run must
//! not draw the place to itself. The interval is that of the bootstrap of residuals: the same change is placed again in
//! series that are made of the two levels and of residuals drawn from those of the series (Hušková and Kirch,
//! "Bootstrapping confidence intervals for the change-point of time series", Journal of Time Series Analysis 29, 2008).

use super::LEAST_RUNS;
use super::draws::Draws;
use crate::stats::median_of;

/// The interval is meant to hold with this probability.
pub const CONFIDENCE: f64 = 0.95;
const RESAMPLED: usize = 999;
/// Figures farther from a level count as this many deviations from it.
const CLIPPED: f64 = 2.5;
/// A median deviation times this is the standard deviation of what is normal.
const NORMAL_MAD: f64 = 1.4826;

/// Where a change is, counted from the first run of a part of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The first run after it.
    pub at: usize,
    /// The least run that it may be.
    pub from: usize,
    /// The greatest run that it may be.
    pub to: usize,
}

/// Places the one change of a part of a series; `near` is about where it is.
pub fn place(values: &[f64], near: usize) -> Placed {
    let clipped = clipped(values, near);
    let at = least_squares(&clipped);
    let (from, to) = interval(&clipped, at);
    Placed { at, from, to }
}

/// The figures, those far beyond both levels drawn back.
fn clipped(values: &[f64], near: usize) -> Vec<f64> {
    let (before, after) = values.split_at(near);
    let levels = [before, after].map(|side| median_of(side).unwrap_or_default());
    let residuals = [before, after].into_iter().zip(levels);
    let residuals: Vec<f64> = residuals
        .flat_map(|(side, level)| side.iter().map(move |value| (value - level).abs()))
        .collect();
    let deviation = NORMAL_MAD * median_of(&residuals).unwrap_or_default();
    if deviation <= 0.0 {
        return values.to_vec();
    }
    let low = levels[0].min(levels[1]) - CLIPPED * deviation;
    let high = levels[0].max(levels[1]) + CLIPPED * deviation;
    values.iter().map(|value| value.clamp(low, high)).collect()
}

/// The place at which two means leave the least squares.
fn least_squares(values: &[f64]) -> usize {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let (mut sum, mut best) = (0.0, (count / 2, f64::NEG_INFINITY));
    for (at, value) in values.iter().enumerate() {
        if (LEAST_RUNS..=count - LEAST_RUNS).contains(&at) {
            let gained = sum * sum / (at * (count - at)) as f64;
            if gained > best.1 {
                best = (at, gained);
            }
        }
        sum += value - mean;
    }
    best.0
}

/// Between which places the change may be.
fn interval(values: &[f64], at: usize) -> (usize, usize) {
    let count = values.len();
    let (before, after) = values.split_at(at);
    let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
    let levels = [mean(before), mean(after)];
    // Two levels were fitted to them, which has made them smaller.
    let wider = (count as f64 / (count - 2) as f64).sqrt();
    let level = |place: usize| levels[usize::from(place >= at)];
    let residuals = values.iter().enumerate();
    let residuals: Vec<f64> = residuals
        .map(|(place, value)| (value - level(place)) * wider)
        .collect();
    let seed = values.iter().fold(at as u64, |seed, value| {
        seed.rotate_left(7) ^ value.to_bits()
    });
    let mut draws = Draws::new(seed);
    let mut off: Vec<isize> = (0..RESAMPLED)
        .map(|_| {
            let drawn = (0..count).map(|place| level(place) + residuals[draws.below(count)]);
            let again = least_squares(&drawn.collect::<Vec<f64>>());
            again as isize - at as isize
        })
        .collect();
    off.sort_unstable();
    let tail = ((1.0 - CONFIDENCE) / 2.0 * RESAMPLED as f64) as usize;
    let (low, high) = (off[tail], off[RESAMPLED - 1 - tail]);
    let bounded =
        |place: isize| place.clamp(LEAST_RUNS as isize, (count - LEAST_RUNS) as isize) as usize;
    let at = at as isize;
    (bounded(at - high.max(0)), bounded(at - low.min(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_without_noise_is_at_its_run() {
        let values = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0];
        let expected = Placed {
            at: 5,
            from: 5,
            to: 5,
        };
        assert_eq!(place(&values, 3), expected);
    }

    #[test]
    fn one_wild_run_does_not_move_the_place() {
        let mut values: Vec<f64> = (0..20).map(|run| f64::from(run % 3)).collect();
        for value in &mut values[12..] {
            *value += 6.0;
        }
        assert_eq!(place(&values, 12).at, 12);
        values[4] = 1e6;
        assert_eq!(place(&values, 12).at, 12);
    }

    #[test]
    fn the_interval_is_wide_where_the_levels_are_near() {
        let noise = [0.3, -0.8, 0.9, -0.2, -0.7, 0.6, 0.1, -0.9, 0.8, -0.1];
        let series = |step: f64| -> Vec<f64> {
            let run = |run: usize| noise[run % 10] + if run >= 10 { step } else { 0.0 };
            (0..20).map(run).collect()
        };
        let [near, far] = [1.2, 8.0].map(|step| place(&series(step), 10));
        assert_eq!((far.from, far.to), (10, 10));
        assert!(near.to - near.from >= 4, "{near:?}");
        assert!((near.from..=near.to).contains(&10), "{near:?}");
    }
}
