//! What a result gives reason to warn of, with what to do about it, and what is to be said of the instrument.

use super::PointResult;
use crate::bench::hca::message::Message;
use crate::bench::hca::settings::background::Traffic;
use crate::bench::hca::settings::config::Config;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::results::schema::hca;
use crate::results::units;

/// Why the figures are not to be believed, as far as the floor tells.
pub fn judge_floor(result: &PointResult) -> Option<String> {
    let latency = result.latency.as_ref().map(|latency| latency.p50_ns);
    hca::doubt_of_floor(result.costs.floor?.p50_ns, latency)
}

/// Why the figures say little, as far as the clocks of the two CPUs tell.
pub fn judge_clocks(result: &PointResult) -> Option<String> {
    let (offset, latency) = (result.costs.offset?, result.latency.as_ref()?);
    hca::doubt_of_clocks(offset.ns, offset.bound_ns, latency.p50_ns)
}

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
pub fn judge_offer(result: &PointResult) -> Option<String> {
    let growth = result.in_flight.growth?;
    Some(format!(
        "{}: more is offered than the path takes, about {:.0} % of it: messages in flight grew from {:.0} to {:.0} \
         through the burst, and latency with them; give it a longer --pause or a lower --rate to measure the way, not the queue",
        result.point,
        growth.taken * 100.0,
        growth.from,
        growth.to
    ))
}

/// Of fewer messages than these the share that was delivered says nothing.
const FEWEST_IN_BACKGROUND: f64 = 20.0;
/// Less of the background than this is too little.
const LEAST_DELIVERED: f64 = 0.95;

/// That less was delivered in the background than was asked for.
fn judge_background(result: &PointResult) -> Option<String> {
    let (asked, done) = (result.point.background?, result.background?);
    if asked.traffic == Traffic::None {
        return None;
    }
    let due = f64::from(asked.per_second) * done.time.as_secs_f64();
    let share = done.messages.completed as f64 / due;
    let why = if asked.shares_cpu == Some(true) {
        "its thread shares a CPU with a measuring thread, compare with the point beside it or name another by \
         --background-cpu"
    } else if done.messages.missed > 0 {
        "the path takes no more, and latency is that of a full one"
    } else {
        "its thread cannot post as fast"
    };
    (due >= FEWEST_IN_BACKGROUND && share < LEAST_DELIVERED).then(|| {
        format!(
            "{}: {:.0} % of what --background {asked} offers was delivered: {why}",
            result.point,
            100.0 * share
        )
    })
}

pub fn warnings_of(result: &PointResult, config: &Config) -> Vec<String> {
    let mut texts = Vec::new();
    let obtained = &result.circumstances;
    for warning in &obtained.placement.warnings {
        texts.push(format!("{}: {}", warning.message, warning.advice));
    }
    let worst = *obtained.pages.iter().min().expect("three buffers");
    if config.huge_pages == HugePagePolicy::Try && worst != PageKind::Huge {
        texts.push(format!(
                "buffers are in {}: reserve 2 MiB pages (sysctl vm.nr_hugepages=N), or ask for none with --hugepages off",
                worst.describe()
            ));
    }
    if let Some(doubt) = result.costs.tsc.and_then(|tsc| tsc.rate.doubt()) {
        texts.push(doubt.to_string());
    }
    let point = &result.point;
    let faults = obtained.loop_faults.total();
    if faults > 0 {
        texts.push(format!(
            "{faults} page fault(s) in the hot loops of {point}: its latencies hold their time; raise --warmup"
        ));
    }
    let counts = &result.counts;
    let is_behind = |message: &&Message| {
        message
            .sent_ns
            .is_some_and(|sent| sent < message.submitted_ns)
    };
    let behind = result.messages.iter().filter(is_behind).count() as u64;
    let negative = result.latency.as_ref().map_or(0, |one| one.negative);
    for (count, what) in [
        (
            counts.lost,
            match point.operation.is_one_way() {
                true => format!("of {} messages were lost", counts.sent),
                false => format!("of {} requests did not complete", counts.sent),
            },
        ),
        (
            counts.corrupted,
            match point.operation.is_one_way() {
                true => "messages arrived with other bytes than were sent: do not trust this path with data",
                false => "requests brought back other bytes than they should: do not trust this path with data",
            }
            .to_owned(),
        ),
        (
            counts.duplicated,
            "messages arrived twice, and as many may be counted as lost for it".to_owned(),
        ),
        (
            counts.late,
            "messages arrived after their burst was over and had counted as lost: raise --timeout".to_owned(),
        ),
        (
            counts.foreign,
            "messages were not of this run: something else sends to its queue pair; each took a receive request, so \
             messages of this run may be lost by it"
                .to_owned(),
        ),
        (
            result.schedule.as_ref().map_or(0, |one| one.missed_steps),
            format!(
                "of {} messages were posted more than a step late: the sender does not keep the --rate, see \
                 intended_latency_p50_ns",
                counts.sent
            ),
        ),
        (
            counts.not_restamped,
            format!(
                "of {} messages were received before their stamp was rewritten, so they have no t_send and no latency: \
                 give the stamp thread a core of its own (--stamp-cpu), and the messages a --pause",
                counts.received
            ),
        ),
        (
            behind,
            format!(
                "messages have a t_send before their t_subm: the clock {} differs between CPUs; use --clock monotonic",
                point.clock.name()
            ),
        ),
        (
            negative,
            format!(
                "latencies are negative: the clock {} differs between CPUs; use --clock monotonic",
                point.clock.name()
            ),
        ),
    ] {
        if count > 0 {
            texts.push(format!("{point}: {count} {what}"));
        }
    }
    texts.extend(judge_background(result));
    texts.extend(result.ports.warnings(point, counts));
    texts
}
