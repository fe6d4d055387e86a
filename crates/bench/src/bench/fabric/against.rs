//! A run judged by rules, beside a baseline where they take one.
//!
//! The run is aligned with the baseline by the nodes that both have, as runs of a baseline are: that a node is absent
//! moves no other one.
//!
//! A time is out if it is above its limit and above what chance makes likely: the quantile of Student's t of its
//! deviation from the baseline, by the spread between runs. Each rule gets an even share of `error`, and each of its
//! tests an even share of that (Bonferroni), so that a healthy run of the fabric that the baseline was made of is out
//! anywhere with that probability at most. What a pair is beyond its tier and nodes must be above that of all pairs of
//! its tier in all runs of the baseline: some pairs have heavy tails, and no distribution is assumed.

use std::collections::HashMap;

use super::baseline::{Baseline, Effect, mean_loss};
use super::culprits::Direction;
use super::metrics::{Metric, RunFigures, RunNode};
use super::rules::{Bound, Rule, Rules, Scope};
use super::scores::{Fit, LEAST_NODES, median, medians_of_others};
use crate::rig::named::named;
use crate::stats::student::quantile_above;

/// Of a node with fewer pairs in a direction nothing is known, if there are more nodes.
const LEAST_PAIRS: usize = 4;
/// Beside fewer nodes of the baseline a shift of the run cannot be distinguished from one of the node.
const LEAST_OTHERS: usize = 2;

/// What a rule judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// A node, by its place.
    Node(usize),
    /// An ordered pair.
    Pair(usize, usize),
    /// A tier, by its place.
    Tier(usize),
}

named! {
    /// Whether something is out.
    State {
        /// It is within its limit, or what is above can be chance.
        Within = "ok",
        /// It is out.
        Out = "out",
    }
}

/// A unit by a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The place of the rule.
    pub rule: usize,
    /// Of what.
    pub unit: Unit,
    /// Whether it is out.
    pub state: State,
    /// How far it is above the baseline, as a share; of losses and missing pairs, the share; `None` of a verdict.
    pub above: Option<f64>,
    /// From where on it is out.
    pub bound: Option<f64>,
    /// The time in the baseline in ns, of a tier.
    pub centre_ns: Option<f64>,
    /// In which direction, of what is out and has one.
    pub direction: Option<Direction>,
    /// Whether no run of the baseline has this node.
    pub is_new: bool,
}

/// A share of a logarithm of a ratio.
fn share(logarithm: f64) -> f64 {
    logarithm.exp_m1()
}

/// A deviation, where it ends to be one, and whether it is beyond that.
#[derive(Debug, Clone, Copy)]
struct Deviation {
    above: f64,
    bound: f64,
}

impl Deviation {
    /// By a limit and by chance; all logarithms.
    fn of(above: f64, limit: Bound, spread: f64, chance: f64) -> Self {
        let limit = match limit {
            Bound::Share(share) => share.ln_1p(),
            Bound::Spreads(spreads) => spreads * spread,
        };
        Deviation {
            above,
            bound: limit.max(chance),
        }
    }

    fn is_out(self) -> bool {
        self.above > self.bound
    }
}

/// Judges all that the rules name: nodes and tiers that have figures, and of pairs those that are out. Rules that take a
/// baseline are left out without one.
pub fn judge(run: &RunFigures, baseline: Option<&Baseline>, rules: &Rules) -> Vec<Judged> {
    let mut judge = Judge {
        run,
        baseline,
        rules,
        found: Vec::new(),
    };
    for place in 0..rules.rules.len() {
        judge.rule(place);
    }
    judge.found
}

struct Judge<'a> {
    run: &'a RunFigures,
    baseline: Option<&'a Baseline>,
    rules: &'a Rules,
    found: Vec<Judged>,
}

impl Judge<'_> {
    fn rule(&mut self, place: usize) {
        let rule = self.rules.rules[place];
        match (rule.metric, rule.scope, rule.limit) {
            (Metric::Verdict, ..) => self.verdicts(place),
            (Metric::Missing, _, Some(Bound::Share(limit))) => self.missing(place, limit),
            (Metric::Loss, _, Some(Bound::Share(limit))) => self.losses(place, rule.scope, limit),
            (metric, scope, Some(limit)) if metric.is_time() => {
                let Some(baseline) = self.baseline else {
                    return;
                };
                let fit = self.run.fit(metric);
                match scope {
                    Scope::Node => self.nodes(place, &rule, limit, baseline, fit),
                    Scope::Tier => self.tiers(place, &rule, limit, baseline, fit),
                    Scope::Pair => self.pairs(place, &rule, limit, baseline, fit),
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, rule: usize, unit: Unit, is_out: bool) -> &mut Judged {
        self.found.push(Judged {
            rule,
            unit,
            state: if is_out { State::Out } else { State::Within },
            above: None,
            bound: None,
            centre_ns: None,
            direction: None,
            is_new: false,
        });
        self.found.last_mut().expect("it was just added")
    }

    fn verdicts(&mut self, place: usize) {
        for node in 0..self.run.nodes.len() {
            let RunNode { name, is_named, .. } = &self.run.nodes[node];
            let Some(is_named) = *is_named else {
                continue;
            };
            // One that healthy runs name as well is as it always was: the baseline has by how much.
            let known = self.baseline.and_then(|baseline| baseline.nodes.get(name));
            let is_usual = known.is_some_and(|known| known.named > 0);
            self.add(place, Unit::Node(node), is_named && !is_usual);
        }
    }

    fn missing(&mut self, place: usize, limit: f64) {
        for node in 0..self.run.nodes.len() {
            if let Some(missing) = self.run.missing_of(node) {
                let judged = self.add(place, Unit::Node(node), missing > limit);
                (judged.above, judged.bound) = (Some(missing), Some(limit));
            }
        }
    }

    fn losses(&mut self, place: usize, scope: Scope, limit: f64) {
        let losses = self.run.losses();
        let nodes = self.run.nodes.len();
        match scope {
            Scope::Node => {
                for node in (0..nodes).filter(|_| nodes >= LEAST_NODES) {
                    let both = RunFigures::losses_of(&losses, node);
                    let name = &self.run.nodes[node].name;
                    let known = self.baseline.and_then(|baseline| baseline.nodes.get(name));
                    let bound = limit.max(known.map_or(0.0, |known| known.greatest_loss));
                    let deviations = both.map(|it| it.map(|above| Deviation { above, bound }));
                    self.node(place, node, deviations, true);
                }
            }
            Scope::Tier => {
                for tier in 0..self.run.tiers.count() {
                    if let Some(loss) = mean_loss(self.run, tier) {
                        let name = self.run.tiers.name(tier);
                        let known = self.baseline.and_then(|baseline| baseline.tiers.get(name));
                        let known = known.and_then(|known| known.loss);
                        let bound = limit.max(known.map_or(0.0, |[_, greatest]| greatest));
                        let judged = self.add(place, Unit::Tier(tier), loss > bound);
                        (judged.above, judged.bound) = (Some(loss), Some(bound));
                    }
                }
            }
            Scope::Pair => {
                for (from, to, loss) in losses.each().filter(|(.., loss)| *loss > limit) {
                    let judged = self.add(place, Unit::Pair(from, to), true);
                    (judged.above, judged.bound) = (Some(loss), Some(limit));
                }
            }
        }
    }

    /// Adds a node by what it sends and what it receives: the worse of both.
    fn node(
        &mut self,
        place: usize,
        node: usize,
        both: [Option<Deviation>; 2],
        is_directional: bool,
    ) -> Option<&mut Judged> {
        let beyond = |it: &Deviation| it.above - it.bound;
        let worst = both.into_iter().flatten();
        let worst = worst.max_by(|one, other| beyond(one).total_cmp(&beyond(other)))?;
        let is_out = both.map(|it| it.is_some_and(Deviation::is_out));
        let direction = match is_out {
            [false, false] => None,
            _ if !is_directional => Some(Direction::Unknown),
            [true, true] => Some(Direction::Both),
            [true, false] => Some(Direction::Egress),
            [false, true] => Some(Direction::Ingress),
        };
        let judged = self.add(place, Unit::Node(node), worst.is_out());
        (judged.above, judged.bound) = (Some(worst.above), Some(worst.bound));
        judged.direction = direction;
        Some(judged)
    }

    fn nodes(&mut self, place: usize, rule: &Rule, limit: Bound, baseline: &Baseline, fit: &Fit) {
        let run = self.run;
        let nodes = run.nodes.len();
        let metric = rule.metric;
        let Some(common) = baseline.of_all_nodes.get(metric.name()) else {
            return;
        };
        if nodes < LEAST_NODES {
            return;
        }
        let error = self.rules.error_of_a_test(2 * nodes);
        let quantile = quantiles(error);
        // A node that is far away is no part of what it is compared with.
        let apart = apart(run, metric, baseline);
        let offsets = apart.each_ref().map(|apart| medians_of_others(apart));
        let common_nodes = apart.each_ref().map(|apart| apart.iter().flatten().count());
        for (node, known) in run.nodes.iter().enumerate() {
            let is_new = !baseline.nodes.contains_key(&known.name);
            let both = [0, 1].map(|direction| {
                let effect = run.effect(metric, node, direction)? - offsets[direction][node];
                let known = effect_in(baseline, &known.name, metric, direction);
                let known = known.unwrap_or_else(|| common.of_a_new_node());
                let pairs = pairs_in(fit, node, direction);
                let others =
                    common_nodes[direction] - usize::from(apart[direction][node].is_some());
                if pairs < LEAST_PAIRS.min(nodes - 1) || others < LEAST_OTHERS {
                    return None;
                }
                let spread = known.deviation(common, pairs, others);
                let chance = spread * quantile(known.freedom);
                Some(Deviation::of(effect - known.centre, limit, spread, chance))
            });
            if let Some(judged) = self.node(place, node, both, metric.is_directional()) {
                judged.above = judged.above.map(share);
                judged.bound = judged.bound.map(share);
                judged.is_new = is_new;
            }
        }
    }

    fn tiers(&mut self, place: usize, rule: &Rule, limit: Bound, baseline: &Baseline, fit: &Fit) {
        let tiers = &self.run.tiers;
        let error = self.rules.error_of_a_test(tiers.count());
        let quantile = quantiles(error);
        let offsets = apart(self.run, rule.metric, baseline)
            .map(|apart| median(apart.into_iter().flatten().collect()).unwrap_or(0.0));
        let owners = self.run.owners();
        for (tier, owner) in owners.iter().enumerate() {
            // What all of its pairs have in common may be the node's.
            if owner.is_some() && self.run.nodes.len() >= LEAST_NODES {
                continue;
            }
            let known = baseline.tiers.get(tiers.name(tier));
            let known = known.and_then(|known| known.figures.get(rule.metric.name()));
            let Some((known, now)) = known.zip(fit.tiers[tier]) else {
                continue;
            };
            let spread = known.deviation();
            let chance = spread * quantile(known.freedom());
            let now = now + offsets[0] + offsets[1];
            let deviation = Deviation::of(now - known.centre_ns.ln(), limit, spread, chance);
            let judged = self.add(place, Unit::Tier(tier), deviation.is_out());
            judged.above = Some(share(deviation.above));
            judged.bound = Some(share(deviation.bound));
            judged.centre_ns = Some(known.centre_ns);
        }
    }

    fn pairs(&mut self, place: usize, rule: &Rule, limit: Bound, baseline: &Baseline, fit: &Fit) {
        let tiers = &self.run.tiers;
        let known: Vec<_> = (0..tiers.count())
            .map(|tier| {
                let tier = baseline.tiers.get(tiers.name(tier))?;
                tier.figures.get(rule.metric.name()).copied()
            })
            .collect();
        for (from, to, rest) in fit.rest.each() {
            let Some(known) = known[tiers.of(from, to)] else {
                continue;
            };
            let chance = match self.rules.error < 1.0 {
                true => known.greatest_of_pairs,
                false => 0.0,
            };
            let deviation = Deviation::of(rest, limit, known.spread_of_pairs, chance);
            if deviation.is_out() {
                let judged = self.add(place, Unit::Pair(from, to), true);
                judged.above = Some(share(deviation.above));
                judged.bound = Some(share(deviation.bound));
                judged.direction = rule.metric.is_directional().then_some(Direction::Egress);
            }
        }
    }
}

fn effect_in(baseline: &Baseline, node: &str, metric: Metric, direction: usize) -> Option<Effect> {
    let known = baseline.nodes.get(node)?;
    known.figures.get(metric.name())?[direction]
}

/// How far the effects of a run lie from those of the baseline: by direction and node, of nodes that both have.
fn apart(run: &RunFigures, metric: Metric, baseline: &Baseline) -> [Vec<Option<f64>>; 2] {
    [0, 1].map(|direction| {
        let of_node = |(place, node): (usize, &RunNode)| {
            let known = effect_in(baseline, &node.name, metric, direction)?;
            Some(run.effect(metric, place, direction)? - known.centre)
        };
        run.nodes.iter().enumerate().map(of_node).collect()
    })
}

/// How many pairs of a node have a figure in a direction.
fn pairs_in(fit: &Fit, node: usize, direction: usize) -> usize {
    let pair = |other: usize| match direction {
        0 => fit.rest.get(node, other),
        _ => fit.rest.get(other, node),
    };
    fit.rest.pairs().of(node).filter_map(pair).count()
}

/// The quantile of Student's t by degrees of freedom, for one probability; 0 where chance is not taken into account.
fn quantiles(error: f64) -> impl Fn(f64) -> f64 {
    let known = std::cell::RefCell::new(HashMap::<u64, f64>::new());
    move |freedom| {
        let mut known = known.borrow_mut();
        let quantile = known.entry(freedom.to_bits());
        *quantile.or_insert_with(|| quantile_above(error, freedom))
    }
}

#[cfg(test)]
mod tests;
