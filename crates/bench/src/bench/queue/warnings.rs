//! What a round gives reason to warn of, and what is said below the tables. The texts name no figure of a round: one
//! that comes in each round is shown once.

use super::config::{Config, Measure, RoundLength};
use super::plan::Point;
use super::result::{PerEnd, RunResult};
use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::PlacementWarning;
use crate::pacing::Load;
use crate::results::schema::queue::{LATE_PERCENT, misses_load};
use crate::rig::clock_offset::ClockOffset;
use crate::stats::resolvable;

/// A queue that is gone through fewer times than this is little else than memory that is written once.
const FEWEST_LAPS: u64 = 4;

pub(super) fn of(
    point: &Point,
    run: &RunResult,
    placement: &[PlacementWarning],
    config: &Config,
) -> Vec<String> {
    let mut texts: Vec<String> = placement.iter().map(PlacementWarning::to_string).collect();
    let PerEnd { sender, receiver } = &run.ends;
    let worst = sender.pages.min(receiver.pages);
    if config.huge_pages == HugePagePolicy::Try && worst != PageKind::Huge {
        texts.push(format!(
            "stamps are in {}: reserve 2 MiB pages (sysctl vm.nr_hugepages=N), or ask for none with --hugepages off",
            worst.describe()
        ));
    }
    if !sender.queue_locked {
        texts.push(
            "the memory of the queues is touched but not locked, because the memlock limit is too small for all of this \
             process: raise it with ulimit -l unlimited"
                .to_owned(),
        );
    }
    if sender.passed.faults + receiver.passed.faults > 0 {
        texts.push(format!(
            "page faults in the loops of {point}: its times hold theirs"
        ));
    }
    // Those of groups, where the load has any.
    let (group, what) = match point.sender.load {
        Load::Bursty { group, .. } => (Some(f64::from(group)), "groups"),
        _ => (None, "enqueues"),
    };
    // Of no point by its name: where the machine is too slow, one queue after another would say it.
    if misses_load(sender.tally.missed as f64, run.elements as f64, group) {
        texts.push(format!(
            "more than {LATE_PERCENT} % of the {what} of a round started late, where a row is marked 'load missed' or its \
             rounds differ: the load that was asked for is more than this machine offers, time stamps included"
        ));
    }
    let laps = run.elements / point.capacity as u64;
    // One element at a time fills no queue.
    if laps < FEWEST_LAPS && config.measure != Measure::RoundTrip {
        texts.push(format!(
            "capacity {}: each of its places is used fewer than {FEWEST_LAPS} times in a round, so that it hardly wraps \
             around: use a larger --count or --duration, or a smaller --capacity",
            point.capacity
        ));
    }
    let latency = (run.times.as_ref()).and_then(|times| times.figures.latency.as_ref());
    if latency.is_some_and(|latency| latency.negative > 0) {
        texts.push(format!(
            "{point}: latencies are negative: the clock {} differs between CPUs; use --clock monotonic",
            config.clock.name()
        ));
    }
    texts
}

/// Where a round with a duration has as many elements as it may have, and more would go through.
pub(super) fn of_length(count: u64, most: u64, config: &Config) -> Option<String> {
    match config.length {
        RoundLength::Time(time) if count >= most => Some(format!(
            "a round ends before --duration {} is over, where it has {most} elements: the stamps of no more have room in \
             locked memory: raise the memlock limit with ulimit -l unlimited, or ask for a shorter --duration",
            humantime::format_duration(time)
        )),
        _ => None,
    }
}

/// Where the clocks of the two CPUs differ by more than the comparison leaves open.
pub(super) fn of_clocks(offset: ClockOffset) -> Option<String> {
    (offset.ns.abs() > offset.bound_ns).then(|| {
        "the clocks of the two CPUs differ, by clock_offset_ns in runs.csv: all latencies from one to the other hold that"
            .to_owned()
    })
}

/// What stands below the tables.
pub(super) fn notes(point: &Point, run: &RunResult, config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    if run.ends.sender.tally.extended > 0 {
        notes.push(format!(
            "{} hands over in batches: where the sender pauses, the enqueue before it holds handing over, and the two \
             stamps around that",
            point.queue
        ));
    }
    let beyond: Vec<_> = [("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99)]
        .into_iter()
        .filter(|(_, percent)| !resolvable(*percent, run.elements))
        .map(|(name, _)| name)
        .collect();
    if config.measure.has_times() && !beyond.is_empty() {
        notes.push(format!(
            "with so few elements a round {} is little else than the maximum: use a larger --count or --duration",
            beyond.join(", ")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use crate::testing::Has as _;
    use std::time::Duration;

    use super::*;
    use crate::bench::queue::result::made_up;
    use crate::pacing::EndLoad;

    fn warnings(load: Load, late: u64, change: fn(&mut RunResult, &mut Point)) -> String {
        let (config, mut point) = (made_up::config(), made_up::point("lamport"));
        point.sender = EndLoad {
            load,
            ..EndLoad::NONE
        };
        let mut run = made_up::run(40);
        run.elements = 1000;
        change(&mut run, &mut point);
        run.ends.sender.tally.missed = late;
        of(&point, &run, &[], &config).join("\n")
    }

    #[test]
    fn starts_that_are_late_are_told_by_their_share_of_the_starts_there_are() {
        let bursty = Load::Bursty {
            group: 20,
            wait_ns: 100.0,
        };
        // All of the groups, which are a twentieth of the elements.
        warnings(bursty, 50, |_, _| {}).has(&["% of the groups"]);
        assert!(!warnings(bursty, 2, |_, _| {}).contains("late"));
        let rate = Load::ConstantRate { rate_per_s: 1e6 };
        assert!(warnings(rate, 51, |_, _| {}).contains("% of the enqueues"));
        assert!(!warnings(rate, 50, |_, _| {}).contains("late"));
    }

    #[test]
    fn a_round_that_is_cut_short_is_told() {
        let warned = |length, count| {
            let config = Config {
                length,
                ..made_up::config()
            };
            of_length(count, 1000, &config)
        };
        let time = RoundLength::Time(Duration::from_secs(1));
        let text = warned(time, 1000).unwrap();
        text.has(&["--duration 1s", "ulimit"]);
        assert_eq!(warned(time, 999), None);
        assert_eq!(warned(RoundLength::Elements(1000), 1000), None);
    }

    #[test]
    fn clocks_that_differ_by_more_than_is_left_open_are_warned_of() {
        let warned = |ns| of_clocks(ClockOffset { ns, bound_ns: 80.0 }).is_some();
        assert!(warned(81.0) && warned(-300.0) && !warned(80.0) && !warned(-20.0));
    }

    #[test]
    fn a_queue_that_does_not_wrap_around_is_warned_of() {
        let text = warnings(Load::None, 0, |run, point| {
            (run.elements, point.capacity) = (20_000, 65_536);
        });
        text.has(&["65536", "wraps"]);
        let text = warnings(Load::None, 0, |run, point| {
            (run.elements, point.capacity) = (1_000_000, 65_536);
        });
        assert!(!text.contains("wraps"), "{text}");
    }
}
