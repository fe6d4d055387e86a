//! The highest rate at which conditions hold: which rate to measure next, and when the place is found.
//!
//! The rates that may be measured are known beforehand, on a logarithmic scale of 1 % ([`candidates`]). What was
//! measured decides alone what comes next: the same observations lead to the same answer, also where a search goes on.
//!
//! A rate is measured in rounds. It holds once the median of each figure over rounds is judged to be below its limit, and
//! fails once one is judged not to be ([`SequentialTest`], from six rounds on). It is undecided if neither is so after the
//! most rounds. A share holds only where that of all rounds together is below its limit, too; it fails where that is
//! not so after the most rounds.
//!
//! The search takes rungs half a decade apart, upwards, and ends them at the first that fails above one that held, or
//! that is saturated: all above are saturated as well. A rate that fails below all that hold is passed over, since
//! latency may be worse at low rates. The gap above the highest rung that held is halved until two neighbours differ. An
//! undecided rate is left out: the search then closes in on it from both sides. Between two rungs the figures are taken
//! to get worse with the rate.

use super::confidence::lower_rank;
use super::median_of;
use super::sequential::{SequentialTest, Side};

/// The place is found if the rate that fails is at most this many times the one that holds.
pub const PRECISION: f64 = 1.05;
/// The ratio of two candidates.
const STEP: f64 = 1.01;
/// The ratio of two rungs: half a decade.
const RUNG: f64 = 3.162_277_660_168_379_5;

/// The rates from `least` to `most` that may be measured, ascending, those between the two with three digits.
pub fn candidates(least: f64, most: f64) -> Vec<f64> {
    let steps = ((most / least).ln() / STEP.ln()).ceil().max(1.0);
    let between = (1..steps as u32).map(|step| {
        let rate = least * (most / least).powf(f64::from(step) / steps);
        let digit = 10_f64.powf(rate.log10().floor() - 2.0);
        // In place of 0.30000000000000004.
        let decimals = (-digit.log10().round()).max(0.0) as usize;
        let text = format!("{:.decimals$}", (rate / digit).round() * digit);
        text.parse().unwrap_or(rate)
    });
    let mut rates = vec![least];
    rates.extend(between);
    rates.push(most);
    rates.dedup_by(|next, last| *next <= *last);
    rates
}

/// What is asked of a figure: its median over rounds is to be below this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// What it is to be below.
    pub below: f64,
    /// Whether more than that shows saturation, which no higher rate ends.
    pub is_of_capacity: bool,
    /// Whether it is a share of what a round has, so that the mean, the share of all rounds together, is to be below as
    /// well: the median shows nothing of what some rounds lose.
    pub is_share: bool,
}

/// A search with what was observed so far.
#[derive(Debug, Clone)]
pub struct RateSearch<'a> {
    rates: &'a [f64],
    limits: &'a [Limit],
    test: &'a SequentialTest,
    /// Of each rate, the figures of each round, in the order of the limits.
    observed: Vec<Vec<Vec<f64>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    Open,
    Holds,
    Fails,
    Undecided,
}

/// What comes next. Rates are given by their places among the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A round at this rate.
    Measure(usize),
    /// Nothing.
    End(Answer),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The highest rate that holds, and one that fails, no further above than [`PRECISION`].
    Found {
        /// The rate.
        holds: usize,
        /// The one above.
        fails: usize,
    },
    /// The highest candidate holds.
    AllHold(usize),
    /// No rate that was measured holds.
    NoneHolds,
    /// Rounds differ too much to decide what lies between.
    Undecided {
        /// The highest rate that holds.
        holds: Option<usize>,
        /// The lowest one above it that fails.
        fails: Option<usize>,
    },
}

impl<'a> RateSearch<'a> {
    /// Of ascending rates, of which there is at least one.
    pub fn new(rates: &'a [f64], limits: &'a [Limit], test: &'a SequentialTest) -> Self {
        RateSearch {
            rates,
            limits,
            test,
            observed: vec![Vec::new(); rates.len()],
        }
    }

    /// A round at a rate: a figure for each limit.
    pub fn observe(&mut self, place: usize, figures: Vec<f64>) {
        self.observed[place].push(figures);
    }

    /// A figure in the rounds at a rate.
    fn figures(&self, place: usize, limit: usize) -> impl Iterator<Item = f64> {
        let rounds = self.observed[place].iter();
        rounds.map(move |figures| figures[limit])
    }

    /// The median of a figure at a rate, and its bounds of 95 % once there are enough rounds.
    pub fn median(&self, place: usize, limit: usize) -> (Option<f64>, Option<[f64; 2]>) {
        let mut figures: Vec<f64> = self.figures(place, limit).collect();
        figures.sort_by(f64::total_cmp);
        let bounds = lower_rank(figures.len())
            .map(|rank| [figures[rank - 1], figures[figures.len() - rank]]);
        (median_of(&figures), bounds)
    }

    /// The mean of a figure over the rounds at a rate that have one.
    pub fn mean(&self, place: usize, limit: usize) -> Option<f64> {
        let figures = self.figures(place, limit);
        let (sum, count) = figures
            .filter(|figure| figure.is_finite())
            .fold((0.0, 0), |(sum, count), figure| (sum + figure, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// Whether each share of all rounds together is below its limit.
    fn shares_hold(&self, place: usize) -> bool {
        let mut shares = (self.limits.iter().enumerate()).filter(|(_, limit)| limit.is_share);
        shares.all(|(number, limit)| (self.mean(place, number)).is_some_and(|it| it < limit.below))
    }

    /// On which side of each limit its figure is.
    fn sides(&self, place: usize) -> impl Iterator<Item = (&Limit, Option<Side>)> {
        let limits = self.limits.iter().enumerate();
        limits.map(move |(number, limit)| {
            let figures = self.figures(place, number);
            (limit, self.test.side(figures, limit.below))
        })
    }

    fn is_saturated(&self, place: usize) -> bool {
        let mut sides = self.sides(place);
        sides.any(|(limit, side)| limit.is_of_capacity && side == Some(Side::NotBelow))
    }

    fn judgement(&self, place: usize) -> Judgement {
        let is = |wanted| move |(_, side): (&Limit, Option<Side>)| side == Some(wanted);
        let rounds = self.observed[place].len() as u32;
        let is_below = self.sides(place).all(is(Side::Below));
        if self.sides(place).any(is(Side::NotBelow)) {
            Judgement::Fails
        } else if is_below && self.shares_hold(place) {
            Judgement::Holds
        } else if rounds >= self.test.most_rounds() && !self.shares_hold(place) {
            Judgement::Fails
        } else if rounds >= self.test.most_rounds() {
            Judgement::Undecided
        } else {
            Judgement::Open
        }
    }

    /// Whether a rate is judged to fail.
    pub fn fails(&self, place: usize) -> bool {
        self.judgement(place) == Judgement::Fails
    }

    /// The highest rate that holds so far, and the lowest one above it that fails.
    pub fn bracket(&self) -> (Option<usize>, Option<usize>) {
        let judged = |wanted| move |place: &usize| self.judgement(*place) == wanted;
        let holds = (0..self.rates.len()).rfind(judged(Judgement::Holds));
        let above = holds.map_or(0, |place| place + 1);
        (
            holds,
            (above..self.rates.len()).find(judged(Judgement::Fails)),
        )
    }

    /// What comes next.
    pub fn next(&self) -> Step {
        let judged: Vec<Judgement> = (0..self.rates.len()).map(|it| self.judgement(it)).collect();
        let mut has_held = false;
        for rung in rungs(self.rates) {
            match judged[rung] {
                Judgement::Open => return Step::Measure(rung),
                Judgement::Holds => has_held = true,
                Judgement::Fails if has_held || self.is_saturated(rung) => break,
                Judgement::Fails | Judgement::Undecided => {}
            }
        }
        let (holds, fails) = self.bracket();
        let Some(holds) = holds else {
            let is_undecided = judged.contains(&Judgement::Undecided);
            return Step::End(match is_undecided {
                true => Answer::Undecided { holds: None, fails },
                false => Answer::NoneHolds,
            });
        };
        let end = fails.unwrap_or(judged.len());
        let is_undecided = |place: &usize| judged[*place] == Judgement::Undecided;
        let first = (holds + 1..end).find(is_undecided).unwrap_or(end);
        let last = (holds + 1..end).rfind(is_undecided);
        let is_close = fails.is_some_and(|it| self.rates[it] <= PRECISION * self.rates[holds]);
        let gaps = [
            holds + 1..first,
            last.map_or(end..end, |last| last + 1..end),
        ];
        let widest = gaps.into_iter().max_by_key(ExactSizeIterator::len);
        let is_settled = last.is_some() && is_close;
        let open = widest.filter(|gap| !(gap.is_empty() || is_settled));
        Step::End(match (open, fails) {
            (Some(gap), _) => return Step::Measure(usize::midpoint(gap.start, gap.end - 1)),
            (None, Some(fails)) if is_close || fails == holds + 1 => Answer::Found { holds, fails },
            (None, None) if holds + 1 == judged.len() => Answer::AllHold(holds),
            (None, fails) => Answer::Undecided {
                holds: Some(holds),
                fails,
            },
        })
    }
}

/// The rates that are measured first: half a decade apart at the most, the least and the greatest among them.
fn rungs(rates: &[f64]) -> Vec<usize> {
    let mut rungs = vec![0];
    while let Some(&last) = rungs.last()
        && last + 1 < rates.len()
    {
        let within = rates.partition_point(|rate| *rate <= RUNG * rates[last] * (1.0 + 1e-9));
        rungs.push((within - 1).max(last + 1));
    }
    rungs
}

/// How many rates a search measures at the most.
pub fn most_rates(rates: &[f64]) -> u32 {
    let rungs = rungs(rates);
    let widest = rungs.windows(2).map(|pair| pair[1] - pair[0] - 1).max();
    let halvings = widest.map_or(0, |gap| usize::BITS - gap.leading_zeros());
    // Both sides of what is undecided.
    (rungs.len() as u32 + 2 * halvings).min(rates.len() as u32)
}

/// What a search costs at the most that takes each rung and closes in on a place between two of them, from both sides
/// where a rate is undecided, of what each rate costs.
pub fn most_cost(rates: &[f64], costs: &[u64]) -> u64 {
    let rungs = rungs(rates);
    let gaps = rungs.windows(2).map(|pair| &costs[pair[0] + 1..pair[1]]);
    let widest = 2 * gaps.map(halving_cost).max().unwrap_or(0);
    let of_rungs = rungs.iter().map(|rung| costs[*rung]);
    of_rungs.fold(widest, u64::saturating_add)
}

/// The cost of the dearest way to halve a gap until nothing of it is left.
fn halving_cost(gap: &[u64]) -> u64 {
    if gap.is_empty() {
        return 0;
    }
    let middle = usize::midpoint(0, gap.len() - 1);
    let sides = [&gap[..middle], &gap[middle + 1..]];
    let dearer = sides.map(halving_cost).into_iter().max().unwrap_or(0);
    gap[middle].saturating_add(dearer)
}

#[cfg(test)]
mod tests;
