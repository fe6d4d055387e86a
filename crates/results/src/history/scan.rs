//! How much the runs before a place differ from those after it, for each place of many windows.
//!
//! A score is minus the logarithm of the probability of Mann and Whitney's test, so that windows and places of all sizes
//! can be compared. It is a measure, and no probability of the series: that is judged in [`null`](super::null).

use std::collections::BTreeMap;
use std::ops::Range;

use super::LEAST_RUNS;
use crate::stats::rank::{EXACT_FIGURES, NullDistribution, normal};

/// The shortest window: in fewer runs no order is unlikely.
const SHORTEST: usize = 2 * LEAST_RUNS + 2;
/// Beyond, the logarithm of a normal tail is lost to the precision of an f64.
const FARTHEST: f64 = 37.0;
const STEPS_PER_DEVIATION: f64 = 64.0;

/// Windows over a series, and the scores of all places in them.
#[derive(Debug, Clone)]
pub struct Scan {
    windows: Vec<Range<usize>>,
    /// By the length of a window, the number of runs before the place, and the pairs of runs in the rarer order.
    exact: BTreeMap<usize, Vec<Vec<f64>>>,
    /// Of longer windows, by deviations from the mean.
    tails: Vec<f64>,
}

/// A place in a window: the first run of what differs from the runs before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// That run.
    pub at: usize,
    /// How unlikely the difference is.
    pub score: f64,
}

impl Scan {
    /// Over a series of this many runs.
    pub fn new(runs: usize) -> Self {
        let windows = windows(runs);
        let mut exact: BTreeMap<usize, Vec<Vec<f64>>> = BTreeMap::new();
        for length in windows.iter().map(|window| window.len()) {
            if length <= EXACT_FIGURES {
                exact.entry(length).or_insert_with(|| exact_scores(length));
            }
        }
        let is_longer = windows.iter().any(|window| window.len() > EXACT_FIGURES);
        let steps = (FARTHEST * STEPS_PER_DEVIATION) as usize;
        let tail = |step: usize| {
            let deviations = step as f64 / STEPS_PER_DEVIATION;
            -(2.0 * normal(-deviations)).min(1.0).ln()
        };
        Scan {
            windows,
            exact,
            tails: match is_longer {
                true => (0..=steps).map(tail).collect(),
                false => Vec::new(),
            },
        }
    }

    /// The score of a place with this many runs before it, and this many pairs of a run before and one after it in the
    /// rarer order.
    fn score(&self, length: usize, before: usize, pairs: usize) -> f64 {
        if let Some(scores) = self.exact.get(&length) {
            return scores[before - LEAST_RUNS][pairs];
        }
        let all = (before * (length - before)) as f64;
        let deviation = (all * (length + 1) as f64 / 12.0).sqrt();
        let deviations = ((all / 2.0 - pairs as f64) / deviation).clamp(0.0, FARTHEST);
        self.tails[(deviations * STEPS_PER_DEVIATION) as usize]
    }

    /// The largest score that a series can have: all runs before a place are on one side of those after it.
    pub fn most(&self) -> f64 {
        let Some(longest) = self.windows.first() else {
            return 0.0;
        };
        self.score(longest.len(), longest.len() / 2, 0)
    }

    /// The largest score of a place with this many runs between it and an end of the series.
    pub fn most_beside(&self, level: usize) -> Option<f64> {
        let mirrored = self.windows.iter().filter(|window| window.start == 0);
        let all =
            mirrored.filter(|window| (LEAST_RUNS..=window.len() - LEAST_RUNS).contains(&level));
        let scores = all.map(|window| self.score(window.len(), level, 0));
        scores.max_by(f64::total_cmp)
    }

    /// The place with the largest score in the windows within a range; none without a window. Equal figures count
    /// against a difference.
    pub fn largest(&self, values: &[f64], within: &Range<usize>) -> Option<Place> {
        let mut largest: Option<Place> = None;
        let is_within =
            |window: &&Range<usize>| within.start <= window.start && window.end <= within.end;
        for window in self.windows.iter().filter(is_within) {
            let (mut greater, mut less) = (0_usize, 0_usize);
            let here = &values[window.clone()];
            for (before, value) in here.iter().enumerate() {
                if (LEAST_RUNS..=here.len() - LEAST_RUNS).contains(&before) {
                    let all = before * (here.len() - before);
                    // Pairs in either order, with those that are equal.
                    let pairs = (all - greater).min(all - less).min(all / 2);
                    let score = self.score(here.len(), before, pairs);
                    if largest.is_none_or(|largest| score > largest.score) {
                        let at = window.start + before;
                        largest = Some(Place { at, score });
                    }
                }
                // The run goes from those after the place to those before it.
                let (earlier, later) = (&here[..before], &here[before + 1..]);
                let count = |runs: &[f64], is: fn(&f64, &f64) -> bool| {
                    runs.iter().filter(|run| is(run, value)).count()
                };
                greater = greater + count(later, f64::lt) - count(earlier, f64::gt);
                less = less + count(later, f64::gt) - count(earlier, f64::lt);
            }
        }
        largest
    }

    /// The largest score of a series in which the run at `order[0]` is the least, and so on.
    pub(super) fn largest_of_order(&self, order: &[usize], ranks: &mut [usize]) -> f64 {
        let mut largest = 0.0_f64;
        for window in &self.windows {
            let length = window.len();
            let within = order.iter().filter(|place| window.contains(place));
            for (rank, place) in within.enumerate() {
                ranks[*place] = rank;
            }
            let mut sum = 0;
            for (place, rank) in ranks[window.clone()].iter().enumerate() {
                if (LEAST_RUNS..=length - LEAST_RUNS).contains(&place) {
                    // Runs before the place that are above one after it.
                    let pairs = sum - place * (place - 1) / 2;
                    let pairs = pairs.min(place * (length - place) - pairs);
                    largest = largest.max(self.score(length, place, pairs));
                }
                sum += rank;
            }
        }
        largest
    }
}

/// Seeded intervals: from the whole series on, each layer shorter than the one before it by the root of two, and half
/// over its neighbours.
fn windows(runs: usize) -> Vec<Range<usize>> {
    let mut windows: Vec<Range<usize>> = Vec::new();
    // What is whole may be off by a little.
    const OFF: f64 = 1e-9;
    for layer in 0.. {
        let shorter = 2.0_f64.powf(f64::from(layer) / 2.0);
        let length = runs as f64 / shorter;
        if length + OFF < SHORTEST as f64 {
            break;
        }
        let count = 2 * (shorter - OFF).ceil() as usize - 1;
        let step = (runs as f64 - length) / (count.max(2) - 1) as f64;
        for number in 0..count {
            let start = number as f64 * step;
            let end = ((start + length - OFF).ceil() as usize).min(runs);
            let window = (start + OFF) as usize..end;
            if !windows.contains(&window) {
                windows.push(window);
            }
        }
    }
    windows
}

/// The scores of all places in a window of this many runs.
fn exact_scores(length: usize) -> Vec<Vec<f64>> {
    let of = |before: usize| -> Vec<f64> {
        let after = length - before;
        let null = NullDistribution::mann_whitney(before, after);
        let score = |pairs: usize| -(2.0 * null.at_most(pairs)).min(1.0).ln();
        (0..=before * after / 2).map(score).collect()
    };
    let mut scores: Vec<Vec<f64>> = Vec::new();
    for before in LEAST_RUNS..=length - LEAST_RUNS {
        // The two sides may change places.
        let mirrored = length - before;
        scores.push(match mirrored < before {
            true => scores[mirrored - LEAST_RUNS].clone(),
            false => of(before),
        });
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::rank::Shift;

    #[test]
    fn windows_are_those_of_seeded_binary_segmentation() {
        assert_eq!(windows(7), Vec::new());
        assert_eq!(windows(8).len(), 1);
        // 16 runs: one window, three of 11.3, three of 8.
        let expected = [0..16, 0..12, 2..14, 4..16, 0..8, 4..12, 8..16];
        assert_eq!(windows(16), expected);
        for runs in 8..200 {
            let all = windows(runs);
            assert_eq!(all[0], 0..runs);
            assert!(all.iter().all(|it| it.end <= runs && it.len() >= SHORTEST));
            // Each run is in a window of each layer.
            assert!(
                (0..runs)
                    .all(|run| all[1..].is_empty() || all[1..].iter().any(|it| it.contains(&run)))
            );
        }
    }

    #[test]
    fn a_score_is_the_probability_of_the_test_between_the_runs_before_and_after() {
        let values = [3.0, 1.0, 2.5, 2.0, 9.0, 8.0, 7.5, 2.2];
        let scan = Scan::new(values.len());
        let found = scan.largest(&values, &(0..8)).unwrap();
        let p = |at: usize| {
            Shift::of_samples(&values[..at], &values[at..], 0.05)
                .unwrap()
                .p_value
        };
        let least = (3..=5)
            .min_by(|one, other| p(*one).total_cmp(&p(*other)))
            .unwrap();
        assert_eq!(found.at, least);
        assert!((found.score + p(least).ln()).abs() < 1e-12, "{found:?}");
        assert_eq!(scan.largest(&values, &(0..7)), None);
        // Equal figures show nothing.
        assert_eq!(scan.largest(&[5.0; 8], &(0..8)).unwrap().score, 0.0);
    }

    #[test]
    fn orders_have_the_scores_of_the_values_that_have_them() {
        for runs in [8, 15, 31, 140] {
            let mut draws = super::super::draws::Draws::new(runs as u64);
            let scan = Scan::new(runs);
            for _ in 0..20 {
                let mut order: Vec<usize> = (0..runs).collect();
                draws.shuffle(&mut order);
                let mut values = vec![0.0; runs];
                for (rank, place) in order.iter().enumerate() {
                    values[*place] = rank as f64;
                }
                let found = scan.largest(&values, &(0..runs)).unwrap();
                assert_eq!(
                    found.score,
                    scan.largest_of_order(&order, &mut vec![0; runs])
                );
            }
        }
        let sorted: Vec<usize> = (0..15).collect();
        let scan = Scan::new(15);
        assert_eq!(scan.largest_of_order(&sorted, &mut [0; 15]), scan.most());
    }
}
