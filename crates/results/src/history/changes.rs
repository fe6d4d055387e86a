//! All changes of a series of runs.

use std::collections::BTreeMap;
use std::ops::Range;

use super::ERROR;
use super::null::NullScores;
use super::place::place;
use super::scan::Scan;

/// Permutations by which a probability is known, at least.
const PERMUTATIONS: usize = 19_999;
/// As many for each series that is judged: the least probability is far below its share of the error.
const PERMUTATIONS_EACH: usize = 100;

/// A run from which on a figure is another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The first run of the new level, from 0.
    pub at: usize,
    /// The least run that it may be.
    pub from: usize,
    /// The greatest run that it may be.
    pub to: usize,
    /// The probability of a change as clear anywhere in series without any, over all that are judged together.
    pub p: f64,
}

/// Finds changes in series that are judged together.
#[derive(Debug)]
pub struct Detector {
    series: usize,
    /// By the number of runs.
    known: BTreeMap<usize, (Scan, NullScores)>,
}

impl Detector {
    /// Of this many series that are judged together: each figure of each point is one.
    pub fn new(series: usize) -> Self {
        Detector {
            series: series.max(1),
            known: BTreeMap::new(),
        }
    }

    fn of_length(&mut self, runs: usize) -> &(Scan, NullScores) {
        let permutations = PERMUTATIONS.max(PERMUTATIONS_EACH * self.series);
        self.known.entry(runs).or_insert_with(|| {
            let scan = Scan::new(runs);
            let null = NullScores::of(&scan, runs, permutations);
            (scan, null)
        })
    }

    /// Whether any order of this many runs would show a change.
    pub fn can_show(&mut self, runs: usize) -> bool {
        let series = self.series as f64;
        let (scan, null) = self.of_length(runs);
        scan.most() > 0.0 && series * null.probability(scan.most()) <= ERROR
    }

    /// At how many runs from either end of a series of this many no change can be shown: of those at the end, none yet.
    pub fn unseen(&mut self, runs: usize) -> usize {
        let series = self.series as f64;
        let (scan, null) = self.of_length(runs);
        let shows = |level: &usize| {
            let most = scan.most_beside(*level);
            most.is_some_and(|most| series * null.probability(most) <= ERROR)
        };
        (1..=runs / 2).find(shows).map_or(runs, |level| level - 1)
    }

    /// How many runs it takes to show any change.
    pub fn runs_needed(&mut self) -> usize {
        let mut runs = 2 * super::LEAST_RUNS;
        while !self.can_show(runs) {
            runs += 1;
        }
        runs
    }

    /// The changes of a series, in its order.
    pub fn changes(&mut self, values: &[f64]) -> Vec<Change> {
        let series = self.series as f64;
        let (scan, null) = self.of_length(values.len());
        let mut found: Vec<(usize, f64)> = Vec::new();
        let mut parts: Vec<Range<usize>> = std::iter::once(0..values.len()).collect();
        while let Some(part) = parts.pop() {
            let Some(largest) = scan.largest(values, &part) else {
                continue;
            };
            let p = (series * null.probability(largest.score)).min(1.0);
            if p <= ERROR {
                found.push((largest.at, p));
                parts.push(part.start..largest.at);
                parts.push(largest.at..part.end);
            }
        }
        found.sort_by_key(|(at, _)| *at);
        placed(values, &found)
    }
}

/// Each change, placed between the one before it, which is placed, and the next one: the places are in order, with a
/// level between two of them.
fn placed(values: &[f64], found: &[(usize, f64)]) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::new();
    for (number, (near, p)) in found.iter().enumerate() {
        let start = all.last().map_or(0, |before| before.at);
        let end = found.get(number + 1).map_or(values.len(), |after| after.0);
        let here = place(&values[start..end], near - start);
        all.push(Change {
            at: start + here.at,
            from: start + here.from,
            to: start + here.to,
            p: *p,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    fn series(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut noise = Noise::new(seed);
        let level = |(runs, level): &(usize, f64)| vec![*level; *runs];
        let levels = levels.iter().flat_map(level);
        levels.map(|level| level + noise.normal()).collect()
    }

    #[test]
    fn a_step_is_found_at_its_run_and_one_that_is_undone_is_found_twice() {
        let mut detector = Detector::new(3);
        for seed in 1..10 {
            // Chance may add another one.
            let found = detector.changes(&series(&[(12, 0.0), (18, 6.0)], seed));
            let one = found.iter().min_by(|one, other| one.p.total_cmp(&other.p));
            let one = one.unwrap();
            assert_eq!(one.at, 12, "{seed}");
            assert!(one.from <= 12 && 12 <= one.to && one.p < 0.01, "{one:?}");
        }
        let found = detector.changes(&series(&[(12, 0.0), (12, 5.0), (12, 0.0)], 2));
        let places: Vec<usize> = found.iter().map(|it| it.at).collect();
        assert_eq!(places, [12, 24]);
        assert_eq!(detector.changes(&series(&[(30, 0.0)], 3)), []);
    }

    #[test]
    fn changes_of_waves_and_saws_are_in_order_with_a_level_between_them() {
        let mut detector = Detector::new(3);
        let mut several = 0;
        for period in 8..40 {
            let wave = |run: usize| (run as f64 * std::f64::consts::TAU / f64::from(period)).sin();
            let saw = |run: usize| f64::from(run as u32 % period);
            for form in [&wave as &dyn Fn(usize) -> f64, &saw] {
                let values: Vec<f64> = (0..60).map(form).collect();
                let found = detector.changes(&values);
                several += usize::from(found.len() > 1);
                let ends = [0].into_iter().chain(found.iter().map(|it| it.at));
                let ends: Vec<usize> = ends.chain([values.len()]).collect();
                let is_apart = |it: &[usize]| it[0] + super::super::LEAST_RUNS <= it[1];
                assert!(ends.windows(2).all(is_apart), "{ends:?}");
            }
        }
        assert!(several > 20, "{several}");
    }

    #[test]
    fn more_series_take_more_runs() {
        let mut few = Detector::new(1);
        let mut many = Detector::new(300);
        let (few, many) = (few.runs_needed(), many.runs_needed());
        assert!(few < many && few >= 8 && many <= 20, "{few} {many}");
        for runs in 0..8 {
            assert!(!Detector::new(1).can_show(runs));
            assert_eq!(Detector::new(1).changes(&vec![1.0; runs]), []);
        }
    }

    #[test]
    fn a_level_of_fewer_runs_than_are_stated_is_not_found_and_one_of_more_is() {
        let mut detector = Detector::new(3);
        let runs = 30;
        let unseen = detector.unseen(runs);
        let mut found = |level: usize| {
            let values = series(&[(runs - level, 0.0), (level, 1e3)], 5);
            let changes = detector.changes(&values);
            changes.iter().any(|it| it.at == runs - level)
        };
        assert!(
            unseen >= 2 && !found(unseen) && found(unseen + 1),
            "{unseen}"
        );
        assert_eq!(Detector::new(3).unseen(8), 8);
    }

    #[test]
    fn equal_figures_are_no_change_and_a_step_of_equal_figures_is_one() {
        let mut detector = Detector::new(3);
        assert_eq!(detector.changes(&[7.0; 30]), []);
        let step = [[7.0; 15], [8.0; 15]].concat();
        let [one] = detector.changes(&step)[..] else {
            panic!("one change");
        };
        assert_eq!((one.at, one.from, one.to), (15, 15, 15));
    }
}
