//! Elements a second: over which elements, and over which time.
//!
//! Between N elements there are N-1 intervals. A sender's rate is from the start of the first enqueue that counts to
//! the start of the last one, a receiver's from the end of the first dequeue to the end of the last one: what happens to
//! each element, pauses included, is in it as often as there are intervals. Under a load of groups both are over whole
//! groups, if there is more than one: only they take a time that the load sets.
//!
//! Threads that share queues end by time. Each producer's pause behind its last element is in its time, so that it has
//! as many intervals as elements. Elements of consumers count from the first enqueue to the last dequeue: there the
//! first element of each producer has no interval before it.
//!
//! What a stall holds up, the schedule of a rate makes up for. A stall shortly before the first element that counts
//! would be a rate beyond the one asked for, which no load of this schedule has: the rate asked for is the most.

use super::plan::Point;
use super::result::{EndResult, PerEnd};
use crate::node::wiring::Wiring;
use crate::pacing::Load;
use crate::time::{Clock, Ticks};

/// Intervals that the rate of a run of so many elements is over: all, or those of whole groups.
pub(super) fn intervals(point: &Point, count: u64) -> usize {
    let group = point.slower().group() as usize;
    let all = count.saturating_sub(1) as usize;
    match all / group * group {
        0 => all,
        of_groups => of_groups,
    }
}

/// Elements that all senders together were to put in, in a second, where that was asked for.
pub(super) fn asked(point: &Point) -> Option<f64> {
    let senders = point.wiring.map_or(1, |wiring| wiring.publishers);
    match point.sender.load {
        Load::ConstantRate { rate_per_s } => Some(rate_per_s * f64::from(senders)),
        _ => None,
    }
}

/// Copies that come out of the queues for each element that goes in.
fn copies(point: &Point) -> u64 {
    point.wiring.as_ref().map_or(1, Wiring::copies)
}

/// Elements a second into and out of the queues of a point.
pub(super) fn of(
    point: &Point,
    clock: &impl Clock,
    ends: &PerEnd<EndResult>,
) -> PerEnd<Option<f64>> {
    let PerEnd { sender, receiver } = ends.map(|end| (end.passed.span, end.passed.intervals));
    let rate = |from: Ticks, to: Ticks, intervals: u64, most: Option<f64>| {
        let ns = clock.to_nanos(Ticks(to.0.saturating_sub(from.0))).0;
        let found = intervals as f64 * 1e9 / ns.max(1) as f64;
        (intervals > 0).then(|| most.map_or(found, |most| found.min(most)))
    };
    let ((sent, puts), (received, takes)) = (sender, receiver);
    // With a jitter it is one in the mean.
    let asked = asked(point).filter(|_| point.sender.jitter == 0.0);
    let to_come = asked.map(|asked| asked * copies(point) as f64);
    let received = match &point.wiring {
        None => rate(received[0], received[1], takes, to_come),
        Some(wiring) => {
            let first = u64::from(wiring.publishers) * copies(point);
            // Of so few no rate is known better.
            let takes = if takes > first { takes - first } else { takes };
            rate(sent[0], received[1], takes, to_come)
        }
    };
    PerEnd {
        sender: rate(sent[0], sent[1], puts, asked),
        receiver: received,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::queue::result::{PassageResult, made_up};
    use crate::node::Scenario;
    use crate::pacing::EndLoad;
    use crate::time::Posix;

    /// Rates of a second that are asked for.
    const RATES: [f64; 8] = [1.0, 2.0, 10.0, 200.0, 1e3, 1e4, 1e6, 5e6];

    fn point(load: Load) -> Point {
        Point {
            sender: EndLoad {
                load,
                ..EndLoad::NONE
            },
            ..made_up::point("lamport")
        }
    }

    fn end(span: [u64; 2], intervals: u64) -> EndResult {
        EndResult {
            passed: PassageResult {
                span: span.map(Ticks),
                intervals,
                ..PassageResult::default()
            },
            ..made_up::end(0)
        }
    }

    fn found(point: &Point, sender: ([u64; 2], u64), receiver: ([u64; 2], u64)) -> [f64; 2] {
        let ends = PerEnd {
            sender: end(sender.0, sender.1),
            receiver: end(receiver.0, receiver.1),
        };
        let PerEnd { sender, receiver } = of(point, &Posix::MONOTONIC, &ends);
        [sender.unwrap(), receiver.unwrap()]
    }

    /// What is found of so many elements that go in at these moments, and come out 250 ns later.
    fn of_starts(point: &Point, starts: &[u64]) -> [f64; 2] {
        let intervals = intervals(point, starts.len() as u64);
        let span = [starts[0], starts[intervals]];
        let out = span.map(|at| at + 250);
        let intervals = intervals as u64;
        found(point, (span, intervals), (out, intervals))
    }

    #[test]
    fn a_rate_that_is_kept_is_found_whatever_the_number_of_elements() {
        for rate_per_s in RATES {
            let period = (1e9 / rate_per_s) as u64;
            for count in [2, 3, 4, 100, 1001] {
                let starts: Vec<u64> = (0..count).map(|at| 7 + at * period).collect();
                // Without a schedule as well, so that it is not the rate asked for that is told.
                for load in [Load::None, Load::ConstantRate { rate_per_s }] {
                    let found = of_starts(&point(load), &starts);
                    assert_eq!(found, [rate_per_s; 2], "{count} at {rate_per_s}");
                }
            }
        }
    }

    #[test]
    fn a_single_element_has_no_rate() {
        let ends = PerEnd {
            sender: end([5, 5], 0),
            receiver: end([9, 9], 0),
        };
        let found = of(&point(Load::None), &Posix::MONOTONIC, &ends);
        assert_eq!(found, PerEnd::default());
        assert_eq!(
            [0, 1, 2].map(|count| intervals(&point(Load::None), count)),
            [0, 0, 1]
        );
    }

    #[test]
    fn groups_are_counted_whole() {
        let load = Load::Bursty {
            wait_ns: 100.0,
            group: 20,
        };
        let groups = point(load);
        // A group every 2 us, its elements 10 ns apart; the last one may not be whole.
        for count in [21, 40, 45, 1000] {
            let starts: Vec<u64> = (0..count).map(|at| at / 20 * 2000 + at % 20 * 10).collect();
            assert_eq!(of_starts(&groups, &starts), [1e7; 2], "{count}");
        }
        // One alone has only its own pace.
        let starts: Vec<u64> = (0..20).map(|at| at * 10).collect();
        assert_eq!(of_starts(&groups, &starts), [1e8; 2]);
        // The slower end sets the time.
        let receiver = EndLoad {
            load: Load::ConstantWait { wait_ns: 500.0 },
            ..EndLoad::NONE
        };
        assert_eq!(intervals(&Point { receiver, ..groups }, 45), 44);
    }

    #[test]
    fn a_stall_before_the_first_element_is_no_higher_rate_and_one_at_the_end_a_lower_one() {
        let rate = point(Load::ConstantRate { rate_per_s: 1e4 });
        // The first is 2.4 ms late, and the next 24 with it.
        let late: Vec<u64> = (0..200_u64)
            .map(|at| (at * 100_000).max(2_400_000))
            .collect();
        assert_eq!(of_starts(&rate, &late), [1e4; 2]);
        let mut stalled: Vec<u64> = (0..101).map(|at| at * 100_000).collect();
        stalled[100] += 10_000_000;
        assert_eq!(of_starts(&rate, &stalled), [5e3; 2]);
        // With a jitter the moments are not known so well.
        let mut varied = rate;
        varied.sender.jitter = 0.5;
        assert!(of_starts(&varied, &late)[0] > 1.1e4);
    }

    #[test]
    fn producers_that_keep_their_rate_have_it_together() {
        for rate_per_s in RATES {
            let period = (1e9 / rate_per_s) as u64;
            for (publishers, scenario) in [
                (1, Scenario::FanIn),
                (3, Scenario::FanIn),
                (2, Scenario::FanOut),
            ] {
                let mut shared = point(Load::ConstantRate { rate_per_s });
                let wiring = Wiring::new(scenario, publishers, 2);
                shared.wiring = Some(wiring);
                let (senders, copies) = (u64::from(publishers), wiring.copies());
                let began = 1000;
                for each in [2, 5, 100] {
                    // The pause behind the last one is in the time of the producers only.
                    let sent = ([began, began + each * period], senders * each);
                    let last = began + (each - 1) * period;
                    let received = ([last, last], senders * copies * each);
                    let together = rate_per_s * f64::from(publishers);
                    let expected = [together, together * copies as f64];
                    assert_eq!(found(&shared, sent, received), expected);
                    // And this is not only because more is not believed.
                    shared.sender.load = Load::None;
                    assert_eq!(found(&shared, sent, received), expected);
                    shared.sender.load = Load::ConstantRate { rate_per_s };
                }
            }
        }
    }
}
