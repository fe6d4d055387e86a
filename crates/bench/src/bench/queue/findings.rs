//! What a round gives reason to state.

use super::config::{Config, Measure, RoundLength};
use super::per_second::asked;
use super::plan::Point;
use super::result::{PerEnd, RunResult};
use crate::pacing::Load;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::queue::{LATE_PERCENT, misses_load};
use crate::rig::clock_offset::ClockOffset;
use crate::rig::findings;

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
        all.extend(findings::of_percentiles(
            [99.0, 99.9, 99.99],
            run.elements,
            options,
        ));
    }
    all
}

/// Where elements went in or came out at another rate than was asked for. A load curve is meant to reach what is not
/// kept.
fn of_rate(point: &Point, run: &RunResult) -> Option<Finding> {
    let asked = asked(point).filter(|_| point.percent_of_saturation.is_none())?;
    // What comes out of the queues of several threads is counted in parts.
    let throughput = run.throughput_per_s.filter(|_| point.wiring.is_none());
    let off = |rate: &f64| (rate / asked - 1.0).abs();
    let rates = run.sent_per_s.into_iter().chain(throughput);
    let found = rates.max_by(|one, other| off(one).total_cmp(&off(other)))?;
    let why = if point.receiver.mean_pause() > point.sender.mean_pause() {
        "the load of the receiver takes fewer"
    } else if run.ends.sender.tally.missed > 0 {
        "enqueues started late"
    } else if point.sender.jitter > 0.0 {
        "with a jitter a rate is kept in the mean of many"
    } else {
        "the first or the last element was held up"
    };
    findings::of_kept_rate(asked, found, why)
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
    use crate::pacing::EndLoad;
    use crate::results::finding::FindingKind;

    fn found(load: Load, late: u64, change: fn(&mut RunResult, &mut Point)) -> Vec<Finding> {
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
    fn a_rate_that_is_not_kept_is_told_with_its_reason() {
        let rate = Load::ConstantRate { rate_per_s: 1e6 };
        let told = |late, change: fn(&mut RunResult, &mut Point)| {
            let all = found(rate, late, change);
            one(&all, &kinds::RATE_MISSED).map(|found| found.line(1))
        };
        let kept: fn(&mut RunResult, &mut Point) = |run, _| {
            (run.sent_per_s, run.throughput_per_s) = (Some(1e6), Some(0.9995e6));
        };
        assert_eq!(told(0, kept), None);
        let missed: fn(&mut RunResult, &mut Point) = |run, _| {
            (run.sent_per_s, run.throughput_per_s) = (Some(1e6), Some(0.995e6));
        };
        told(0, missed).unwrap().has(&["-0.500 %", "was held up"]);
        told(3, missed).unwrap().has(&["-0.500 %", "started late"]);
        // That more than a few started late is told in its own words.
        assert_eq!(told(51, missed), None);
        let slow = told(0, |run, point| {
            (run.sent_per_s, run.throughput_per_s) = (Some(1e6), Some(1e3));
            point.receiver.load = Load::ConstantWait { wait_ns: 1e6 };
        });
        slow.unwrap().has(&["-99.90 %", "the receiver"]);
        let varied = told(0, |run, point| {
            (run.sent_per_s, run.throughput_per_s) = (Some(1.002e6), Some(1e6));
            point.sender.jitter = 1.0;
        });
        varied.unwrap().has(&["0.200 %", "jitter"]);
        let curve = told(0, |run, point| {
            (run.sent_per_s, run.throughput_per_s) = (Some(1e5), Some(1e5));
            point.percent_of_saturation = Some(100);
        });
        assert_eq!(curve, None);
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
