//! What a figure of all pairs says of each node: latency = tier + egress + ingress + rest, by median polish.
//!
//! Medians are taken out in turn (of tiers, of rows, of columns) until nothing changes, so that a few slow pairs or
//! nodes move nobody else's effect. An effect counts in robust standard deviations: those that the rests of a row of so
//! many pairs lead to expect, or those that the effects of all nodes have among each other, whichever are larger.

use super::matrix::Matrix;
use super::tiers::Tiers;
use crate::stats::outliers::DEVIATIONS_PER_MAD;

/// With fewer nodes nobody can be told from the others.
pub const LEAST_NODES: usize = 4;
/// With fewer figures in a direction a node has no effect in it.
const LEAST_PAIRS: usize = 2;
/// Among fewer figures of a tier a pair is compared with little but itself: those of two pairs, both ways.
const LEAST_OF_A_TIER: usize = 4;
/// Sweeps end when no part changes by more than this share of the usual figure.
const SHARE_OF_NOTE: f64 = 1e-6;
/// Nothing is known more exactly than to this share of the usual figure.
const LEAST_DEVIATION: f64 = 1e-3;
/// Sweeps at most; a handful is enough.
const MOST_SWEEPS: usize = 40;
/// Of a normal distribution, three quarters lie within so many standard deviations.
const DEVIATIONS_OF_THREE_QUARTERS: f64 = 1.1503;
/// The standard error of a median in units of that of a mean.
const ERROR_OF_MEDIAN: f64 = 1.2533;

/// The parts that a figure was taken apart into. All in the figure's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// By tier; `None` without a figure.
    pub tiers: Vec<Option<f64>>,
    /// By node, with a median of 0; `None` with too few figures.
    pub egress: Vec<Option<f64>>,
    /// The same of what nodes receive.
    pub ingress: Vec<Option<f64>>,
    /// What is left of each pair.
    pub rest: Matrix,
    /// The figures of pairs that are not taken apart, where there are any: their tier is unknown, or has too few.
    pub set_aside: Option<Matrix>,
    /// Known tiers that have too few figures.
    pub small_tiers: Vec<usize>,
    /// The standard deviation of what is left, robustly.
    pub deviation: f64,
}

/// How a node stands out, in robust standard deviations; `None` where that cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Score {
    /// In what it sends.
    pub egress: Option<f64>,
    /// In what it receives.
    pub ingress: Option<f64>,
}

impl Score {
    /// The worse of both.
    pub fn worst(&self) -> Option<f64> {
        let both = [self.egress, self.ingress].into_iter().flatten();
        both.max_by(f64::total_cmp)
    }
}

impl Fit {
    /// What a pair is expected to have, by its tier and nodes; a node without an effect adds nothing.
    pub fn expected(&self, tiers: &Tiers, from: usize, to: usize) -> Option<f64> {
        let tier = self.tiers[tiers.of(from, to)]?;
        Some(tier + self.egress[from].unwrap_or(0.0) + self.ingress[to].unwrap_or(0.0))
    }

    /// How many nodes have an effect in a direction: nodes in unknown places and without pairs have none.
    pub fn known_nodes(&self) -> usize {
        let both = self.egress.iter().zip(&self.ingress);
        both.filter(|(sent, received)| sent.is_some() || received.is_some())
            .count()
    }

    /// How far a pair lies above that, in robust standard deviations.
    pub fn score_of(&self, from: usize, to: usize) -> Option<f64> {
        let rest = self.rest.get(from, to)?;
        (self.deviation > 0.0).then(|| rest / self.deviation)
    }

    /// How each node stands out; nobody does among fewer than [`LEAST_NODES`].
    pub fn scores(&self) -> Vec<Score> {
        let nodes = self.rest.nodes();
        if self.known_nodes() < LEAST_NODES {
            return vec![Score::default(); nodes];
        }
        let of = |effects: &[Option<f64>], pairs: &dyn Fn(usize) -> usize| -> Vec<Option<f64>> {
            let known: Vec<f64> = effects.iter().flatten().copied().collect();
            let distances = known.iter().map(|effect| effect.abs()).collect();
            let among = DEVIATIONS_PER_MAD * median(distances).unwrap_or(0.0);
            let score = |(node, effect): (usize, &Option<f64>)| {
                let error = ERROR_OF_MEDIAN * self.deviation / (pairs(node).max(1) as f64).sqrt();
                let scale = error.max(among);
                effect.filter(|_| scale > 0.0).map(|effect| effect / scale)
            };
            effects.iter().enumerate().map(score).collect()
        };
        let mut counts = [vec![0_usize; nodes], vec![0; nodes]];
        for (from, to, _) in self.rest.each() {
            counts[0][from] += 1;
            counts[1][to] += 1;
        }
        let both = of(&self.egress, &|node| counts[0][node])
            .into_iter()
            .zip(of(&self.ingress, &|node| counts[1][node]));
        both.map(|(egress, ingress)| Score { egress, ingress })
            .collect()
    }
}

/// Takes a figure apart.
///
/// # Panics
/// When the tiers are of another number of nodes.
pub fn polish(figure: &Matrix, tiers: &Tiers) -> Fit {
    let nodes = figure.nodes();
    assert_eq!(nodes, tiers.nodes(), "tiers of other nodes");
    let mut counts = vec![0_usize; tiers.count()];
    for (from, to, _) in figure.each() {
        counts[tiers.of(from, to)] += 1;
    }
    // Among too few nodes nothing is judged anyway.
    let is_small = |tier: usize| {
        nodes >= LEAST_NODES
            && (1..LEAST_OF_A_TIER).contains(&counts[tier])
            && !tiers.is_unknown(tier)
    };
    let small_tiers: Vec<usize> = (0..tiers.count()).filter(|tier| is_small(*tier)).collect();
    let part = |is_aside: bool| {
        figure.alike(|from, to| {
            let tier = tiers.of(from, to);
            let value = figure.get(from, to);
            value.filter(|_| (tiers.is_unknown(tier) || small_tiers.contains(&tier)) == is_aside)
        })
    };
    let (rest, set_aside) = match tiers.has_unknown() || !small_tiers.is_empty() {
        true => (part(false), Some(part(true))),
        false => (figure.clone(), None),
    };
    let mut fit = Fit {
        tiers: vec![None; tiers.count()],
        egress: vec![None; nodes],
        ingress: vec![None; nodes],
        rest,
        set_aside,
        small_tiers,
        deviation: 0.0,
    };
    let usual = median(fit.rest.each().map(|it| it.2.abs()).collect()).unwrap_or(0.0);
    let change_of_note = SHARE_OF_NOTE * usual;
    for _ in 0..MOST_SWEEPS {
        let of_tiers = take_out(&mut fit.rest, tiers.count(), 1, |from, to| {
            tiers.of(from, to)
        });
        let sent = take_out(&mut fit.rest, nodes, LEAST_PAIRS, |from, _| from);
        let received = take_out(&mut fit.rest, nodes, LEAST_PAIRS, |_, to| to);
        let mut largest = 0.0_f64;
        for (whole, part) in [
            (&mut fit.tiers, of_tiers),
            (&mut fit.egress, sent),
            (&mut fit.ingress, received),
        ] {
            for (whole, part) in whole.iter_mut().zip(part) {
                largest = largest.max(part.unwrap_or(0.0).abs());
                *whole = part.map(|part| whole.unwrap_or(0.0) + part);
            }
        }
        if largest <= change_of_note {
            break;
        }
    }
    // What all nodes have in common is their tiers'.
    let common = centre(&mut fit.egress) + centre(&mut fit.ingress);
    for tier in fit.tiers.iter_mut().flatten() {
        *tier += common;
    }
    // Where all figures are the same to the last digit, a node that differs must stand out all the same.
    fit.deviation = deviation(&fit).max(LEAST_DEVIATION * usual);
    fit
}

/// Takes the median of each group of pairs out of them; of a group that is too small nothing.
fn take_out(
    rest: &mut Matrix,
    groups: usize,
    least: usize,
    group: impl Fn(usize, usize) -> usize,
) -> Vec<Option<f64>> {
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); groups];
    for (from, to, value) in rest.each() {
        values[group(from, to)].push(value);
    }
    let large_enough = |values: Vec<f64>| (values.len() >= least).then_some(values);
    let medians = values
        .into_iter()
        .map(|it| large_enough(it).and_then(median));
    let medians: Vec<Option<f64>> = medians.collect();
    rest.replace_each(|from, to, value| value - medians[group(from, to)].unwrap_or(0.0));
    medians
}

/// Moves effects so that their median is 0; returns what it was.
fn centre(effects: &mut [Option<f64>]) -> f64 {
    let middle = median(effects.iter().flatten().copied().collect()).unwrap_or(0.0);
    for effect in effects.iter_mut().flatten() {
        *effect -= middle;
    }
    middle
}

/// The standard deviation of the rests. By their third quartile: so many of them are exactly zero, being medians
/// themselves, that their median says little with few nodes. What the fit took out of their freedom is put back.
fn deviation(fit: &Fit) -> f64 {
    let mut distances: Vec<f64> = fit.rest.each().map(|it| it.2.abs()).collect();
    let measured = distances.len() as f64;
    let parts = [&fit.egress, &fit.ingress, &fit.tiers];
    let taken: usize = parts.map(|of| of.iter().flatten().count()).iter().sum();
    let free = (measured + 2.0 - taken as f64).max(1.0);
    if distances.is_empty() {
        return 0.0;
    }
    let place = (distances.len() - 1) * 3 / 4;
    let (_, quartile, _) = distances.select_nth_unstable_by(place, f64::total_cmp);
    *quartile / DEVIATIONS_OF_THREE_QUARTERS * (measured / free).max(1.0).sqrt()
}

/// For each place, the median of the figures at the other places; 0 without others.
pub fn medians_of_others(figures: &[Option<f64>]) -> Vec<f64> {
    let mut sorted: Vec<f64> = figures.iter().flatten().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let of_others = |figure: &Option<f64>| {
        let own = figure.map(|own| sorted.partition_point(|it| it.total_cmp(&own).is_lt()));
        let count = sorted.len() - usize::from(own.is_some());
        let nth = |place: usize| sorted[place + usize::from(own.is_some_and(|own| place >= own))];
        match count {
            0 => 0.0,
            _ => f64::midpoint(nth((count - 1) / 2), nth(count / 2)),
        }
    };
    figures.iter().map(of_others).collect()
}

/// The median of figures, without sorting all of them.
pub fn median(mut figures: Vec<f64>) -> Option<f64> {
    let half = figures.len() / 2;
    let is_even = figures.len().is_multiple_of(2);
    if figures.is_empty() {
        return None;
    }
    let (below, upper, _) = figures.select_nth_unstable_by(half, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp);
    Some(match lower.filter(|_| is_even) {
        Some(lower) => f64::midpoint(lower, *upper),
        None => *upper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_others_are_those_of_the_figures_without_each() {
        let all = [Some(3.0), None, Some(1.0), Some(1.0), Some(9.0), Some(4.0)];
        for count in 0..=all.len() {
            let figures = &all[..count];
            let without = |place: usize| {
                let others = figures.iter().enumerate();
                let others = others.filter_map(|(other, it)| it.filter(|_| other != place));
                median(others.collect()).unwrap_or(0.0)
            };
            let expected: Vec<f64> = (0..count).map(without).collect();
            assert_eq!(medians_of_others(figures), expected);
        }
    }
}
