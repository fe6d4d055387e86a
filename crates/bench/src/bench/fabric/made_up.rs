//! Made-up fabrics for tests.

use super::culprits::{Evidence, NodeJudgement, judge};
use super::matrix::Matrix;
use super::metrics::{RunFigures, RunNode};
use super::tiers::Tiers;
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
    /// Of each pair in each run.
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
    /// Of nodes among each other, the same in all runs.
    pub own: f64,
}

impl Default for Variation {
    fn default() -> Self {
        Variation {
            pairs: 0.05,
            are_heavy: false,
            runs: 0.03,
            nodes: 0.01,
            are_nodes_heavy: false,
            own: 0.03,
        }
    }
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
        }
    }

    /// A healthy run.
    pub(super) fn run(&self, noise: &mut Noise) -> RunFigures {
        self.run_with(None, noise)
    }

    /// One in which all that a node sends and receives takes this many times as long.
    pub(super) fn run_with(&self, slow: Option<(usize, f64)>, noise: &mut Noise) -> RunFigures {
        let nodes = self.tiers.nodes();
        let variation = self.variation;
        let common = variation.runs * noise.normal();
        let mut of_nodes = || -> Vec<f64> {
            let of = |_| match variation.are_nodes_heavy {
                true => variation.nodes * heavy(noise),
                false => variation.nodes * noise.normal(),
            };
            (0..nodes).map(of).collect()
        };
        let (sent, received) = (of_nodes(), of_nodes());
        let mut columns: [Matrix; 7] = std::array::from_fn(|_| Matrix::missing(nodes));
        for (from, to) in super::matrix::ordered_pairs(nodes) {
            let slow = slow.filter(|(node, _)| *node == from || *node == to);
            let times = slow.map_or(1.0, |(_, times)| times);
            let usual = 2000.0 + 1000.0 * self.tiers.of(from, to) as f64;
            let of_ends = self.own[from] + self.own[to] + sent[from] + received[to];
            let is_heavy = variation.are_heavy || self.heavy[from * nodes + to];
            let one = |noise: &mut Noise| match is_heavy {
                true => variation.pairs * heavy(noise),
                false => variation.pairs * noise.normal(),
            };
            let half = times * usual * (common + of_ends + one(noise)).exp();
            let half_p99 = half * 1.5 * one(noise).exp();
            let least = times * usual * 0.9 * (common + of_ends).exp();
            let excess_p99 = 0.5 * half * one(noise).exp();
            let figures = [least, half, half_p99, 0.1 * half, excess_p99, 1000.0, 0.0];
            for (column, figure) in columns.iter_mut().zip(figures) {
                column.set(from, to, figure);
            }
        }
        let node = |node: usize| RunNode {
            name: format!("n{node}"),
            host: format!("n{node}"),
            ..RunNode::default()
        };
        RunFigures {
            nodes: (0..nodes).map(node).collect(),
            tiers: self.tiers.clone(),
            columns,
        }
    }
}
