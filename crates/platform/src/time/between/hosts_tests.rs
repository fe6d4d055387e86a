//! Bounds by way of third hosts.

use proptest::prelude::*;

use super::*;

fn hosts(count: usize) -> Hosts {
    Hosts::new((0..count).map(|number| format!("node{number}")))
}

/// What a pair proves whose least latencies are these.
fn proved(theta: i64, there: i64, back: i64) -> Span {
    Span::new(theta - back, theta + there)
}

#[test]
fn a_third_host_shows_the_slow_direction() {
    // From 0 to 2 it takes 9 us more.
    let clocks = [0, 123_456_789, -987_654_321];
    let mut three = hosts(3);
    for (from, to, there) in [(0, 1, 800), (1, 2, 800), (0, 2, 9_800)] {
        three.bound(from, to, proved(clocks[to] - clocks[from], there, 800));
    }
    let direct = proved(clocks[2], 9_800, 800);
    assert_eq!(direct.width_ns(), 10_600);
    let tight = three.tighten().unwrap().theta(0, 2).unwrap();
    assert_eq!(tight.width_ns(), 2_400);
    assert!(tight.contains(clocks[2]));
    let slow = Direction::Forward
        .latency(clocks[2] + 9_800, tight)
        .unwrap();
    assert_eq!(slow, Span::new(8_200, 10_600));
    let other = Direction::Backward.latency(800 - clocks[2], tight).unwrap();
    assert_eq!(other, Span::new(0, 2_400));
    // The pair by itself shows neither.
    let slow = Direction::Forward
        .latency(clocks[2] + 9_800, direct)
        .unwrap();
    assert_eq!(slow, Span::new(0, 10_600));
}

#[test]
fn bounds_that_do_not_add_up_name_the_hosts() {
    let honest = |wrong: &[(usize, usize, i64)], pairs: &[(usize, usize)]| {
        let mut all = hosts(6);
        for &(from, to) in pairs {
            let added = wrong
                .iter()
                .find(|(one, other, _)| (*one, *other) == (from, to));
            let theta = 1_000_000_000_000_000_000 * (to as i64 - from as i64);
            all.bound(
                from,
                to,
                proved(theta + added.map_or(0, |(_, _, ns)| *ns), 1_000, 1_000),
            );
        }
        all.tighten()
    };
    let every: Vec<(usize, usize)> = (0..6)
        .flat_map(|to| (0..to).map(move |from| (from, to)))
        .collect();
    honest(&[], &every).unwrap();
    honest(&[(1, 4, 2_900)], &every).unwrap();

    let found = honest(&[(1, 4, 7_000)], &every).unwrap_err();
    assert_eq!(found.missing_ns, 4_000);
    assert!(
        found.numbers.len() == 3 && found.numbers.contains(&1) && found.numbers.contains(&4),
        "{found}"
    );
    assert!(
        found.to_string().contains("node1") && found.to_string().contains("by 4000 ns"),
        "{found}"
    );

    // Two bounds of one pair.
    let found = honest(&[(0, 1, 5_000)], &[(0, 1), (1, 2)]);
    found.unwrap();
    let mut two = hosts(2);
    two.bound(0, 1, Span::new(100, 200));
    two.bound(1, 0, Span::new(-90, -80));
    let found = two.tighten().unwrap_err();
    assert_eq!((found.missing_ns, found.hosts.len()), (10, 2));

    // A ring has no cycle of three.
    let ring = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)];
    honest(&[(2, 3, 4_000)], &ring).unwrap();
    for wrong in [9_000, -9_000, -3_000_000_000_000_000_000] {
        let found = honest(&[(2, 3, wrong)], &ring).unwrap_err();
        let mut numbers = found.numbers.clone();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4], "{found}");
        assert_eq!(found.missing_ns, wrong.abs() - 5_000);
    }
}

#[test]
fn nothing_is_known_of_hosts_that_nothing_connects() {
    assert!(hosts(0).is_empty());
    hosts(0).tighten().unwrap();
    let mut four = hosts(4);
    four.bound(2, 1, Span::new(-5, 7));
    // Centuries: that is no bound.
    four.bound(0, 3, Span::new(i64::MIN, i64::MAX));
    four.bound(0, 3, Span::new(-(1 << 50), 1 << 50));
    let tight = four.tighten().unwrap();
    assert_eq!(tight.theta(0, 1), None);
    assert_eq!(tight.theta(0, 3), None);
    assert_eq!(tight.theta(2, 1), Some(Span::new(-5, 7)));
    assert_eq!(tight.theta(1, 2), Some(Span::new(-7, 5)));
    assert_eq!(tight.theta(3, 3), Some(Span::new(0, 0)));
}

#[test]
fn many_hosts_are_tightened() {
    let count = 160;
    let clock = |host: usize| (host as i64 * 7_919) % 1_000 * 1_000_000_000_000_000;
    let mut all = hosts(count);
    for to in 0..count {
        for from in 0..to {
            let slow = |one: usize, other: usize| 1_000 + (one * 31 + other * 17) as i64 % 5_000;
            all.bound(
                from,
                to,
                proved(clock(to) - clock(from), slow(from, to), slow(to, from)),
            );
        }
    }
    let tight = all.tighten().unwrap();
    let pairs = (0..count).flat_map(|to| (0..to).map(move |from| (from, to)));
    let spans = pairs.map(|(from, to)| {
        let span = tight.theta(from, to).unwrap();
        assert!(span.contains(clock(to) - clock(from)), "{span:?}");
        span.width_ns()
    });
    // By themselves they prove 7 us in the mean.
    let mean = spans.sum::<u64>() / (count * (count - 1) / 2) as u64;
    assert!((2_000..6_000).contains(&mean), "{mean}");
}

proptest! {
    #[test]
    fn the_truth_stays_inside_and_no_path_is_shorter(
        clocks in proptest::collection::vec(-2_000_000_000_000_000_000_i64..2_000_000_000_000_000_000, 2..7),
        pairs in proptest::collection::vec((0_usize..7, 1_usize..7, 0_i64..20_000, 0_i64..20_000), 0..20),
    ) {
        let count = clocks.len();
        let mut all = hosts(count);
        // From each to each, the least sum over all paths, by the latencies alone.
        let mut paths = vec![vec![i64::MAX / 4; count]; count];
        for (host, row) in paths.iter_mut().enumerate() {
            row[host] = 0;
        }
        for (from, step, there, back) in pairs {
            let (from, to) = (from % count, (from % count + 1 + step % (count - 1)) % count);
            all.bound(from, to, proved(clocks[to] - clocks[from], there, back));
            paths[from][to] = paths[from][to].min(there);
            paths[to][from] = paths[to][from].min(back);
        }
        for _ in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let by_way = (0..count).map(|third| paths[from][third] + paths[third][to]);
                    paths[from][to] = by_way.min().unwrap().min(paths[from][to]);
                }
            }
        }
        let tight = all.tighten().unwrap();
        for from in 0..count {
            for to in 0..count {
                let theta = clocks[to] - clocks[from];
                let is_known = paths[from][to] < i64::MAX / 8;
                let expected = is_known.then(|| proved(theta, paths[from][to], paths[to][from]));
                prop_assert_eq!(tight.theta(from, to), expected);
            }
        }
    }

    #[test]
    fn a_wrong_bound_between_two_hosts_is_on_the_cycle(
        count in 3_usize..9,
        pair in (0_usize..9, 1_usize..9),
        wrong in prop_oneof![-90_000_i64..-30_001, 30_001_i64..90_000],
        latencies in proptest::collection::vec(1_i64..10_000, 72),
    ) {
        let wrong_pair = (pair.0 % count, (pair.0 % count + 1 + pair.1 % (count - 1)) % count);
        let wrong_pair = (wrong_pair.0.min(wrong_pair.1), wrong_pair.0.max(wrong_pair.1));
        let mut all = hosts(count);
        let mut latency = latencies.iter();
        for to in 0..count {
            for from in 0..to {
                let theta = if (from, to) == wrong_pair { wrong } else { 0 };
                all.bound(from, to, proved(theta, *latency.next().unwrap(), *latency.next().unwrap()));
            }
        }
        let found = all.tighten().unwrap_err();
        prop_assert_eq!(found.numbers.len(), 3);
        prop_assert!(found.numbers.contains(&wrong_pair.0) && found.numbers.contains(&wrong_pair.1));
        prop_assert!(found.missing_ns > 0);
    }
}
