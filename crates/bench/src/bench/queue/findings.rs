//! What a round gives reason to state.

use super::config::{Config, Measure, RoundLength};
use super::per_second;
use super::plan::Point;
use super::result::{PerEnd, RunResult};
use crate::pacing::Load;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::queue::{BATCHED_PERCENT, LATE_PERCENT, misses_load};
use crate::rig::clock_offset::ClockOffset;
use crate::rig::findings::{self, ComparedRate};

/// A queue that is gone through fewer times than this is little else than memory that is written once.
const FEWEST_LAPS: u64 = 4;

pub(super) fn of(point: &Point, run: &RunResult, config: &Config) -> Vec<Finding> {
    let PerEnd { sender, receiver } = &run.ends;
    let worst = sender.pages.min(receiver.pages);
    let mut all = Vec::from_iter(findings::of_pages("stamps", config.huge_pages, worst));
    if !sender.queue_locked {
        all.push(Finding::of(&kinds::QUEUE_NOT_LOCKED));
    }
    let faults = sender.passed.faults + receiver.passed.faults;
    all.extend(Finding::counted(&kinds::PAGE_FAULTS, faults, None));
    // Those of groups, where the load has any.
    let (group, what) = match point.sender.load {
        Load::Bursty { group, .. } => (Some(f64::from(group)), "groups"),
        _ => (None, "enqueues"),
    };
    if misses_load(sender.tally.missed as f64, run.elements as f64, group) {
        let found = Finding::of(&kinds::LOAD_MISSED).measure("late_percent", LATE_PERCENT);
        all.push(found.listed("what", what));
    } else {
        all.extend(of_rate(point, run));
    }
    all.extend(findings::of_throttling(&run.throttled, config.priority));
    let laps = run.elements / point.capacity as u64;
    // One element at a time fills no queue.
    if laps < FEWEST_LAPS && config.measure != Measure::RoundTrip {
        let found = Finding::of(&kinds::FEW_LAPS).measure("capacity", point.capacity as f64);
        all.push(found.measure("laps", FEWEST_LAPS as f64));
    }
    let latency = (run.times.as_ref()).and_then(|times| times.figures.latency.as_ref());
    let negative = latency.map_or(0, |latency| latency.negative);
    let lost = run.verdict.elements.lost;
    all.extend(Finding::counted(&kinds::NEGATIVE_LATENCIES, negative, None));
    all.extend(Finding::counted(&kinds::ELEMENTS_LOST, lost, None));
    if sender.tally.extended > 0 {
        all.push(Finding::of(&kinds::BATCHES).listed("queues", &*point.queue));
    }
    if config.measure.has_times() {
        let options = "--count or --duration";
        let samples = match config.has_batches() {
            // Percentiles are shown of the ends that timed any.
            true => fewest_batches(run).unwrap_or(0),
            false => run.elements,
        };
        all.extend(findings::of_percentiles(
            [99.0, 99.9, 99.99],
            samples,
            options,
        ));
    }
    if config.has_batches() {
        all.extend(of_batches(run));
    }
    all
}

/// Batches of the end that timed fewer, of those that timed any.
fn fewest_batches(run: &RunResult) -> Option<u64> {
    let PerEnd { sender, receiver } = run.ends.map(|end| end.tally.batches as u64);
    [sender, receiver]
        .into_iter()
        .filter(|count| *count > 0)
        .min()
}

/// Where the operations of an end were hardly timed: those that are in batches may be the fast ones.
fn of_batches(run: &RunResult) -> Vec<Finding> {
    let Some(times) = &run.times else {
        return Vec::new();
    };
    let shares = run
        .ends
        .map(|end| times.percent_in_batches(end.tally.batches, run.elements));
    let of_end = |(what, percent): (&str, f64)| {
        let kind = match percent {
            0.0 => &kinds::NO_BATCH_TIMED,
            percent if percent < BATCHED_PERCENT => &kinds::FEW_IN_BATCHES,
            _ => return None,
        };
        let found = Finding::of(kind).listed("what", what);
        Some(match percent {
            0.0 => found,
            _ => found.measure("least_percent", BATCHED_PERCENT),
        })
    };
    let ends = [("enqueues", shares.sender), ("dequeues", shares.receiver)];
    ends.into_iter().filter_map(of_end).collect()
}

/// By how much a wait with a jitter deviates from its mean: every length from one end to the other is equally likely.
const DEVIATION_OF_JITTER: f64 = 0.577_350;

/// Where elements went in or came out at another rate than was asked for. A load curve is meant to reach what is not
/// kept.
fn of_rate(point: &Point, run: &RunResult) -> Vec<Finding> {
    let PerEnd { sender, receiver } = &run.ends;
    let intervals = sender.passed.intervals;
    // A group alone has the pace of its elements.
    let has_rate =
        point.percent_of_saturation.is_none() && intervals >= u64::from(point.sender.group());
    let Some(asked) = per_second::asked(point).filter(|_| has_rate) else {
        return Vec::new();
    };
    let compared = |what, asked: f64, found: Option<f64>, step_ns: Option<f64>| {
        let seconds = intervals as f64 / asked;
        Some(ComparedRate {
            deviation: DEVIATION_OF_JITTER * point.sender.jitter,
            clock_step: step_ns.unwrap_or(0.0) / 1e9 / seconds,
            ..ComparedRate::new(what, asked, found?, intervals)
        })
    };
    let sent = compared(
        "elements went in",
        asked.sender,
        run.sent_per_s,
        sender.stamp.resolution_ns,
    );
    let received = compared(
        "elements came out",
        asked.receiver,
        run.throughput_per_s,
        receiver.stamp.resolution_ns,
    );
    findings::of_rates(sent, received, |is_sent, off| {
        let why = match (is_sent, off < 0.0) {
            (_, true) if point.receiver.mean_pause() > point.sender.mean_pause() => {
                "the load of the receiver takes fewer"
            }
            (true, true) => "the last enqueue of a thread started late",
            // No enqueue starts before it is due.
            (true, false) => "the clock or the schedule is wrong",
            (false, true) => "the last elements came out late",
            (false, false) => "the first element came out late",
        };
        why.to_owned()
    })
}

/// Where a round with a duration has as many elements as it may have, and more would go through.
pub(super) fn of_length(count: u64, most: u64, config: &Config) -> Option<Finding> {
    match config.length {
        RoundLength::Time(time) if count >= most => {
            let found = Finding::of(&kinds::ROUND_CUT_SHORT).measure("elements", most as f64);
            Some(found.listed("duration", humantime::format_duration(time).to_string()))
        }
        _ => None,
    }
}

/// Where the clocks of the two CPUs differ by more than the comparison leaves open.
pub(super) fn of_clocks(offset: ClockOffset) -> Option<Finding> {
    (offset.ns.abs() > offset.bound_ns)
        .then(|| Finding::of(&kinds::RECEIVER_CLOCK).measure("offset_ns", offset.ns))
}

#[cfg(test)]
mod tests {
    use crate::testing::Has as _;
    use std::time::Duration;

    use super::*;
    use crate::bench::queue::result::made_up;
    use crate::node::Scenario;
    use crate::node::wiring::Wiring;
    use crate::pacing::EndLoad;
    use crate::results::finding::FindingKind;

    fn found(
        load: Load,
        late: u64,
        change: impl FnOnce(&mut RunResult, &mut Point),
    ) -> Vec<Finding> {
        let (config, mut point) = (made_up::config(), made_up::point("lamport"));
        point.sender = EndLoad {
            load,
            ..EndLoad::NONE
        };
        let mut run = made_up::run(40);
        run.elements = 1000;
        change(&mut run, &mut point);
        run.ends.sender.tally.missed = late;
        of(&point, &run, &config)
    }

    /// The one of that kind.
    fn one<'a>(all: &'a [Finding], kind: &FindingKind) -> Option<&'a Finding> {
        all.iter().find(|found| found.kind == kind.id)
    }

    #[test]
    fn starts_that_are_late_are_told_by_their_share_of_the_starts_there_are() {
        let late = |load, late| {
            let all = found(load, late, |_, _| {});
            one(&all, &kinds::LOAD_MISSED).map(|found| found.problem.clone())
        };
        let bursty = Load::Bursty {
            group: 20,
            wait_ns: 100.0,
        };
        // All of the groups, which are a twentieth of the elements.
        late(bursty, 50).unwrap().has(&["% of the groups"]);
        assert_eq!(late(bursty, 2), None);
        let rate = Load::ConstantRate { rate_per_s: 1e6 };
        late(rate, 51).unwrap().has(&["% of the enqueues"]);
        assert_eq!(late(rate, 50), None);
    }

    #[test]
    fn operations_that_are_in_no_batch_are_warned_of() {
        let config = Config {
            per_stamp: 10,
            ..made_up::config()
        };
        let found = |batches: [usize; 2]| {
            let mut run = made_up::run(40);
            run.elements = 10_000;
            run.times.as_mut().unwrap().per_stamp = 10;
            [
                run.ends.sender.tally.batches,
                run.ends.receiver.tally.batches,
            ] = batches;
            of(&made_up::point("lamport"), &run, &config)
        };
        let problem = |all: &[Finding], kind| one(all, kind).map(|found| found.problem.clone());
        let all = found([1000, 0]);
        let none = problem(&all, &kinds::NO_BATCH_TIMED).unwrap();
        none.has(&["no batch of dequeues"]);
        assert_eq!(problem(&all, &kinds::FEW_IN_BATCHES), None);
        // Those of the other end have percentiles.
        let unresolved = problem(&all, &kinds::PERCENTILES_UNRESOLVED).unwrap();
        unresolved.has(&["p99.99 "]);
        let all = found([499, 500]);
        let few = problem(&all, &kinds::FEW_IN_BATCHES).unwrap();
        few.has(&["less than 50", "of the enqueues"]);
        assert!(!few.contains("dequeues"), "{few}");
        let all = found([500, 1000]);
        assert_eq!(problem(&all, &kinds::FEW_IN_BATCHES), None);
        assert_eq!(problem(&all, &kinds::NO_BATCH_TIMED), None);
    }

    /// What is told of a rate of a million in a second, over ten thousand elements.
    fn told_of_rate(
        load: Load,
        late: u64,
        rates: [f64; 2],
        change: fn(&mut RunResult, &mut Point),
    ) -> Option<String> {
        let change = |run: &mut RunResult, point: &mut Point| {
            run.ends.sender.passed.intervals = 10_000;
            [run.sent_per_s, run.throughput_per_s] = rates.map(Some);
            change(run, point);
        };
        let all = found(load, late, change);
        one(&all, &kinds::RATE_MISSED).map(|found| found.line(1))
    }

    #[test]
    fn a_rate_that_is_not_kept_is_told_with_its_reason() {
        let rate = Load::ConstantRate { rate_per_s: 1e6 };
        let bursty = Load::Bursty {
            wait_ns: 1e3,
            group: 20,
        };
        let [kept, low, high] = [0.9995e6, 0.995e6, 1.02e6];
        for load in [rate, bursty] {
            let told = |rates| told_of_rate(load, 0, rates, |_, _| {});
            assert_eq!(told([1e6, kept]), None);
            let [put_in, came_out] = ["elements went in", "elements came out"];
            for (rates, words) in [
                ([low, 1e6], [put_in, "-0.500 %", "last enqueue"]),
                ([high, 1e6], [put_in, " 2 %", "schedule is wrong"]),
                ([1e6, low], [came_out, "-0.500 %", "last elements"]),
                ([kept, high], [came_out, " 2 %", "first element"]),
            ] {
                told(rates).unwrap().has(&words);
            }
        }
        // That more than a few started late is told in its own words.
        assert_eq!(told_of_rate(rate, 51, [low; 2], |_, _| {}), None);
        let slow = told_of_rate(rate, 0, [1e6, 1e3], |_, point| {
            point.receiver.load = Load::ConstantWait { wait_ns: 1e6 };
        });
        slow.unwrap().has(&["-99.90 %", "the receiver"]);
    }

    #[test]
    fn chance_and_the_clock_are_named_where_they_can_be_the_reason() {
        let rate = Load::ConstantRate { rate_per_s: 1e6 };
        let told = |rate_per_s, change| {
            let told = told_of_rate(rate, 0, [rate_per_s, 1e6], change);
            told.unwrap()
        };
        let varied: fn(&mut RunResult, &mut Point) = |_, point| point.sender.jitter = 1.0;
        told(1.02e6, varied).has(&[" 2 %", "random"]);
        // This many elements are not off by more than some per cent.
        told(0.9e6, varied).has(&["-10 %", "last enqueue"]);
        let coarse: fn(&mut RunResult, &mut Point) = |run, _| {
            run.ends.sender.stamp.resolution_ns = Some(4e6);
        };
        told(1.02e6, coarse).has(&[" 2 %", "too coarse"]);
    }

    #[test]
    fn rates_that_are_not_those_of_a_load_are_not_compared() {
        let rate = Load::ConstantRate { rate_per_s: 1e6 };
        let curve = told_of_rate(rate, 0, [1e5; 2], |_, point| {
            point.percent_of_saturation = Some(100);
        });
        let group = Load::Bursty {
            wait_ns: 1e3,
            group: 1_000_000,
        };
        let wait = Load::ConstantWait { wait_ns: 1e3 };
        let others = [group, wait, Load::None];
        assert_eq!(curve, None);
        assert!(
            others
                .iter()
                .all(|load| told_of_rate(*load, 0, [1e7; 2], |_, _| {}).is_none())
        );
        // All copies of all producers.
        let wiring = Wiring::new(Scenario::FanOut, 2, 3);
        for (rates, is_told) in [([2e6, 6e6], false), ([2e6, 2e6], true), ([1e6, 6e6], true)] {
            let all = found(rate, 0, |run, point| {
                run.ends.sender.passed.intervals = 10_000;
                [run.sent_per_s, run.throughput_per_s] = rates.map(Some);
                point.wiring = Some(wiring);
            });
            assert_eq!(
                one(&all, &kinds::RATE_MISSED).is_some(),
                is_told,
                "{rates:?}"
            );
        }
    }

    #[test]
    fn a_round_that_is_cut_short_is_told() {
        let found = |length, count| {
            let config = Config {
                length,
                ..made_up::config()
            };
            of_length(count, 1000, &config)
        };
        let time = RoundLength::Time(Duration::from_secs(1));
        let cut = found(time, 1000).unwrap();
        assert_eq!(cut.kind, kinds::ROUND_CUT_SHORT.id);
        cut.line(1)
            .has(&["1000 elements", "--duration 1s", "ulimit"]);
        assert_eq!(found(time, 999), None);
        assert_eq!(found(RoundLength::Elements(1000), 1000), None);
    }

    #[test]
    fn clocks_that_differ_by_more_than_is_left_open_are_warned_of() {
        let warned = |ns| of_clocks(ClockOffset { ns, bound_ns: 80.0 }).is_some();
        assert!(warned(81.0) && warned(-300.0) && !warned(80.0) && !warned(-20.0));
    }

    #[test]
    fn a_queue_that_does_not_wrap_around_is_warned_of() {
        let all = found(Load::None, 0, |run, point| {
            (run.elements, point.capacity) = (20_000, 65_536);
        });
        let few = one(&all, &kinds::FEW_LAPS).unwrap();
        few.problem.has(&["capacity 65536", "fewer than 4 times"]);
        let all = found(Load::None, 0, |run, point| {
            (run.elements, point.capacity) = (1_000_000, 65_536);
        });
        assert_eq!(one(&all, &kinds::FEW_LAPS), None);
    }
}
