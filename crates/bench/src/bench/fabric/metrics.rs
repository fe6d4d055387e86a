//! What runs of a fabric are judged by over time: a figure of each pair, so that one run can be compared with others.
//!
//! Times are compared as ratios: their logarithms are taken apart into tiers, nodes and rests by [`polish`]. What all
//! nodes of a run have in common is in its tiers, so that a fabric that is busier as a whole moves no node. The excess of a direction can be a few nanoseconds, of which a ratio means nothing:
//! half of the shortest round trip is added, which makes it a latency in one direction.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::matrix::Matrix;
use super::scores::{Fit, median, polish};
use super::tiers::Tiers;
use crate::results::schema::Column;
use crate::results::schema::fabric::{
    EXCESS_P50, EXCESS_P99, HALF_MIN, HALF_P50, HALF_P99, LOST, SENT,
};
use crate::rig::named::named;

named! {
    /// What a rule is about.
    Metric {
        /// Half of the shortest round trip.
        HalfMin = "rtt/2.min",
        /// Half of the median round trip.
        HalfP50 = "rtt/2.p50",
        /// Half of its 99th percentile.
        HalfP99 = "rtt/2.p99",
        /// The median excess of a direction, above half of the shortest round trip.
        ExcessP50 = "excess.p50",
        /// The 99th percentile of the excess, likewise.
        ExcessP99 = "excess.p99",
        /// The share of messages that did not arrive.
        Loss = "loss",
        /// The share of a node's pairs without figures.
        Missing = "missing",
        /// The verdict of the run itself.
        Verdict = "verdict",
    }
}

impl Metric {
    /// Those that are times, which are compared with a baseline.
    pub const TIMES: [Metric; 5] = [
        Metric::HalfMin,
        Metric::HalfP50,
        Metric::HalfP99,
        Metric::ExcessP50,
        Metric::ExcessP99,
    ];

    /// Whether it takes a baseline.
    pub fn is_time(self) -> bool {
        Self::TIMES.contains(&self)
    }

    /// Whether a pair and its opposite have figures of their own, so that a direction can be named.
    pub fn is_directional(self) -> bool {
        matches!(self, Metric::ExcessP50 | Metric::ExcessP99 | Metric::Loss)
    }
}

/// A node of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunNode {
    /// Its name in the tables.
    pub name: String,
    /// As the launcher calls its host; empty where it did not take part, or no launcher started it.
    pub host: String,
    /// As Kubernetes calls the host of its pod, if the pod had it in HCABENCH_NODE.
    pub pod_host: String,
    /// Its switch or group.
    pub group: String,
    /// Whether the run itself names it as slow; `None` where it could not judge it.
    pub is_named: Option<bool>,
    /// What it runs on, by name: firmware, kernel, port. Facts that are unknown are left out.
    pub facts: Vec<(&'static str, String)>,
}

/// A run, as far as it is compared with others.
#[derive(Debug, Clone)]
pub struct RunFigures {
    /// Its nodes, by place in the matrices.
    pub nodes: Vec<RunNode>,
    /// Their tiers.
    pub tiers: Tiers,
    /// A matrix for each of [`Self::COLUMNS`].
    columns: [Matrix; 7],
    /// Pairs that were to be measured and were tried: not those that a run did not come to.
    tried: Matrix,
    /// By tier, the node that all of its pairs have in common, if there are such; once it is asked for.
    owners: OnceCell<Vec<Option<usize>>>,
    /// Of [`Metric::TIMES`], once they are asked for.
    fits: [OnceCell<Fit>; 5],
}

impl RunFigures {
    /// The columns that metrics are made of.
    pub const COLUMNS: [Column; 7] = [
        HALF_MIN, HALF_P50, HALF_P99, EXCESS_P50, EXCESS_P99, SENT, LOST,
    ];

    /// Of a run.
    pub fn new(nodes: Vec<RunNode>, tiers: Tiers, columns: [Matrix; 7], tried: Matrix) -> Self {
        RunFigures {
            nodes,
            tiers,
            columns,
            tried,
            owners: OnceCell::new(),
            fits: Default::default(),
        }
    }

    /// Those matrices.
    pub fn columns(&self) -> &[Matrix; 7] {
        &self.columns
    }

    /// The place of a node of that name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The places of all nodes, by name.
    pub fn places(&self) -> HashMap<&str, usize> {
        let names = self.nodes.iter().enumerate();
        names
            .map(|(place, node)| (node.name.as_str(), place))
            .collect()
    }

    /// Some of the nodes.
    pub fn of_nodes(&self, places: &[usize]) -> Self {
        let nodes = places.iter().map(|place| self.nodes[*place].clone());
        let columns = self.columns.each_ref();
        Self::new(
            nodes.collect(),
            self.tiers.of_nodes(places),
            columns.map(|column| column.of_nodes(places)),
            self.tried.of_nodes(places),
        )
    }

    /// The logarithm of a time in ns, of all pairs.
    fn logarithms(&self, metric: Metric) -> Matrix {
        let [least, half, half_p99, excess, excess_p99, ..] = &self.columns;
        let (figure, above) = match metric {
            Metric::HalfMin => (least, None),
            Metric::HalfP99 => (half_p99, None),
            Metric::ExcessP50 => (excess, Some(least)),
            Metric::ExcessP99 => (excess_p99, Some(least)),
            _ => (half, None),
        };
        figure.alike(|from, to| {
            let above = above.map_or(Some(0.0), |above| above.get(from, to));
            let ns = figure.get(from, to)? + above?;
            (ns > 0.0).then(|| ns.ln())
        })
    }

    /// A time taken apart: in logarithms of ns, and of ratios.
    pub fn fit(&self, metric: Metric) -> &Fit {
        let place = Metric::TIMES.iter().position(|it| *it == metric);
        let fit = || polish(&self.logarithms(metric), &self.tiers);
        self.fits[place.unwrap_or(1)].get_or_init(fit)
    }

    /// By tier, the node without which it has no pair with figures: the tier and that node cannot be told apart.
    pub fn owners(&self) -> &[Option<usize>] {
        self.owners.get_or_init(|| {
            let nodes = self.nodes.len();
            let mut counts = vec![vec![0; nodes]; self.tiers.count()];
            let mut all = vec![0; self.tiers.count()];
            for (from, to, _) in self.columns[1].each() {
                let tier = self.tiers.of(from, to);
                all[tier] += 1;
                counts[tier][from] += 1;
                counts[tier][to] += 1;
            }
            let owner = |(counts, all): (Vec<i32>, i32)| {
                counts.into_iter().position(|count| all > 0 && count == all)
            };
            counts.into_iter().zip(all).map(owner).collect()
        })
    }

    /// The effect of a node; `None` also where most of its pairs are in tiers that have no others.
    pub fn effect(&self, metric: Metric, node: usize, direction: usize) -> Option<f64> {
        let fit = self.fit(metric);
        let owners = self.owners();
        let others = self.columns[1].pairs().of(node);
        let tiers: Vec<usize> = others.map(|other| self.tiers.of(node, other)).collect();
        let own = tiers
            .iter()
            .filter(|tier| owners[**tier] == Some(node))
            .count();
        let effect = [&fit.egress, &fit.ingress][direction][node];
        effect.filter(|_| 2 * own < tiers.len())
    }

    /// The share of messages that were lost, of all pairs.
    pub fn losses(&self) -> Matrix {
        let [.., sent, lost] = &self.columns;
        sent.alike(|from, to| {
            let sent = sent.get(from, to).filter(|sent| *sent > 0.0)?;
            Some(lost.get(from, to)? / sent)
        })
    }

    /// The share that most of a node's pairs lose: of what it sends, and of what it receives. One bad partner does not
    /// move it.
    pub fn losses_of(losses: &Matrix, node: usize) -> [Option<f64>; 2] {
        let others = || losses.pairs().of(node);
        let sent = others().filter_map(|to| losses.get(node, to)).collect();
        let received = others().filter_map(|from| losses.get(from, node)).collect();
        [median(sent), median(received)]
    }

    /// The share of those of a node's pairs that have no figures although they were tried, beside nodes that have any;
    /// `None` if none was tried.
    pub fn missing_of(&self, node: usize) -> Option<f64> {
        let half = &self.columns[1];
        let has_any = |other: &usize| half.measured_with(*other) > 0;
        let others = self.tried.pairs().of(node).filter(has_any);
        let pairs = others.flat_map(|other| [(node, other), (other, node)]);
        let tried = pairs.filter(|(from, to)| self.tried.get(*from, *to).is_some());
        let tried: Vec<(usize, usize)> = tried.collect();
        let without = tried
            .iter()
            .filter(|(from, to)| half.get(*from, *to).is_none());
        (!tried.is_empty()).then(|| without.count() as f64 / tried.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::made_up::in_groups;

    #[test]
    fn metrics_are_made_of_the_columns() {
        let matrix = |of: fn(usize, usize) -> Option<f64>| Matrix::of(4, of);
        let all = matrix(|_, _| Some(1.0));
        let run = RunFigures::new(
            vec![RunNode::default(); 4],
            in_groups(4, 2),
            [
                matrix(|_, _| Some(900.0)),
                matrix(|from, to| (from != 3 && to != 3).then_some(1000.0)),
                matrix(|_, _| None),
                matrix(|_, _| Some(0.0)),
                matrix(|from, _| Some(100.0 * (1 + from) as f64)),
                matrix(|from, _| Some(if from == 2 { 0.0 } else { 1000.0 })),
                matrix(|from, to| Some(if from == 0 && to > 1 { 10.0 } else { 0.0 })),
            ],
            all,
        );
        assert_eq!(
            run.logarithms(Metric::HalfP50).get(0, 1),
            Some(1000_f64.ln())
        );
        assert_eq!(run.logarithms(Metric::HalfP50).get(0, 3), None);
        assert_eq!(run.logarithms(Metric::HalfP99).measured(), 0);
        assert_eq!(
            run.logarithms(Metric::ExcessP50).get(1, 0),
            Some(900_f64.ln())
        );
        assert_eq!(
            run.logarithms(Metric::ExcessP99).get(1, 0),
            Some(1100_f64.ln())
        );
        let losses = run.losses();
        assert_eq!((losses.get(0, 3), losses.get(2, 0)), (Some(0.01), None));
        assert_eq!(RunFigures::losses_of(&losses, 0), [Some(0.01), Some(0.0)]);
        // What is lost towards one of three partners is not the node's.
        assert_eq!(RunFigures::losses_of(&losses, 3)[1], Some(0.005));
        assert_eq!(run.missing_of(3), Some(1.0));
        // A node that has no figures at all is missing itself, and nowhere else.
        assert_eq!(run.missing_of(0), Some(0.0));
        // Nor is one that the run did not come to.
        let none = Matrix::missing(4);
        let ended = RunFigures::new(run.nodes, run.tiers, run.columns, none);
        assert_eq!(ended.missing_of(3), None);
    }
}
