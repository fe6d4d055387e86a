//! Made-up fabrics for tests.

use std::cell::RefCell;

use super::baseline::{self, Baseline};
use super::culprits::{Evidence, NodeJudgement, judge};
use super::matrix::Matrix;
use super::metrics::{RunFigures, RunNode};
use super::tiers::Tiers;
use crate::results::document::Program;
pub(super) use crate::testing::Noise;

/// Tiers of nodes in groups of so many.
pub(super) fn in_groups(nodes: usize, of: usize) -> Tiers {
    let paths: Vec<Vec<String>> = (0..nodes)
        .map(|node| vec!["core".to_owned(), format!("leaf{}", node / of)])
        .collect();
    Tiers::of_paths(&paths, "test")
}

/// Latencies of a healthy fabric in ns: 2 us within a group and 3 us between them, nodes that differ a little, and
/// noise of 60 ns.
pub(super) fn healthy(tiers: &Tiers, noise: &mut Noise, one_sided: bool) -> Matrix {
    let nodes = tiers.nodes();
    let mut own = || -> Vec<f64> { (0..nodes).map(|_| 15.0 * noise.normal()).collect() };
    let (egress, ingress) = (own(), own());
    Matrix::of(nodes, |from, to| {
        let tier = 2000.0 + 1000.0 * tiers.of(from, to) as f64;
        let noise = match one_sided {
            true => 60.0 * noise.exponential(),
            false => 60.0 * noise.normal(),
        };
        Some(tier + egress[from] + ingress[to] + noise)
    })
}

/// Has a node send more slowly by so many ns, and judges all by that figure alone.
pub(super) fn with_slow_sender(
    figure: &mut Matrix,
    (slow, ns): (usize, f64),
    tiers: &Tiers,
) -> Vec<NodeJudgement> {
    for to in (0..tiers.nodes()).filter(|to| *to != slow) {
        figure.set(slow, to, figure.get(slow, to).unwrap() + ns);
    }
    let evidence = Evidence {
        figure: "excess_p99_ns",
        values: figure,
        error: None,
        directional: true,
        least_ns: 0.0,
    };
    judge(&[evidence], tiers)
}

/// What runs of a cluster vary by; standard deviations of logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variation {
    /// Of each pair in each run, of medians. Half of its variance is that of the way, which both directions share. The
    /// 99th percentiles vary three times as much.
    pub pairs: f64,
    /// Whether that is distributed as Student's t with 3 degrees of freedom, of the same scale, in all pairs; else it is
    /// in one of ten, which stay the same, and normal in the others.
    pub are_heavy: bool,
    /// Of all pairs of a run together.
    pub runs: f64,
    /// Of a node from run to run, of what it sends and of what it receives each.
    pub nodes: f64,
    /// Whether that has heavy tails likewise.
    pub are_nodes_heavy: bool,
    /// How much of it is left in the next run: the correlation of two runs.
    pub lag: f64,
    /// Of one node from run to run, in place of that.
    pub noisy: Option<f64>,
    /// Of nodes among each other, the same in all runs.
    pub own: f64,
    /// All that goes to or from one of the groups takes 10 % longer, in one of four runs.
    pub is_congested: bool,
    /// Nodes that do not take part in a run, others each time.
    pub absent: usize,
}

impl Default for Variation {
    fn default() -> Self {
        Variation {
            pairs: 0.05,
            are_heavy: false,
            runs: 0.03,
            nodes: 0.01,
            are_nodes_heavy: false,
            lag: 0.0,
            noisy: None,
            own: 0.03,
            is_congested: false,
            absent: 0,
        }
    }
}

/// A node that became slow.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlowNode {
    pub node: usize,
    /// All that it sends takes this many times as long.
    pub times: f64,
    /// Whether all that it receives does, too.
    pub in_both: bool,
}

/// A cluster of nodes in groups of eight, of which runs are made up.
#[derive(Debug)]
pub(super) struct Cluster {
    pub tiers: Tiers,
    pub variation: Variation,
    /// By node, in logarithms.
    pub own: Vec<f64>,
    /// Pairs with heavy tails, by rows.
    heavy: Vec<bool>,
    /// What nodes had in the last run, sent and received.
    last: RefCell<[Vec<f64>; 2]>,
}

/// Student's t with 3 degrees of freedom.
fn heavy(noise: &mut Noise) -> f64 {
    let squares: f64 = (0..3).map(|_| noise.normal().powi(2)).sum();
    noise.normal() / (squares / 3.0).sqrt()
}

impl Cluster {
    pub(super) fn of(nodes: usize, noise: &mut Noise) -> Self {
        Self::varying(nodes, Variation::default(), noise)
    }

    pub(super) fn varying(nodes: usize, variation: Variation, noise: &mut Noise) -> Self {
        Cluster {
            tiers: in_groups(nodes, 8),
            own: (0..nodes).map(|_| variation.own * noise.normal()).collect(),
            heavy: (0..nodes * nodes).map(|_| noise.below(10) == 0).collect(),
            variation,
            last: RefCell::new([vec![0.0; nodes], vec![0.0; nodes]]),
        }
    }

    /// A healthy run.
    pub(super) fn run(&self, noise: &mut Noise) -> RunFigures {
        self.run_with(None, noise)
    }

    /// What nodes have in this run.
    fn of_nodes(&self, noise: &mut Noise) -> [Vec<f64>; 2] {
        let Variation {
            nodes,
            are_nodes_heavy,
            lag,
            noisy,
            ..
        } = self.variation;
        let mut last = self.last.borrow_mut();
        for own in last.iter_mut() {
            for (place, own) in own.iter_mut().enumerate() {
                let scale = noisy.filter(|_| place == 1).unwrap_or(nodes);
                let drawn = if are_nodes_heavy {
                    heavy(noise)
                } else {
                    noise.normal()
                };
                *own = lag * *own + (1.0 - lag * lag).sqrt() * scale * drawn;
            }
        }
        last.clone()
    }

    /// One with a slow node.
    pub(super) fn run_with(&self, slow: Option<SlowNode>, noise: &mut Noise) -> RunFigures {
        let (nodes, variation) = (self.tiers.nodes(), self.variation);
        let common = variation.runs * noise.normal();
        let [sent, received] = self.of_nodes(noise);
        let congested = (variation.is_congested && noise.below(4) == 0).then(|| noise.below(nodes));
        let one = |pair: usize, noise: &mut Noise| match variation.are_heavy || self.heavy[pair] {
            true => variation.pairs * heavy(noise),
            false => variation.pairs * noise.normal(),
        };
        let ways: Vec<f64> = (0..nodes * nodes).map(|pair| one(pair, noise)).collect();
        let mut columns: [Matrix; 7] = std::array::from_fn(|_| Matrix::missing(nodes));
        for (from, to) in super::matrix::ordered_pairs(nodes) {
            let pair = from * nodes + to;
            if noise.below(200) == 0 {
                continue;
            }
            // A round trip goes both ways.
            let slow = slow.filter(|slow| slow.node == from || slow.node == to);
            let times = slow.map_or(1.0, |slow| match slow.in_both {
                true => slow.times,
                false => f64::midpoint(1.0, slow.times),
            });
            let is_congested = congested.is_some_and(|node| {
                let is_of_it = |other: usize| self.tiers.group(other) == self.tiers.group(node);
                is_of_it(from) || is_of_it(to)
            });
            let busy = if is_congested { 1.1 } else { 1.0 };
            let usual = busy * (2000.0 + 1000.0 * self.tiers.of(from, to) as f64);
            let of_ends = self.own[from] + self.own[to] + sent[from] + received[to];
            let way = ways[from.min(to) * nodes + from.max(to)];
            let own = (way + one(pair, noise)) * std::f64::consts::FRAC_1_SQRT_2;
            let least = times * usual * 0.9 * (common + of_ends).exp();
            let half = times * usual * (common + of_ends + own).exp();
            let half_p99 = 1.5 * half * (3.0 * one(pair, noise)).exp();
            let excess_p99 = 0.5 * half * (3.0 * one(pair, noise)).exp();
            let lost = if noise.below(100) == 0 { 1.0 } else { 0.0 };
            let figures = [least, half, half_p99, 0.1 * half, excess_p99, 1000.0, lost];
            for (column, figure) in columns.iter_mut().zip(figures) {
                column.set(from, to, figure);
            }
        }
        let judged = by_itself(&columns, &self.tiers);
        let node = |node: usize| RunNode {
            name: format!("n{node}"),
            host: format!("n{node}"),
            is_named: Some(judged[node].verdict.direction().is_some()),
            ..RunNode::default()
        };
        let tried = Matrix::of(nodes, |_, _| Some(1.0));
        let names = (0..nodes).map(node).collect();
        let run = RunFigures::new(names, self.tiers.clone(), columns, tried);
        let first = noise.below(nodes);
        let is_there = |node: &usize| (node + nodes - first) % nodes >= variation.absent;
        let there: Vec<usize> = (0..nodes).filter(is_there).collect();
        run.of_nodes(&there)
    }
}

/// A baseline of runs, without the facts about them.
pub(super) fn baseline_of(runs: &[RunFigures]) -> Baseline {
    let (tiers, nodes, of_all_nodes) = baseline::of_runs(&Vec::from_iter(runs));
    Baseline {
        format: String::new(),
        version: 0,
        hcabench: Program::this(),
        runs: Vec::new(),
        settings: serde_json::Value::Null,
        schedule: serde_json::Value::Null,
        tiers,
        tier_source: serde_json::Value::Null,
        nodes,
        of_all_nodes,
    }
}

/// What `hcabench fabric` says of the nodes of that run.
fn by_itself(columns: &[Matrix; 7], tiers: &Tiers) -> Vec<NodeJudgement> {
    let [_, half, _, excess_p50, excess_p99, ..] = columns;
    let usual = super::scores::median(half.each().map(|it| it.2).collect());
    let evidence = |figure, values, directional| Evidence {
        figure,
        values,
        error: None,
        directional,
        least_ns: 0.05 * usual.unwrap_or(0.0),
    };
    judge(
        &[
            evidence("half_round_trip_p50_ns", half, false),
            evidence("excess_p50_ns", excess_p50, true),
            evidence("excess_p99_ns", excess_p99, true),
        ],
        tiers,
    )
}
