//! Simulations: who is named in fabrics that are made up.

use std::num::NonZeroU32;

use super::*;
use crate::bench::fabric::made_up::{Noise, healthy, in_groups};
use crate::bench::fabric::matrix::ordered_pairs;
use crate::launch::schedule::{Concurrency, Partners, Schedule};
use crate::time::between::HostPairs;

const SEEDS: u64 = 20;
const FIGURE: &str = "one_way";

fn thin(figure: &mut Matrix, share: f64, noise: &mut Noise) {
    for (from, to) in ordered_pairs(figure.nodes()) {
        if noise.share() < share {
            figure.set(from, to, f64::NAN);
        }
    }
}

/// Makes what a node sends, receives, or both, slower by so much and a half of it at random.
fn slow(figure: &mut Matrix, node: usize, direction: Direction, by: f64, noise: &mut Noise) {
    let pairs: Vec<(usize, usize, f64)> = figure.each().collect();
    for (from, to, value) in pairs {
        let is_slow = match direction {
            Direction::Egress => from == node,
            Direction::Ingress => to == node,
            _ => from == node || to == node,
        };
        if is_slow {
            figure.set(from, to, value + by * (1.0 + 0.5 * noise.share()));
        }
    }
}

fn directional(values: &Matrix) -> Evidence<'_> {
    Evidence {
        figure: FIGURE,
        values,
        error: None,
        directional: true,
        least_ns: 0.0,
    }
}

fn named(judged: &[NodeJudgement]) -> Vec<usize> {
    let order = ranked(judged).into_iter();
    order
        .filter(|&node| judged[node].verdict.direction().is_some())
        .collect()
}

/// The kinds of fabrics: nodes, nodes of a group, share of missing pairs, and whether noise is one-sided.
const FABRICS: [(usize, usize, f64, bool); 7] = [
    (4, 2, 0.0, false),
    (4, 4, 0.1, true),
    (8, 8, 0.0, true),
    (8, 4, 0.2, false),
    (8, 2, 0.0, false),
    (64, 16, 0.0, true),
    (64, 16, 0.3, false),
];

#[test]
fn noise_alone_names_nobody() {
    for (nodes, group, missing, one_sided) in FABRICS {
        let tiers = in_groups(nodes, group);
        let nobody = (0..SEEDS).filter(|seed| {
            let mut noise = Noise::new(1000 + seed);
            let mut figure = healthy(&tiers, &mut noise, one_sided);
            thin(&mut figure, missing, &mut noise);
            named(&judge(&[directional(&figure)], &tiers)).is_empty()
        });
        let nobody = nobody.count();
        assert!(
            nobody >= 19,
            "{nodes} nodes by {group}: nobody in {nobody} of {SEEDS}"
        );
    }
}

#[test]
fn a_bad_port_is_named_first_with_its_direction() {
    for (nodes, group, missing, one_sided) in FABRICS {
        let tiers = in_groups(nodes, group);
        for direction in [Direction::Egress, Direction::Ingress, Direction::Both] {
            let right = (0..SEEDS).filter(|seed| {
                let mut noise = Noise::new(2000 + seed);
                let mut figure = healthy(&tiers, &mut noise, one_sided);
                let bad = noise.below(nodes);
                slow(&mut figure, bad, direction, 2000.0, &mut noise);
                thin(&mut figure, missing, &mut noise);
                let judged = judge(&[directional(&figure)], &tiers);
                named(&judged).first() == Some(&bad)
                    && judged[bad].verdict == NodeVerdict::Slow(direction)
            });
            let right = right.count();
            assert!(
                right >= 19,
                "{nodes} nodes by {group}, {direction:?}: right in {right} of {SEEDS}"
            );
        }
    }
}

/// How a sample of `partners` of each node finds one node that sends later by as many standard deviations of a pair's
/// noise: in how many fabrics it alone is named, and in how many healthy ones none is.
fn found_by_a_sample(nodes: usize, partners: u32, deviations: f64, fabrics: u64) -> [usize; 2] {
    const NOISE_NS: f64 = 60.0;
    let tiers = Tiers::one(nodes);
    let mut found = [0; 2];
    for seed in 0..fabrics {
        let schedule = Schedule::new(nodes as u32, Concurrency::Together);
        let partners = Partners::AtMost(NonZeroU32::new(partners).unwrap());
        let pairs = schedule.with(partners, seed).batches().flatten();
        let pairs = pairs.map(|pair| (pair.lower() as usize, pair.higher() as usize));
        let mut noise = Noise::new(5000 + seed);
        let mut figure = Matrix::missing_of(&HostPairs::some(nodes, pairs))
            .alike(|_, _| Some(3000.0 + NOISE_NS * noise.normal()));
        let named_in = |figure: &Matrix| named(&judge(&[directional(figure)], &tiers));
        found[1] += usize::from(named_in(&figure).is_empty());
        let bad = noise.below(nodes);
        figure.replace_each(|from, _, value| {
            let later = if from == bad { deviations } else { 0.0 };
            value + NOISE_NS * later
        });
        found[0] += usize::from(named_in(&figure) == [bad]);
    }
    found
}

#[test]
fn a_sample_finds_a_slow_node_and_names_no_healthy_one() {
    for (partners, deviations) in [(8, 10.0), (16, 5.0), (32, 4.0)] {
        let [found, healthy] = found_by_a_sample(64, partners, deviations, 20);
        assert!(
            healthy >= 19,
            "{partners} partners: none named in {healthy} of 20"
        );
        assert!(
            found >= 18,
            "{partners} partners, {deviations} deviations: found in {found} of 20"
        );
    }
}

/// The table of docs/fabric.md, printed with HCABENCH_SAMPLE_TABLE set and `--nocapture`; else a small part of it.
#[test]
fn a_sample_that_is_larger_finds_more() {
    let (nodes, fabrics, partners) = match std::env::var_os("HCABENCH_SAMPLE_TABLE") {
        Some(_) => (128, 100, &[4, 8, 16, 32, 64][..]),
        None => (64, 10, &[4, 32][..]),
    };
    let mut of_3 = Vec::new();
    for partners in partners {
        let of = [2.0, 3.0, 5.0, 10.0].map(|by| found_by_a_sample(nodes, *partners, by, fabrics));
        println!(
            "{partners} partners: of {fabrics}, found and none named at 2, 3, 5, 10 deviations: {of:?}"
        );
        of_3.push(of[1][0]);
    }
    assert!(
        of_3.is_sorted() && of_3[0] < of_3[of_3.len() - 1],
        "{of_3:?}"
    );
}

#[test]
fn among_four_a_disturbed_pair_of_others_hides_no_slow_node_and_makes_none() {
    let tiers = in_groups(4, 2);
    for direction in [Direction::Egress, Direction::Ingress, Direction::Both] {
        for seed in 0..SEEDS {
            let mut noise = Noise::new(4000 + seed);
            let mut figure = healthy(&tiers, &mut noise, true);
            let bad = noise.below(4);
            let other = (bad + 1 + noise.below(3)) % 4;
            let mut rest = (0..4).filter(|node| *node != bad && *node != other);
            let (third, last) = (rest.next().unwrap(), rest.next().unwrap());
            // As when some threads wait for a processor.
            for (from, to, by) in [(other, third, 10_000.0), (last, other, 8000.0)] {
                figure.set(from, to, figure.get(from, to).unwrap() + by);
            }
            let judged = judge(&[directional(&figure)], &tiers);
            assert_eq!(named(&judged), [0; 0], "seed {seed}");
            slow(&mut figure, bad, direction, 60_000.0, &mut noise);
            let judged = judge(&[directional(&figure)], &tiers);
            let first = named(&judged).first().copied();
            assert_eq!(first, Some(bad), "seed {seed}, {direction:?}");
            assert_eq!(
                judged[bad].verdict,
                NodeVerdict::Slow(direction),
                "{judged:?}"
            );
        }
    }
}

#[test]
fn a_slow_pair_names_none_of_its_nodes() {
    for nodes in [8, 64] {
        let tiers = in_groups(nodes, 4);
        let nobody = (0..SEEDS).filter(|seed| {
            let mut noise = Noise::new(3000 + seed);
            let mut figure = healthy(&tiers, &mut noise, false);
            let (from, to) = (noise.below(4), 4 + noise.below(4));
            figure.set(from, to, 50_000.0);
            named(&judge(&[directional(&figure)], &tiers)).is_empty()
        });
        assert!(nobody.count() >= 19);
    }
}

#[test]
fn round_trips_name_a_node_and_no_direction_unless_another_figure_has_one() {
    let (nodes, bad) = (8, 5);
    let tiers = Tiers::one(nodes);
    let mut noise = Noise::new(7);
    let mut one_way = healthy(&tiers, &mut noise, true);
    slow(&mut one_way, bad, Direction::Ingress, 3000.0, &mut noise);
    let there_and_back = |from, to| {
        Some(f64::midpoint(
            one_way.get(from, to)?,
            one_way.get(to, from)?,
        ))
    };
    let halves = Matrix::of(nodes, there_and_back);
    let round_trip = Evidence {
        figure: "half_round_trip",
        values: &halves,
        directional: false,
        ..directional(&halves)
    };
    let judged = judge(&[round_trip], &tiers);
    assert_eq!(judged[bad].verdict, NodeVerdict::Slow(Direction::Unknown));
    assert_eq!(named(&judged), [bad]);
    let judged = judge(&[round_trip, directional(&one_way)], &tiers);
    assert_eq!(judged[bad].verdict, NodeVerdict::Slow(Direction::Ingress));
    assert_eq!(judged[bad].figure, Some(FIGURE));
    assert!(judged[bad].effects_ns[1].unwrap() > 2500.0);

    // Bounds that are wider than the effect prove nothing; nor does an effect that is not worth telling.
    let errors = Matrix::of(nodes, |_, _| Some(2500.0));
    let wide = Evidence {
        error: Some(&errors),
        ..directional(&one_way)
    };
    assert_eq!(named(&judge(&[wide], &tiers)), [0; 0]);
    let errors = Matrix::of(nodes, |_, _| Some(500.0));
    let narrow = Evidence {
        error: Some(&errors),
        ..directional(&one_way)
    };
    assert_eq!(named(&judge(&[narrow], &tiers)), [bad]);
    let least = Evidence {
        least_ns: 10_000.0,
        ..directional(&one_way)
    };
    assert_eq!(named(&judge(&[least], &tiers)), [0; 0]);
}

#[test]
fn what_varies_a_little_gives_a_large_constant_delay_no_direction() {
    let (nodes, bad) = (8, 5);
    let tiers = Tiers::one(nodes);
    let mut noise = Noise::new(7);
    let mut varies = healthy(&tiers, &mut noise, true);
    slow(&mut varies, bad, Direction::Ingress, 3000.0, &mut noise);
    // Half of a delay of everything that the node sends, which could be a shift of its clock as well.
    let halves = |delay_ns: f64| {
        Matrix::of(nodes, move |from, to| {
            let is_late = from == bad || to == bad;
            Some(1000.0 + if is_late { delay_ns / 2.0 } else { 0.0 })
        })
    };
    for (delay_ns, expected, figure) in [
        (20_000.0, Direction::Unknown, "half_round_trip"),
        (5000.0, Direction::Ingress, FIGURE),
    ] {
        let halves = halves(delay_ns);
        let round_trip = Evidence {
            figure: "half_round_trip",
            directional: false,
            ..directional(&halves)
        };
        for evidence in [
            [round_trip, directional(&varies)],
            [directional(&varies), round_trip],
        ] {
            let judged = judge(&evidence, &tiers);
            assert_eq!(judged[bad].verdict, NodeVerdict::Slow(expected));
            assert_eq!(judged[bad].figure, Some(figure));
            assert_eq!(named(&judged), [bad]);
        }
    }
}

#[test]
fn too_few_nodes_and_nodes_without_pairs_are_not_judged() {
    for nodes in [0, 1, 2, 3] {
        let tiers = Tiers::one(nodes);
        let figure = Matrix::of(nodes, |from, _| Some(if from == 0 { 9e6 } else { 2000.0 }));
        let judged = judge(&[directional(&figure)], &tiers);
        let expected = if nodes < 2 {
            NodeVerdict::Missing
        } else {
            NodeVerdict::NotJudged
        };
        assert!(judged.iter().all(|it| it.verdict == expected), "{judged:?}");
    }
    let tiers = Tiers::one(9);
    let mut noise = Noise::new(1);
    let mut figure = healthy(&tiers, &mut noise, false);
    for (from, to) in ordered_pairs(9) {
        // One without any pair, and one with a single one.
        if from == 3 || to == 3 || (from == 4) != (to == 4) && (from, to) != (4, 5) {
            figure.set(from, to, f64::NAN);
        }
    }
    figure.set(4, 5, 90_000.0);
    let judged = judge(&[directional(&figure)], &tiers);
    assert_eq!(judged[3].verdict, NodeVerdict::Missing);
    assert_eq!(judged[4].verdict, NodeVerdict::NotJudged);
    assert_eq!(judged[0].verdict, NodeVerdict::Ok);
}

#[test]
fn what_is_made_of_parts_is_taken_apart_exactly() {
    let tiers = in_groups(300, 30);
    let effect = |node: usize| ((node * 37) % 101) as f64;
    let figure = Matrix::of(300, |from, to| {
        Some(1000.0 * (1 + tiers.of(from, to)) as f64 + effect(from) - 2.0 * effect(to))
    });
    let fit = polish(&figure, &tiers);
    assert!(fit.rest.each().all(|(_, _, rest)| rest.abs() < 1e-6));
    let difference = fit.egress[5].unwrap() - fit.egress[9].unwrap();
    assert!((difference - (effect(5) - effect(9))).abs() < 1e-6);
    assert!((fit.expected(&tiers, 3, 200).unwrap() - figure.get(3, 200).unwrap()).abs() < 1e-6);
}

#[test]
fn without_any_noise_a_node_that_differs_is_named_and_equals_are_not() {
    let tiers = in_groups(8, 4);
    let figure = |by: f64| Matrix::of(8, |from, _| Some(2000.0 + if from == 3 { by } else { 0.0 }));
    assert_eq!(named(&judge(&[directional(&figure(500.0))], &tiers)), [3]);
    let equal = judge(&[directional(&figure(0.0))], &tiers);
    assert!(equal.iter().all(|it| it.verdict == NodeVerdict::Ok));
}
