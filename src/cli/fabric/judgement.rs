//! The verdicts on pairs, nodes and tiers, by the figures kept of all rows.

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::FabricArguments;
use super::earlier::SlowWay;
use super::kept::{Ends, RowFigures};
use super::overview::{FabricFacts, FabricMeasurements, Matrices, Overview};
use super::texts;
use crate::arguments::UsageError;
use crate::bench::fabric::limits;
use crate::bench::fabric::rows::{self, Figures};
use crate::bench::fabric::suspects::{RemeasuredPair, Role};
use crate::bench::fabric::tiers::Tiers;
use crate::bench::fabric::verdict::{PairJudge, RemeasuredFigures, is_slower};
use crate::results::schema::Column;
use crate::results::schema::fabric as columns;
use crate::results::units;
use crate::results::{Cell, Record, ReportError};

/// What is found.
pub(super) struct FabricJudgement {
    pub(super) nodes: Vec<Record>,
    pub(super) tiers: Vec<Record>,
    /// Ways that are slower than they have to be, the slowest first.
    pub(super) slow_ways: Vec<SlowWay>,
    /// For people.
    pub(super) text: String,
    /// Limits that are broken.
    pub(super) broken: Vec<String>,
    /// Why monitoring gets nothing.
    pub(super) not_written: Option<anyhow::Error>,
}

/// The verdict on a pair by all pairs.
struct PairContext<'a> {
    overview: &'a Overview,
    kept: &'a RowFigures,
    tiers: &'a Tiers,
    pairs: &'a PairJudge<'a>,
    again: Option<&'a Matrices>,
    /// Why pairs were measured again.
    roles: BTreeMap<Ends, &'static str>,
}

impl PairContext<'_> {
    /// The cells of [`columns::JUDGED`], in order.
    fn cells(&self, ends: Ends) -> Vec<Cell> {
        let (from, to) = ends;
        let mut row = Record::new();
        rows::judge_pair(
            &mut row,
            &self.overview.fit,
            self.tiers,
            ends,
            self.pairs.of(from, to),
        );
        if let Some(again) = self.again {
            row.set(&columns::ROLE, self.roles.get(&ends).copied())
                .set(&columns::ALONE_P50, again.half.get(from, to))
                .set(&columns::ALONE_P99, again.half_p99.get(from, to));
        }
        let bounds = |from, to| {
            let (middle, error) = &self.overview.matrices.one_way;
            let (middle, error) = (middle.get(from, to)?, error.get(from, to)?);
            Some((middle - error, middle + error))
        };
        let slower = bounds(from, to).zip(bounds(to, from));
        let slower = slower.and_then(|(own, opposite)| is_slower(own, opposite));
        row.set(
            &columns::SLOWER_WAY,
            slower.map(|slower| if slower { "yes" } else { "no" }),
        )
        // Also what is of no consequence.
        .set(&columns::SLOWER_BY, self.kept.slower_by(ends));
        let cell = |column: &Column| row.get(column.name).cloned().unwrap_or(Cell::Empty);
        columns::JUDGED.iter().map(cell).collect()
    }
}

/// Judges all, by all pairs together. `write_pairs` gets the function that returns the last cells of a pair's row.
pub(super) fn judge(
    measured: &FabricMeasurements<'_>,
    overview: &Overview,
    known: &FabricFacts,
    arguments: &FabricArguments,
    write_pairs: impl FnOnce(&dyn Fn(Ends) -> Vec<Cell>) -> Result<(), ReportError>,
) -> anyhow::Result<FabricJudgement> {
    let nodes = measured.nodes.len();
    let tiers = &known.tiers;
    let Overview {
        matrices,
        judged,
        fit,
        slow_ways,
        least,
        chosen,
    } = overview;
    let again = measured.again.map(Matrices::of);
    let both = |again: &RemeasuredPair| {
        let (one, other) = again.pair;
        [(one, other), (other, one)]
    };
    let controls = chosen.pairs.iter().filter(|it| it.role == Role::Control);
    let controls: Vec<Ends> = controls.flat_map(both).collect();
    let alone = again.as_ref().map(|again| RemeasuredFigures {
        values: &again.half,
        controls: &controls,
    });
    let pairs = PairJudge::new(fit, tiers, alone, *least);
    let roles = chosen.pairs.iter();
    let roles = roles.flat_map(|again| both(again).map(|ends| (ends, again.role.name())));
    let of_pair = PairContext {
        overview,
        kept: measured.kept,
        tiers,
        pairs: &pairs,
        again: again.as_ref(),
        roles: roles.collect(),
    };
    write_pairs(&|ends| of_pair.cells(ends))?;
    let verdict = |from, to| pairs.of(from, to);
    let node_row = |rank: usize| {
        let name = &measured.nodes[rank];
        let partners = measured.partners[rank];
        rows::of_node((name, rank), partners, &judged[rank], &matrices.half, tiers)
    };
    let figures = Figures {
        half_p50: &matrices.half,
        excess_p99: &matrices.excess,
        lost: &matrices.lost,
    };
    let is_slow = |from, to| slow_ways.contains_key(&(from, to));
    let tier_rows = rows::of_tiers(figures, tiers, verdict, is_slow);
    let mut broken = broken_limits(measured, arguments)?;
    let all = measured.kept.pairs();
    let all = all.map(|(from, to)| (verdict(from, to), is_slow(from, to)));
    let outliers = limits::outliers(judged, all);
    if let Some(most) = arguments.max_outliers.filter(|most| outliers > *most) {
        broken.push(format!(
            "--max-outliers {most}: {outliers} nodes and pairs stand out"
        ));
    }
    let not_written = arguments
        .hca
        .sweep
        .exports
        .prometheus
        .as_ref()
        .and_then(|path| {
            let written = texts::write_prometheus(path, measured, overview, tiers, verdict);
            written
                .with_context(|| format!("--prometheus {}", path.display()))
                .err()
        });
    let text = texts::text(measured, overview, tiers, verdict);
    let slow_ways = overview.slowest();
    let slow_ways = slow_ways.into_iter().map(|((from, to), ns)| SlowWay {
        from: measured.nodes[from].clone(),
        to: measured.nodes[to].clone(),
        slower_by_at_least_ns: ns,
    });
    Ok(FabricJudgement {
        slow_ways: slow_ways.collect(),
        nodes: (0..nodes).map(node_row).collect(),
        tiers: tier_rows,
        text,
        broken,
        not_written,
    })
}

/// The figures that limits are on.
pub(super) fn limited(arguments: &FabricArguments) -> anyhow::Result<Vec<Column>> {
    let limits = arguments.fail_above.iter().flat_map(|limits| &limits.0);
    let figures = limits.map(|limit| {
        let figure = limits::figure_of(limit);
        Ok(figure.map_err(|error| UsageError(format!("--fail-above: {error}")))?)
    });
    figures.collect()
}

/// What `--fail-above` finds.
fn broken_limits(
    measured: &FabricMeasurements<'_>,
    arguments: &FabricArguments,
) -> anyhow::Result<Vec<String>> {
    let limits = arguments.fail_above.iter().flat_map(|limits| &limits.0);
    let mut broken = Vec::new();
    for (limit, column) in limits.zip(limited(arguments)?) {
        let outcome = limits::judge(limit, &measured.kept.matrix(&column));
        if !outcome.is_broken() {
            continue;
        }
        let worst = outcome.above.first().map(|(from, to, ns)| {
            let (from, to) = (&measured.nodes[*from], &measured.nodes[*to]);
            format!(", the worst: {from} to {to} with {}", units::duration(*ns))
        });
        broken.push(format!(
            "--fail-above {}: {} of {} pairs are above it{}",
            outcome.limit,
            outcome.above.len(),
            outcome.measured,
            worst.unwrap_or_default()
        ));
    }
    Ok(broken)
}
