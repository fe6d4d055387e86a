//! What the analysis of a sample takes, counted: distances that are looked up, and places of matrices. No clock, so that
//! load changes nothing.

use std::num::NonZeroU32;
use std::path::Path;

use super::culprits::{Evidence, judge};
use super::matrix::Matrix;
use super::metrics::{Metric, RunFigures, RunNode};
use super::over_time::{self, Measured};
use super::rows::{Figures, of_tiers};
use super::scores::polish;
use super::suspects::choose;
use super::tiers::{Endpoint, TierFile, TierSource, Tiers, looked_up};
use super::verdict::{PairJudge, PairVerdict};
use crate::launch::schedule::{Concurrency, Partners, Schedule};
use crate::time::between::HostPairs;

const SLOW: usize = 3;

/// Leaves of 16 nodes, in pods of four leaves.
fn in_pods(nodes: usize) -> TierSource {
    let lines = (0..nodes).map(|node| format!("n{node} p{}.l{}\n", node / 64, node / 16));
    TierSource::File(TierFile::groups(&lines.collect::<String>(), Path::new("")).unwrap())
}

/// The lookups for an ordered pair where each of so many nodes measures with four others.
fn lookups_of_a_pair(nodes: usize, source: &TierSource) -> f64 {
    let partners = Partners::AtMost(NonZeroU32::new(4).unwrap());
    let schedule = Schedule::new(nodes as u32, Concurrency::Together).with(partners, 1);
    let ranks = schedule.batches().flatten().map(|pair| pair.ranks());
    let pairs = ranks.map(|[one, other]| (one as usize, other as usize));
    let pairs = HostPairs::some(nodes, pairs);
    let names: Vec<String> = (0..nodes).map(|node| format!("n{node}")).collect();
    let hosts = names.iter().map(|name| Some(Endpoint::of_host(name)));
    let hosts: Vec<Option<Endpoint>> = hosts.collect();
    let before = looked_up();
    let tiers = Tiers::of_ranks(&hosts, source);
    let figure = Matrix::missing_of(&pairs).alike(|from, to| {
        let slow = if from == SLOW { 5000.0 } else { 0.0 };
        Some(2000.0 + 1000.0 * tiers.of(from, to) as f64 + slow)
    });
    let evidence = Evidence {
        figure: "half_round_trip_p50_ns",
        values: &figure,
        error: None,
        directional: true,
        least_ns: 100.0,
    };
    let judged = judge(&[evidence], &tiers);
    assert!(judged[SLOW].verdict.direction().is_some());
    let fit = polish(&figure, &tiers);
    assert!(!choose(&fit, &tiers, &judged, 100.0, 16, 1).pairs.is_empty());
    let verdicts = PairJudge::new(&fit, &tiers, None, 100.0);
    let ok = |from, to| verdicts.of(from, to) == PairVerdict::Ok;
    assert!(pairs.each().all(|(from, to)| ok(from, to)));
    let figures = Figures {
        half_p50: &figure,
        excess_p99: &figure,
        lost: &figure,
    };
    let rows = of_tiers(
        figures,
        &tiers,
        |from, to| verdicts.of(from, to),
        |_, _| false,
    );
    assert_eq!(rows.len(), tiers.count() + 1);
    // What is compared with other runs.
    let rounds = [figure.clone()];
    let run = Measured {
        nodes: &names,
        tiers: &tiers,
        rounds: &rounds,
    };
    let compared = over_time::compare(run, run, 0.01, 8);
    assert_eq!(compared.left_out + pairs.places(), nodes * (nodes - 1));
    let node = |name: &String| RunNode {
        name: name.clone(),
        ..RunNode::default()
    };
    let of_names = names.iter().map(node).collect();
    let columns = std::array::from_fn(|_| figure.clone());
    let run = RunFigures::new(of_names, tiers.clone(), columns, figure.clone());
    let effects = (0..nodes).filter_map(|node| run.effect(Metric::HalfP50, node, 0));
    assert!(effects.count() > nodes / 2);
    (looked_up() - before) as f64 / pairs.places() as f64
}

#[test]
fn a_pair_of_a_sample_takes_as_much_among_many_nodes_as_among_few() {
    for source in [|_| TierSource::Nothing, in_pods as fn(usize) -> TierSource] {
        let [few, many] = [256, 4096].map(|nodes| lookups_of_a_pair(nodes, &source(nodes)));
        // If all pairs were looked at once, there were 1024 more.
        assert!(few > 1.0 && many < 1.5 * few, "{few} and {many}");
    }
}
