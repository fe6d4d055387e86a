//! How often a healthy run names a node, and how soon a slow one is named: by simulation.
//!
//! `HCABENCH_TRIAL=whole` (`ci/measure health`) runs all of it and prints the tables of docs/health.md. Otherwise a part
//! of it is run. [`SEED`] was drawn after the method was committed.

use super::against::judge;
use super::baseline::{self, Baseline};
use super::history::{Health, JudgedRun, Subject, courses};
use super::made_up::{Cluster, Noise, Variation};
use super::metrics::RunFigures;
use super::rules::{DEFAULT, Rules};
use crate::results::document::Program;

const SEED: u64 = 13_797_229_544_804_604_049;
/// Runs that a baseline is made of.
const BASELINE_RUNS: usize = 10;

/// How much is tried.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Clusters, each with a baseline.
    clusters: usize,
    /// Healthy runs of each.
    healthy: usize,
    /// Nodes of each that become slow, one at a time, for three runs.
    slow: usize,
}

/// Whether all is to be tried.
fn is_whole() -> bool {
    std::env::var_os("HCABENCH_TRIAL").is_some_and(|it| it == "whole")
}

fn of_runs(runs: &[RunFigures]) -> Baseline {
    let (tiers, nodes, of_all_nodes) = baseline::of_runs(runs);
    Baseline {
        format: String::new(),
        version: 0,
        hcabench: Program::this(),
        runs: Vec::new(),
        settings: serde_json::Value::Null,
        schedule: serde_json::Value::Null,
        tiers,
        nodes,
        of_all_nodes,
    }
}

/// The nodes that are named after each of these runs.
fn named(runs: &[RunFigures], baseline: &Baseline, rules: &Rules) -> Vec<Vec<String>> {
    let mut judged = Vec::new();
    let mut all = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let found = judge(run, Some(baseline), rules);
        judged.push(JudgedRun::new(
            run,
            found,
            format!("{place:05}"),
            String::new(),
        ));
        let last = &judged[judged.len().saturating_sub(10)..];
        let failing = courses(last, rules, 10).into_iter();
        let failing = failing.filter(|it| it.health == Health::Failing);
        let nodes = failing.filter_map(|it| match it.subject {
            Subject::Node(name) => Some(name),
            _ => None,
        });
        all.push(nodes.collect());
    }
    all
}

/// What was found.
#[derive(Debug, Default)]
struct Found {
    healthy_runs: usize,
    /// Healthy runs after which a node is named.
    false_alarms: usize,
    /// Nodes that became slow.
    slow: usize,
    /// Those that are named after two runs, and after three.
    named: [usize; 2],
    /// Other nodes that were named beside a slow one.
    others: usize,
}

fn attempt(
    nodes: usize,
    baseline_runs: usize,
    variation: Variation,
    times: f64,
    extent: Extent,
    seed: u64,
) -> Found {
    let rules = Rules::read(DEFAULT).unwrap();
    let (mut found, mut noise) = (Found::default(), Noise::new(seed));
    for _ in 0..extent.clusters {
        let cluster = Cluster::varying(nodes, variation, &mut noise);
        let mut runs = |count: usize, slow| -> Vec<RunFigures> {
            let run = |_| cluster.run_with(slow, &mut noise);
            (0..count).map(run).collect()
        };
        let baseline = of_runs(&runs(baseline_runs, None));
        let healthy = named(&runs(extent.healthy, None), &baseline, &rules);
        found.healthy_runs += healthy.len();
        found.false_alarms += healthy.iter().filter(|names| !names.is_empty()).count();
        for slow in 0..extent.slow {
            let node = slow * nodes / extent.slow;
            let after = named(&runs(3, Some((node, times))), &baseline, &rules);
            let name = format!("n{node}");
            found.slow += 1;
            found.named[0] += usize::from(after[..2].iter().any(|it| it.contains(&name)));
            found.named[1] += usize::from(after.iter().any(|it| it.contains(&name)));
            found.others += after.iter().flatten().filter(|it| **it != name).count();
        }
    }
    found
}

/// The same for the output, as a row of a table in Markdown.
fn row(what: &str, found: &Found) -> String {
    let percent = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
    let Found {
        healthy_runs,
        false_alarms,
        slow,
        named: [two, three],
        others,
    } = found;
    format!(
        "| {what} | {false_alarms} of {healthy_runs} ({:.2} %) | {two} and {three} of {slow} ({:.1} %) | {others} |",
        percent(*false_alarms, *healthy_runs),
        percent(*three, *slow)
    )
}

const PART: Extent = Extent {
    clusters: 2,
    healthy: 10,
    slow: 2,
};
const WHOLE: Extent = Extent {
    clusters: 20,
    healthy: 50,
    slow: 10,
};

#[test]
fn a_healthy_run_names_no_node_and_one_that_is_a_fifth_slower_is_named_within_three_runs() {
    let extent = if is_whole() { WHOLE } else { PART };
    let found = attempt(64, BASELINE_RUNS, Variation::default(), 1.2, extent, SEED);
    println!("{}", row("64 nodes, the usual noise", &found));
    assert!(found.healthy_runs == extent.clusters * extent.healthy && found.slow > 0);
    assert!(100 * found.false_alarms <= found.healthy_runs, "{found:?}");
    assert!(100 * found.named[1] >= 95 * found.slow, "{found:?}");
}

/// The tables of docs/health.md.
#[test]
fn noise_of_other_sizes_and_shapes() {
    let usual = Variation::default();
    let extent = if is_whole() {
        WHOLE
    } else {
        Extent {
            clusters: 1,
            healthy: 3,
            slow: 1,
        }
    };
    let mut seed = SEED;
    let mut table = |what: &str, nodes: usize, baseline_runs: usize, variation, times| {
        seed = seed.wrapping_add(1);
        let found = attempt(nodes, baseline_runs, variation, times, extent, seed);
        println!("{}", row(what, &found));
        found
    };
    let mut worst = 0.0_f64;
    for pairs in [0.02, 0.05, 0.1] {
        for (are_heavy, of) in [(false, "one of ten heavy"), (true, "all heavy")] {
            for nodes in [0.01, 0.03] {
                if !is_whole() && (pairs != 0.1 || nodes != 0.01) {
                    continue;
                }
                let variation = Variation {
                    pairs,
                    are_heavy,
                    nodes,
                    ..usual
                };
                let (pairs, nodes) = (100.0 * pairs, 100.0 * nodes);
                let what = format!("pairs {pairs} %, {of}; nodes {nodes} %");
                let found = table(&what, 64, BASELINE_RUNS, variation, 1.2);
                worst = worst.max(found.false_alarms as f64 / found.healthy_runs as f64);
            }
        }
    }
    assert!(worst <= 0.02, "{worst}");
    if !is_whole() {
        return;
    }
    for (nodes, are_nodes_heavy) in [(0.05, false), (0.01, true), (0.02, true), (0.05, true)] {
        let variation = Variation {
            nodes,
            are_nodes_heavy,
            ..usual
        };
        let tails = if are_nodes_heavy { "heavy" } else { "normal" };
        let what = format!("pairs 5 %; nodes {} %, {tails}", 100.0 * nodes);
        table(&what, 64, BASELINE_RUNS, variation, 1.2);
    }
    for (nodes, runs) in [(4, 10), (8, 10), (16, 10), (64, 3), (64, 5), (64, 20)] {
        let what = format!("{nodes} nodes, baseline of {runs} runs");
        table(&what, nodes, runs, usual, 1.2);
    }
    for times in [1.05, 1.1, 1.15, 1.3] {
        let what = format!("slower by {:.0} %", 100.0 * (times - 1.0));
        table(&what, 64, BASELINE_RUNS, usual, times);
    }
}

/// One baseline for all runs: what it is off by chance is off in all of them.
#[test]
fn a_thousand_healthy_runs_against_one_baseline() {
    if !is_whole() {
        return;
    }
    let extent = Extent {
        clusters: 1,
        healthy: 1000,
        slow: 64,
    };
    let mut shares = Vec::new();
    for seed in 0..5 {
        let seed = SEED.wrapping_mul(31).wrapping_add(seed);
        let found = attempt(64, BASELINE_RUNS, Variation::default(), 1.2, extent, seed);
        println!("{}", row("one baseline", &found));
        shares.push(found.false_alarms as f64 / found.healthy_runs as f64);
    }
    assert!(shares.iter().all(|share| *share <= 0.01), "{shares:?}");
}
