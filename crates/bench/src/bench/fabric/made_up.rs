//! Made-up fabrics for tests.

use super::culprits::{Evidence, NodeJudgement, judge};
use super::matrix::Matrix;
use super::tiers::Tiers;
use crate::pacing::SplitMix64;

/// Noise of a seed.
pub(super) struct Noise(SplitMix64);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Noise(SplitMix64::new(seed))
    }

    /// Above 0, below 1.
    pub(super) fn share(&mut self) -> f64 {
        ((self.0.draw() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Below a number.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.0.draw() % limit as u64) as usize
    }

    /// Of a normal distribution around 0 with deviation 1.
    pub(super) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.share(), self.share());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Of an exponential distribution of mean 1: one-sided, as delays are.
    pub(super) fn exponential(&mut self) -> f64 {
        -self.share().ln()
    }
}

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
