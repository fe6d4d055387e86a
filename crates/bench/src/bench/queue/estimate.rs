//! How long a round of a point takes, before it is measured: by the arithmetic of its schedules, and by what elements
//! usually take.

use std::time::Duration;

use super::by_time::AFTER_SENDERS;
use super::config::{Config, Measure, RoundLength};
use super::memory;
use super::plan::{CURVE_PERCENTS, Point};
use crate::pacing::{EndLoad, Load};

/// Runs that saturation is the median of, and their elements.
pub(super) const SATURATION_RUNS: usize = 3;
pub(super) const SATURATION_COUNT: u64 = 100_000;
/// How long the run takes, about, that finds how many elements go through in a round, and its elements.
pub(super) const FIRST_TIME: Duration = Duration::from_millis(20);
pub(super) const FIRST_COUNT: u64 = 20_000;
/// With such a pause the load says how many go through: next to it a queue takes no time.
pub(super) const LONG_PAUSE: Duration = Duration::from_micros(10);

/// What an element takes without pauses, about, and what is made of it afterwards, by what is measured: with time
/// stamps, where sorting them takes the most, and without, where memory for the numbers does. Of lamport, fastforward and
/// baton on an AMD EPYC, 29 November 2026 (`ci/measure estimates`).
const STAMPED: [Duration; 2] = [Duration::from_nanos(60), Duration::from_nanos(90)];
const ROUND_TRIP: [Duration; 2] = [Duration::from_nanos(150), Duration::from_nanos(60)];
const NUMBERED: [Duration; 2] = [Duration::from_nanos(5), Duration::from_nanos(9)];
/// What is made of an element that has a moment when it should be sent: one time more is sorted.
const SCHEDULED: Duration = Duration::from_nanos(115);
/// What a run takes beside its elements: threads, memory, the floor.
const BESIDE: Duration = Duration::from_millis(30);

/// How long a round of a point takes, about, with at most so many elements.
pub(super) fn time_of_round(point: &Point, config: &Config, most: u64) -> Duration {
    // On a load curve as if the queue took ten million a second.
    let point = &point.with_saturation(1e7);
    let [each, _] = per_element(config);
    let pause = point.slower().mean_pause().max(each);
    let time = match config.length {
        RoundLength::Elements(count) => {
            return before(point, config, most) + run(point, config, count);
        }
        RoundLength::Time(time) => time,
    };
    if point.wiring.is_none() {
        let elements = memory::elements_in(time, 1.0 / pause.as_secs_f64(), most);
        return before(point, config, most) + run(point, config, elements);
    }
    let (warmed_up, warm_up) = warm_up(point, config);
    // It ends by time, behind a whole group, or when a thread has no more room.
    let left = (config.warmup + time).saturating_sub(warm_up);
    let (elements, took) = whole_groups(point.slower(), left, each);
    let took = if elements > most {
        let_through(point, config, warmed_up, most)
    } else {
        took
    };
    let beside = BESIDE + AFTER_SENDERS + analysis(point, config, elements.min(most));
    beside.saturating_add(warm_up).saturating_add(took)
}

/// Runs that find how many elements go through, which come before the one that counts. Those of a load curve come once
/// for all of its points.
fn before(point: &Point, config: &Config, most: u64) -> Duration {
    let pause = point.slower().mean_pause();
    match config.length {
        _ if point.percent_of_saturation.is_some() => {
            let one = run(&point.at_saturation(), config, SATURATION_COUNT.min(most));
            one * SATURATION_RUNS as u32 / CURVE_PERCENTS.len() as u32
        }
        RoundLength::Time(_) if pause < LONG_PAUSE => {
            let [each, _] = per_element(config);
            let elements = count_in(FIRST_TIME, pause.max(each));
            run(point, config, elements.min(FIRST_COUNT).min(most))
        }
        _ => Duration::ZERO,
    }
}

/// A run with so many elements.
fn run(point: &Point, config: &Config, elements: u64) -> Duration {
    let (warmed_up, warm_up) = warm_up(point, config);
    let measured = let_through(point, config, warmed_up, elements);
    (BESIDE + analysis(point, config, elements))
        .saturating_add(warm_up)
        .saturating_add(measured)
}

/// What is made of so many elements of each producer.
fn analysis(point: &Point, config: &Config, elements: u64) -> Duration {
    let producers = point
        .wiring
        .map_or(1, |wiring| u64::from(wiring.publishers));
    // Of several threads no intended moments are kept.
    let each = match (config.measure, point.sender.load, point.wiring) {
        (Measure::Time, Load::ConstantRate { .. } | Load::Bursty { .. }, None) => SCHEDULED,
        _ => per_element(config)[1],
    };
    times(each, elements.saturating_mul(producers))
}

fn per_element(config: &Config) -> [Duration; 2] {
    match config.measure {
        // Of batches little is noted.
        Measure::Time if config.has_batches() => NUMBERED,
        Measure::Time => STAMPED,
        Measure::RoundTrip => ROUND_TRIP,
        Measure::Throughput | Measure::Counters => NUMBERED,
    }
}

/// So that a few of them can be added up.
const LONGEST: Duration = Duration::from_secs(1 << 33);

fn times(one: Duration, count: u64) -> Duration {
    let ns = one.as_nanos().saturating_mul(u128::from(count));
    u64::try_from(ns)
        .map_or(LONGEST, Duration::from_nanos)
        .min(LONGEST)
}

fn count_in(time: Duration, each: Duration) -> u64 {
    (time.as_nanos() / each.as_nanos().max(1)) as u64
}

/// The pauses behind so many operations: behind a group those of all of its operations at once.
fn pauses(end: &EndLoad, operations: u64) -> Duration {
    let group = u64::from(end.group());
    times(end.mean_pause(), operations / group * group)
}

/// Elements that go through while a run warms up, and how long that takes.
fn warm_up(point: &Point, config: &Config) -> (u64, Duration) {
    let (time, [each, _]) = (config.warmup, per_element(config));
    let (elements, took) = within(&point.sender, time, each);
    // The sender puts in no more than a slow receiver takes out in the time.
    let pause = point.receiver.mean_pause().as_nanos();
    match time.as_nanos().checked_div(pause) {
        Some(most) if (most as u64) < elements => {
            (most as u64, pauses(&point.receiver, most as u64))
        }
        _ => (elements, took),
    }
}

/// Operations that are begun in a time, and how long they take with the pauses behind them: none of these is cut short.
fn within(load: &EndLoad, time: Duration, each: Duration) -> (u64, Duration) {
    let of_group = u64::from(load.group());
    let pause = pauses(load, of_group);
    if time.is_zero() || pause.is_zero() {
        return (count_in(time, each), time);
    }
    let groups = count_in(time, pause);
    let left = time.saturating_sub(times(pause, groups));
    let begun = count_in(left, each);
    let elements = groups * of_group;
    if left.is_zero() {
        (elements, time)
    } else if begun < of_group && of_group > 1 {
        // Over before the group is.
        (elements + begun, time)
    } else {
        (elements + of_group, times(pause, groups + 1))
    }
}

/// Elements of whole groups, one group at least, that are begun in a time, and how long they take with their pauses.
fn whole_groups(load: &EndLoad, time: Duration, each: Duration) -> (u64, Duration) {
    let of_group = u64::from(load.group());
    let pause = pauses(load, of_group).max(times(each, of_group));
    let groups = time.as_nanos().div_ceil(pause.as_nanos().max(1)).max(1) as u64;
    (groups.saturating_mul(of_group), times(pause, groups))
}

/// How long so many elements take behind those of the warm-up. The sender's schedule begins with the first of them, and
/// its last pause is cut short: nobody takes what comes behind it.
fn let_through(point: &Point, config: &Config, before: u64, elements: u64) -> Duration {
    let sender = pauses(&point.sender, elements.saturating_sub(1));
    let last = before.saturating_add(elements);
    let receiver = pauses(&point.receiver, last).saturating_sub(pauses(&point.receiver, before));
    let [each, _] = per_element(config);
    sender.max(receiver).max(times(each, elements))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::queue::result::made_up;
    use crate::node::Scenario;
    use crate::node::wiring::Wiring;
    use crate::pacing::{MissPolicy, Pacing, scripted};
    use crate::time::Ticks;

    const LOADS: [Load; 11] = [
        Load::None,
        Load::ConstantWait { wait_ns: 1e6 },
        Load::ConstantWait { wait_ns: 300e6 },
        Load::ConstantRate { rate_per_s: 1.0 },
        Load::ConstantRate { rate_per_s: 10.0 },
        Load::ConstantRate { rate_per_s: 1e3 },
        Load::ConstantRate { rate_per_s: 1e6 },
        Load::Bursty {
            wait_ns: 5e6,
            group: 1000,
        },
        Load::Bursty {
            wait_ns: 1e9,
            group: 7,
        },
        Load::Bursty {
            wait_ns: 100.0,
            group: 1_000_000,
        },
        Load::Bursty {
            wait_ns: 1e6,
            group: 1,
        },
    ];

    fn point(load: Load) -> Point {
        made_up::point_under("lamport", load)
    }

    fn config(length: RoundLength, warmup: Duration) -> Config {
        Config {
            length,
            warmup,
            ..made_up::config()
        }
    }

    #[test]
    fn what_is_made_of_an_element_depends_on_what_was_measured() {
        let length = RoundLength::Elements(1);
        let each = |load, measure, wiring| {
            let mut point = point(load);
            point.wiring = wiring;
            let config = Config {
                measure,
                ..config(length, Duration::ZERO)
            };
            analysis(&point, &config, 1000).as_nanos() / 1000
        };
        let rate = Load::ConstantRate { rate_per_s: 1e3 };
        let wait = Load::ConstantWait { wait_ns: 1e6 };
        let bursty = Load::Bursty {
            wait_ns: 5e6,
            group: 10,
        };
        let of_loads = [Load::None, wait, rate, bursty];
        let found = of_loads.map(|load| each(load, Measure::Time, None));
        assert_eq!(found, [90, 90, 115, 115]);
        let measures = [Measure::RoundTrip, Measure::Throughput, Measure::Counters];
        let found = measures.map(|measure| each(rate, measure, None));
        assert_eq!(found, [60, 9, 9]);
        let two = Wiring::new(Scenario::FanIn, 2, 1);
        assert_eq!(each(rate, Measure::Time, Some(two)), 2 * 90);
        let in_batches = Config {
            per_stamp: 8,
            ..config(length, Duration::ZERO)
        };
        assert_eq!(
            analysis(&point(Load::None), &in_batches, 1000).as_nanos(),
            9000
        );
    }

    /// How long a sender takes for its warm-up and so many elements behind it, by the schedule that it has in a run.
    fn by_schedule(load: Load, warmup: Duration, count: u64) -> Duration {
        let each = STAMPED[0].as_nanos() as u64;
        let clock = scripted::set(0, 0);
        let mut waiter = point(load).sender.waiter(&clock, MissPolicy::CatchUp);
        waiter.start_at(Ticks(0));
        let operation = |waiter: &mut crate::pacing::AnyPacing| {
            scripted::advance(each);
            let done = scripted::time();
            if let Some(due) = waiter.next_due(&clock) {
                scripted::advance(due.0.saturating_sub(scripted::time()));
            }
            done
        };
        while u128::from(scripted::time()) < warmup.as_nanos() {
            operation(&mut waiter);
        }
        waiter.start_at(Ticks(scripted::time()));
        let mut last = 0;
        for _ in 0..count {
            last = operation(&mut waiter);
        }
        Duration::from_nanos(last)
    }

    #[test]
    fn each_load_takes_as_long_as_its_schedule_warm_up_included() {
        for load in LOADS {
            for count in [1, 100, 2500] {
                for millis in [0, 50, 700] {
                    let warmup = Duration::from_millis(millis);
                    let config = config(RoundLength::Elements(count), warmup);
                    let point = point(load);
                    let beside = BESIDE + analysis(&point, &config, count);
                    let found = time_of_round(&point, &config, 1 << 30) - beside;
                    let expected = by_schedule(load, warmup, count);
                    let off = found.abs_diff(expected);
                    let is_close = off <= expected / 50 || off <= Duration::from_millis(1);
                    assert!(
                        is_close,
                        "{load:?}, {count}, {warmup:?}: {found:?}, not {expected:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_slower_end_takes_the_time() {
        let config = config(RoundLength::Elements(250), Duration::from_millis(50));
        let seconds = |sender, receiver| {
            let mut point = point(sender);
            point.receiver.load = receiver;
            time_of_round(&point, &config, 1 << 30).as_secs_f64()
        };
        let near = |found: f64, expected: f64| {
            assert!(
                (found - expected - 0.08).abs() < 0.06,
                "{found} is not {expected}"
            );
        };
        let wait = |wait_ns| Load::ConstantWait { wait_ns };
        // All but the last pause of the sender, and each of the receiver's.
        near(seconds(wait(10e6), Load::None), 2.49);
        near(seconds(Load::None, wait(10e6)), 2.5);
        near(seconds(wait(5e6), wait(10e6)), 2.5);
        let groups = Load::Bursty {
            wait_ns: 10e6,
            group: 100,
        };
        // Its sender warms up for half a group.
        near(seconds(Load::None, groups), 2.0);
    }

    #[test]
    fn a_round_by_time_takes_that_time_and_what_is_made_of_it() {
        let seconds = |load, millis| {
            let length = RoundLength::Time(Duration::from_millis(millis));
            let config = config(length, Duration::from_millis(50));
            let one = point(load);
            let mut several = one.clone();
            several.wiring = Some(Wiring::new(Scenario::FanIn, 2, 2));
            [one, several].map(|point| time_of_round(&point, &config, 1 << 20).as_secs_f64())
        };
        let near = |found: [f64; 2], expected: f64| {
            for found in found {
                assert!(
                    (0.9..1.2).contains(&(found / expected)),
                    "{found}, {expected}"
                );
            }
        };
        near(seconds(Load::ConstantRate { rate_per_s: 1e3 }, 3000), 3.1);
        near(seconds(Load::ConstantRate { rate_per_s: 1e4 }, 3000), 3.1);
        let groups = Load::Bursty {
            wait_ns: 10e6,
            group: 10,
        };
        near(seconds(groups, 2000), 2.1);
        // No more than there is room for, which takes a tenth of the time.
        let [cut, _] = seconds(Load::ConstantRate { rate_per_s: 1e6 }, 10_000);
        assert!((1.1..2.0).contains(&cut), "{cut}");
    }
}
