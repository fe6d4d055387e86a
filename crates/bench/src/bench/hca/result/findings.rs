//! What a result gives reason to state, and a line about the instrument.

use super::PointResult;
use super::hardware::HardwareStampTally;
use crate::bench::hca::loops::background::BackgroundTraffic;
use crate::bench::hca::message::Message;
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::background::{Background, Traffic};
use crate::bench::hca::settings::config::{Arrivals, Config, Operation, Service};
use crate::bench::hca::settings::limits::SMALLEST_SIZE;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::hca;
use crate::results::units;
use crate::rig::findings::{
    ComparedRate, of_pages, of_percentiles, of_placement, of_rate, of_throttling,
};

/// A line about the instrument itself, for the points that share a clock and a pair of CPUs.
pub fn instrument_line(result: &PointResult) -> String {
    let placement = &result.circumstances.placement;
    let costs = &result.costs;
    let clock = result.point.clock.name();
    let stamp = format!(
        "a stamp costs {}, resolution {}",
        costs
            .stamp
            .cost_ns
            .map_or_else(|| "less than can be measured".to_owned(), units::duration),
        costs
            .stamp
            .resolution_ns
            .map_or_else(|| "unknown".to_owned(), units::duration),
    );
    let Some((floor, back)) = costs.floor.zip(costs.floor_back) else {
        let sender = placement.sender;
        return format!("instrument: clock {clock}, CPU {sender}, nothing is received: {stamp}");
    };
    format!(
        "instrument: clock {clock}, CPU {} to {}: {stamp}; floor (same loops over shared memory) p50 {}, p99 {}, \
         back p50 {}; the receiver's clock is ahead by {}",
        placement.sender,
        placement.receiver,
        units::duration(floor.p50_ns),
        units::duration(floor.p99_ns),
        units::duration(back.p50_ns),
        costs.offset.map_or_else(
            || "an unknown time".to_owned(),
            |offset| format!(
                "{} within {}",
                units::duration(offset.ns),
                units::duration(offset.bound_ns)
            )
        ),
    )
}

/// That more was offered than the path took, so that latencies are those of a queue that grows.
fn of_offer(result: &PointResult) -> Option<Finding> {
    let growth = result.in_flight.growth?;
    let found = Finding::of(&kinds::OFFERED_TOO_MUCH)
        .measure("taken_percent", growth.taken * 100.0)
        .measure("in_flight", growth.to.round());
    Some(found)
}

/// Of fewer messages than these the share that was delivered says nothing.
const FEWEST_IN_BACKGROUND: f64 = 20.0;
/// Less of the background than this is too little.
const LEAST_DELIVERED: f64 = 0.95;

/// That less was delivered in the background than was asked for.
fn of_background(result: &PointResult) -> Option<Finding> {
    let (asked, done) = (result.point.background?, result.background?);
    if asked.traffic == Traffic::None {
        return None;
    }
    let due = f64::from(asked.per_second) * done.time.as_secs_f64();
    let share = done.messages.completed as f64 / due;
    let kind = if asked.shares_cpu == Some(true) {
        kinds::BACKGROUND_SHARES_CPU
    } else if done.messages.missed > 0 {
        kinds::BACKGROUND_NOT_TAKEN
    } else {
        kinds::BACKGROUND_NOT_POSTED
    };
    if due >= FEWEST_IN_BACKGROUND && share < LEAST_DELIVERED {
        let found = Finding::of(&kind).measure("share_percent", 100.0 * share);
        return Some(found.listed("asked", asked.to_string()));
    }
    of_background_rate(&asked, &done)
}

/// That about what was asked for was delivered in the background, but not at the rate that was.
fn of_background_rate(asked: &Background, done: &BackgroundTraffic) -> Option<Finding> {
    let (posted, seconds) = (done.messages.posted, done.time.as_secs_f64());
    let per_s = f64::from(asked.per_second);
    let rate = ComparedRate {
        // Its time begins and ends between two of its messages.
        uncertainty: 2.0 / (per_s * seconds).max(1.0),
        ..ComparedRate::new(
            "the background posted messages",
            per_s,
            posted as f64 / seconds.max(f64::MIN_POSITIVE),
            posted,
        )
    };
    rate.finding(|off| match (off < 0.0, done.messages.missed) {
        (true, 0) => "its thread was held up at the end".to_owned(),
        (true, missed) => format!("{missed} found as many in flight as may be"),
        (false, _) => "its thread was held up before the first burst".to_owned(),
    })
}

/// That messages were posted at another rate than was asked for; `missed`: those that were more than a step late.
fn of_kept(result: &PointResult, missed: u64) -> Option<Finding> {
    let (asked, burst) = (result.point.rate?, result.point.burst);
    let per_s = f64::from(asked.per_second);
    let in_burst = f64::from(burst.saturating_sub(1).max(1)) / per_s;
    let posted = result.messages.len() as u64;
    let rate = ComparedRate {
        deviation: match asked.arrivals {
            Arrivals::Constant => 0.0,
            Arrivals::Poisson => 1.0,
        },
        clock_step: result.costs.stamp.resolution_ns.unwrap_or(0.0) / 1e9 / in_burst,
        ..ComparedRate::new(
            "messages were posted",
            per_s,
            result.post_rate?,
            posted - posted / u64::from(burst.max(1)),
        )
    };
    of_posts(rate, missed, posted)
}

fn of_posts(rate: ComparedRate, missed: u64, posted: u64) -> Option<Finding> {
    let rate = ComparedRate {
        stated: missed as f64 / posted.max(1) as f64,
        ..rate
    };
    // What is stated anyway is the reason.
    if rate.is_stated(rate.off()) {
        return None;
    }
    rate.finding(|off| {
        let why = match off < 0.0 {
            true => "the last post of a burst was late",
            // None is posted before it is due.
            false => "the clock or the schedule is wrong",
        };
        why.to_owned()
    })
}

/// That a message which is polled for in memory may not be whole when its last byte is or, where a later one means that
/// it is lost, may become visible after that.
fn of_order(result: &PointResult) -> Option<Finding> {
    let in_order = &result.circumstances.path.receiver["writes_in_order"];
    let is_unordered = needs_order(&result.point) && *in_order == false;
    is_unordered.then(|| Finding::of(&kinds::ORDER_NOT_PROMISED))
}

/// A stamp alone is one word, and whole.
fn needs_order(point: &Point) -> bool {
    let of_bytes = point.size > SMALLEST_SIZE;
    let of_messages = point.service == Service::Uc;
    point.operation == Operation::WritePolled && (of_bytes || of_messages)
}

/// What only latencies by one clock show.
pub fn of_latency(result: &PointResult) -> Vec<Finding> {
    let costs = &result.costs;
    let latency = result.latency.as_ref();
    let floor = costs.floor.map(|floor| floor.p50_ns);
    let of_floor = floor.and_then(|floor| hca::doubt_of_floor(floor, latency.map(|it| it.p50_ns)));
    let of_clocks = costs.offset.zip(latency).and_then(|(offset, latency)| {
        hca::doubt_of_clocks(offset.ns, offset.bound_ns, latency.p50_ns)
    });
    let samples = latency.or(result.completion_latency.as_ref());
    let of_percentiles = of_percentiles(
        [99.0, 99.9, 99.99],
        samples.map_or(0, |samples| samples.count),
        "--repeat or --burst",
    );
    let all = [of_floor, of_clocks, of_offer(result), of_percentiles];
    all.into_iter().flatten().collect()
}

/// What stamps of adapters show: of themselves, and of a receiving loop, if it took nothing but messages that count.
fn of_hardware(stamps: &HardwareStampTally, has_strays: bool) -> Vec<Finding> {
    let ends = [
        ("sender", "t_comp", &stamps.sender),
        ("receiver", "t_recv", &stamps.receiver),
    ];
    let mut found = Vec::new();
    for (end, ours, stamps) in ends {
        let named = |it: Finding| it.name("end", end).name("ours", ours);
        let counted = [
            (stamps.too_late(), kinds::HW_STAMPS_TOO_LATE),
            (stamps.missing + stamps.outside, kinds::HW_STAMPS_MISSING),
        ];
        for (count, kind) in &counted {
            let counted = Finding::counted(kind, *count, Some(stamps.completions));
            let error = stamps.error_ns as f64;
            found.extend(counted.map(|it| named(it).measure("error_ns", error)));
        }
        found.extend(stamps.unresolved().map(|median| {
            named(Finding::of(&kinds::HW_LAG_UNRESOLVED))
                .measure("median_ns", median)
                .measure("error_ns", stamps.error_ns as f64)
        }));
        let off_ppm = stamps.rate_off().map(|off| (off * 1e6).round());
        found.extend(
            off_ppm.map(|off| named(Finding::of(&kinds::HW_CLOCK_RATE)).measure("off_ppm", off)),
        );
    }
    let waits = stamps.receiver.waits.filter(|_| !has_strays);
    found.extend(waits.and_then(|waits| {
        let of = Some(stamps.receiver.completions);
        Finding::counted(&kinds::HELD_UP, waits.count, of)
            .map(|it| it.measure("longest_ns", waits.longest_ns as f64))
    }));
    found
}

/// What every result may show.
pub fn of(result: &PointResult, config: &Config) -> Vec<Finding> {
    let obtained = &result.circumstances;
    let mut all: Vec<Finding> = of_placement(&obtained.placement.warnings).collect();
    let worst = *obtained.pages.iter().min().expect("three buffers");
    all.extend(of_pages("buffers", config.huge_pages, worst));
    all.extend(result.costs.tsc.and_then(|tsc| of_rate(&tsc.rate)));
    let counts = &result.counts;
    let is_behind = |message: &&Message| {
        message
            .sent_ns
            .is_some_and(|sent| sent < message.submitted_ns)
    };
    let behind = result.messages.iter().filter(is_behind).count() as u64;
    let negative = result.latency.as_ref().map_or(0, |one| one.negative);
    let missed = result.schedule.as_ref().map_or(0, |one| one.missed_steps);
    let (lost, corrupted) = match result.point.operation.is_one_way() {
        true => (kinds::MESSAGES_LOST, kinds::MESSAGES_CORRUPTED),
        false => (kinds::REQUESTS_INCOMPLETE, kinds::ANSWERS_CORRUPTED),
    };
    let (sent, received) = (Some(counts.sent), Some(counts.received));
    let counted = [
        (obtained.loop_faults.total(), None, kinds::PAGE_FAULTS),
        (counts.lost, sent, lost),
        (counts.corrupted, None, corrupted),
        (counts.duplicated, None, kinds::MESSAGES_DUPLICATED),
        (counts.late, None, kinds::MESSAGES_LATE),
        (counts.foreign, None, kinds::MESSAGES_FOREIGN),
        (missed, sent, kinds::STEPS_MISSED),
        (counts.not_restamped, received, kinds::NOT_RESTAMPED),
        (behind, None, kinds::STAMPS_OUT_OF_ORDER),
        (negative, None, kinds::NEGATIVE_LATENCIES),
    ];
    let counted = counted.iter();
    all.extend(counted.filter_map(|(count, of, kind)| Finding::counted(kind, *count, *of)));
    all.extend(of_background(result));
    all.extend(of_throttling(&result.throttled, obtained.priority));
    all.extend(of_kept(result, missed));
    all.extend(of_order(result));
    if let Some(stamps) = &result.hardware {
        let strays = counts.foreign + counts.late + counts.duplicated;
        all.extend(of_hardware(stamps, strays > 0));
    }
    let to_itself = obtained.path.sender.sends_to_itself();
    all.extend(result.ports.findings(&result.point, counts, to_itself));
    all
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::hardware::{EndStamps, LongWaits};
    use super::*;
    use crate::bench::hca::loops::background::Messages;
    use crate::bench::hca::plan::{Plan, made_up::single};
    use crate::bench::hca::settings::background::tests::background;
    use crate::bench::hca::settings::config::Sweep;
    use crate::testing::Has as _;

    #[test]
    fn polled_writes_need_the_order_of_bytes_and_on_uc_that_of_messages() {
        let plan = Plan::new(&Sweep {
            services: vec![Service::Rc, Service::Uc],
            operations: vec![Operation::Send, Operation::Write, Operation::WritePolled],
            sizes: vec![SMALLEST_SIZE, 64],
            ..single()
        });
        let needing = plan.points.iter().filter(|point| needs_order(point));
        let needing: Vec<_> = needing
            .map(|it| (it.service, it.operation, it.size))
            .collect();
        let polled = Operation::WritePolled;
        let (rc, uc) = (Service::Rc, Service::Uc);
        assert_eq!(
            needing,
            [
                (rc, polled, 64),
                (uc, polled, SMALLEST_SIZE),
                (uc, polled, 64)
            ]
        );
    }

    #[test]
    fn stamps_of_adapters_are_doubted_where_they_cannot_be_right() {
        let mut stamps = HardwareStampTally::default();
        assert_eq!(of_hardware(&stamps, false), []);
        stamps.sender = EndStamps::made_up(&[100, -30, -70], 60);
        stamps.sender.missing = 1;
        stamps.sender.outside = 2;
        stamps.receiver = EndStamps::made_up(&[100, 90, -30], 60);
        stamps.receiver.waits = Some(LongWaits {
            count: 2,
            longest_ns: 52_000,
        });
        stamps.receiver.nominal_khz = Some(1e6);
        stamps.receiver.seen_khz = Some(1.01e6);
        stamps.receiver.seen_within = Some(1e-4);
        let found = of_hardware(&stamps, false);
        let lines: Vec<String> = found.iter().map(|it| it.line(1)).collect();
        let expected = [
            &["1 of 3", "of the sender", "later than t_comp", "60 ns"][..],
            &["3 of 3 completions of the sender", "t_comp"],
            &["median time", "to t_comp", "-30", "60 ns"],
            &["the receiver's adapter", "10000 ppm"],
            &["2 of 3 messages late", "52.0 us", "its thread was away"],
        ];
        assert_eq!(lines.len(), expected.len(), "{lines:?}");
        for (line, words) in lines.iter().zip(expected) {
            line.has(words);
        }
        // It may have taken something else meanwhile.
        assert_eq!(of_hardware(&stamps, true).len(), 4);
    }

    #[test]
    fn a_few_late_posts_do_not_explain_a_rate() {
        let told = |found, missed| {
            let rate = ComparedRate::new("messages were posted", 1e3, found, 999);
            of_posts(rate, missed, 1000).map(|found| found.line(1))
        };
        assert_eq!(told(9e2, 50), None);
        let words = ["-10 %", "the last post of a burst was late"];
        for missed in [0, 1, 49] {
            told(9e2, missed).unwrap().has(&words);
        }
        told(1.1e3, 1000).unwrap().has(&["schedule is wrong"]);
    }

    #[test]
    fn a_background_that_is_off_its_rate_has_its_reason() {
        for (per_second, ms) in [(1000, 10_000), (10_000, 1000), (1_000_000, 1000)] {
            let due = u64::from(per_second) * ms / 1000;
            let told = |posted: u64, missed| {
                let done = BackgroundTraffic {
                    time: Duration::from_millis(ms),
                    messages: Messages {
                        posted,
                        missed,
                        ..Messages::default()
                    },
                };
                let found = of_background_rate(&background(per_second, 64, 1), &done);
                found.map(|found| found.line(1))
            };
            for kept in [due, due - 1, due + 1, due + due / 1000] {
                assert_eq!(told(kept, 0), None);
            }
            told(due - due / 50, 0)
                .unwrap()
                .has(&["-2 %", "held up at the end"]);
            let missed = due / 50;
            let text = told(due - missed, missed).unwrap();
            text.has(&["the background", &format!("{missed} found"), "in flight"]);
            told(due + due / 50, 0)
                .unwrap()
                .has(&[" 2 %", "before the first burst"]);
        }
    }
}
