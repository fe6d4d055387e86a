//! Made-up fabrics for tests.

use super::culprits::{Evidence, NodeJudgement, judge};
use super::matrix::Matrix;
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
