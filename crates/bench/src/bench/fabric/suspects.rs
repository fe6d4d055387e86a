//! Which pairs are measured once more, alone: those that stood out beside others, and a random control set. A pair that
//! is slow alone as well is compared with the controls of its tier, measured in the same way at the same time.

use super::culprits::NodeJudgement;
use super::scores::Fit;
use super::tiers::Tiers;
use super::verdict::{LEAST_CONTROLS, PairJudge, PairVerdict};
use crate::pacing::SplitMix64;
use crate::rig::named::named;
use crate::sorting::{distinct, sort_by, sort_by_key};

/// Of each node that is named, so many pairs are measured again.
const OF_A_NODE: usize = 3;

named! {
    /// Why a pair is measured again.
    Role {
        /// It stood out, or one of its nodes is named.
        Suspect = "suspect",
        /// By chance.
        Control = "control",
    }
}

/// A pair that is measured again, in both directions: the lower rank first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemeasuredPair {
    /// The two ranks.
    pub pair: (usize, usize),
    /// Why.
    pub role: Role,
}

/// What is measured again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remeasurements {
    /// The pairs, suspects and controls in turn, so that a drift favours neither.
    pub pairs: Vec<RemeasuredPair>,
    /// Suspects for which there was no room.
    pub left_out: usize,
}

/// Chooses at most so many suspects, the worst first, and as many controls of the same tiers (three of a tier at least,
/// where it has them). The same seed chooses the same.
pub fn choose(
    fit: &Fit,
    tiers: &Tiers,
    nodes: &[NodeJudgement],
    least_ns: f64,
    most: usize,
    seed: u64,
) -> Remeasurements {
    let mut suspects = suspects(fit, tiers, nodes, least_ns);
    let left_out = suspects.len().saturating_sub(most);
    suspects.truncate(most);
    let taken = distinct(suspects.iter().copied());
    let is_named = |node: usize| {
        nodes
            .get(node)
            .is_some_and(|it| it.verdict.direction().is_some())
    };
    let mut numbers = SplitMix64::new(seed);
    let mut controls = Vec::new();
    for tier in 0..tiers.count() {
        let wanted = suspects
            .iter()
            .filter(|(low, high)| tiers.of(*low, *high) == tier)
            .count();
        if wanted == 0 {
            continue;
        }
        let is_free = |&(low, high): &(usize, usize)| {
            let measured = fit.rest.get(low, high).is_some() && fit.rest.get(high, low).is_some();
            let same = tiers.of(low, high) == tier && !taken.contains(&(low, high));
            measured && same && !is_named(low) && !is_named(high)
        };
        let mut free: Vec<(usize, usize)> = unordered(fit).filter(is_free).collect();
        for _ in 0..wanted.max(LEAST_CONTROLS).min(free.len()) {
            let place = (numbers.draw() % free.len() as u64) as usize;
            controls.push(free.swap_remove(place));
        }
    }
    let mut pairs = Vec::new();
    for place in 0..suspects.len().max(controls.len()) {
        let both = [(&suspects, Role::Suspect), (&controls, Role::Control)];
        let of = both.into_iter().filter_map(|(all, role)| {
            Some(RemeasuredPair {
                pair: *all.get(place)?,
                role,
            })
        });
        pairs.extend(of);
    }
    Remeasurements { pairs, left_out }
}

fn unordered(fit: &Fit) -> impl Iterator<Item = (usize, usize)> + '_ {
    let all = fit.rest.pairs().each();
    all.filter(|(low, high)| low < high)
}

/// Pairs that stood out, the worst first; then some of each node that is named.
fn suspects(
    fit: &Fit,
    tiers: &Tiers,
    nodes: &[NodeJudgement],
    least_ns: f64,
) -> Vec<(usize, usize)> {
    let judge = PairJudge::new(fit, tiers, None, least_ns);
    let both = |(low, high): (usize, usize)| [(low, high), (high, low)];
    let stands_out = |pair: (usize, usize)| {
        let ways = both(pair).into_iter();
        let of = ways.filter(|way| judge.of(way.0, way.1) == PairVerdict::Suspect);
        of.filter_map(|way| fit.rest.get(way.0, way.1))
            .max_by(f64::total_cmp)
    };
    let found = unordered(fit).filter_map(|pair| Some((pair, stands_out(pair)?)));
    let mut found: Vec<((usize, usize), f64)> = found.collect();
    sort_by(&mut found, |one, other| other.1.total_cmp(&one.1));
    let mut chosen: Vec<(usize, usize)> = found.into_iter().map(|(pair, _)| pair).collect();
    let mut taken = distinct(chosen.iter().copied());
    let named = (0..nodes.len()).filter(|&node| nodes[node].verdict.direction().is_some());
    for node in named {
        let pairs = fit.rest.pairs().of(node);
        let pairs = pairs.map(|other| (node.min(other), node.max(other)));
        let measured = |pair: &(usize, usize)| {
            both(*pair)
                .iter()
                .any(|way| fit.rest.get(way.0, way.1).is_some())
        };
        let mut new: Vec<(usize, usize)> = pairs
            .filter(measured)
            .filter(|pair| !taken.contains(pair))
            .collect();
        // Those with the nearest partners: fewer others share their way.
        sort_by_key(&mut new, |pair| (tiers.of(pair.0, pair.1), *pair));
        new.truncate(OF_A_NODE);
        taken.extend(&new);
        chosen.extend(new);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::made_up::{Noise, healthy, in_groups, with_slow_sender};
    use crate::bench::fabric::scores::polish;

    #[test]
    fn suspects_have_controls_of_their_tier_that_follow_from_the_seed() {
        let tiers = in_groups(16, 8);
        let mut figure = healthy(&tiers, &mut Noise::new(3), false);
        figure.set(9, 2, 20_000.0);
        figure.set(4, 5, 30_000.0);
        let nodes = with_slow_sender(&mut figure, (12, 5000.0), &tiers);
        let fit = polish(&figure, &tiers);
        let chosen = choose(&fit, &tiers, &nodes, 0.0, 100, 17);
        let of = |role: Role| -> Vec<(usize, usize)> {
            let pairs = chosen.pairs.iter().filter(|it| it.role == role);
            pairs.map(|it| it.pair).collect()
        };
        let suspects = of(Role::Suspect);
        assert_eq!(suspects[..2], [(4, 5), (2, 9)]);
        assert!(
            suspects.len() == 5 && suspects[2..].iter().all(|it| it.0 == 12 || it.1 == 12),
            "{suspects:?}"
        );
        let controls = of(Role::Control);
        // Four suspects within a group, one between them: four and three controls.
        let tier = |pair: &&(usize, usize)| tiers.of(pair.0, pair.1) == 0;
        assert_eq!(controls.len(), 7);
        assert_eq!(controls.iter().filter(tier).count(), 4);
        let are_sound = controls
            .iter()
            .all(|it| !suspects.contains(it) && it.0 != 12 && it.1 != 12);
        assert!(are_sound);
        assert_eq!(choose(&fit, &tiers, &nodes, 0.0, 100, 17), chosen);
        assert_ne!(choose(&fit, &tiers, &nodes, 0.0, 100, 18), chosen);
        let few = choose(&fit, &tiers, &nodes, 0.0, 2, 17);
        assert_eq!((few.left_out, few.pairs.len()), (3, 8));
        // Where nothing stands out nothing is measured again.
        let healthy = polish(&healthy(&tiers, &mut Noise::new(4), false), &tiers);
        assert_eq!(
            choose(&healthy, &tiers, &[], 0.0, 100, 1),
            Remeasurements::default()
        );
    }
}
