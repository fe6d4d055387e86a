//! Which nodes are named, and in which direction.
//!
//! A node is named by evidence only: its effect must stand out from those of all others by more than noise lets any of
//! them stand out, must be longer than what its figures may be off, and must be worth telling. Round trips alone name a
//! node, and no direction: one that sends slowly and one that receives slowly have the same round trips. What varies in
//! one direction tells it only where it is no small part of what round trips show: beside a constant delay, which has no
//! direction that could be known, noise would name one.

use super::matrix::Matrix;
use super::scores::{Fit, LEAST_NODES, median, polish};
use super::tiers::Tiers;
use crate::rig::named::named;
use crate::sorting::sort_by;

/// A figure of all pairs that may name nodes.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The figure, as its column is named.
    pub figure: &'static str,
    /// In ns.
    pub values: &'a Matrix,
    /// By how much each may be off, in ns; `None` if by nothing.
    pub error: Option<&'a Matrix>,
    /// Whether a pair and its opposite have figures of their own.
    pub directional: bool,
    /// Smaller effects name nobody, in ns.
    pub least_ns: f64,
}

named! {
    /// In which direction a node is slow.
    Direction {
        /// In what it sends.
        Egress = "egress",
        /// In what it receives.
        Ingress = "ingress",
        /// In both.
        Both = "both",
        /// Only round trips tell of it.
        Unknown = "unknown",
    }
}

/// What is said of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeVerdict {
    /// Nothing stands out.
    Ok,
    /// It is named.
    Slow(Direction),
    /// There are too few nodes, or too few pairs with it.
    NotJudged,
    /// No pair with it has figures.
    Missing,
}

impl NodeVerdict {
    /// As `nodes.csv` has it.
    pub const fn name(self) -> &'static str {
        match self {
            NodeVerdict::Ok => "ok",
            NodeVerdict::Slow(_) => "slow",
            NodeVerdict::NotJudged => "not-judged",
            NodeVerdict::Missing => "missing",
        }
    }

    /// The direction of a node that is named.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            NodeVerdict::Slow(direction) => Some(direction),
            _ => None,
        }
    }
}

/// A node with what its pairs say of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeJudgement {
    /// What is said of it.
    pub verdict: NodeVerdict,
    /// In robust standard deviations: of the figure that names it, or else of the one in which it stands out most.
    pub score: Option<f64>,
    /// That figure.
    pub figure: Option<&'static str>,
    /// Its effects by that figure, in ns: egress and ingress.
    pub effects_ns: [Option<f64>; 2],
    /// The same in robust standard deviations.
    pub scores: [Option<f64>; 2],
}

/// The least share of the larger effect that makes the smaller one count as well.
const BOTH: f64 = 1.0 / 3.0;

/// A node is apart when the least of its pairs lies so many times as far above the middle of all others' as the
/// greatest of those does. Among four nodes noise alone does so in fewer than one of 200 fabrics, by simulation, however
/// heavy its tail is: one disturbed pair of others hides what a score would tell.
const APART: f64 = 5.0;
/// Of a node with fewer pairs in a direction this cannot be told.
const LEAST_APART: usize = 3;
/// Among more nodes scores find whatever is apart, and one disturbed pair hides nothing.
const FEW_NODES: usize = 16;

/// From so many robust standard deviations on an effect of one of so many nodes is no noise. Noise alone exceeds it in
/// one of a hundred fabrics, by simulation: normal noise, or one-sided as delays are, with or without missing pairs.
/// The fewer pairs a node has, the less is known of how much noise there is.
pub fn limit(nodes: usize) -> f64 {
    const LIMITS: [(usize, f64); 6] = [
        (4, 11.0),
        (5, 8.5),
        (6, 6.5),
        (8, 6.0),
        (16, 5.5),
        (64, 5.0),
    ];
    let known = LIMITS.iter().rev().find(|(from, _)| nodes >= *from);
    known.map_or(f64::INFINITY, |(_, limit)| *limit)
}

/// Judges all nodes by all evidence.
pub fn judge(evidence: &[Evidence<'_>], tiers: &Tiers) -> Vec<NodeJudgement> {
    let fits: Vec<Fit> = evidence.iter().map(|it| polish(it.values, tiers)).collect();
    let mut found: Vec<NodeJudgement> = (0..tiers.nodes())
        .map(|node| unjudged(evidence, node))
        .collect();
    for (evidence, fit) in evidence.iter().zip(&fits) {
        let errors = Errors::of(evidence);
        for (node, score) in fit.scores().into_iter().enumerate() {
            let new = NodeJudgement {
                verdict: NodeVerdict::Ok,
                score: score.worst(),
                figure: Some(evidence.figure),
                effects_ns: [fit.egress[node], fit.ingress[node]],
                scores: [score.egress, score.ingress],
            };
            if new.score.is_some() && fit.known_nodes() >= LEAST_NODES {
                let apart = apart(fit, node);
                let new = new.named(
                    evidence,
                    errors.of_node(node),
                    apart,
                    limit(fit.known_nodes()),
                );
                let old = &mut found[node];
                if new.says_more_than(old) {
                    *old = new;
                }
            }
        }
    }
    found
}

/// The order in which nodes are told: those that are named first, the worst of them at the head.
pub fn ranked(judged: &[NodeJudgement]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..judged.len()).collect();
    let key = |node: &usize| {
        let node = &judged[*node];
        let named = node.verdict.direction().is_some();
        (named, node.score.unwrap_or(f64::NEG_INFINITY))
    };
    sort_by(&mut order, |one, other| {
        let (one, other) = (key(one), key(other));
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    order
}

fn unjudged(evidence: &[Evidence<'_>], node: usize) -> NodeJudgement {
    let has_figures = evidence.iter().any(|it| it.values.measured_with(node) > 0);
    NodeJudgement {
        verdict: if has_figures {
            NodeVerdict::NotJudged
        } else {
            NodeVerdict::Missing
        },
        score: None,
        figure: None,
        effects_ns: [None; 2],
        scores: [None; 2],
    }
}

impl NodeJudgement {
    /// Whether a figure says more of a node than another: one that names it more than one that does not; of two that name
    /// it one with a direction, unless it explains less than half of the delay that the other shows; and of equal ones
    /// that with the higher score.
    fn says_more_than(&self, other: &Self) -> bool {
        // By round trips both effects of a node are half of its delay.
        let explains = |one: &Self, whole: &Self| one.effect() >= whole.effect();
        match [self, other].map(|one| one.verdict.direction()) {
            [Some(Direction::Unknown), Some(known)] if known != Direction::Unknown => {
                !explains(other, self)
            }
            [Some(known), Some(Direction::Unknown)] if known != Direction::Unknown => {
                explains(self, other)
            }
            _ => self.weight() > other.weight(),
        }
    }

    /// The larger of its effects, in ns.
    fn effect(&self) -> f64 {
        let effects = self.effects_ns.into_iter().flatten();
        effects.fold(f64::NEG_INFINITY, f64::max)
    }

    /// What is named weighs more than what is not, and of equals that with the higher score.
    fn weight(&self) -> (u8, f64) {
        let kind = match self.verdict {
            NodeVerdict::Missing | NodeVerdict::NotJudged => 0,
            NodeVerdict::Ok => 1,
            NodeVerdict::Slow(_) => 2,
        };
        (kind, self.score.unwrap_or(f64::NEG_INFINITY))
    }

    /// The same with a verdict.
    fn named(
        mut self,
        evidence: &Evidence<'_>,
        errors: [f64; 2],
        apart: [bool; 2],
        limit: f64,
    ) -> Self {
        let stands_out = |direction: usize, limit: f64| {
            let effect = self.effects_ns[direction]?;
            let score = self.scores[direction]?;
            let certain = effect - errors[direction];
            let is_noise = score <= limit && !apart[direction];
            (!is_noise && certain > evidence.least_ns.max(0.0)).then_some(effect)
        };
        let either = stands_out(0, limit).or(stands_out(1, limit)).is_some();
        // Both together are evidence as well, if each of them is some.
        let both = stands_out(0, limit / 3.0).and(stands_out(1, limit / 3.0));
        let [sent, received] = self.scores.map(|score| score.unwrap_or(0.0));
        let together = both.is_some() && sent.hypot(received) > limit;
        if !(either || together) {
            return self;
        }
        // Of a node that is named anyway, the other direction takes less to be told.
        let direction = match [0, 1].map(|direction| stands_out(direction, limit / 3.0)) {
            _ if !evidence.directional => Direction::Unknown,
            [Some(egress), Some(ingress)] if ingress < BOTH * egress => Direction::Egress,
            [Some(egress), Some(ingress)] if egress < BOTH * ingress => Direction::Ingress,
            [Some(_), None] => Direction::Egress,
            [None, Some(_)] => Direction::Ingress,
            _ => Direction::Both,
        };
        self.verdict = NodeVerdict::Slow(direction);
        self
    }
}

/// Whether all pairs of a node lie far above all others, by what it sends, and by what it receives. One that is slow in
/// both is apart in both, and is compared with the pairs of others alone.
fn apart(fit: &Fit, node: usize) -> [bool; 2] {
    if fit.known_nodes() > FEW_NODES {
        return [false; 2];
    }
    let without_tier = |(from, to, rest): (usize, usize, f64)| {
        let effects = [fit.egress[from], fit.ingress[to]].into_iter().flatten();
        (from == node, to == node, rest + effects.sum::<f64>())
    };
    let pairs: Vec<(bool, bool, f64)> = fit.rest.each().map(without_tier).collect();
    let is_apart = |is_own: fn(bool, bool) -> bool| {
        type Pairs = Vec<(bool, bool, f64)>;
        let (own, others): (Pairs, Pairs) = pairs.iter().partition(|it| is_own(it.0, it.1));
        let middle = median(others.iter().map(|it| it.2).collect());
        let Some(middle) = middle.filter(|_| own.len() >= LEAST_APART) else {
            return false;
        };
        let least = own
            .iter()
            .map(|it| it.2 - middle)
            .fold(f64::INFINITY, f64::min);
        let greatest = others.iter().map(|it| it.2 - middle).fold(0.0, f64::max);
        least > APART * greatest
    };
    let [sent, received] = [is_apart(|sent, _| sent), is_apart(|_, received| received)];
    let both = is_apart(|sent, received| sent || received);
    [sent || both, received || both]
}

/// By how much the effects of a figure may be off.
struct Errors {
    /// By node: of what it sends, and of what it receives.
    of: Vec<[f64; 2]>,
    /// Of all pairs, from which the effects are counted.
    usual: f64,
}

impl Errors {
    fn of(evidence: &Evidence<'_>) -> Self {
        let nodes = evidence.values.nodes();
        let Some(errors) = evidence.error else {
            return Errors {
                of: vec![[0.0; 2]; nodes],
                usual: 0.0,
            };
        };
        // Not known is not small.
        let error = |from: usize, to: usize| {
            let measured = evidence.values.get(from, to);
            measured.map(|_| errors.get(from, to).unwrap_or(f64::INFINITY))
        };
        let others = |node: usize| evidence.values.pairs().of(node);
        let middle = |errors: Vec<f64>| median(errors).unwrap_or(f64::INFINITY);
        let of = |node: usize| {
            let sent = others(node).filter_map(|to| error(node, to)).collect();
            let received = others(node).filter_map(|from| error(from, node)).collect();
            [middle(sent), middle(received)]
        };
        let all = evidence
            .values
            .each()
            .filter_map(|(from, to, _)| error(from, to));
        Errors {
            of: (0..nodes).map(of).collect(),
            usual: middle(all.collect()),
        }
    }

    fn of_node(&self, node: usize) -> [f64; 2] {
        self.of[node].map(|error| error + self.usual)
    }
}

#[cfg(test)]
mod tests;
