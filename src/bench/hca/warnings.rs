//! What a result gives reason to warn of, with what to do about it, and what is to be said of the instrument.

use super::config::{Config, Timestamp};
use super::result::PointResult;
use crate::buffer::{HugePagePolicy, PageKind};
use crate::results::units;

/// Above this the floor's median says that something else had the CPUs: two stamps and a cache line that changes hands take
/// less than a microsecond, and a few where instructions are emulated.
const HIGHEST_FLOOR_NS: f64 = 10_000.0;
/// Above this share of the median latency the floor's median is most of what was measured.
const LARGEST_SHARE: f64 = 0.5;

/// Why the figures are not to be believed, where the floor is above 10 us or above half of the latency, by their medians.
pub fn judge_floor(result: &PointResult) -> Option<String> {
    doubt(result.costs.floor.p50_ns, result.latency.as_ref()?.p50_ns)
}

/// The same from the two medians, in nanoseconds.
fn doubt(floor: f64, latency: f64) -> Option<String> {
    if floor <= HIGHEST_FLOOR_NS && floor <= LARGEST_SHARE * latency {
        return None;
    }
    let why = if floor > HIGHEST_FLOOR_NS {
        "the host is busy, do not believe these figures".to_owned()
    } else {
        format!(
            "that is most of the latency of p50 {}, do not believe it",
            units::duration(latency)
        )
    };
    Some(format!("floor p50 {}: {why}", units::duration(floor)))
}

/// A line about the instrument itself, for the points that share a clock and a pair of CPUs.
pub fn instrument_line(result: &PointResult) -> String {
    let placement = &result.circumstances.placement;
    let costs = &result.costs;
    format!(
        "instrument: clock {}, CPU {} to {}: a stamp costs {}, resolution {}; floor (same loops over shared memory) p50 {}, p99 {}",
        result.point.clock.name(),
        placement.sender,
        placement.receiver,
        units::duration(costs.stamp.cost_ns),
        costs
            .stamp
            .resolution_ns
            .map_or_else(|| "unknown".to_owned(), units::duration),
        units::duration(costs.floor.p50_ns),
        units::duration(costs.floor.p99_ns),
    )
}

/// What a result gives reason to warn of.
pub fn warnings_of(result: &PointResult, config: &Config) -> Vec<String> {
    let mut texts = Vec::new();
    let obtained = &result.circumstances;
    for warning in &obtained.placement.warnings {
        texts.push(format!("{}: {}", warning.message, warning.advice));
    }
    let worst = obtained
        .pages
        .iter()
        .min()
        .copied()
        .unwrap_or(PageKind::Huge);
    if config.huge_pages == HugePagePolicy::Try && worst != PageKind::Huge {
        texts.push(format!(
                "buffers are in {}: reserve 2 MiB pages (sysctl vm.nr_hugepages=N), or ask for none with --hugepages off",
                worst.describe()
            ));
    }
    if result.point.timestamp == Timestamp::Send && obtained.stamp_refresh_ns.is_none() {
        texts.push(format!(
                "{}: no stamp was rewritten, so t_send is t_subm: give the stamp thread a core of its own (--stamp-cpu), and \
                 the messages a --pause",
                result.point
            ));
    }
    if let Some(doubt) = result.costs.tsc.and_then(|tsc| tsc.rate.doubt()) {
        texts.push(doubt.to_string());
    }
    let faults = obtained.loop_faults.total();
    if faults > 0 {
        texts.push(format!(
                "{faults} page fault(s) in the hot loops of {}: its latencies hold their time; raise --warmup",
                result.point
            ));
    }
    let counts = &result.counts;
    if counts.lost > 0 {
        texts.push(format!(
            "{}: {} of {} messages were lost",
            result.point, counts.lost, counts.sent
        ));
    }
    if counts.corrupted > 0 {
        texts.push(format!(
                "{}: {} messages arrived with other bytes than were sent: do not trust this path with data",
                result.point, counts.corrupted
            ));
    }
    if counts.duplicated > 0 {
        texts.push(format!(
            "{}: {} messages arrived twice, and as many may be counted as lost for it",
            result.point, counts.duplicated
        ));
    }
    if counts.late > 0 {
        texts.push(format!(
                "{}: {} messages arrived after their burst was over and had counted as lost: raise --timeout",
                result.point, counts.late
            ));
    }
    if counts.foreign > 0 {
        texts.push(format!(
                "{}: {} messages were not of this run: something else sends to its queue pair; each took a receive request, so \
                 messages of this run may be lost by it",
                result.point, counts.foreign
            ));
    }
    if let Some(latency) = result
        .latency
        .as_ref()
        .filter(|latency| latency.negative > 0)
    {
        texts.push(format!(
                "{}: {} latencies are negative: the clock {} differs between CPUs; use --clock monotonic",
                result.point,
                latency.negative,
                result.point.clock.name()
            ));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_above_ten_microseconds_or_half_of_the_latency_is_not_believed() {
        for (floor, latency) in [(200.0, 400.0), (10_000.0, 20_000.0), (0.0, 0.0)] {
            assert_eq!(doubt(floor, latency), None, "{floor}, {latency}");
        }
        let busy = doubt(8e6, 2.8e6).unwrap();
        assert!(
            busy.starts_with("floor p50 8") && busy.contains("the host is busy"),
            "{busy}"
        );
        assert!(doubt(10_001.0, 1e9).unwrap().contains("the host is busy"));
        // Of a latency that is a little more than the loops themselves.
        let most = doubt(201.0, 400.0).unwrap();
        assert!(
            most.contains("most of the latency") && most.contains("do not believe"),
            "{most}"
        );
    }
}
