//! The terminal output of a fabric: who stands out and the worst pairs, and what the node exporter reads.

use std::path::Path;
use std::time::SystemTime;

use super::overview::{FabricMeasurements, Overview};
use crate::bench::fabric::culprits::ranked;
use crate::bench::fabric::prometheus;
use crate::bench::fabric::tiers::Tiers;
use crate::bench::fabric::verdict::PairVerdict;
use crate::results::units;
use crate::sorting::sort_by;
use crate::terminal::table::{Column as Heading, Table};

/// This many of the worst pairs are shown.
const SHOWN: usize = 8;

/// What the node exporter reads.
pub(super) fn write_prometheus(
    path: &Path,
    measured: &FabricMeasurements<'_>,
    overview: &Overview,
    tiers: &Tiers,
    verdict: impl Fn(usize, usize) -> PairVerdict,
) -> anyhow::Result<()> {
    let Overview {
        matrices, judged, ..
    } = overview;
    let nodes: Vec<prometheus::Node<'_>> = (measured.nodes.iter().enumerate())
        .map(|(rank, name)| prometheus::Node {
            name,
            group: tiers.group(rank),
            judged: &judged[rank],
        })
        .collect();
    let pairs: Vec<prometheus::Pair<'_>> = (measured.kept.pairs())
        .map(|(from, to)| prometheus::Pair {
            from: &measured.nodes[from],
            to: &measured.nodes[to],
            tier: tiers.name(tiers.of(from, to)),
            verdict: verdict(from, to),
            half_round_trip_ns: [matrices.half.get(from, to), matrices.half_p99.get(from, to)],
            excess_p99_ns: matrices.excess.get(from, to),
            lost: matrices.lost.get(from, to).map(|lost| lost as u64),
            slower_by_ns: overview.slow_ways.get(&(from, to)).copied(),
        })
        .collect();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    prometheus::write(
        path,
        &prometheus::Snapshot {
            ended_unix_s: since.map_or(0.0, |since| since.as_secs_f64()),
            complete: measured.is_whole,
            nodes: &nodes,
            pairs: &pairs,
        },
    )?;
    Ok(())
}

/// Who stands out, and the worst pairs.
pub(super) fn text(
    measured: &FabricMeasurements<'_>,
    overview: &Overview,
    tiers: &Tiers,
    verdict: impl Fn(usize, usize) -> PairVerdict,
) -> String {
    let Overview {
        matrices,
        judged,
        fit,
        ..
    } = overview;
    let mut text = String::new();
    let named: Vec<usize> = ranked(judged)
        .into_iter()
        .filter(|rank| judged[*rank].verdict.direction().is_some())
        .collect();
    for rank in &named {
        let direction = judged[*rank]
            .verdict
            .direction()
            .map_or("", |direction| direction.name());
        text += &format!(
            "slow: {} ({direction}), score {:.1} by {}\n",
            measured.nodes[*rank],
            judged[*rank].score.unwrap_or(0.0),
            judged[*rank].figure.unwrap_or_default()
        );
    }
    if named.is_empty() {
        text += "no node stands out\n";
    }
    let slowest = overview.slowest();
    for ((from, to), ns) in slowest.iter().take(SHOWN) {
        text += &format!(
            "slow way: {} to {}, by at least {} more than over a third host\n",
            measured.nodes[*from],
            measured.nodes[*to],
            units::duration(*ns as f64)
        );
    }
    if slowest.len() > SHOWN {
        text += &format!(
            "and {} slow ways more: pairs.csv has them\n",
            slowest.len() - SHOWN
        );
    }
    for (rank, reason) in measured.dropped {
        let name = measured
            .nodes
            .get(*rank as usize)
            .map_or("?", String::as_str);
        text += &format!("missing: {name}: {reason}\n");
    }
    // Without pairs that are not judged.
    let is_judged = |(from, to, _): &(usize, usize, f64)| fit.rest.get(*from, *to).is_some();
    let mut worst: Vec<(usize, usize, f64)> = matrices.half.each().filter(is_judged).collect();
    sort_by(&mut worst, |one, other| {
        let rest = |it: &(usize, usize, f64)| fit.rest.get(it.0, it.1).unwrap_or(0.0);
        rest(other).total_cmp(&rest(one))
    });
    let mut table = Table::new(vec![
        Heading::text("from"),
        Heading::text("to"),
        Heading::text("tier"),
        Heading::number("half rt p50", "us"),
        Heading::number("expected", "us"),
        Heading::number("excess p99", "us"),
        Heading::text("verdict"),
    ]);
    let us = |ns: Option<f64>| ns.map_or(String::new(), |ns| units::significant(ns / 1e3));
    for (from, to, half) in worst.into_iter().take(SHOWN) {
        table.row([
            measured.nodes[from].clone(),
            measured.nodes[to].clone(),
            tiers.name(tiers.of(from, to)).to_owned(),
            us(Some(half)),
            us(fit.expected(tiers, from, to)),
            us(matrices.excess.get(from, to)),
            verdict(from, to).name().to_owned(),
        ]);
    }
    text + "\nthe worst pairs:\n" + &table.render(crate::terminal::output::terminal_width())
}
