use super::*;
use crate::bench::fabric::made_up::{Cluster, Noise, SlowNode, Variation, baseline_of};
use crate::bench::fabric::matrix::Matrix;
use crate::bench::fabric::rules::Runs;

fn rule(metric: Metric, scope: Scope, limit: Bound) -> Rule {
    Rule {
        metric,
        scope,
        limit: Some(limit),
        runs: Runs { least: 1, of: 1 },
    }
}

const QUIET: Variation = Variation {
    pairs: 0.01,
    are_heavy: false,
    runs: 0.005,
    nodes: 0.003,
    are_nodes_heavy: false,
    lag: 0.0,
    noisy: None,
    own: 0.03,
    is_congested: false,
    absent: 0,
};

/// A cluster with that variation, five runs of it, and its baseline.
fn cluster(nodes: usize, noise: &mut Noise) -> (Cluster, Baseline) {
    let cluster = Cluster::varying(nodes, QUIET, noise);
    let runs: Vec<RunFigures> = (0..8).map(|_| cluster.run(noise)).collect();
    let baseline = baseline_of(&runs);
    (cluster, baseline)
}

fn outs(judged: &[Judged]) -> Vec<Unit> {
    let outs = judged.iter().filter(|it| it.state == State::Out);
    outs.map(|it| it.unit).collect()
}

/// A run in which a figure of some pairs takes this many times as long.
fn with(run: &RunFigures, times: f64, is_it: impl Fn(usize, usize) -> bool) -> RunFigures {
    let columns = run.columns().each_ref().map(|column| {
        Matrix::of(run.nodes.len(), |from, to| {
            let times = if is_it(from, to) { times } else { 1.0 };
            column.get(from, to).map(|it| times * it)
        })
    });
    let all = Matrix::of(run.nodes.len(), |_, _| Some(1.0));
    RunFigures::new(run.nodes.clone(), run.tiers.clone(), columns, all)
}

#[test]
fn nodes_tiers_and_pairs_are_out_by_share_and_by_spreads() {
    let mut noise = Noise::new(11);
    let (cluster, baseline) = cluster(16, &mut noise);
    let run = cluster.run(&mut noise);
    let slow = cluster.run_with(
        Some(SlowNode {
            node: 5,
            times: 1.2,
            in_both: true,
        }),
        &mut noise,
    );
    let tier = with(&run, 1.3, |from, to| run.tiers.of(from, to) == 1);
    let pair = with(&run, 1.5, |from, to| (from, to) == (2, 9));
    for limit in [Bound::Share(0.1), Bound::Spreads(4.0)] {
        let rules = [Scope::Node, Scope::Tier, Scope::Pair];
        let rules = Rules::of(
            rules
                .map(|scope| rule(Metric::HalfP50, scope, limit))
                .to_vec(),
        );
        let judge = |run: &RunFigures| outs(&judge(run, Some(&baseline), &rules));
        assert_eq!(judge(&run), [], "{limit}");
        assert_eq!(judge(&slow), [Unit::Node(5)], "{limit}");
        assert_eq!(judge(&tier), [Unit::Tier(1)], "{limit}");
        assert_eq!(judge(&pair), [Unit::Pair(2, 9)], "{limit}");
    }
    // The limit counts beside chance.
    let rules = Rules::of(vec![rule(Metric::HalfP50, Scope::Node, Bound::Share(0.5))]);
    let judged = judge(&slow, Some(&baseline), &rules);
    assert_eq!(outs(&judged), []);
    let above = judged[5].above.unwrap();
    assert!((above - 0.2).abs() < 0.03, "{above}");
    assert!((judged[5].bound.unwrap() - 0.5).abs() < 1e-9);
    // Without a baseline nothing is judged by a time.
    assert_eq!(judge(&slow, None, &rules), []);
}

#[test]
fn limits_alone_count_where_chance_is_not_taken_into_account() {
    let mut noise = Noise::new(12);
    let (cluster, baseline) = cluster(16, &mut noise);
    let run = cluster.run(&mut noise);
    let limit = Bound::Share(0.0);
    let mut rules = Rules::of(vec![rule(Metric::HalfP50, Scope::Node, limit)]);
    assert_eq!(outs(&judge(&run, Some(&baseline), &rules)), []);
    rules.error = 1.0;
    let outs = outs(&judge(&run, Some(&baseline), &rules));
    assert!((4..16).contains(&outs.len()), "{outs:?}");
}

#[test]
fn nodes_that_are_absent_move_no_other_and_a_new_one_is_compared_with_all() {
    let mut noise = Noise::new(13);
    let mut cluster = Cluster::varying(11, QUIET, &mut noise);
    // Six nodes have slower adapters: without one of them the middle is elsewhere.
    cluster.own.fill(0.0);
    cluster.own[..6].fill(0.15);
    let runs: Vec<RunFigures> = (0..8).map(|_| cluster.run(&mut noise)).collect();
    let baseline = baseline_of(&runs);
    let scopes = [Scope::Node, Scope::Tier];
    let rules = scopes.map(|scope| rule(Metric::HalfP50, scope, Bound::Share(0.03)));
    let rules = Rules::of(rules.to_vec());
    for without in [&[0][..], &[0, 1], &[9, 10]] {
        let kept: Vec<usize> = (0..11).filter(|node| !without.contains(node)).collect();
        let run = cluster.run(&mut noise).of_nodes(&kept);
        assert_eq!(
            outs(&judge(&run, Some(&baseline), &rules)),
            [],
            "{without:?}"
        );
    }
    let mut run = cluster.run(&mut noise);
    run.nodes[3].name = "other".to_owned();
    let judged = judge(&run, Some(&baseline), &rules);
    let new = judged.iter().filter(|it| it.is_new).map(|it| it.unit);
    assert_eq!(new.collect::<Vec<_>>(), [Unit::Node(3)]);
    assert_eq!(outs(&judged), []);
}

#[test]
fn a_node_that_healthy_runs_name_too_is_as_it_always_was() {
    let mut noise = Noise::new(14);
    let (cluster, mut baseline) = cluster(8, &mut noise);
    let mut run = cluster.run(&mut noise);
    run.nodes[2].is_named = Some(true);
    let verdict = Rule {
        limit: None,
        ..rule(Metric::Verdict, Scope::Node, Bound::Share(0.0))
    };
    let rules = Rules::of(vec![verdict]);
    assert_eq!(outs(&judge(&run, None, &rules)), [Unit::Node(2)]);
    assert_eq!(outs(&judge(&run, Some(&baseline), &rules)), [Unit::Node(2)]);
    baseline.nodes.get_mut("n2").unwrap().named = 1;
    assert_eq!(outs(&judge(&run, Some(&baseline), &rules)), []);
}

#[test]
fn losses_beyond_the_limit_and_the_baseline_are_out() {
    let mut noise = Noise::new(15);
    let (cluster, mut baseline) = cluster(8, &mut noise);
    let run = cluster.run(&mut noise);
    let mut columns = run.columns().clone();
    for to in (0..8).filter(|to| *to != 3) {
        columns[6].set(3, to, 50.0);
    }
    columns[6].set(0, 1, 500.0);
    let all = Matrix::of(8, |_, _| Some(1.0));
    let run = RunFigures::new(run.nodes.clone(), run.tiers.clone(), columns, all);
    let scopes = [Scope::Node, Scope::Pair, Scope::Tier];
    let rules = scopes.map(|scope| rule(Metric::Loss, scope, Bound::Share(0.01)));
    let node = Rules::of(rules[..1].to_vec());
    let judged = judge(&run, Some(&baseline), &node);
    assert_eq!(outs(&judged), [Unit::Node(3)]);
    assert_eq!(judged[3].direction, Some(Direction::Egress));
    let pair = judge(&run, None, &Rules::of(rules[1..2].to_vec()));
    assert!(
        outs(&pair).contains(&Unit::Pair(0, 1)) && pair.len() <= 8,
        "{pair:?}"
    );
    let tier = judge(&run, None, &Rules::of(rules[2..].to_vec()));
    assert_eq!(outs(&tier), [Unit::Tier(0)]);
    baseline.nodes.get_mut("n3").unwrap().greatest_loss = 0.06;
    assert_eq!(outs(&judge(&run, Some(&baseline), &node)), []);
}

#[test]
fn a_run_without_figures_is_out_nowhere() {
    let mut noise = Noise::new(16);
    let (cluster, baseline) = cluster(8, &mut noise);
    let run = cluster.run(&mut noise);
    let columns = std::array::from_fn(|_| Matrix::missing(8));
    let none = RunFigures::new(run.nodes, run.tiers, columns, Matrix::missing(8));
    let rules = Rules::read(crate::bench::fabric::rules::DEFAULT).unwrap();
    assert_eq!(outs(&judge(&none, Some(&baseline), &rules)), []);
}
