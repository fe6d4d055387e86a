//! What is said of a pair.

use super::matrix::Matrix;
use super::scores::{Fit, LEAST_NODES, median};
use super::tiers::Tiers;
use crate::rig::named::named;
use crate::stats::outliers::DEVIATIONS_PER_MAD;

/// From so many robust standard deviations above what its tier and nodes lead to expect a pair is suspect.
pub const PAIR_LIMIT: f64 = 6.0;
/// So many pairs of the control set are needed to compare with.
pub const LEAST_CONTROLS: usize = 3;

named! {
    /// What is said of an ordered pair.
    PairVerdict {
        /// As its tier and nodes lead to expect.
        Ok = "ok",
        /// Slow, also alone: the way itself.
        Slow = "slow",
        /// Slow beside others and not alone: a way that is shared.
        Congested = "congested",
        /// Slow beside others; nothing is known of it alone.
        Suspect = "suspect",
        /// Of an unknown tier, or with too few others to compare it with.
        NotJudged = "not-judged",
        /// Without a figure.
        Missing = "missing",
    }
}

/// What pairs had when they were measured once more alone.
#[derive(Debug, Clone, Copy)]
pub struct RemeasuredFigures<'a> {
    /// In ns; of pairs that were not measured again, missing.
    pub values: &'a Matrix,
    /// The pairs of the control set.
    pub controls: &'a [(usize, usize)],
}

/// Judges pairs, one at a time.
#[derive(Debug)]
pub struct PairJudge<'a> {
    fit: &'a Fit,
    tiers: &'a Tiers,
    alone: Option<RemeasuredFigures<'a>>,
    least_ns: f64,
    /// Whether there are enough nodes to compare.
    is_judging: bool,
    /// By tier: how far controls lie from what is expected of them when alone, and how far from each other.
    controls: Vec<Option<(f64, f64)>>,
}

impl<'a> PairJudge<'a> {
    /// Of the fit of a figure; rests below `least_ns` are of no consequence.
    pub fn new(
        fit: &'a Fit,
        tiers: &'a Tiers,
        alone: Option<RemeasuredFigures<'a>>,
        least_ns: f64,
    ) -> Self {
        let of_tier = |tier: usize| {
            let alone = alone?;
            let controls = alone
                .controls
                .iter()
                .filter(|(from, to)| tiers.of(*from, *to) == tier);
            let beyond = |&(from, to): &(usize, usize)| {
                Some(alone.values.get(from, to)? - fit.expected(tiers, from, to)?)
            };
            let beyond: Vec<f64> = controls.filter_map(beyond).collect();
            if beyond.len() < LEAST_CONTROLS {
                return None;
            }
            let middle = median(beyond.clone())?;
            let spread = median(beyond.iter().map(|it| (it - middle).abs()).collect())?;
            Some((middle, DEVIATIONS_PER_MAD * spread))
        };
        PairJudge {
            fit,
            tiers,
            alone,
            least_ns,
            is_judging: fit.known_nodes() >= LEAST_NODES,
            controls: (0..tiers.count()).map(of_tier).collect(),
        }
    }

    /// What is said of a pair.
    pub fn of(&self, from: usize, to: usize) -> PairVerdict {
        let Some(rest) = self.fit.rest.get(from, to) else {
            let aside = self.fit.set_aside.as_ref();
            return match aside.and_then(|aside| aside.get(from, to)) {
                Some(_) => PairVerdict::NotJudged,
                None => PairVerdict::Missing,
            };
        };
        let limit = self.least_ns.max(PAIR_LIMIT * self.fit.deviation);
        if self.tiers.nodes() >= LEAST_NODES && !self.is_judging {
            return PairVerdict::NotJudged;
        }
        if !self.is_judging || rest <= limit {
            return PairVerdict::Ok;
        }
        let alone = self.alone.and_then(|alone| alone.values.get(from, to));
        let expected = self.fit.expected(self.tiers, from, to);
        match (alone.zip(expected), self.controls[self.tiers.of(from, to)]) {
            (Some((alone, expected)), Some((middle, spread))) => {
                match alone - expected - middle > limit.max(PAIR_LIMIT * spread) {
                    true => PairVerdict::Slow,
                    false => PairVerdict::Congested,
                }
            }
            _ => PairVerdict::Suspect,
        }
    }
}

/// Whether a direction is proved to be slower than its opposite (`true`), or faster; `None` if the bounds of their
/// latencies, low and high, do not tell.
pub fn is_slower(own: (f64, f64), opposite: (f64, f64)) -> Option<bool> {
    match (own.0 > opposite.1, own.1 < opposite.0) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::made_up::{Noise, healthy, in_groups};
    use crate::bench::fabric::matrix::ordered_pairs;
    use crate::bench::fabric::scores::polish;
    use crate::bench::fabric::tiers::UNKNOWN;
    use crate::time::between::HostPairs;

    #[test]
    fn a_slow_pair_is_told_from_one_that_is_slow_beside_others() {
        let tiers = in_groups(8, 4);
        let mut noise = Noise::new(5);
        let mut together = healthy(&tiers, &mut noise, false);
        for (from, to) in [(0, 5), (1, 6), (2, 7)] {
            together.set(from, to, 9000.0);
        }
        together.set(3, 4, f64::NAN);
        let fit = polish(&together, &tiers);
        let mut alone = Matrix::missing(8);
        let controls = [(4, 1), (5, 2), (6, 3), (7, 0)];
        for (from, to) in controls {
            // Alone all are faster.
            alone.set(from, to, together.get(from, to).unwrap() - 400.0);
        }
        alone.set(0, 5, 8800.0);
        alone.set(1, 6, 2600.0);
        let measured = RemeasuredFigures {
            values: &alone,
            controls: &controls,
        };
        let judge = PairJudge::new(&fit, &tiers, Some(measured), 0.0);
        assert_eq!(judge.of(0, 5), PairVerdict::Slow);
        assert_eq!(judge.of(1, 6), PairVerdict::Congested);
        assert_eq!(judge.of(2, 7), PairVerdict::Suspect);
        assert_eq!(judge.of(3, 4), PairVerdict::Missing);
        let ok = ordered_pairs(8).filter(|&(from, to)| judge.of(from, to) == PairVerdict::Ok);
        assert_eq!(ok.count(), 56 - 4);
        // Without controls nothing can be compared; and what is of no consequence is not told.
        let few = RemeasuredFigures {
            values: &alone,
            controls: &controls[..2],
        };
        let judge = PairJudge::new(&fit, &tiers, Some(few), 0.0);
        assert_eq!(judge.of(0, 5), PairVerdict::Suspect);
        assert_eq!(
            PairJudge::new(&fit, &tiers, None, 1e4).of(0, 5),
            PairVerdict::Ok
        );
    }

    #[test]
    fn pairs_of_an_unknown_tier_are_neither_good_nor_bad_and_move_no_verdict() {
        let mut noise = Noise::new(7);
        let known = in_groups(8, 4);
        let mut figure = healthy(&known, &mut noise, false);
        figure.set(3, 1, f64::NAN);
        figure.set(0, 3, 1e6);
        let of = (0..64).map(|pair| match (pair / 8, pair % 8) {
            (3, _) | (_, 3) => 2,
            (from, to) => known.of(from, to) as u16,
        });
        let names = ["leaf", "up-1", UNKNOWN].map(str::to_owned);
        let groups = (0..8).map(|node| known.group(node).to_owned());
        let tiers = Tiers::of_names(
            groups.collect(),
            &names,
            (HostPairs::all(8), &of.collect::<Vec<_>>()),
            0,
        );
        let fit = polish(&figure, &tiers);
        let judge = PairJudge::new(&fit, &tiers, None, 0.0);
        assert_eq!(judge.of(0, 3), PairVerdict::NotJudged);
        assert_eq!(judge.of(3, 1), PairVerdict::Missing);
        let mut others = ordered_pairs(8).filter(|(from, to)| *from != 3 && *to != 3);
        assert!(others.all(|(from, to)| judge.of(from, to) == PairVerdict::Ok));
        assert_eq!((fit.egress[3], fit.ingress[3]), (None, None));
        // As if the node were not there.
        let places: Vec<usize> = (0..8).filter(|node| *node != 3).collect();
        let without = polish(&figure.of_nodes(&places), &known.of_nodes(&places));
        for (from, to) in ordered_pairs(7) {
            let rest = fit.rest.get(places[from], places[to]);
            assert_eq!(rest, without.rest.get(from, to));
        }
        assert_eq!(fit.deviation, without.deviation);
        let of_known: Vec<_> = places.iter().map(|node| fit.scores()[*node]).collect();
        assert_eq!(of_known, without.scores());
    }

    #[test]
    fn a_pair_that_is_alone_in_its_tier_is_not_compared_with_itself() {
        let known = in_groups(8, 8);
        let mut figure = healthy(&known, &mut Noise::new(8), false);
        figure.set(2, 5, 9e6);
        figure.set(5, 2, 9e6);
        let of = (0..64).map(|pair| u16::from([(2, 5), (5, 2)].contains(&(pair / 8, pair % 8))));
        let names = ["leaf", "up-1"].map(str::to_owned);
        let tiers = Tiers::of_names(
            vec![String::new(); 8],
            &names,
            (HostPairs::all(8), &of.collect::<Vec<_>>()),
            0,
        );
        let fit = polish(&figure, &tiers);
        assert_eq!(fit.small_tiers, [1]);
        let judge = PairJudge::new(&fit, &tiers, None, 0.0);
        assert_eq!(
            [judge.of(2, 5), judge.of(5, 2)],
            [PairVerdict::NotJudged; 2]
        );
        assert_eq!(judge.of(5, 3), PairVerdict::Ok);
    }

    #[test]
    fn a_direction_is_slower_only_if_bounds_are_apart() {
        assert_eq!(is_slower((8.0, 10.0), (1.0, 3.0)), Some(true));
        assert_eq!(is_slower((1.0, 3.0), (8.0, 10.0)), Some(false));
        assert_eq!(is_slower((1.0, 8.0), (8.0, 10.0)), None);
    }
}
