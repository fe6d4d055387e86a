//! The difference of a figure between two runs: its interval, and whether it can be chance.
//!
//! One comparison in twenty shows a difference at 95 % where there is none. Of a sweep with a hundred comparisons some
//! would always do so; [`Difference::of`] therefore makes the interval of each so wide that all of them hold together in at
//! least 95 of 100 runs (Bonferroni), and the verdict follows from that interval. It needs no assumption about how the
//! comparisons depend on each other.

use super::bootstrap::Estimate;

/// How often all intervals of a comparison together may fail.
pub const ERROR: f64 = 0.05;

/// The difference between two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// NEW less BASE.
    pub value: f64,
    /// The 95 % interval of this comparison by itself.
    pub alone: (f64, f64),
    /// The interval that holds together with those of all other comparisons in 95 of 100 runs.
    pub together: (f64, f64),
    /// How often chance alone would bring a difference like this, for this comparison by itself.
    pub p_value: f64,
    /// Whether it is told apart, all comparisons considered: zero lies outside of `together`, by more than the
    /// resolution, and there are [enough](Self::enough) units and events for that to mean something.
    pub shown: bool,
    /// Whether a difference could be shown at all, however large: with so many comparisons, few units or few replicates
    /// cannot.
    pub can_be_shown: bool,
    /// Whether a count is made of enough events: where they are too few, chance has them all in one run more often than
    /// `together` makes believe, which leaves zero outside.
    pub enough_events: bool,
}

impl Difference {
    /// The difference of `new` to `base`, as one of so many `comparisons`. Differences up to `resolution`, in the
    /// figures' unit, are never shown: the clock cannot tell them.
    ///
    /// # Panics
    /// When the estimates have different numbers of replicates, none, or one that is not a number.
    pub fn of(base: &Estimate, new: &Estimate, comparisons: usize, resolution: f64) -> Self {
        assert_eq!(base.replicates.len(), new.replicates.len());
        assert!(!base.replicates.is_empty());
        let mut differences: Vec<f64> = base
            .replicates
            .iter()
            .zip(&new.replicates)
            .map(|(&base, &new)| between(base, new))
            .collect();
        assert!(
            !differences.iter().any(|difference| difference.is_nan()),
            "a difference is a number"
        );
        differences.sort_unstable_by(f64::total_cmp);
        let count = differences.len();
        let not_above = differences.partition_point(|&difference| difference <= 0.0);
        let below = differences.partition_point(|&difference| difference < 0.0);
        let tail = not_above.min(count - below);
        // The least that such units and so many replicates can give.
        let least = least_p(base.units.len(), new.units.len()).max(2.0 / (count + 1) as f64);
        let of_events = least_p_of_events(base.events, new.events);
        let p_value = (2.0 * (tail + 1) as f64 / (count + 1) as f64)
            .max(least)
            .max(of_events)
            .min(1.0);
        let alone = interval(&differences, ERROR);
        let allowed = ERROR / comparisons.max(1) as f64;
        let together = interval(&differences, allowed);
        let (can_be_shown, apart) = (
            least <= allowed,
            together.0 > resolution || together.1 < -resolution,
        );
        let enough_events = !apart || of_events <= allowed;
        Difference {
            value: between(base.value, new.value),
            alone,
            together,
            p_value,
            shown: apart && can_be_shown && enough_events,
            can_be_shown,
            enough_events,
        }
    }

    /// Whether there are enough units, replicates and events for a verdict.
    pub fn enough(&self) -> bool {
        self.can_be_shown && self.enough_events
    }
}

/// Two that never came do not differ.
fn between(base: f64, new: f64) -> f64 {
    if base == new { 0.0 } else { new - base }
}

/// What leaves `error` outside, half of it on either side; at the most all that was drawn.
fn interval(sorted: &[f64], error: f64) -> (f64, f64) {
    let outside = ((sorted.len() + 1) as f64 * error / 2.0).floor() as usize;
    let outside = outside.clamp(1, sorted.len());
    (sorted[outside - 1], sorted[sorted.len() - outside])
}

/// Chance alone puts all units of one run above all of the other so often, however far apart they lie: no figure made of
/// so few units can say more.
fn least_p(base: usize, new: usize) -> f64 {
    let ways: f64 = (1..=base).map(|k| (new + k) as f64 / k as f64).product();
    2.0 / ways
}

/// Chance alone has all events of two equal runs in one of them so often, however many there are: what holds no events has
/// none to tell its spread by. Of figures that are no counts of events it says nothing.
fn least_p_of_events(base: Option<f64>, new: Option<f64>) -> f64 {
    match (base, new) {
        (Some(base), Some(new)) => 2.0 * 0.5_f64.powf(base + new),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::bootstrap::{Resampling, Series};

    fn of_runs(base: &[f64], new: &[f64], comparisons: usize, resolution: f64) -> Difference {
        let resampling = Resampling::for_comparisons(comparisons);
        let estimate = |figures: &[f64], resampling| {
            Series::of_runs(figures.to_vec())
                .percentile(50.0, resampling)
                .unwrap()
        };
        let base = estimate(base, resampling);
        let new = estimate(new, resampling.of_the_other());
        Difference::of(&base, &new, comparisons, resolution)
    }

    #[test]
    fn nine_runs_apart_differ_and_the_same_nine_do_not() {
        let base = [10.0, 11.0, 12.0, 10.5, 11.5, 10.2, 11.8, 10.9, 11.1];
        let new = base.map(|figure| figure + 10.0);
        let found = of_runs(&base, &new, 1, 0.0);
        assert_eq!(found.value, 10.0);
        assert!(found.shown, "{found:?}");
        assert!(found.alone.0 <= 10.0 && 10.0 <= found.alone.1, "{found:?}");
        assert!(found.together.0 > 0.0);
        let same = of_runs(&base, &base, 1, 0.0);
        assert_eq!(same.value, 0.0);
        assert!(!same.shown, "{same:?}");
    }

    #[test]
    fn an_interval_of_many_comparisons_is_wider() {
        // In an order in which neighbours do not go with each other.
        let base: Vec<f64> = (0..40).map(|run| f64::from(run * 17 % 40)).collect();
        let new: Vec<f64> = (0..40).map(|run| f64::from(run * 17 % 40) + 15.0).collect();
        let (one, many) = (of_runs(&base, &new, 1, 0.0), of_runs(&base, &new, 200, 0.0));
        assert!(many.together.0 < one.together.0 && one.together.1 < many.together.1);
        assert_eq!(one.together, one.alone);
    }

    #[test]
    fn few_runs_say_little_however_far_apart() {
        let (base, new) = ([1.0; 6], [100.0; 6]);
        // 924 ways to part twelve into six and six.
        assert!((least_p(6, 6) - 2.0 / 924.0).abs() < 1e-12);
        let shown = |comparisons| {
            let found = of_runs(&base, &new, comparisons, 0.0);
            (found.shown, found.can_be_shown)
        };
        assert_eq!(shown(20), (true, true));
        assert_eq!(shown(24), (false, false));
    }

    #[test]
    fn of_more_comparisons_than_replicates_allow_nothing_can_be_shown() {
        let base: Vec<f64> = (0..40).map(|run| f64::from(run * 17 % 40)).collect();
        let new: Vec<f64> = base.iter().map(|figure| figure + 1000.0).collect();
        let shown = |comparisons| {
            let found = of_runs(&base, &new, comparisons, 0.0);
            (found.shown, found.can_be_shown)
        };
        assert_eq!(shown(1000), (true, true));
        assert_eq!(shown(1001), (false, false));
    }

    /// A verdict and the interval beside it say the same, or there is no verdict.
    #[test]
    fn counts_of_events_differ_where_their_interval_leaves_zero_outside_or_are_not_judged() {
        let events = |count: usize, resampling| {
            let mut samples = vec![0.0; 640];
            // Each in a block of its own, which do not go with each other.
            for event in 0..count {
                samples[event * 27 % 64 * 10] = f64::INFINITY;
            }
            Series::new(samples, vec![640])
                .share_missing(resampling)
                .unwrap()
        };
        let mut not_judged = Vec::new();
        for comparisons in [1, 2, 5, 20] {
            let resampling = Resampling::for_comparisons(comparisons);
            for base in 0..10 {
                for new in 0..10 {
                    let found = Difference::of(
                        &events(base, resampling),
                        &events(new, resampling.of_the_other()),
                        comparisons,
                        0.0,
                    );
                    let told = format!("{base} and {new}, {comparisons}: {found:?}");
                    let outside = found.together.0 > 0.0 || found.together.1 < 0.0;
                    assert!(found.can_be_shown, "{told}");
                    assert_eq!(found.shown, outside && found.enough(), "{told}");
                    let allowed = ERROR / comparisons as f64;
                    assert_eq!(found.shown, found.p_value <= allowed, "{told}");
                    if !found.enough() {
                        not_judged.push((base, new, comparisons));
                    }
                }
            }
        }
        // Six in one run come by chance in one of 32 cases, which is enough for one comparison but not for two.
        let is_not_judged = |one| not_judged.contains(&one);
        assert!(is_not_judged((0, 6, 2)) && is_not_judged((6, 0, 2)));
        assert!(!is_not_judged((0, 6, 1)) && !is_not_judged((0, 8, 2)));
        // Of a single one, and of none, the interval is wide enough.
        assert!(!not_judged.iter().any(|&(base, new, _)| base.max(new) < 2));
    }

    #[test]
    fn what_the_clock_cannot_tell_is_not_shown() {
        let (base, new) = ([40.0; 9], [41.0; 9]);
        assert!(of_runs(&base, &new, 1, 0.0).shown);
        assert!(!of_runs(&base, &new, 1, 1.0).shown);
    }

    #[test]
    fn what_never_came_differs_from_what_came_and_not_from_its_like() {
        let lost = [f64::INFINITY; 9];
        let found = of_runs(&[1.0; 9], &lost, 1, 0.0);
        assert_eq!(found.value, f64::INFINITY);
        assert!(found.shown);
        let both = of_runs(&lost, &lost, 1, 0.0);
        assert_eq!((both.value, both.shown), (0.0, false));
        assert_eq!(of_runs(&lost, &[1.0; 9], 1, 0.0).value, f64::NEG_INFINITY);
    }
}
