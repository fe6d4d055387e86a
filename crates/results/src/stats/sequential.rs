//! Whether a median is below a limit, decided as soon as rounds show it: a sign test that is looked at after each round.
//!
//! A round is below the limit or not. Where the median is at the limit or beyond, each side has a probability of one half
//! at the most, whatever the distribution. Looking again after each round makes an error more likely than looking once,
//! so that the error is spent over the looks (Lan and DeMets, Discrete sequential boundaries for clinical trials,
//! Biometrika 70, 1983): 1/64 at the sixth round, which is what six equal rounds take, and the rest evenly. How many
//! rounds may be on the other side follows from the exact probabilities of these counts.
//!
//! Rounds are taken as independent.

use super::confidence::CONFIDENCE;

/// From this many rounds on a median is judged.
pub const LEAST_ROUNDS: u32 = 6;

/// The test of up to a number of rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequentialTest {
    /// For each number of rounds, from [`LEAST_ROUNDS`] on, how many of them may be on the other side.
    most_others: Vec<u32>,
}

/// Where a median is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Below the limit.
    Below,
    /// At the limit, or above.
    NotBelow,
}

impl SequentialTest {
    /// One that may take this many rounds, of which there are at least [`LEAST_ROUNDS`].
    pub fn new(most_rounds: u32) -> Self {
        let first = 0.5_f64.powi(LEAST_ROUNDS as i32);
        let rest = (1.0 - CONFIDENCE) / 2.0 - first;
        let looks_after_first = f64::from((most_rounds - LEAST_ROUNDS).max(1));
        // The probability of each number of rounds on the other side, without what was decided before.
        let mut undecided = vec![1.0];
        let mut spent = 0.0;
        let mut decided = 0;
        let mut most_others = Vec::new();
        for round in 1..=most_rounds {
            undecided.push(0.0);
            for others in (decided..undecided.len()).rev() {
                let other = others.checked_sub(1).map_or(0.0, |it| undecided[it]);
                undecided[others] = f64::midpoint(undecided[others], other);
            }
            if round < LEAST_ROUNDS {
                continue;
            }
            let may_spend = first + rest * f64::from(round - LEAST_ROUNDS) / looks_after_first;
            while spent + undecided[decided] <= may_spend {
                spent += std::mem::take(&mut undecided[decided]);
                decided += 1;
            }
            most_others.push(decided as u32 - 1);
        }
        SequentialTest { most_others }
    }

    /// The most rounds.
    pub fn most_rounds(&self) -> u32 {
        self.most_others.len() as u32 + LEAST_ROUNDS - 1
    }

    /// What the first rounds that decide it show; none if it is open. A NaN is not below.
    pub fn side(&self, figures: impl IntoIterator<Item = f64>, limit: f64) -> Option<Side> {
        let mut counts = [0; 2];
        for (round, figure) in figures.into_iter().enumerate() {
            counts[usize::from(figure < limit)] += 1;
            let look = (round + 1).checked_sub(LEAST_ROUNDS as usize);
            let Some(most_others) = look.and_then(|look| self.most_others.get(look)) else {
                continue;
            };
            let [not_below, below] = counts;
            match (not_below <= *most_others, below <= *most_others) {
                (true, _) => return Some(Side::Below),
                (_, true) => return Some(Side::NotBelow),
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how many of all equally likely courses the median is judged to be on each side.
    fn judged(test: &SequentialTest) -> [u32; 2] {
        let rounds = test.most_rounds();
        let mut counts = [0; 2];
        for course in 0..1_u32 << rounds {
            let figures = (0..rounds).map(|round| f64::from(course >> round & 1));
            match test.side(figures, 0.5) {
                Some(Side::Below) => counts[0] += 1,
                Some(Side::NotBelow) => counts[1] += 1,
                None => {}
            }
        }
        counts
    }

    #[test]
    fn a_median_at_the_limit_is_taken_for_one_on_a_side_in_at_most_2_and_a_half_per_cent_of_all_courses()
     {
        for rounds in LEAST_ROUNDS..=16 {
            let [below, not_below] = judged(&SequentialTest::new(rounds));
            assert_eq!(below, not_below);
            let share = f64::from(below) / f64::from(1 << rounds);
            assert!(share <= 0.025, "{rounds} rounds: {share}");
            // Nothing is wasted: the bounds of a single look take as much at six rounds.
            assert!(share >= 1.0 / 64.0, "{rounds} rounds: {share}");
        }
    }

    #[test]
    fn the_numbers_on_the_other_side_are_those_of_another_computation() {
        // By sums of binomial coefficients over all courses that are undecided, in Python.
        let grows_at = [6, 12, 16, 19, 22, 24, 27, 30, 32, 35, 37, 40];
        let test = SequentialTest::new(40);
        for (look, most) in test.most_others.iter().enumerate() {
            let rounds = look as u32 + LEAST_ROUNDS;
            let expected = grows_at.iter().filter(|it| **it <= rounds).count() as u32 - 1;
            assert_eq!(*most, expected, "{rounds} rounds");
        }
        assert_eq!((test.most_others.len(), test.most_rounds()), (35, 40));
        assert_eq!(SequentialTest::new(6).most_others, [0]);
    }

    #[test]
    fn the_first_rounds_that_decide_count_and_a_nan_is_not_below() {
        let test = SequentialTest::new(12);
        let six = [1.0; 6];
        assert_eq!(test.side(six, 2.0), Some(Side::Below));
        assert_eq!(test.side(six, 1.0), Some(Side::NotBelow));
        assert_eq!(test.side([1.0; 5], 2.0), None);
        let then = [six, [3.0; 6]].concat();
        assert_eq!(test.side(then, 2.0), Some(Side::Below));
        assert_eq!(test.side([f64::NAN; 6], 2.0), Some(Side::NotBelow));
        let mixed = [1.0, 3.0].into_iter().cycle();
        assert_eq!(test.side(mixed.take(12), 2.0), None);
    }
}
