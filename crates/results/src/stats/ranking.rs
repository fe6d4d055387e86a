//! In which order several things come by their rounds, and which of them cannot be distinguished.
//!
//! The order is that of the medians. The search for the best of many looks at all pairs, and among many pairs some
//! differ by chance. So all pairs are one family with one error, shared by Holm's procedure (Scandinavian Journal of
//! Statistics 6, 1979): the probability that any two equals are distinguished is at most the error. Each pair is
//! compared by Mann and Whitney's test, as in [`rank`](super::rank).

use super::modes::median_of;
use super::rank::{Shift, Test, rounds_needed, rounds_to_show};
use crate::sorting::sort_by;

/// The probability that equals are distinguished.
pub const ERROR: f64 = 0.05;

/// An order, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The item at each place, best first.
    pub order: Vec<usize>,
    /// By place and place, whether the two are distinguished.
    told: Vec<Vec<bool>>,
    /// By place, what [`Self::rounds_from_first`] gives.
    from_first: Vec<Option<usize>>,
    /// The least number of rounds that any of them has.
    pub rounds: usize,
}

impl Ranking {
    /// Of the figures of rounds of each, at least one of each.
    pub fn of(figures: &[Vec<f64>], higher_is_better: bool) -> Self {
        let sign = if higher_is_better { -1.0 } else { 1.0 };
        let medians = figures.iter().map(|rounds| median_of(rounds));
        let medians: Vec<f64> = medians.map(|it| sign * it.unwrap_or(f64::NAN)).collect();
        let mut order: Vec<usize> = (0..figures.len()).collect();
        sort_by(&mut order, |one, other| {
            medians[*one].total_cmp(&medians[*other])
        });
        let mut pairs = Vec::new();
        for place in 0..order.len() {
            for behind in place + 1..order.len() {
                let [better, worse] = [place, behind].map(|place| &figures[order[place]]);
                let shift = Shift::of_samples(better, worse, ERROR);
                // A difference against the order shows nothing.
                let shift = shift.filter(|shift| sign * shift.value > 0.0);
                pairs.push((shift.map_or(1.0, |shift| shift.p_value), place, behind));
            }
        }
        sort_by(&mut pairs, |(one, ..), (other, ..)| one.total_cmp(other));
        let mut told = vec![vec![false; order.len()]; order.len()];
        // The error left to each pair, which grows with those that are distinguished.
        let mut error = ERROR;
        for (before, &(p_value, place, behind)) in pairs.iter().enumerate() {
            error = ERROR / (pairs.len() - before) as f64;
            if p_value > error {
                break;
            }
            told[place][behind] = true;
            told[behind][place] = true;
        }
        let from_first = |&at: &usize| {
            let [better, worse] = [&figures[order[0]], &figures[at]];
            let [low, high] = if higher_is_better {
                [worse, better]
            } else {
                [better, worse]
            };
            rounds_to_show(low, high, error)
        };
        Ranking {
            from_first: order.iter().map(from_first).collect(),
            order,
            told,
            rounds: figures.iter().map(Vec::len).min().unwrap_or(0),
        }
    }

    /// All pairs.
    pub const fn pairs(&self) -> usize {
        self.order.len() * self.order.len().saturating_sub(1) / 2
    }

    /// The other places that cannot be distinguished from this one, in order.
    pub fn alike(&self, place: usize) -> Vec<usize> {
        let others = (0..self.order.len()).filter(|other| *other != place);
        others.filter(|other| !self.told[place][*other]).collect()
    }

    /// About how many rounds would distinguish this place from the first, with the error that the distinguished pairs
    /// leave to the rest; `None` for the first itself and as for [`rounds_to_show`].
    pub fn rounds_from_first(&self, place: usize) -> Option<usize> {
        self.from_first[place]
    }

    /// How many rounds it takes before a pair could be distinguished, if these are fewer and none was: where things
    /// have different numbers of rounds, those with enough can be.
    pub fn rounds_needed(&self) -> Option<usize> {
        let needed = rounds_needed(Test::MannWhitney, ERROR / self.pairs().max(1) as f64);
        let any_told = self.told.iter().flatten().any(|told| *told);
        (self.rounds < needed && !any_told).then_some(needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    fn around(middles: &[f64], rounds: usize) -> Vec<Vec<f64>> {
        let round = |middle: f64, round: usize| middle + 0.001 * ((round * 7) % 9) as f64;
        let of = |middle: &f64| (0..rounds).map(|at| round(*middle, at)).collect();
        middles.iter().map(of).collect()
    }

    #[test]
    fn what_is_far_apart_is_told_apart_in_the_order_of_the_medians() {
        let figures = around(&[3.0, 1.0, 2.0, 1.0], 9);
        for (higher_is_better, order, alike) in [
            (false, [1, 3, 2, 0], [vec![1], vec![0], vec![], vec![]]),
            (true, [0, 2, 1, 3], [vec![], vec![], vec![3], vec![2]]),
        ] {
            let ranking = Ranking::of(&figures, higher_is_better);
            assert_eq!(ranking.order, order);
            assert_eq!([0, 1, 2, 3].map(|place| ranking.alike(place)), alike);
            assert_eq!(ranking.rounds_needed(), None);
        }
    }

    #[test]
    fn too_few_rounds_tell_nothing_and_say_how_many_would() {
        let middles: Vec<f64> = (0..21).map(f64::from).collect();
        let few = Ranking::of(&around(&middles, 7), false);
        assert_eq!((few.pairs(), few.rounds_needed()), (210, Some(8)));
        assert!((0..21).all(|place| few.alike(place).len() == 20));
        let enough = Ranking::of(&around(&middles, 8), false);
        assert_eq!(enough.rounds_needed(), None);
        assert!((0..21).all(|place| enough.alike(place).is_empty()));
    }

    #[test]
    fn where_one_has_too_few_rounds_what_the_others_tell_stands() {
        let mut figures = around(&[1.0, 2.0, 3.0], 9);
        figures[2].truncate(2);
        let ranking = Ranking::of(&figures, false);
        let alike = [0, 1, 2].map(|place| ranking.alike(place));
        assert_eq!(alike, [vec![2], vec![2], vec![0, 1]]);
        assert_eq!((ranking.rounds, ranking.rounds_needed()), (2, None));
    }

    #[test]
    fn of_equals_any_are_told_apart_as_rarely_as_was_asked() {
        let mut noise = Noise::new(1);
        let trials = 500;
        let mistaken = (0..trials).filter(|_| {
            let mut rounds = || (0..9).map(|_| noise.share()).collect();
            let figures: Vec<Vec<f64>> = (0..10).map(|_| rounds()).collect();
            let ranking = Ranking::of(&figures, true);
            (0..10).any(|place| ranking.alike(place).len() < 9)
        });
        // Each pair at an error of 5 % would be wrong in most trials.
        assert!(mistaken.count() <= trials / 20);
    }

    #[test]
    fn what_is_shown_leaves_the_rest_of_the_error_to_the_others() {
        // The last is far away: two pairs are shown at once. The first two have p of a third to all of the error.
        let first: Vec<f64> = (0..10).map(f64::from).collect();
        let second = [4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5, 12.5, 2.5];
        let third: Vec<f64> = (100..110).map(f64::from).collect();
        let shift = Shift::of_samples(&first, &second, ERROR).unwrap();
        assert!(shift.p_value > ERROR / 3.0, "{shift:?}");
        assert!(shift.p_value < ERROR, "{shift:?}");
        let ranking = Ranking::of(&[first, second.to_vec(), third], false);
        assert!((0..3).all(|place| ranking.alike(place).is_empty()));
    }
}
