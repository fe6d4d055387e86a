//! What all pairs together show, by what is kept of all rows.

use std::collections::BTreeMap;

use super::FabricArguments;
use super::distances::{endpoint, is_of_the_ranks};
use super::earlier::EarlierFabric;
use super::kept::{Ends, RowFigures};
use crate::bench::fabric::culprits::{Evidence, NodeJudgement, judge as judge_nodes};
use crate::bench::fabric::matrix::Matrix;
use crate::bench::fabric::scores::{Fit, median, polish};
use crate::bench::fabric::suspects::{Remeasurements, choose};
use crate::bench::fabric::tiers::{TierFile, TierSource, Tiers};
use crate::launch::conductor::Conductor;
use crate::results::schema::Column;
use crate::results::schema::fabric as columns;
use crate::sorting::sort_by_key;

/// Nodes and pairs that stand out by a smaller share of the usual are of no consequence.
const OF_NO_CONSEQUENCE: f64 = 0.05;

/// What is known of the fabric beforehand.
pub(super) struct FabricFacts {
    pub(super) tiers: Tiers,
    /// Whether clocks may drift: bounds then hold at a moment each.
    pub(super) drift: bool,
    seed: u64,
}

impl FabricFacts {
    /// The tier of a pair.
    pub(super) fn tier(&self, (from, to): Ends) -> &str {
        self.tiers.name(self.tiers.of(from, to))
    }
}

/// The tiers, by the user's file, else by the launcher.
pub(super) fn known(
    arguments: &FabricArguments,
    file: Option<&TierFile>,
    conductor: &Conductor,
    earlier: Option<&EarlierFabric>,
) -> anyhow::Result<FabricFacts> {
    let ranks = conductor
        .members()
        .map(|(hello, _)| hello.terms.ranks)
        .max()
        .unwrap_or(0) as usize;
    let mut there = vec![None; ranks];
    let mut addresses = vec![None; ranks];
    // Ranks that took part before have pairs, whether they come again or not.
    for member in earlier.iter().flat_map(|earlier| &earlier.document.there) {
        if let Some(place) = there.get_mut(member.rank as usize) {
            *place = Some(endpoint(&member.node, &member.port));
            addresses[member.rank as usize] = member.topology.clone();
        }
    }
    for (hello, prepared) in conductor.came() {
        there[hello.rank as usize] = Some(endpoint(&hello.node, prepared));
        addresses[hello.rank as usize] = hello.topology.clone();
    }
    let source = match file {
        Some(file) => TierSource::File(file.clone()),
        None => TierSource::Addresses(addresses),
    };
    let tiers = Tiers::of_ranks(&there, &source);
    if let Some(file) = file {
        is_of_the_ranks(arguments, file, &there, &tiers)?;
    }
    Ok(FabricFacts {
        tiers,
        drift: arguments.hca.between.drift() > 0,
        seed: arguments.hca.seed,
    })
}

/// What was measured.
pub(super) struct FabricMeasurements<'a> {
    pub(super) nodes: &'a [String],
    /// Where clocks do not drift, as tight as third hosts leave them.
    pub(super) kept: &'a RowFigures,
    pub(super) again: Option<&'a RowFigures>,
    pub(super) dropped: &'a BTreeMap<u32, String>,
    /// With how many others each rank was to be measured.
    pub(super) partners: &'a [u32],
    /// Whether all was measured.
    pub(super) is_whole: bool,
}

/// Effects that are worth reporting: above this, in ns.
fn least(figure: &Matrix) -> f64 {
    let all = median(figure.each().map(|(.., value)| value).collect());
    all.unwrap_or(0.0) * OF_NO_CONSEQUENCE
}

/// The matrices that all is judged by.
#[derive(Debug)]
pub(super) struct Matrices {
    pub(super) half: Matrix,
    pub(super) half_p99: Matrix,
    pub(super) excess_p50: Matrix,
    pub(super) excess: Matrix,
    /// The middle of the bounds of the median one-way latency, and half their width.
    pub(super) one_way: (Matrix, Matrix),
    pub(super) lost: Matrix,
}

impl Matrices {
    pub(super) fn of(kept: &RowFigures) -> Self {
        let of = |column: &Column| kept.matrix(column);
        let (low, high) = (
            of(&columns::ONE_WAY_P50_LOW),
            of(&columns::ONE_WAY_P50_HIGH),
        );
        let both = |combine: fn(f64, f64) -> f64| {
            low.alike(|from, to| Some(combine(low.get(from, to)?, high.get(from, to)?)))
        };
        Matrices {
            half: of(&columns::HALF_P50),
            half_p99: of(&columns::HALF_P99),
            excess_p50: of(&columns::EXCESS_P50),
            excess: of(&columns::EXCESS_P99),
            one_way: (both(f64::midpoint), both(|low, high| (high - low) / 2.0)),
            lost: of(&columns::LOST),
        }
    }

    fn judge(&self, tiers: &Tiers) -> Vec<NodeJudgement> {
        let (middle, error) = &self.one_way;
        judge_nodes(
            &[
                Evidence {
                    figure: columns::HALF_P50.name,
                    values: &self.half,
                    error: None,
                    directional: false,
                    least_ns: least(&self.half),
                },
                Evidence {
                    figure: columns::EXCESS_P50.name,
                    values: &self.excess_p50,
                    error: None,
                    directional: true,
                    least_ns: least(&self.half),
                },
                Evidence {
                    figure: columns::EXCESS_P99.name,
                    values: &self.excess,
                    error: None,
                    directional: true,
                    least_ns: least(&self.half),
                },
                Evidence {
                    figure: columns::ONE_WAY_P50_HIGH.name,
                    values: middle,
                    error: Some(error),
                    directional: true,
                    least_ns: least(&self.half),
                },
            ],
            tiers,
        )
    }
}

/// The verdicts by all pairs together, and the pairs that are to be measured again, alone.
#[derive(Debug)]
pub(super) struct Overview {
    pub(super) matrices: Matrices,
    pub(super) judged: Vec<NodeJudgement>,
    pub(super) fit: Fit,
    /// Ways that are slower than they have to be: by at least this many nanoseconds.
    pub(super) slow_ways: BTreeMap<Ends, u64>,
    pub(super) least: f64,
    pub(super) chosen: Remeasurements,
}

impl Overview {
    pub(super) fn of(kept: &RowFigures, known: &FabricFacts, most: usize) -> Self {
        let matrices = Matrices::of(kept);
        let judged = matrices.judge(&known.tiers);
        let fit = polish(&matrices.half, &known.tiers);
        let least = least(&matrices.half);
        let slow_ways = kept.pairs().filter_map(|ends| {
            let ns = kept.slower_by(ends)?;
            (ns as f64 > least).then_some((ends, ns))
        });
        let slow_ways = slow_ways.collect();
        let chosen = choose(&fit, &known.tiers, &judged, least, most, known.seed);
        Overview {
            matrices,
            judged,
            fit,
            slow_ways,
            least,
            chosen,
        }
    }

    /// The ways that are slower than they have to be, the slowest first.
    pub(super) fn slowest(&self) -> Vec<(Ends, u64)> {
        let mut ways: Vec<_> = self
            .slow_ways
            .iter()
            .map(|(ends, ns)| (*ends, *ns))
            .collect();
        sort_by_key(&mut ways, |(_, ns)| std::cmp::Reverse(*ns));
        ways
    }

    /// The pairs to be measured again.
    pub(super) fn suspects(&self) -> Vec<Ends> {
        self.chosen.pairs.iter().map(|again| again.pair).collect()
    }
}
