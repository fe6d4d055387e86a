//! Whether the figures of several runs fall into two groups.
//!
//! A queue can settle into one of two rhythms for a whole run, depending on how the threads started. A mean or a median
//! over such runs is a figure that never occurred, so it must be known.

use serde::Serialize;

/// The gap between the groups is more than this many times the spread of either.
pub const GAP_TO_SPREAD: f64 = 3.0;
/// And more than this share of the median of all: smaller differences are of no consequence.
pub const GAP_TO_MEDIAN: f64 = 0.1;
/// A group has at least this many runs: one alone is an outlier.
pub const SMALLEST_GROUP: usize = 2;
/// From this many runs on, a single lowest or highest one does not hide two groups.
pub const RUNS_WITH_OUTLIER: usize = 7;

/// Two groups of runs, far from each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TwoModes {
    /// The median of the lower group.
    pub low: f64,
    /// The runs in it.
    pub low_runs: usize,
    /// The median of the higher group.
    pub high: f64,
    /// The runs in it.
    pub high_runs: usize,
}

impl TwoModes {
    /// Parts the figures of several runs, in any order, at the largest gap between two neighbours that leaves a group
    /// of `SMALLEST_GROUP` on either side; `None` if there is no such gap or it is too small by `GAP_TO_SPREAD` or
    /// `GAP_TO_MEDIAN`. Where there are `RUNS_WITH_OUTLIER`, it is tried once more without the highest and without the
    /// lowest, which then counts for the group on its side.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let found = Self::of_sorted(&sorted);
        if found.is_some() || sorted.len() < RUNS_WITH_OUTLIER {
            return found;
        }
        if let Some(mut modes) = Self::of_sorted(&sorted[..sorted.len() - 1]) {
            modes.high_runs += 1;
            return Some(modes);
        }
        let mut modes = Self::of_sorted(&sorted[1..])?;
        modes.low_runs += 1;
        Some(modes)
    }

    fn of_sorted(sorted: &[f64]) -> Option<Self> {
        let last = sorted.len().checked_sub(SMALLEST_GROUP)?;
        let gap_at = |place: usize| sorted[place] - sorted[place - 1];
        let place = (SMALLEST_GROUP..=last)
            .max_by(|&one, &other| f64::total_cmp(&gap_at(one), &gap_at(other)))?;
        let (low, high) = sorted.split_at(place);
        let spread = |group: &[f64]| group[group.len() - 1] - group[0];
        let wide = gap_at(place) > GAP_TO_SPREAD * spread(low).max(spread(high));
        let large = gap_at(place) > GAP_TO_MEDIAN * median(sorted).abs();
        (wide && large).then(|| TwoModes {
            low: median(low),
            low_runs: low.len(),
            high: median(high),
            high_runs: high.len(),
        })
    }
}

/// The median of ascending figures, of which there is at least one.
pub(super) fn median(sorted: &[f64]) -> f64 {
    let last = sorted.len() - 1;
    f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)])
}

/// The median of figures in any order; `None` without any.
pub fn median_of(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| median(&sorted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_groups_far_apart_are_two_modes() {
        let modes = TwoModes::of(&[81.0, 40.0, 41.0, 80.0, 42.0, 82.0, 40.0, 41.0, 41.0]).unwrap();
        assert_eq!((modes.low, modes.low_runs), (41.0, 6));
        assert_eq!((modes.high, modes.high_runs), (81.0, 3));
    }

    #[test]
    fn one_run_apart_is_an_outlier() {
        assert_eq!(TwoModes::of(&[40.0, 41.0, 42.0, 40.0, 400.0]), None);
        // It does not hide two groups either, unless it belongs to one and makes that wide.
        assert!(TwoModes::of(&[40.0, 40.0, 80.0, 81.0, 82.0]).is_some());
    }

    #[test]
    fn one_run_apart_does_not_hide_two_modes() {
        let mut figures = [[40.0; 7].as_slice(), &[80.0; 6]].concat();
        figures.push(400.0);
        let modes = TwoModes::of(&figures).unwrap();
        assert_eq!((modes.low, modes.low_runs), (40.0, 7));
        assert_eq!((modes.high, modes.high_runs), (80.0, 7));
        *figures.last_mut().unwrap() = 1.0;
        let modes = TwoModes::of(&figures).unwrap();
        assert_eq!((modes.low_runs, modes.high_runs), (8, 6));
        // Nor does it make two of one.
        let one = [1.0, 40.0, 41.0, 42.0, 43.0, 44.0, 400.0];
        assert_eq!(TwoModes::of(&one), None);
    }

    #[test]
    fn an_even_spread_a_small_gap_and_too_few_runs_are_one_mode() {
        let even: Vec<f64> = (0..9).map(|run| 40.0 + f64::from(run)).collect();
        assert_eq!(TwoModes::of(&even), None);
        assert_eq!(TwoModes::of(&[40.0, 40.0, 41.0, 41.0]), None);
        assert!(TwoModes::of(&[4.0, 4.0, 5.0, 5.0]).is_some());
        for count in 0..4 {
            assert_eq!(TwoModes::of(&[1.0, 1.0, 100.0][..count]), None);
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median_of(&[]), None);
        assert_eq!(median_of(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median_of(&[4.0, 1.0]), Some(2.5));
    }

    proptest! {
        #[test]
        fn groups_are_apart_and_complete(figures in prop::collection::vec(0.0_f64..1000.0, 0..20)) {
            if let Some(modes) = TwoModes::of(&figures) {
                prop_assert_eq!(modes.low_runs + modes.high_runs, figures.len());
                prop_assert!(modes.low_runs >= SMALLEST_GROUP && modes.high_runs >= SMALLEST_GROUP);
                prop_assert!(modes.low < modes.high);
            }
        }
    }
}
