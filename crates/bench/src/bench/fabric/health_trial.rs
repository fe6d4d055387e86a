//! How often a healthy run names a node, and how soon a slow one is named: by simulation.
//!
//! `HCABENCH_TRIAL=whole` (`ci/measure health`) runs all of it and prints the tables of docs/health.md. Otherwise a part
//! of it is run. [`SEED`] is the beginning of the hash of the commit with the last change of the method and of this
//! trial, which cannot be chosen by what it shows: after another change, draw it again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::against::judge;
use super::baseline::Baseline;
use super::history::{Health, JudgedRun, Subject, courses};
use super::made_up::{Cluster, Noise, SlowNode, Variation, baseline_of};
use super::metrics::{Metric, RunFigures};
use super::rules::{Bound, DEFAULT, Rule, Rules, Runs, Scope};

const SEED: u64 = 0x51c4_0545;
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

/// What is tried.
#[derive(Debug, Clone, Copy)]
struct Case {
    nodes: usize,
    baseline_runs: usize,
    variation: Variation,
    times: f64,
    in_both: bool,
}

impl Default for Case {
    fn default() -> Self {
        Case {
            nodes: 64,
            baseline_runs: BASELINE_RUNS,
            variation: Variation::default(),
            times: 1.2,
            in_both: true,
        }
    }
}

fn attempt(case: Case, rules: &Rules, extent: Extent, seed: u64) -> Found {
    let Case {
        nodes,
        baseline_runs,
        variation,
        times,
        in_both,
    } = case;
    let (mut found, mut noise) = (Found::default(), Noise::new(seed));
    for _ in 0..extent.clusters {
        let cluster = Cluster::varying(nodes, variation, &mut noise);
        let mut runs = |count: usize, slow| -> Vec<RunFigures> {
            let run = |_| cluster.run_with(slow, &mut noise);
            (0..count).map(run).collect()
        };
        let baseline = baseline_of(&runs(baseline_runs, None));
        let healthy = named(&runs(extent.healthy, None), &baseline, rules);
        found.healthy_runs += healthy.len();
        found.false_alarms += healthy.iter().filter(|names| !names.is_empty()).count();
        for slow in 0..extent.slow {
            let node = slow * nodes / extent.slow;
            let slow = SlowNode {
                node,
                times,
                in_both,
            };
            let after = named(&runs(3, Some(slow)), &baseline, rules);
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
    clusters: 1,
    healthy: 3,
    slow: 1,
};
const WHOLE: Extent = Extent {
    clusters: 20,
    healthy: 50,
    slow: 10,
};

#[test]
fn a_healthy_run_names_no_node_and_one_that_is_a_fifth_slower_is_named_within_three_runs() {
    let extent = if is_whole() { WHOLE } else { PART };
    let rules = Rules::read(DEFAULT).unwrap();
    let found = attempt(Case::default(), &rules, extent, SEED);
    println!("{}", row("64 nodes, the usual noise", &found));
    assert!(found.healthy_runs == extent.clusters * extent.healthy && found.slow > 0);
    assert!(100 * found.false_alarms <= found.healthy_runs, "{found:?}");
    assert!(100 * found.named[1] >= 95 * found.slow, "{found:?}");
}

/// Without a limit and over one run only what chance makes likely is left: it has to err as often as it states at most,
/// and not far less often. Without the quantiles it errs always.
#[test]
fn chance_alone_names_a_node_about_as_often_as_is_stated() {
    let clusters = if is_whole() { 400 } else { 20 };
    let one = Rule {
        metric: Metric::HalfP50,
        scope: Scope::Node,
        limit: Some(Bound::Share(0.0)),
        runs: Runs { least: 1, of: 1 },
    };
    let mut seed = SEED;
    let mut share = |nodes: usize, baseline_runs: usize, error: f64, healthy: usize| {
        let mut rules = Rules::of(vec![one]);
        rules.error = error;
        let case = Case {
            nodes,
            baseline_runs,
            ..Case::default()
        };
        let extent = Extent {
            clusters: if nodes < 20 { clusters } else { clusters / 20 },
            healthy,
            slow: 0,
        };
        seed = seed.wrapping_add(1);
        let found = attempt(case, &rules, extent, seed);
        let runs = found.healthy_runs as f64;
        let share = found.false_alarms as f64 / runs;
        println!(
            "{nodes} nodes, baseline of {baseline_runs} runs, error {error}: {share:.4} of {runs} runs"
        );
        // Runs against one baseline are not independent: as if there were a run of each.
        (share, 3.0 * (error / extent.clusters as f64).sqrt())
    };
    let mut all = vec![(4, 3), (8, 5)];
    if is_whole() {
        all = [4, 8, 64]
            .into_iter()
            .flat_map(|nodes| [3, 5, 10].map(|runs| (nodes, runs)))
            .collect();
    }
    let mut sum = 0.0;
    let (mut above, mut never) = (Vec::new(), Vec::new());
    for &(nodes, baseline_runs) in &all {
        let (share, room) = share(nodes, baseline_runs, 0.2, if nodes < 20 { 5 } else { 10 });
        if share > 0.2 + room {
            above.push((nodes, baseline_runs, share));
        }
        if is_whole() && share == 0.0 {
            never.push((nodes, baseline_runs, share));
        }
        sum += share;
    }
    // All are printed first.
    assert!(above.is_empty(), "{above:?}");
    assert!(never.is_empty(), "{never:?}");
    assert!(sum / all.len() as f64 > 0.01, "{sum}");
    let (share, _) = share(8, 10, 1.0, 5);
    assert!(share > 0.9, "{share}");
}

/// The tables of docs/health.md, which are reported as they are.
#[test]
fn noise_of_other_sizes_and_shapes() {
    let usual = Variation::default();
    let case = |variation| Case {
        variation,
        ..Case::default()
    };
    let mut cases: Vec<(String, Case)> = Vec::new();
    for pairs in [0.02, 0.05, 0.1] {
        for (are_heavy, of) in [(false, "one of ten heavy"), (true, "all heavy")] {
            for nodes in [0.01, 0.03] {
                let variation = Variation {
                    pairs,
                    are_heavy,
                    nodes,
                    ..usual
                };
                let (pairs, nodes) = (100.0 * pairs, 100.0 * nodes);
                let what = format!("pairs {pairs} %, {of}; nodes {nodes} %");
                cases.push((what, case(variation)));
            }
        }
    }
    let one = |name: &str, variation: Variation| (name.to_owned(), case(variation));
    cases.extend([
        one(
            "two nodes absent, others each time",
            Variation { absent: 2, ..usual },
        ),
        one(
            "one node varies by 8 %, others by 1 %",
            Variation {
                noisy: Some(0.08),
                ..usual
            },
        ),
        one(
            "nodes 1 %, runs correlated by 0.7",
            Variation { lag: 0.7, ..usual },
        ),
        one(
            "a group is 10 % slower in one of four runs",
            Variation {
                is_congested: true,
                ..usual
            },
        ),
        one(
            "nodes 5 %",
            Variation {
                nodes: 0.05,
                ..usual
            },
        ),
    ]);
    for nodes in [0.01, 0.02, 0.05] {
        let variation = Variation {
            nodes,
            are_nodes_heavy: true,
            ..usual
        };
        cases.push(one(&format!("nodes {} %, heavy", 100.0 * nodes), variation));
    }
    for (nodes, baseline_runs) in [(4, 10), (8, 10), (16, 10), (64, 3), (64, 5), (64, 20)] {
        let case = Case {
            nodes,
            baseline_runs,
            ..Case::default()
        };
        cases.push((
            format!("{nodes} nodes, baseline of {baseline_runs} runs"),
            case,
        ));
    }
    for times in [1.05, 1.1, 1.15, 1.3] {
        let case = Case {
            times,
            ..Case::default()
        };
        cases.push((format!("slower by {:.0} %", 100.0 * (times - 1.0)), case));
    }
    for times in [1.2, 1.3] {
        let case = Case {
            times,
            in_both: false,
            ..Case::default()
        };
        cases.push((
            format!("slower by {:.0} % in what it sends", 100.0 * (times - 1.0)),
            case,
        ));
    }
    let mut extent = WHOLE;
    if !is_whole() {
        cases.truncate(1);
        extent = Extent {
            clusters: 1,
            healthy: 1,
            slow: 1,
        };
    }
    let rules = Rules::read(DEFAULT).unwrap();
    let next = AtomicUsize::new(0);
    let work = || {
        while let place = next.fetch_add(1, Ordering::Relaxed)
            && let Some((what, case)) = cases.get(place)
        {
            let seed = SEED.wrapping_add(100 + place as u64);
            println!("{}", row(what, &attempt(*case, &rules, extent, seed)));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

/// One baseline for all runs: what it is off by chance is off in all of them.
#[test]
fn a_thousand_healthy_runs_against_one_baseline() {
    let extent = Extent {
        clusters: 1,
        healthy: if is_whole() { 1000 } else { 5 },
        slow: 0,
    };
    let rules = Rules::read(DEFAULT).unwrap();
    let seeds = if is_whole() { 3 } else { 1 };
    for seed in 0..seeds {
        let seed = SEED.wrapping_mul(31).wrapping_add(seed);
        let found = attempt(Case::default(), &rules, extent, seed);
        println!("{}", row("one baseline", &found));
        assert!(100 * found.false_alarms <= found.healthy_runs, "{found:?}");
    }
}
