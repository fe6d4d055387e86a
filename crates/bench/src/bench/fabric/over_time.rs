//! Two runs of one fabric: whether it got worse since.
//!
//! What is judged are the medians of the tiers and the two effects of each node, by round: not all pairs, of which some
//! always differ. Rounds are the samples, as in `hcabench compare`. Pairs are ranked, and not judged.

use super::matrix::Matrix;
use super::scores::{median, polish};
use super::tiers::Tiers;
use crate::sorting::sort_by;
use crate::stats::rank::{Shift, Test, rounds_needed};
use crate::time::between::HostPairs;

/// A run: its nodes, their tiers, and a figure of all pairs in each complete round, in ns.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// Names, by place in the matrices.
    pub nodes: &'a [String],
    /// The tiers of the same nodes.
    pub tiers: &'a Tiers,
    /// A matrix a round.
    pub rounds: &'a [Matrix],
}

/// What may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The median of a tier.
    Tier(String),
    /// What a node sends takes so much longer than what others send.
    Egress(String),
    /// The same of what it receives.
    Ingress(String),
}

/// A change, and whether it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Of what.
    pub of: What,
    /// The medians over rounds of both runs, in ns.
    pub medians_ns: [f64; 2],
    /// How far the second lies above the first, with its interval; `None` without rounds of both.
    pub shift: Option<Shift>,
}

impl Change {
    /// Whether it is shown to be slower (`true`) or faster; `None` if neither.
    pub fn is_worse(&self) -> Option<bool> {
        let shift = self.shift.as_ref().filter(|shift| shift.is_shown())?;
        Some(shift.value > 0.0)
    }
}

/// A pair that has figures in both runs, in one tier.
#[derive(Debug, Clone, PartialEq)]
pub struct PairChange {
    /// From and to.
    pub pair: [String; 2],
    /// Its tier.
    pub tier: String,
    /// The medians over rounds of both runs, in ns.
    pub medians_ns: [f64; 2],
}

impl PairChange {
    /// By how much it got slower, in ns.
    pub fn worse_by(&self) -> f64 {
        self.medians_ns[1] - self.medians_ns[0]
    }
}

/// What two runs have to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Tiers, then nodes; in that order.
    pub changes: Vec<Change>,
    /// Pairs, those that got slower most first.
    pub pairs: Vec<PairChange>,
    /// Nodes of one run only: of the first, and of the second.
    pub alone: [Vec<String>; 2],
    /// Ordered pairs that are not compared, as they are of another tier now, or have no figures in one of the runs.
    pub left_out: usize,
    /// So many rounds of either run it takes to show anything.
    pub rounds_needed: usize,
}

/// Compares two runs: all judgements together err with this probability. At most so many pairs are told.
pub fn compare(base: Measured<'_>, new: Measured<'_>, error: f64, most_pairs: usize) -> Comparison {
    let both = [base, new];
    let place = |of: Measured<'_>, name: &String| of.nodes.iter().position(|other| other == name);
    let common: Vec<&String> = base
        .nodes
        .iter()
        .filter(|it| place(new, it).is_some())
        .collect();
    let places = both.map(|run| {
        common
            .iter()
            .filter_map(|name| place(run, name))
            .collect::<Vec<_>>()
    });
    let tiers = [0, 1].map(|run| both[run].tiers.of_nodes(&places[run]));
    let mut rounds = [0, 1].map(|run| {
        both[run]
            .rounds
            .iter()
            .map(|it| it.of_nodes(&places[run]))
            .collect::<Vec<_>>()
    });
    let name = |run: usize, from, to| tiers[run].name(tiers[run].of(from, to));
    let middles = rounds
        .each_ref()
        .map(|rounds| middle_of(rounds, common.len()));
    // Of pairs that have figures in both, and are in one tier.
    let compared = middles[0].alike(|from, to| {
        let base = middles[0].get(from, to).zip(middles[1].get(from, to));
        base.filter(|_| name(0, from, to) == name(1, from, to))
            .map(|(base, _)| base)
    });
    // What is in one run only would move the effects of its nodes.
    for round in rounds.iter_mut().flatten() {
        round.replace_each(|from, to, value| match compared.get(from, to) {
            Some(_) => value,
            None => f64::NAN,
        });
    }
    let pairs = compared.each().filter_map(|(from, to, base)| {
        let new = middles[1].get(from, to)?;
        Some((from, to, [base, new]))
    });
    let mut pairs: Vec<(usize, usize, [f64; 2])> = pairs.collect();
    let left_out = common.len() * common.len().saturating_sub(1) - pairs.len();
    sort_by(&mut pairs, |one, other| {
        (other.2[1] - other.2[0]).total_cmp(&(one.2[1] - one.2[0]))
    });
    let pair = |(from, to, medians_ns): (usize, usize, [f64; 2])| PairChange {
        pair: [from, to].map(|node: usize| common[node].clone()),
        tier: name(0, from, to).to_owned(),
        medians_ns,
    };
    let (changes, rounds_needed) = changes(&common, &tiers[0], &rounds, error);
    let only = |of: Measured<'_>, other: Measured<'_>| -> Vec<String> {
        of.nodes
            .iter()
            .filter(|name| place(other, name).is_none())
            .cloned()
            .collect()
    };
    Comparison {
        changes,
        pairs: pairs.into_iter().take(most_pairs).map(pair).collect(),
        alone: [only(base, new), only(new, base)],
        left_out,
        rounds_needed,
    }
}

/// The median over rounds of a figure of each pair.
fn middle_of(rounds: &[Matrix], nodes: usize) -> Matrix {
    let Some(first) = rounds.first() else {
        return Matrix::missing_of(&HostPairs::some(nodes, []));
    };
    first.alike(|from, to| median(rounds.iter().filter_map(|it| it.get(from, to)).collect()))
}

/// The changes of tiers and nodes, judged together, and how many rounds it takes.
fn changes(
    nodes: &[&String],
    tiers: &Tiers,
    rounds: &[Vec<Matrix>; 2],
    error: f64,
) -> (Vec<Change>, usize) {
    let parts = rounds.each_ref().map(|rounds| {
        rounds
            .iter()
            .map(|it| polish(it, tiers))
            .collect::<Vec<_>>()
    });
    type Part = fn(&super::scores::Fit) -> &[Option<f64>];
    let kinds: [(usize, Part); 3] = [
        (tiers.count(), |fit| &fit.tiers),
        (nodes.len(), |fit| &fit.egress),
        (nodes.len(), |fit| &fit.ingress),
    ];
    let what = |kind: usize, place: usize| match kind {
        0 => What::Tier(tiers.name(place).to_owned()),
        1 => What::Egress(nodes[place].clone()),
        _ => What::Ingress(nodes[place].clone()),
    };
    let mut values = Vec::new();
    for (kind, (count, part)) in kinds.into_iter().enumerate() {
        for place in 0..count {
            let of = parts.each_ref().map(|fits| {
                fits.iter()
                    .filter_map(|fit| part(fit)[place])
                    .collect::<Vec<f64>>()
            });
            if of.iter().all(|values| !values.is_empty()) {
                values.push((what(kind, place), of));
            }
        }
    }
    let error = error / values.len().max(1) as f64;
    let change = |(of, [base, new]): (What, [Vec<f64>; 2])| Change {
        of,
        shift: Shift::of_samples(&base, &new, error),
        medians_ns: [base, new].map(|values| median(values).unwrap_or(f64::NAN)),
    };
    (
        values.into_iter().map(change).collect(),
        rounds_needed(Test::MannWhitney, error),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::made_up::{Noise, in_groups};

    /// Rounds of a fabric of 4 + 4 nodes, in which what one sends takes so much longer.
    fn rounds(seed: u64, count: usize, slower: Option<(usize, f64)>) -> Vec<Matrix> {
        let (tiers, mut noise) = (in_groups(8, 4), Noise::new(seed));
        let round = |noise: &mut Noise| {
            Matrix::of(8, |from, to| {
                let by = slower
                    .filter(|(node, _)| *node == from)
                    .map_or(0.0, |(_, by)| by);
                Some(2000.0 + 1000.0 * tiers.of(from, to) as f64 + by + 20.0 * noise.normal())
            })
        };
        (0..count).map(|_| round(&mut noise)).collect()
    }

    fn names(all: &str) -> Vec<String> {
        all.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_node_that_sends_more_slowly_than_before_is_shown_and_equals_are_not() {
        let (tiers, nodes) = (in_groups(8, 4), names("a b c d e f g h"));
        let run = |rounds| Measured {
            nodes: &nodes,
            tiers: &tiers,
            rounds,
        };
        let (base, same) = (rounds(1, 12, None), rounds(2, 12, None));
        let found = compare(run(&base), run(&same), 0.05, 5);
        assert_eq!(found.changes.len(), 18);
        assert_eq!(found.pairs.len(), 5);
        assert_eq!(found.left_out, 0);
        assert!(
            found
                .changes
                .iter()
                .all(|change| change.is_worse().is_none()),
            "{found:?}"
        );
        let worse = rounds(3, 12, Some((5, 300.0)));
        let found = compare(run(&base), run(&worse), 0.05, 7);
        let shown = found
            .changes
            .iter()
            .filter(|it| it.is_worse() == Some(true));
        let largest = shown.max_by(|one, other| {
            let [one, other] = [one, other].map(|it| it.shift.as_ref().unwrap().value);
            one.total_cmp(&other)
        });
        assert_eq!(largest.unwrap().of, What::Egress("f".to_owned()));
        let are_of_f = found
            .pairs
            .iter()
            .all(|pair| pair.pair[0] == "f" && pair.worse_by() > 200.0);
        assert!(are_of_f, "{:?}", found.pairs);
        // With two rounds nothing can be shown.
        let found = compare(run(&base[..2]), run(&worse[..2]), 0.05, 7);
        assert!(found.rounds_needed > 2 && found.changes.iter().all(|it| it.is_worse().is_none()));
    }

    #[test]
    fn only_what_both_runs_have_in_one_tier_is_compared() {
        let (tiers, moved) = (in_groups(8, 4), in_groups(8, 2));
        let (base, new) = (rounds(1, 3, None), rounds(2, 3, None));
        let (old, names) = (names("a b c d e f g h"), names("a b c d e f g new"));
        let one = Measured {
            nodes: &old,
            tiers: &tiers,
            rounds: &base,
        };
        let other = Measured {
            nodes: &names,
            tiers: &moved,
            rounds: &new,
        };
        let found = compare(one, other, 0.05, 100);
        assert_eq!(found.alone, [vec!["h".to_owned()], vec!["new".to_owned()]]);
        // Of 42 pairs of seven nodes, those of a and b with c and d, and of e and f with g, are of another tier now.
        assert_eq!((found.left_out, found.pairs.len()), (12, 30));
    }
}
