//! Elements a second: over which elements, and over which time.
//!
//! Between N elements there are N-1 intervals. A sender's rate is from the moment its schedule begins, which is the
//! start of the first enqueue that counts, to the start of the last one; a receiver's from the end of the first dequeue
//! to the end of the last one: what happens to each element, pauses included, is in it as often as there are intervals.
//! Under a load of groups both are over whole groups, if there is more than one: only they take a time that the load
//! sets.
//!
//! Threads that share queues end by time. Each producer's pause behind its last element, or its last whole group, is in
//! its time, so that it has as many intervals as elements, and the rates of all are added up. All that they put in comes
//! out, in their time or in a longer one, from the first enqueue to the last dequeue: the rate of the consumers is that
//! of the producers, for each copy, over the longer one.
//!
//! No rate is corrected by the one that was asked for: see `findings`.

use super::by_time::longest_part;
use super::plan::Point;
use super::result::{PassageResult, PerEnd};
use crate::pacing::Load;
use crate::time::{Clock, Nanos, Ticks};

/// Intervals that the rate of a run of so many elements is over: all, or those of whole groups.
pub(super) fn intervals(point: &Point, count: u64) -> usize {
    let group = point.slower().group() as usize;
    let all = count.saturating_sub(1) as usize;
    match all / group * group {
        0 => all,
        of_groups => of_groups,
    }
}

/// Elements a second that go in, and that come out as copies.
pub(super) fn asked(point: &Point) -> Option<PerEnd<f64>> {
    let each = match point.sender.load {
        Load::ConstantRate { rate_per_s } => rate_per_s,
        Load::Bursty { wait_ns, .. } => 1e9 / wait_ns,
        Load::None | Load::ConstantWait { .. } => return None,
    };
    let senders = point.wiring.map_or(1, |wiring| wiring.publishers);
    let sender = each * f64::from(senders);
    Some(PerEnd {
        sender,
        receiver: sender * copies(point),
    })
}

/// Copies that come out of the queues for each element that goes in.
fn copies(point: &Point) -> f64 {
    point.wiring.map_or(1.0, |wiring| wiring.copies() as f64)
}

/// Elements a second into and out of the queues of a point, by what each thread tells.
pub(super) fn of(
    point: &Point,
    clock: &impl Clock,
    passed: PerEnd<&[&PassageResult]>,
) -> PerEnd<Option<f64>> {
    let PerEnd { sender, receiver } = passed;
    let ns = |from: u64, to: u64| {
        let ns = clock.to_nanos(Ticks(to.saturating_sub(from))).0;
        ns.max(1) as f64
    };
    if point.wiring.is_none() {
        return passed.map(|all| {
            let [from, to] = all[0].span;
            let intervals = all[0].intervals;
            (intervals > 0).then(|| intervals as f64 * 1e9 / ns(from.0, to.0))
        });
    }
    let first = sender.iter().map(|it| it.span[0].0).min().unwrap_or(0);
    let end = |all: &[&PassageResult]| all.iter().map(|it| it.span[1].0).max().unwrap_or(0);
    let (last_in, last_out) = (end(sender), end(receiver));
    // They begin to count as much apart as a pause, or a part between two looks at the time, takes. One that begins
    // later than that had no CPU.
    let apart = Nanos::from(longest_part(point));
    let latest = first.saturating_add(clock.ticks_in(apart).0);
    let rates = sender
        .iter()
        .map(|it| it.intervals as f64 * 1e9 / ns(it.span[0].0.min(latest), it.span[1].0));
    let rate: f64 = rates.sum();
    let longer = ns(first, last_in.max(last_out)) / ns(first, last_in);
    let sent = (rate > 0.0).then_some(rate);
    PerEnd {
        sender: sent,
        receiver: sent.map(|rate| rate * copies(point) / longer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::queue::result::made_up;
    use crate::node::Scenario;
    use crate::node::wiring::Wiring;
    use crate::pacing::{EndLoad, MissPolicy, Pacing, scripted};
    use crate::time::Posix;

    /// Rates of a second that are asked for.
    const RATES: [f64; 8] = [1.0, 2.0, 10.0, 200.0, 1e3, 1e4, 1e6, 5e6];
    /// From the start of an enqueue to the end of its dequeue.
    const WAY: u64 = 25;

    fn point(load: Load) -> Point {
        made_up::point_under("lamport", load)
    }

    fn shared(load: Load, scenario: Scenario, [publishers, subscribers]: [u32; 2]) -> Point {
        let mut point = point(load);
        point.wiring = Some(Wiring::new(scenario, publishers, subscribers));
        point
    }

    fn passed([from, to]: [u64; 2], intervals: u64) -> PassageResult {
        PassageResult {
            span: [Ticks(from), Ticks(to)],
            intervals,
            ..PassageResult::default()
        }
    }

    fn found(point: &Point, senders: &[PassageResult], receivers: &[PassageResult]) -> [f64; 2] {
        let [sender, receiver] = [senders, receivers].map(|all| all.iter().collect::<Vec<_>>());
        let ends = PerEnd {
            sender: &*sender,
            receiver: &*receiver,
        };
        let PerEnd { sender, receiver } = of(point, &Posix::MONOTONIC, ends);
        [sender.unwrap(), receiver.unwrap()]
    }

    /// What is found of elements that go in at these moments, by a schedule that began at the first of `due`, and come
    /// out after [`WAY`].
    fn of_starts(point: &Point, due: u64, starts: &[u64]) -> [f64; 2] {
        let intervals = intervals(point, starts.len() as u64);
        let (first, last) = (starts[0], starts[intervals]);
        let intervals = intervals as u64;
        let sender = passed([due, last], intervals);
        let receiver = passed([first + WAY, last + WAY], intervals);
        found(point, &[sender], &[receiver])
    }

    /// When each element starts that a load makes, where an enqueue takes 10 ns.
    fn starts(load: Load, from: u64, count: u64) -> Vec<u64> {
        let clock = scripted::set(from, 0);
        let mut waiter = point(load).sender.waiter(&clock, MissPolicy::CatchUp);
        waiter.start_at(Ticks(from));
        let operation = |_| {
            let start = scripted::time();
            scripted::advance(10);
            let due = waiter.next_due(&clock).map_or(0, |due| due.0);
            scripted::advance(due.saturating_sub(scripted::time()));
            start
        };
        (0..count).map(operation).collect()
    }

    fn assert_near(found: [f64; 2], expected: [f64; 2], what: &str) {
        for (found, expected) in found.into_iter().zip(expected) {
            let off = (found / expected - 1.0).abs();
            assert!(off < 1e-3, "{what}: {found}, not {expected}");
        }
    }

    fn bursty(rate_per_s: f64, group: u32) -> Load {
        Load::Bursty {
            wait_ns: 1e9 / rate_per_s,
            group,
        }
    }

    #[test]
    fn a_rate_that_is_kept_is_found_whatever_the_number_of_elements() {
        for rate_per_s in RATES {
            let period = (1e9 / rate_per_s) as u64;
            for count in [2, 3, 4, 100, 1001] {
                let starts: Vec<u64> = (0..count).map(|at| 7 + at * period).collect();
                for load in [Load::None, Load::ConstantRate { rate_per_s }] {
                    let found = of_starts(&point(load), 7, &starts);
                    assert_eq!(found, [rate_per_s; 2], "{count} at {rate_per_s}");
                }
            }
        }
    }

    #[test]
    fn a_rate_that_is_not_kept_is_found_as_it_is_too_high_or_too_low() {
        for rate_per_s in RATES {
            for factor in [0.9, 1.1] {
                let period = (1e9 / rate_per_s * factor) as u64;
                let starts: Vec<u64> = (0..101).map(|at| at * period).collect();
                let expected = [1e9 / period as f64; 2];
                for load in [Load::ConstantRate { rate_per_s }, bursty(rate_per_s, 20)] {
                    let alone = of_starts(&point(load), 0, &starts);
                    assert_near(alone, expected, "one");
                    for scenario in [Scenario::StraightRun, Scenario::RoundRobin] {
                        let point = shared(load, scenario, [2, 2]);
                        let senders = [0, 3].map(|at| passed([at, at + 100 * period], 100));
                        let receivers = [0, 3].map(|at| passed([at, at + 99 * period], 100));
                        let found = found(&point, &senders, &receivers);
                        assert_near(found, expected.map(|it| 2.0 * it), "two");
                    }
                }
            }
        }
    }

    #[test]
    fn a_single_element_has_no_rate() {
        let one = passed([5, 5], 0);
        let ends = PerEnd {
            sender: &[&one][..],
            receiver: &[&one][..],
        };
        for point in [
            point(Load::None),
            shared(Load::None, Scenario::FanIn, [1, 1]),
        ] {
            assert_eq!(of(&point, &Posix::MONOTONIC, ends), PerEnd::default());
        }
        let counts = [0, 1, 2].map(|count| intervals(&point(Load::None), count));
        assert_eq!(counts, [0, 0, 1]);
    }

    #[test]
    fn groups_are_counted_whole() {
        for rate_per_s in [200.0, 1e4, 1e6, 5e6] {
            let load = bursty(rate_per_s, 20);
            let groups = point(load);
            // The last one may not be whole.
            for count in [21, 40, 45, 1000] {
                let found = of_starts(&groups, 3, &starts(load, 3, count));
                assert_near(found, [rate_per_s; 2], &format!("{count} at {rate_per_s}"));
            }
        }
        let groups = point(bursty(1e7, 20));
        // One alone has only its own pace.
        let starts: Vec<u64> = (0..20).map(|at| at * 10).collect();
        assert_eq!(of_starts(&groups, 0, &starts), [1e8; 2]);
        // The slower end sets the time.
        let receiver = EndLoad {
            load: Load::ConstantWait { wait_ns: 500.0 },
            ..EndLoad::NONE
        };
        assert_eq!(intervals(&Point { receiver, ..groups }, 45), 44);
    }

    #[test]
    fn a_stall_is_made_up_for_or_lowers_the_rate_that_elements_go_in_at() {
        let rate = point(Load::ConstantRate { rate_per_s: 1e4 });
        // The first is 2.4 ms late, and the next 24 with it.
        let late: Vec<u64> = (0..200_u64)
            .map(|at| (at * 100_000).max(2_400_000))
            .collect();
        let [sent, received] = of_starts(&rate, 0, &late);
        assert_eq!(sent, 1e4);
        // They came out in less time than they were due in.
        assert_eq!(received, 199.0 * 1e9 / (19_900_000.0 - 2_400_000.0));
        let mut stalled: Vec<u64> = (0..101).map(|at| at * 100_000).collect();
        stalled[100] += 10_000_000;
        assert_eq!(of_starts(&rate, 0, &stalled), [5e3; 2]);
    }

    /// What is found of producers that begin so far apart and make whole groups, and at last so many elements of one
    /// that is not whole, if `behind` passes from the last enqueue to the last dequeue.
    fn of_several(point: &Point, begin: &[u64], groups: u64, more: u64, behind: u64) -> [f64; 2] {
        let load = point.sender.load;
        let group = u64::from(point.sender.group());
        let senders: Vec<_> = begin
            .iter()
            .map(|&at| {
                let starts = starts(load, at, groups * group + 1);
                passed([at, starts[(groups * group) as usize]], groups * group)
            })
            .collect();
        let out = |at: &u64| {
            let starts = starts(load, *at, groups * group + more);
            starts[starts.len() - 1] + WAY + behind
        };
        let last = begin.iter().map(out).max().unwrap();
        let receivers = vec![passed([0, last], 1); point.wiring.unwrap().subscribers as usize];
        found(point, &senders, &receivers)
    }

    #[test]
    fn producers_that_keep_their_load_have_its_rate_together_in_each_scenario() {
        for rate_per_s in RATES {
            let period = (1e9 / rate_per_s) as u64;
            for (scenario, ends) in [
                (Scenario::StraightRun, [2, 2]),
                (Scenario::FanIn, [1, 1]),
                (Scenario::FanIn, [3, 2]),
                (Scenario::FanOut, [2, 2]),
                (Scenario::RoundRobin, [3, 2]),
            ] {
                for load in [Load::ConstantRate { rate_per_s }, bursty(rate_per_s, 20)] {
                    let point = shared(load, scenario, ends);
                    let begin: Vec<u64> = (0..ends[0].into()).map(|at| at * period / 4).collect();
                    let expected = asked(&point).unwrap();
                    let copies = if scenario == Scenario::FanOut {
                        2.0
                    } else {
                        1.0
                    };
                    assert_eq!(expected.sender, rate_per_s * f64::from(ends[0]));
                    assert_eq!(expected.receiver, copies * expected.sender);
                    let expected = [expected.sender, expected.receiver];
                    for groups in [1, 2, 5, 50] {
                        let what = format!("{groups} of {point:?}");
                        assert_near(of_several(&point, &begin, groups, 0, 0), expected, &what);
                    }
                    // Consumers that take as long again take half as many in a second.
                    let half = [expected[0], expected[1] / 2.0];
                    let behind = 1000 * u64::from(point.sender.group()) * period;
                    let found = of_several(&point, &begin, 1000, 0, behind);
                    assert_near(found, half, &format!("late {point:?}"));
                }
            }
        }
        // Elements behind the last whole group take no time that the load sets.
        let point = shared(bursty(1e6, 20), Scenario::FanIn, [2, 1]);
        assert_near(of_several(&point, &[0, 7], 1000, 19, 0), [2e6; 2], "more");
    }

    #[test]
    fn without_pauses_and_with_constant_ones_the_time_of_all_counts() {
        let wait = Load::ConstantWait { wait_ns: 90.0 };
        let waiting = shared(wait, Scenario::FanIn, [2, 1]);
        assert_eq!((asked(&waiting), asked(&point(Load::None))), (None, None));
        // 10 ns and a wait of 90 each.
        assert_near(of_several(&waiting, &[0, 50], 1000, 0, 0), [2e7; 2], "wait");
        let unpaced = shared(Load::None, Scenario::RoundRobin, [2, 2]);
        let receivers = [passed([30, 8200], 400), passed([30, 10_000], 600)];
        let senders = [passed([0, 8000], 500), passed([0, 8000], 500)];
        let expected = [1e9 / 8.0, 1e9 / 10.0];
        assert_near(found(&unpaced, &senders, &receivers), expected, "unpaced");
        // The second one had no CPU before the first was done: both had it for half of the time.
        let senders = [passed([0, 8000], 500), passed([4000, 8000], 500)];
        assert_near(found(&unpaced, &senders, &receivers), expected, "in turn");
    }
}
