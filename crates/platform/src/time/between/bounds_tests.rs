//! Bounds of two clocks against simulated ones, and against a linear program that tries all corners.

use proptest::prelude::*;

use super::rate::Rate;
use super::simulated::*;
use super::*;
use crate::time::Nanos;

/// One sample: when it was posted, which way, and how long it took.
fn some_messages() -> impl Strategy<Value = Vec<(i128, bool, i128)>> {
    let takes = prop_oneof![1_i128..100, 500_i128..3_000, 1_i128..10_000_000];
    proptest::collection::vec((0_i128..3_000_000_000, any::<bool>(), takes), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_truth_is_always_inside(
        theta in -1_000_000_000_000_000_000_i128..1_000_000_000_000_000_000,
        ppb in prop_oneof![Just(0_i128), -300_000_i128..=300_000],
        limit in prop_oneof![Just(300_u32), 300_u32..2_000, Just(RateLimit::HIGHEST_PPM)],
        samples in some_messages(),
        more in proptest::collection::vec(-1_000_000_000_i128..4_000_000_000, 3),
    ) {
        let truth = Truth { theta, ppb };
        let directions = [Direction::Backward, Direction::Forward];
        let of = |(at, forward, takes): (i128, bool, i128)| truth.message(directions[usize::from(forward)], at, takes);
        let ends = [(0, true, 900), (900, false, 1_100)].into_iter();
        let samples: Vec<_> = ends.chain(samples).collect();
        let messages: Vec<Message> = samples.iter().copied().map(of).collect();
        let limit = if ppb == 0 { RateLimit::CONSTANT } else { RateLimit::new(limit).unwrap() };
        let bounds = Bounds::prove(messages.iter().copied(), limit).unwrap();

        let [least, most] = bounds.rate_ppm();
        prop_assert!(least <= ppb as f64 / 1e3 && ppb as f64 / 1e3 <= most, "{least} {most}");
        let times = samples.iter().flat_map(|&(at, _, takes)| [at, at + takes]).chain(more.iter().copied());
        for at in times {
            let span = bounds.at(Truth::a(at));
            prop_assert!(is_in(span, truth.theta(at)), "{span:?} {:?}", truth.theta(at));
        }
        let (from, to) = (more[0].min(more[1]), more[0].max(more[1]));
        let span = bounds.over(Truth::a(from), Truth::a(to));
        prop_assert!(is_in(span, truth.theta(from + (to - from) / 3)));

        for direction in directions {
            let baseline = bounds.baseline(direction, messages.iter().copied()).unwrap().unwrap();
            let all = samples.iter().zip(&messages).filter(|(_, message)| message.direction == direction);
            let least = all.clone().map(|((_, _, takes), _)| *takes).min().unwrap();
            for ((_, _, takes), message) in all {
                // By clock B, and a stamp of it is cut to whole nanoseconds.
                let by_b = takes * (BILLION + ppb) / BILLION;
                let span = bounds.latency(message).unwrap().widened(1);
                prop_assert!(is_in(span, [by_b, by_b]), "{span:?} {by_b}");
                let more = (takes - least) * (BILLION + ppb) / BILLION;
                let excess = baseline.excess(message).unwrap();
                prop_assert!(is_in(excess.widened(2), [more, more]), "{excess:?} {more}");
                prop_assert!(ppb != 0 || excess.width_ns() == 0);
                prop_assert!(excess.low_ns >= 0);
            }
        }
    }

    #[test]
    fn the_width_is_the_sum_of_both_least_and_no_round_trip_is_shorter(
        theta in -1_000_000_000_000_000_000_i128..1_000_000_000_000_000_000,
        ways in proptest::collection::vec((1_i128..100_000, 1_i128..100_000), 1..40),
    ) {
        let truth = Truth { theta, ppb: 0 };
        let each = ways.iter().zip(0..);
        let probes: Vec<Probe> =
            each.map(|(&(there, back), number)| truth.probe(number * 1_000_000, there, back)).collect();
        let bounds = Bounds::prove(messages_of(&probes), RateLimit::CONSTANT).unwrap();
        let width = bounds.at(bounds.middle()).width_ns() as i64;
        let shortest = probes.iter().map(Probe::round_trip_ns).min().unwrap();
        let least = |of: fn(&(i128, i128)) -> i128| ways.iter().map(of).min().unwrap();
        prop_assert_eq!(i128::from(width), least(|way| way.0) + least(|way| way.1));
        prop_assert!(width <= shortest);
        prop_assert_eq!(bounds.rate_ppm(), [0.0, 0.0]);
        prop_assert_eq!(bounds.first(), probes[0].a_sent);
        for (probe, (there, back)) in probes.iter().zip(&ways) {
            prop_assert_eq!(probe.half_round_trip_ns(), (there + back) as f64 / 2.0);
        }
    }

    #[test]
    fn the_hulls_find_what_trying_all_corners_finds(
        points in proptest::collection::vec((0_i64..60, any::<bool>(), -300_i64..300), 0..9),
        limit in prop_oneof![Just(0_u32), Just(50_000), Just(RateLimit::HIGHEST_PPM)],
        at in proptest::collection::vec(0_i64..60, 3),
    ) {
        let start = 1_000_000;
        let ends = [(20, true, 120), (25, false, 40)];
        let messages: Vec<Message> = ends.into_iter().chain(points).map(|(at, forward, apparent)| {
            let stamp = |ns: i64| Nanos((start + ns) as u64);
            match forward {
                true => Message::forward(stamp(at), stamp(at + apparent)),
                false => Message::backward(stamp(at - apparent), stamp(at)),
            }
        }).collect();
        let corners = corners(&messages, limit.into(), start);
        let found = Bounds::prove(messages.iter().copied(), RateLimit::new(limit).unwrap());
        match found {
            Err(BoundsError::Contradiction(found)) => {
                prop_assert!(corners.is_empty(), "{found} {corners:?}");
                prop_assert!(found.missing_ns > 0 && (2..=4).contains(&found.messages.len()));
                // These few say all of it. Several rates may fit as badly.
                let again = contradiction(found.messages.iter().copied(), found.limit);
                prop_assert_eq!(again.missing_ns, found.missing_ns);
            }
            Ok(bounds) => {
                prop_assert!(!corners.is_empty());
                for at in at {
                    let values = || corners.iter().map(|corner| corner.at(at.into()));
                    let low = values().map(|(top, bottom)| top.div_euclid(bottom)).min().unwrap();
                    let high = values().map(|(top, bottom)| -(-top).div_euclid(bottom)).max().unwrap();
                    let span = bounds.at(Nanos((start + at) as u64));
                    prop_assert_eq!((i128::from(span.low_ns), i128::from(span.high_ns)), (low, high));
                }
                let rates = || corners.iter().map(|corner| corner.y as f64 / corner.bottom as f64 * 1e6);
                let [least, most] = bounds.rate_ppm();
                let (slowest, fastest) = (rates().fold(f64::MAX, f64::min), rates().fold(f64::MIN, f64::max));
                prop_assert!(least <= slowest && slowest < least + 1.1e-4, "{least} {slowest}");
                prop_assert!(fastest <= most && most < fastest + 1.1e-4, "{fastest} {most}");
                // The most that a message exceeds the least is at one end of the rates.
                let slope = |corner: &&Corner| Rate::of(corner.y, corner.bottom);
                let ends = [corners.iter().min_by_key(slope).unwrap(), corners.iter().max_by_key(slope).unwrap()];
                let forward = messages.iter().filter(|message| message.direction == Direction::Forward);
                let baseline = bounds.baseline(Direction::Forward, messages.iter().copied()).unwrap().unwrap();
                for message in forward.clone() {
                    let most = ends.map(|end| {
                        let flat = |of: &Message| {
                            i128::from(of.apparent_ns()) * end.bottom - end.y * i128::from(of.own().0)
                        };
                        let above = flat(message) - forward.clone().map(flat).min().unwrap();
                        -(-above).div_euclid(end.bottom)
                    });
                    let excess = baseline.excess(message).unwrap();
                    prop_assert_eq!(i128::from(excess.high_ns), most[0].max(most[1]));
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// A line theta(t) = (x + y t) / bottom.
#[derive(Debug)]
struct Corner {
    x: i128,
    y: i128,
    bottom: i128,
}

impl Corner {
    fn at(&self, time: i128) -> (i128, i128) {
        (self.x + self.y * time, self.bottom)
    }
}

/// All corners of what the messages and the limit allow, from each two of their half planes u x + v y <= w.
fn corners(messages: &[Message], limit_ppm: i128, start: i64) -> Vec<Corner> {
    let mut planes = vec![(0, 1_000_000, limit_ppm), (0, -1_000_000, limit_ppm)];
    for message in messages {
        let time = i128::from(message.own().0) - i128::from(start);
        let sign = match message.direction {
            Direction::Forward => 1,
            Direction::Backward => -1,
        };
        planes.push((sign, sign * time, message.apparent_ns().into()));
    }
    let mut corners = Vec::new();
    for (number, &(u, v, w)) in planes.iter().enumerate() {
        for &(p, q, r) in &planes[..number] {
            let bottom = u * q - v * p;
            let sign = bottom.signum();
            let corner = Corner {
                x: sign * (w * q - v * r),
                y: sign * (u * r - w * p),
                bottom: bottom.abs(),
            };
            let allows =
                |&(u, v, w): &(i128, i128, i128)| u * corner.x + v * corner.y <= w * corner.bottom;
            if bottom != 0 && planes.iter().all(allows) {
                corners.push(corner);
            }
        }
    }
    corners
}

#[test]
fn a_drift_of_30_ppm_over_a_second_costs_next_to_nothing() {
    let mut random = Noise::new(16);
    let (mut drifting, mut constant) = (0, 0);
    for _ in 0..300 {
        let theta = (random.share() * 1e18) as i128;
        let truth = Truth { theta, ppb: 30_000 };
        let probes = a_second(truth, &mut random);
        let bounds = Bounds::prove(messages_of(&probes), RateLimit::ANY).unwrap();
        for at in [0, 1_234_567, 500_000_000, 999_999_999] {
            assert!(is_in(bounds.at(Truth::a(at)), truth.theta(at)));
        }
        let [least, most] = bounds.rate_ppm();
        assert!(
            (26.0..=30.0).contains(&least) && (30.0..34.0).contains(&most),
            "{least} {most}"
        );
        drifting += bounds.at(bounds.middle()).width_ns();
        // As constant these 30 us are a contradiction.
        let found = contradiction(messages_of(&probes), RateLimit::CONSTANT);
        assert!((27_000..30_000).contains(&found.missing_ns), "{found}");
        let still = a_second(Truth { theta, ppb: 0 }, &mut random);
        let bounds = Bounds::prove(messages_of(&still), RateLimit::CONSTANT).unwrap();
        constant += bounds.at(bounds.middle()).width_ns();
    }
    let half = |sum: u64| sum as f64 / 600.0;
    assert!(
        (800.0..803.0).contains(&half(constant)),
        "{}",
        half(constant)
    );
    assert!(
        (800.0..810.0).contains(&half(drifting)),
        "{}",
        half(drifting)
    );
}

#[test]
fn one_exchange_gives_bounds_everywhere() {
    let truth = Truth {
        theta: -1_000_000_000_000_000_000,
        ppb: 0,
    };
    let probe = truth.probe(0, 700, 900);
    let limit = RateLimit::new(100).unwrap();
    let bounds = Bounds::prove(probe.messages(), limit).unwrap();
    assert_eq!(bounds.rate_ppm(), [-100.0, 100.0]);
    assert_eq!(bounds.limit(), limit);
    let theta = -1_000_000_000_000_000_000;
    // A second away it may be 100 us off; before the message, after the answer.
    let span = bounds.at(Truth::a(1_000_000_000));
    assert_eq!(
        span,
        Span::new(theta - 900 - 100_000, theta + 700 + 100_000)
    );
    for stamp in [0, u64::MAX] {
        let span = bounds.at(Nanos(stamp));
        assert!(span.low_ns < theta - 1_000_000 && span.high_ns > theta + 1_000_000);
    }
}

#[test]
fn a_hundred_thousand_points_lose_none_that_counts() {
    let mut random = Noise::new(1);
    let truth = Truth {
        theta: 77,
        ppb: -123_456,
    };
    let probes: Vec<Probe> = (0..50_000)
        .map(|number| {
            truth.probe(
                number * 20_000,
                delay(&mut random, 1_000, 5_000.0),
                delay(&mut random, 2_000, 50_000.0),
            )
        })
        .collect();
    let bounds = Bounds::prove(messages_of(&probes), RateLimit::ANY).unwrap();
    let [least, most] = bounds.rate_ppm();
    assert!(least <= -123.456 && -123.456 <= most && most - least < 10.0);
    for number in (0..50_000).step_by(7) {
        let probe = &probes[number];
        for message in probe.messages() {
            assert!(bounds.latency(&message).is_some());
        }
        assert!(is_in(
            bounds.at(probe.a_sent),
            truth.theta(number as i128 * 20_000)
        ));
    }
    assert!(bounds.at(bounds.middle()).width_ns() < 3_100);
}

#[test]
fn latencies_are_never_negative_and_the_other_directions_messages_have_no_excess() {
    let theta = Span::new(-100, 300);
    assert_eq!(
        Direction::Forward.latency(250, theta),
        Some(Span::new(0, 350))
    );
    assert_eq!(
        Direction::Backward.latency(250, theta),
        Some(Span::new(150, 550))
    );
    assert_eq!(
        Direction::Backward.latency(-300, theta),
        Some(Span::new(0, 0))
    );
    assert_eq!(Direction::Forward.latency(-101, theta), None);
    assert_eq!(Direction::Backward.latency(-301, theta), None);

    let truth = Truth { theta: 9, ppb: 0 };
    let probe = truth.probe(0, 100, 200);
    let bounds = Bounds::prove(probe.messages(), RateLimit::CONSTANT).unwrap();
    assert!(bounds.baseline(Direction::Forward, []).unwrap().is_none());
    let [there, back] = probe.messages();
    let baseline = bounds
        .baseline(Direction::Forward, [there, back])
        .unwrap()
        .unwrap();
    assert_eq!(baseline.excess(&back), None);
    assert_eq!(baseline.excess(&there), Some(Span::new(0, 0)));
    let later = truth.message(Direction::Forward, 1_000_000, 1_100);
    assert_eq!(baseline.excess(&later), Some(Span::new(1_000, 1_000)));
    let far = Message::forward(Nanos(0), Nanos(u64::MAX));
    assert_eq!(baseline.excess(&far), None);
    assert!(bounds.baseline(Direction::Forward, [far]).is_err());
}
