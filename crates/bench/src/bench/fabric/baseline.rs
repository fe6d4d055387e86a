//! What several healthy runs of a fabric have in common: centres, and how far runs lie from each other.
//!
//! A node has two effects in each run, of what it sends and of what it receives (see [`scores`](super::scores)). Its
//! centre is their mean over runs. Its spread is of these runs, which are few, steadied by the spreads of all nodes (see
//! [`shared_spread`](crate::stats::shared_spread)). Tiers have their own spreads alone. Of pairs, of which there are
//! too many to know each, what is beyond their tiers and nodes is kept by tier: its spread, and the greatest one.
//!
//! All are natural logarithms of ratios: 0.01 is about 1 %.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::metrics::{Metric, RunFigures};
use super::scores::{Fit, LEAST_NODES};
use crate::results::document::Program;
use crate::stats::outliers::DEVIATIONS_PER_MAD;
use crate::stats::shared_spread::Variance;
use crate::stats::student::MANY;

/// What the file begins with.
pub const FORMAT: &str = "hcabench-baseline";
/// The version of the file.
pub const VERSION: u32 = 1;
/// Of fewer runs the spread between them is not known.
pub const LEAST_RUNS: usize = 3;
/// Nothing is known more exactly than to this ratio.
const LEAST_SPREAD: f64 = 1e-3;

/// A baseline, as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The program that made it.
    pub hcabench: Program,
    /// The runs that it is made of.
    pub runs: Vec<BaselineRun>,
    /// What was measured between two ranks, the same in all of them.
    pub settings: Value,
    /// How pairs were scheduled, the same in all of them but for the number of rounds.
    pub schedule: Value,
    /// By name.
    pub tiers: BTreeMap<String, TierBaseline>,
    /// By name.
    pub nodes: BTreeMap<String, NodeBaseline>,
    /// By metric, what the spreads of nodes have in common.
    pub of_all_nodes: BTreeMap<String, CommonSpread>,
}

/// A run of a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineRun {
    /// Its folder, as it was named.
    pub folder: String,
    /// When it began, in RFC 3339.
    pub started_at: String,
    /// The program that measured it.
    pub hcabench: Value,
    /// How many nodes there were.
    pub nodes: usize,
    /// How many rounds were measured.
    pub rounds: Value,
}

/// A tier.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TierBaseline {
    /// Ordered pairs in it, in the last run that has it.
    pub pairs: usize,
    /// By metric.
    pub figures: BTreeMap<String, TierFigure>,
    /// The share of messages that were lost: the mean of all runs, and the greatest of a run.
    pub loss: Option<[f64; 2]>,
}

/// A figure of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TierFigure {
    /// The mean over runs of its median, in ns (of logarithms).
    pub centre_ns: f64,
    /// The standard deviation between runs.
    pub spread: f64,
    /// How many runs have it.
    pub runs: usize,
    /// What pairs are beyond their tier and nodes: the standard deviation, robustly.
    pub spread_of_pairs: f64,
    /// The greatest of any pair in any run.
    pub greatest_of_pairs: f64,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeBaseline {
    /// Its switch or group, in the last run that has it.
    pub group: String,
    /// By metric: what it sends, and what it receives.
    pub figures: BTreeMap<String, [Option<Effect>; 2]>,
}

/// An effect of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The mean over runs.
    pub centre: f64,
    /// The standard deviation between runs, steadied by those of all nodes.
    pub spread: f64,
    /// The degrees of freedom behind the spread.
    pub freedom: f64,
    /// How many runs have it.
    pub runs: usize,
}

/// What nodes have in common.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommonSpread {
    /// The standard deviation between runs.
    pub spread: f64,
    /// The degrees of freedom that it counts.
    pub freedom: f64,
    /// The standard deviation of the centres of nodes.
    pub between_nodes: f64,
    /// How many nodes have a centre.
    pub nodes: usize,
}

impl Effect {
    /// How far a further run lies from the centre, in standard deviations; their size, which has the error of the centre
    /// in it; and their degrees of freedom.
    pub fn deviation(&self) -> f64 {
        self.spread * (1.0 + 1.0 / self.runs as f64).sqrt()
    }
}

impl TierFigure {
    /// The same of a tier.
    pub fn deviation(&self) -> f64 {
        self.spread * (1.0 + 1.0 / self.runs as f64).sqrt()
    }

    /// The degrees of freedom behind it.
    pub fn freedom(&self) -> f64 {
        self.runs as f64 - 1.0
    }
}

impl CommonSpread {
    /// What is known of a node that no run of the baseline has: it is like the others.
    pub fn of_a_new_node(&self) -> Effect {
        let (between, within) = (self.between_nodes, self.spread);
        Effect {
            centre: 0.0,
            spread: between.hypot(within),
            freedom: self.freedom.min(self.nodes as f64 - 1.0).max(1.0),
            // It is no mean of any.
            runs: usize::MAX,
        }
    }
}

/// The figures of runs, by tier and by node.
pub type Parts = (
    BTreeMap<String, TierBaseline>,
    BTreeMap<String, NodeBaseline>,
    BTreeMap<String, CommonSpread>,
);

/// Takes runs together.
pub fn of_runs(runs: &[RunFigures]) -> Parts {
    let (mut tiers, mut nodes) = (BTreeMap::new(), BTreeMap::new());
    let mut common = BTreeMap::new();
    for run in runs {
        for tier in 0..run.tiers.count() {
            let known: &mut TierBaseline =
                tiers.entry(run.tiers.name(tier).to_owned()).or_default();
            known.pairs = pairs_of(run, tier).count();
        }
        for node in &run.nodes {
            let known: &mut NodeBaseline = nodes.entry(node.name.clone()).or_default();
            known.group.clone_from(&node.group);
        }
    }
    for metric in Metric::TIMES {
        let fits: Vec<(&RunFigures, Fit)> = runs.iter().map(|run| (run, run.fit(metric))).collect();
        for (name, tier) in &mut tiers {
            if let Some(figure) = of_tier(&fits, name) {
                tier.figures.insert(metric.name().to_owned(), figure);
            }
        }
        if let Some(of_all) = of_nodes(&fits, metric, &mut nodes) {
            common.insert(metric.name().to_owned(), of_all);
        }
    }
    for (name, tier) in &mut tiers {
        tier.loss = loss_of(runs, name);
    }
    (tiers, nodes, common)
}

/// The ordered pairs of a tier.
fn pairs_of(run: &RunFigures, tier: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let all = super::matrix::ordered_pairs(run.nodes.len());
    all.filter(move |(from, to)| run.tiers.of(*from, *to) == tier)
}

fn place_of_tier(run: &RunFigures, name: &str) -> Option<usize> {
    (0..run.tiers.count()).find(|tier| run.tiers.name(*tier) == name)
}

fn of_tier(fits: &[(&RunFigures, Fit)], name: &str) -> Option<TierFigure> {
    let (mut centres, mut rests) = (Vec::new(), Vec::new());
    for (run, fit) in fits {
        let Some(tier) = place_of_tier(run, name) else {
            continue;
        };
        centres.extend(fit.tiers[tier]);
        rests.extend(pairs_of(run, tier).filter_map(|(from, to)| fit.rest.get(from, to)));
    }
    let spread = Variance::of(&centres)?.value.sqrt();
    let distances = rests.iter().map(|rest| rest.abs()).collect();
    let of_pairs = DEVIATIONS_PER_MAD * super::scores::median(distances)?;
    Some(TierFigure {
        centre_ns: mean(&centres).exp(),
        spread: spread.max(LEAST_SPREAD),
        runs: centres.len(),
        spread_of_pairs: of_pairs.max(LEAST_SPREAD),
        greatest_of_pairs: rests.into_iter().fold(0.0, f64::max),
    })
}

/// Sets the effects of all nodes, and returns what they have in common; nothing among fewer than can be told apart.
fn of_nodes(
    fits: &[(&RunFigures, Fit)],
    metric: Metric,
    nodes: &mut BTreeMap<String, NodeBaseline>,
) -> Option<CommonSpread> {
    let effects = |name: &str, direction: usize| -> Vec<f64> {
        let of = fits.iter().filter_map(|(run, fit)| {
            let place = run.place(name).filter(|_| run.nodes.len() >= LEAST_NODES)?;
            [&fit.egress, &fit.ingress][direction][place]
        });
        of.collect()
    };
    let both = |name: &String| [0, 1].map(|direction| effects(name, direction));
    let found: Vec<(String, [Vec<f64>; 2])> = nodes
        .keys()
        .map(|name| (name.clone(), both(name)))
        .collect();
    let all = || found.iter().flat_map(|(_, both)| both);
    let variances: Vec<Variance> = all().filter_map(|it| Variance::of(it)).collect();
    let common = Variance::common(&variances, LEAST_SPREAD * LEAST_SPREAD)?;
    let centres: Vec<f64> = all()
        .filter(|it| !it.is_empty())
        .map(|it| mean(it))
        .collect();
    let between = Variance::of(&centres).map_or(0.0, |it| it.value.sqrt());
    let count = found
        .iter()
        .filter(|(_, [sent, _])| !sent.is_empty())
        .count();
    for (name, both) in &found {
        let effect = |figures: &Vec<f64>| {
            let own = Variance::of(figures).unwrap_or(Variance {
                value: 0.0,
                freedom: 0.0,
            });
            let steadied = own.steadied(common);
            (!figures.is_empty()).then(|| Effect {
                centre: mean(figures),
                spread: steadied.value.sqrt(),
                freedom: steadied.freedom,
                runs: figures.len(),
            })
        };
        let effects = both.each_ref().map(effect);
        if let Some(node) = nodes
            .get_mut(name)
            .filter(|_| effects.iter().any(Option::is_some))
        {
            node.figures.insert(metric.name().to_owned(), effects);
        }
    }
    Some(CommonSpread {
        spread: common.value.sqrt(),
        freedom: common.freedom.min(MANY),
        between_nodes: between,
        nodes: count,
    })
}

fn loss_of(runs: &[RunFigures], name: &str) -> Option<[f64; 2]> {
    let of_run = |run: &RunFigures| {
        let tier = place_of_tier(run, name)?;
        mean_loss(run, tier)
    };
    let losses: Vec<f64> = runs.iter().filter_map(of_run).collect();
    let greatest = losses.iter().copied().max_by(f64::total_cmp)?;
    Some([mean(&losses), greatest])
}

/// The share of messages that the pairs of a tier lost, on average.
pub(super) fn mean_loss(run: &RunFigures, tier: usize) -> Option<f64> {
    let losses = run.losses();
    let of = pairs_of(run, tier).filter_map(|(from, to)| losses.get(from, to));
    let of: Vec<f64> = of.collect();
    (!of.is_empty()).then(|| mean(&of))
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::made_up::{Cluster, Noise};

    #[test]
    fn centres_and_spreads_are_those_that_were_made_up() {
        let mut noise = Noise::new(4);
        let cluster = Cluster::of(16, &mut noise);
        let runs: Vec<RunFigures> = (0..12).map(|_| cluster.run(&mut noise)).collect();
        let (tiers, nodes, common) = of_runs(&runs);
        assert_eq!(tiers.keys().collect::<Vec<_>>(), ["leaf", "up-1"]);
        let leaf = tiers["leaf"].figures["rtt/2.p50"];
        assert!((1800.0..2200.0).contains(&leaf.centre_ns), "{leaf:?}");
        // The shift that the pairs of a run have in common.
        assert!((0.01..0.09).contains(&leaf.spread), "{leaf:?}");
        assert!((0.03..0.08).contains(&leaf.spread_of_pairs), "{leaf:?}");
        let of_all = common["rtt/2.p50"];
        // Of medians of 15 pairs with a noise of 5 %, and of nodes that differ by 1 % from run to run.
        assert!((0.012..0.03).contains(&of_all.spread), "{of_all:?}");
        assert!((0.015..0.06).contains(&of_all.between_nodes), "{of_all:?}");
        assert_eq!((of_all.nodes, nodes.len()), (16, 16));
        let effects = nodes["n3"].figures["rtt/2.p50"];
        let off = effects[0].unwrap().centre - cluster.own[3];
        assert!(off.abs() < 0.03, "{off}");
        assert_eq!(effects[1].unwrap().runs, 12);
    }

    #[test]
    fn three_nodes_have_tiers_and_no_effects() {
        let mut noise = Noise::new(4);
        let cluster = Cluster::of(3, &mut noise);
        let runs: Vec<RunFigures> = (0..3).map(|_| cluster.run(&mut noise)).collect();
        let (tiers, nodes, common) = of_runs(&runs);
        assert!(!tiers["leaf"].figures.is_empty() && common.is_empty());
        assert!(nodes.values().all(|node| node.figures.is_empty()));
    }
}
