//! Ways that are slower than they have to be, in fabrics of which all is known.

use super::simulated::{Noise, delay};
use super::*;
use crate::time::Nanos;

/// Between the beginnings of two measurements.
const STEP: i128 = 300_000_000;
/// Between two probes of one, of which there are [`PROBES`].
const GAP: i128 = 1_500_000;
const PROBES: i128 = 100;
/// What a way takes at least.
const LEAST: i128 = 2_000;

impl ThirdHostComparison {
    /// By how much a way is proved to be slower than it has to be, if it is.
    fn named(&self, from: usize, to: usize) -> Option<u64> {
        self.slower_by(from, to).filter(|ns| *ns > 0)
    }
}

/// Hosts with clocks that are far apart and run at different rates.
struct SimulatedHosts {
    hosts: usize,
    /// How far each clock is ahead, and what it gains in parts per billion.
    clocks: Vec<(i128, i128)>,
    /// The least latency of each way, and how much noise is on it in the mean.
    least: Vec<i128>,
    noise: f64,
    /// A host whose clock is set, when, and by how much.
    set: Option<(usize, i128, i128)>,
    random: Noise,
}

impl SimulatedHosts {
    fn new(hosts: usize, drift_ppb: i128, seed: u64) -> Self {
        let mut random = Noise::new(seed);
        let clocks = (0..hosts).map(|_| {
            let theta = (random.share() * 1e15) as i128;
            (
                theta,
                ((2.0 * random.share() - 1.0) * drift_ppb as f64) as i128,
            )
        });
        SimulatedHosts {
            hosts,
            clocks: clocks.collect(),
            least: vec![LEAST; hosts * hosts],
            noise: 300.0,
            set: None,
            random,
        }
    }

    fn slow(mut self, from: usize, to: usize, by: i128) -> Self {
        self.least[from * self.hosts + to] += by;
        self
    }

    fn clock(&self, host: usize, time: i128) -> Nanos {
        let (ahead, ppb) = self.clocks[host];
        let set = self
            .set
            .filter(|(who, when, _)| *who == host && time >= *when);
        let set = set.map_or(0, |(.., by)| by);
        Nanos(
            (1_000_000_000_000 + time + ahead + set + (ppb * time).div_euclid(1_000_000_000))
                as u64,
        )
    }

    /// All pairs, one after the other, by each of both hosts; with the least latency that each way had.
    fn measure(&mut self, limit: RateLimit) -> (HostExchanges, Vec<i128>) {
        let count = self.hosts;
        let mut ways = HostExchanges::new(&HostPairs::all(count));
        let mut least = vec![i128::MAX; count * count];
        let mut begun = 0;
        for to in 0..count {
            for from in 0..to {
                for (one, other) in [(from, to), (to, from)] {
                    let mut messages = Vec::new();
                    for probe in 0..PROBES {
                        let mut way = |from: usize, to: usize| {
                            let place = from * count + to;
                            let takes = delay(&mut self.random, self.least[place], self.noise);
                            least[place] = least[place].min(takes);
                            takes
                        };
                        let (there, back) = (way(one, other), way(other, one));
                        let at = begun + probe * GAP;
                        let answered = at + there + 50;
                        messages.extend([
                            Message::forward(self.clock(one, at), self.clock(other, at + there)),
                            Message::backward(
                                self.clock(other, answered),
                                self.clock(one, answered + back),
                            ),
                        ]);
                    }
                    let proved = Bounds::prove(messages, limit).unwrap();
                    ways.exchanged(one, other, proved.exchanged());
                    begun += STEP;
                }
            }
        }
        (ways, least)
    }

    /// The ways that are named, and by how much they are slower; none by more than is true.
    fn named(&mut self, limit: RateLimit) -> Vec<(usize, usize, u64)> {
        let (ways, least) = self.measure(limit);
        let found = ways.compare();
        assert_eq!(found.disagreements, []);
        let count = self.hosts;
        let mut named = Vec::new();
        for (from, to) in (0..count * count).map(|place| (place / count, place % count)) {
            let Some(ns) = found.named(from, to) else {
                continue;
            };
            let third = (0..count).filter(|third| *third != from && *third != to);
            let over = third.map(|it| least[from * count + it] + least[it * count + to]);
            let truth = least[from * count + to] - over.min().unwrap();
            assert!(i128::from(ns) <= truth, "{from} to {to}: {ns} of {truth}");
            named.push((from, to, ns));
        }
        named
    }
}

fn limit(ppm: u32) -> RateLimit {
    RateLimit::new(ppm).unwrap()
}

#[test]
fn with_clocks_of_one_rate_the_difference_of_the_ways_is_exact() {
    for seed in 0..20 {
        let mut made = SimulatedHosts::new(4, 0, seed).slow(2, 1, 9_000);
        let (ways, least) = made.measure(RateLimit::CONSTANT);
        let found = ways.compare();
        let over = [0, 3].map(|third| least[2 * 4 + third] + least[third * 4 + 1]);
        let truth = least[2 * 4 + 1] - over.into_iter().min().unwrap();
        assert_eq!(found.named(2, 1).map(i128::from), Some(truth));
        assert!((6_000..7_500).contains(&truth), "{truth}");
        assert_eq!(found.named(1, 2), None);
    }
}

#[test]
fn a_slow_way_is_named_with_its_direction_whatever_the_clocks() {
    for seed in 0..60 {
        let hosts = 3 + seed as usize % 4;
        let (from, step) = (seed as usize % hosts, 1 + seed as usize / 7 % (hosts - 1));
        let to = (from + step) % hosts;
        for (drift, limit) in [(0, limit(0)), (50_000, limit(1_000)), (50_000, limit(150))] {
            let mut made = SimulatedHosts::new(hosts, drift, seed).slow(from, to, 300_000);
            let named = made.named(limit);
            let [(one, other, ns)] = named[..] else {
                panic!("{from} to {to} of {hosts}, {drift} ppb, {limit}: {named:?}");
            };
            assert_eq!((one, other), (from, to));
            assert!(ns > 150_000, "{ns} of 296000, {drift} ppb, {limit}");
        }
    }
}

#[test]
fn noise_names_nobody() {
    for seed in 0..200 {
        let hosts = 2 + seed as usize % 5;
        for (drift, limit) in [(0, limit(0)), (50_000, limit(1_000))] {
            let mut made = SimulatedHosts::new(hosts, drift, seed);
            made.noise = 3_000.0;
            let named = made.named(limit);
            assert!(
                named.is_empty(),
                "seed {seed}, {hosts} hosts, {limit}: {named:?}"
            );
        }
    }
}

#[test]
fn two_hosts_and_a_slow_port_tell_no_direction() {
    for seed in 0..20 {
        let mut two = SimulatedHosts::new(2, 50_000, seed).slow(0, 1, 3_000_000);
        assert_eq!(two.named(limit(1_000)), []);
        let mut port = SimulatedHosts::new(4, 50_000, seed);
        for to in [0, 2, 3] {
            port = port.slow(1, to, 3_000_000);
        }
        assert_eq!(port.named(limit(1_000)), []);
    }
}

#[test]
fn a_clock_that_was_set_is_a_contradiction_and_nobody_is_named() {
    let mut found_by_rates = 0;
    for seed in 0..20 {
        for (drift, limit) in [(0, limit(0)), (50_000, limit(200))] {
            let mut made = SimulatedHosts::new(4, drift, seed).slow(0, 2, 400_000);
            // Between two measurements, so that each by itself is right.
            made.set = Some((3, 9 * STEP - 1_000_000, -5_000_000));
            let (ways, _) = made.measure(limit);
            let found = ways.compare();
            assert!(!found.disagreements.is_empty(), "seed {seed}, {limit}");
            assert!(found.disagreements.iter().all(|it| it.hosts.contains(&3)));
            found_by_rates += usize::from(found.disagreements.iter().any(|it| it.missing_ns == 0));
            for (from, to) in [(0, 3), (3, 0), (2, 3), (3, 1)] {
                assert!(found.is_concerned(from, to));
                assert_eq!(found.named(from, to), None);
            }
        }
    }
    // Of two measurements of one pair the clock was set in between.
    assert!(found_by_rates > 0);
}

#[test]
fn many_third_hosts_are_asked_in_part() {
    let mut made = SimulatedHosts::new(40, 20_000, 7).slow(17, 30, 2_000_000);
    let named = made.named(limit(100));
    assert!(matches!(named[..], [(17, 30, 1_000_000..)]), "{named:?}");
}

#[test]
fn lines_lie_between_all_messages() {
    let mut made = SimulatedHosts::new(2, 80_000, 3);
    let mut messages = Vec::new();
    for at in (0..50).map(|number| number * 1_000_000) {
        let (there, back) = (
            delay(&mut made.random, 900, 200.0),
            delay(&mut made.random, 800, 200.0),
        );
        messages.push(Message::forward(
            made.clock(0, at),
            made.clock(1, at + there),
        ));
        messages.push(Message::backward(
            made.clock(1, at),
            made.clock(0, at + back),
        ));
    }
    let found = Bounds::prove(messages.clone(), limit(1_000))
        .unwrap()
        .exchanged();
    assert_eq!(
        found.theta.low_ns.max(found.lines.low_ns),
        found.lines.low_ns
    );
    assert!(found.lines.low_ns < found.lines.high_ns && found.lines.high_ns <= found.theta.high_ns);
    let mut closest = i128::MAX;
    for message in messages {
        let past = i128::from(message.own().0) - i128::from(found.at.0);
        assert!(past.unsigned_abs() <= u128::from(found.lasted_ns.div_ceil(2)));
        let gained = past * i128::from(found.lines.rate_ppb) / 1_000_000_000;
        let apparent = i128::from(message.apparent_ns());
        let above = match message.direction {
            Direction::Forward => apparent - i128::from(found.lines.high_ns) - gained,
            Direction::Backward => apparent + i128::from(found.lines.low_ns) + gained,
        };
        assert!(above >= -1, "{message:?}");
        closest = closest.min(above);
    }
    assert!(closest <= 2, "{closest}");
}
