//! What several healthy runs of a fabric have in common: centres, and how far runs lie from each other.
//!
//! A node has two effects in each run, of what it sends and of what it receives (see [`scores`](super::scores)). They are
//! aligned first (see `alignment`); a tier is moved by as much the other way. A centre is the mean of a
//! node's effects over runs. The spread is of these runs, which are few, steadied by the spreads of all nodes (see
//! [`shared_spread`](crate::stats::shared_spread)). Tiers have their own spreads alone. Of pairs, of which there are too
//! many to know each, what is beyond their tiers and nodes is kept by tier: its spread, and the greatest one.
//!
//! All are natural logarithms of ratios: 0.01 is about 1 %.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::alignment::{Aligned, AlignedEffect};
use super::matrix::Matrix;
use super::metrics::{Metric, RunFigures};
use super::scores::median;
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
    /// Where they come from, as `fabric.json` has it; null of an earlier version.
    #[serde(default)]
    pub tier_source: serde_json::Value,
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
    /// In how many runs it is, and how many of these name it as slow by themselves.
    pub runs: usize,
    /// See `runs`.
    pub named: usize,
    /// The greatest share of messages that most of its pairs lost in a run.
    pub greatest_loss: f64,
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
    /// What pairs are beyond their tiers and nodes: the standard deviation, robustly.
    pub spread_of_pairs: f64,
    /// How many pairs a node has in a direction, as a rule.
    pub pairs: f64,
}

/// The variance of a median in units of that of a mean, of a normal distribution and many figures.
const VARIANCE_OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

impl Effect {
    /// The standard deviation of a further run from the centre, of which the error is in it. `pairs`: how many a node has
    /// in that run, and `others`: with how many nodes of the baseline it is compared there. Medians of fewer vary more
    /// than those in the baseline.
    pub fn deviation(&self, common: &CommonSpread, pairs: usize, others: usize) -> f64 {
        let fewer =
            |now: usize, then: f64| (1.0 / now.max(1) as f64 - 1.0 / then.max(1.0)).max(0.0);
        let of_pairs = common.spread_of_pairs.powi(2) * fewer(pairs, common.pairs);
        let of_others = common.spread.powi(2) * fewer(others, common.nodes as f64 - 1.0);
        let of_runs = self.spread.powi(2) * (1.0 + 1.0 / self.runs as f64);
        (of_runs + VARIANCE_OF_MEDIAN * (of_pairs + of_others)).sqrt()
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
pub fn of_runs(runs: &[&RunFigures]) -> Parts {
    let mut tiers = BTreeMap::<String, TierBaseline>::new();
    let mut nodes = BTreeMap::<String, NodeBaseline>::new();
    let mut common = BTreeMap::new();
    for run in runs {
        for (name, pairs) in run.tiers.pairs() {
            tiers.entry(name.to_owned()).or_default().pairs = 2 * pairs as usize;
        }
        let losses = run.losses();
        for (place, node) in run.nodes.iter().enumerate() {
            let known = nodes.entry(node.name.clone()).or_default();
            known.group.clone_from(&node.group);
            known.runs += 1;
            known.named += usize::from(node.is_named == Some(true));
            let loss = RunFigures::losses_of(&losses, place).into_iter().flatten();
            known.greatest_loss = loss.fold(known.greatest_loss, f64::max);
        }
    }
    for metric in Metric::TIMES {
        let names: Vec<String> = nodes.keys().cloned().collect();
        let aligned = Aligned::of(runs, metric, &names);
        for (name, tier) in &mut tiers {
            if let Some(figure) = of_tier(runs, metric, &aligned, name) {
                tier.figures.insert(metric.name().to_owned(), figure);
            }
        }
        if let Some(of_all) = of_nodes(runs, metric, &aligned, &mut nodes) {
            common.insert(metric.name().to_owned(), of_all);
        }
    }
    for (name, tier) in &mut tiers {
        tier.loss = loss_of(runs, name);
    }
    (tiers, nodes, common)
}

/// A figure of each ordered pair of a tier that has it.
fn figures_of<'a>(
    run: &'a RunFigures,
    tier: usize,
    figure: &'a Matrix,
) -> impl Iterator<Item = f64> + 'a {
    let is_of = move |(from, to, _): &(usize, usize, f64)| run.tiers.of(*from, *to) == tier;
    figure.each().filter(is_of).map(|(.., value)| value)
}

fn place_of_tier(run: &RunFigures, name: &str) -> Option<usize> {
    (0..run.tiers.count()).find(|tier| run.tiers.name(*tier) == name)
}

fn of_tier(
    runs: &[&RunFigures],
    metric: Metric,
    aligned: &Aligned,
    name: &str,
) -> Option<TierFigure> {
    let (mut centres, mut rests) = (Vec::new(), Vec::new());
    for (run, [sent, received]) in runs.iter().zip(&aligned.offsets) {
        let Some(tier) = place_of_tier(run, name) else {
            continue;
        };
        let fit = run.fit(metric);
        centres.extend(fit.tiers[tier].map(|tier| tier + sent + received));
        rests.extend(figures_of(run, tier, &fit.rest));
    }
    let spread = Variance::of(&centres)?.value.sqrt();
    Some(TierFigure {
        centre_ns: mean(&centres).exp(),
        spread: spread.max(LEAST_SPREAD),
        runs: centres.len(),
        spread_of_pairs: spread_of(&rests)?,
        greatest_of_pairs: rests.into_iter().fold(0.0, f64::max),
    })
}

/// The standard deviation of rests, robustly.
fn spread_of(rests: &[f64]) -> Option<f64> {
    let distances = rests.iter().map(|rest| rest.abs()).collect();
    Some((DEVIATIONS_PER_MAD * median(distances)?).max(LEAST_SPREAD))
}

/// Sets the effects of all nodes, and returns what they have in common; nothing among fewer than can be told apart.
fn of_nodes(
    runs: &[&RunFigures],
    metric: Metric,
    aligned: &Aligned,
    nodes: &mut BTreeMap<String, NodeBaseline>,
) -> Option<CommonSpread> {
    let all = || aligned.nodes.iter().flatten().flatten();
    let variances: Vec<Variance> = all().filter_map(|it| it.variance).collect();
    let common = Variance::common(&variances, LEAST_SPREAD * LEAST_SPREAD)?;
    let centres: Vec<f64> = all().map(|it| it.centre).collect();
    let between = Variance::of(&centres).map_or(0.0, |it| it.value.sqrt());
    let with_centres = aligned.nodes.iter().filter(|[sent, _]| sent.is_some());
    let count = with_centres.count();
    for (node, both) in nodes.values_mut().zip(&aligned.nodes) {
        let effect = |it: AlignedEffect| {
            let own = it.variance.unwrap_or(Variance {
                value: 0.0,
                freedom: 0.0,
            });
            let steadied = own.steadied(common);
            Effect {
                centre: it.centre,
                spread: steadied.value.sqrt(),
                freedom: steadied.freedom,
                runs: it.runs,
            }
        };
        let effects = both.map(|it| it.map(effect));
        if effects.iter().any(Option::is_some) {
            node.figures.insert(metric.name().to_owned(), effects);
        }
    }
    let rests = runs.iter().flat_map(|run| run.fit(metric).rest.each());
    let rests: Vec<f64> = rests.map(|(.., rest)| rest).collect();
    let of_a_node = |run: &&RunFigures| {
        let pairs = run.fit(metric).rest.measured() as f64;
        pairs / run.nodes.len().max(1) as f64
    };
    Some(CommonSpread {
        spread: common.value.sqrt(),
        freedom: common.freedom.min(MANY),
        between_nodes: between,
        nodes: count,
        spread_of_pairs: spread_of(&rests)?,
        pairs: median(runs.iter().map(of_a_node).collect())?,
    })
}

fn loss_of(runs: &[&RunFigures], name: &str) -> Option<[f64; 2]> {
    let of_run = |run: &&RunFigures| {
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
    let of: Vec<f64> = figures_of(run, tier, &losses).collect();
    (!of.is_empty()).then(|| mean(&of))
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::made_up::{Cluster, Noise, Variation};

    fn runs_of(cluster: &Cluster, count: usize, noise: &mut Noise) -> Vec<RunFigures> {
        (0..count).map(|_| cluster.run(noise)).collect()
    }

    #[test]
    fn centres_and_spreads_are_those_that_were_made_up() {
        let mut noise = Noise::new(4);
        let cluster = Cluster::of(16, &mut noise);
        let runs = runs_of(&cluster, 12, &mut noise);
        let (tiers, nodes, common) = of_runs(&runs.iter().collect::<Vec<_>>());
        assert_eq!(tiers.keys().collect::<Vec<_>>(), ["leaf", "up-1"]);
        let leaf = tiers["leaf"].figures["rtt/2.p50"];
        assert!((1800.0..2200.0).contains(&leaf.centre_ns), "{leaf:?}");
        // The shift that the pairs of a run have in common.
        assert!((0.01..0.09).contains(&leaf.spread), "{leaf:?}");
        assert!((0.03..0.08).contains(&leaf.spread_of_pairs), "{leaf:?}");
        let of_all = common["rtt/2.p50"];
        // Of medians of 15 pairs with a noise of 5 %, and of nodes that differ by 1 % from run to run.
        assert!((0.008..0.03).contains(&of_all.spread), "{of_all:?}");
        assert!((0.015..0.06).contains(&of_all.between_nodes), "{of_all:?}");
        assert_eq!((of_all.nodes, nodes.len()), (16, 16));
        assert!((14.0..=15.0).contains(&of_all.pairs), "{of_all:?}");
        let effects = nodes["n3"].figures["rtt/2.p50"];
        let off = effects[0].unwrap().centre - cluster.own[3];
        assert!(off.abs() < 0.03, "{off}");
        assert_eq!(effects[1].unwrap().runs, 12);
        // The median of three pairs varies more than that of fifteen.
        let known = effects[0].unwrap();
        let [few, all] = [3, 15].map(|pairs| known.deviation(&of_all, pairs, 15));
        assert!(few > 1.5 * all && all > known.spread, "{few} {all}");
        // And that of three other nodes.
        let few = known.deviation(&of_all, 15, 3);
        assert!(few > 1.05 * all, "{few} {all}");
    }

    #[test]
    fn which_nodes_take_part_moves_no_other_node() {
        let mut noise = Noise::new(5);
        let mut cluster = Cluster::varying(
            12,
            Variation {
                pairs: 0.005,
                nodes: 0.002,
                own: 0.0,
                ..Variation::default()
            },
            &mut noise,
        );
        // Half of the nodes have other adapters.
        cluster.own[6..].fill(0.15);
        let all = runs_of(&cluster, 4, &mut noise);
        let some = |run: &RunFigures, without: &[usize]| {
            let kept: Vec<usize> = (0..12).filter(|node| !without.contains(node)).collect();
            run.of_nodes(&kept)
        };
        let runs = [
            some(&all[0], &[6, 7]),
            some(&all[1], &[]),
            some(&all[2], &[0, 1]),
            some(&all[3], &[3]),
        ];
        let (tiers, nodes, common) = of_runs(&runs.iter().collect::<Vec<_>>());
        let spread = common["rtt/2.p50"].spread;
        assert!(spread < 0.01, "{spread}");
        let centre = |name: &str| nodes[name].figures["rtt/2.p50"][0].unwrap().centre;
        let apart = centre("n8") - centre("n2");
        assert!((apart - 0.15).abs() < 0.01, "{apart}");
        // Beside the shift of a run.
        let tier = tiers["leaf"].figures["rtt/2.p50"];
        assert!(tier.spread < 0.08, "{tier:?}");
    }

    #[test]
    fn three_nodes_have_tiers_and_no_effects() {
        let mut noise = Noise::new(4);
        let cluster = Cluster::of(3, &mut noise);
        let runs = runs_of(&cluster, 3, &mut noise);
        let (tiers, nodes, common) = of_runs(&runs.iter().collect::<Vec<_>>());
        assert!(!tiers["leaf"].figures.is_empty() && common.is_empty());
        assert!(nodes.values().all(|node| node.figures.is_empty()));
    }
}
