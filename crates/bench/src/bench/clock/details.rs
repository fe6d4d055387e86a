//! What a CPU's watch tells beside its row of the summary: the tables of one round, as data. They stand in `details` of
//! the point's `settings.json`, cross from process to process, and are what is shown.
//!
//! What belongs to all CPUs (what happened at once) stands in the details of each, so that each point's
//! folder can be read by itself. Ticks are cycles of the TSC, or else nanoseconds. What was not asked for is empty.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cause::{Cause, CauseTally};
use super::config::Config;
use super::distribution::{Distribution, percentiles};
use super::pattern::patterns;
use super::recorder::DIRECT;
use super::result::{ClockResult, CpuResult};
use crate::sorting::sort_by_key;

/// Threads that ran instead are listed so far.
const RAN_LISTED: usize = 20;

pub(super) fn of(result: &ClockResult, cpu: &CpuResult, config: &Config) -> Value {
    let (watched, stored) = (&cpu.watched, &cpu.stored);
    let (jumps, ranking) = (&watched.jumps, &watched.ranking);
    let nanos = |ticks: u64| result.nanos(ticks).0;
    let stops = jumps.iter().filter(|jump| jump.cause != Cause::Backward);
    let stops = stops.map(|jump| (result.when(jump.begin), nanos(jump.length)));
    // Where no memory was reserved for the differences, none was too many.
    let reserved = stored.kept_in.is_some() || stored.not_kept > 0;
    let highest = ranking.highest.iter().map(|peak| {
        json!({
            "t_ns": result.when(peak.begin),
            "jump_ticks": peak.length,
            "jump_ns": nanos(peak.length),
        })
    });
    let windows = ranking.windows().iter().map(|sum| {
        json!({
            "t_ns": result.when(sum.begin),
            "last_jump_t_ns": result.when(sum.last),
            "jumps": sum.jumps,
            "above_baseline_ns": nanos(sum.extra),
        })
    });
    let windows_are = if ranking.windows_are_cut() {
        "lower bounds"
    } else {
        "the first exact, the others found beside it"
    };
    let cause = |cause: &str, tally: &CauseTally| {
        json!({
            "cause": cause,
            "count": tally.count,
            "alone": tally.alone,
            "total_ns": nanos(tally.total),
            "largest_ns": nanos(tally.largest),
        })
    };
    let mut causes: Vec<_> = jumps.causes().iter().collect();
    sort_by_key(&mut causes, |(_, tally)| std::cmp::Reverse(tally.total));
    let causes = causes.iter();
    let causes = causes.map(|(of, tally)| cause(&of.describe(&cpu.names), tally));
    let at_once = || cause("unexplained", &cpu.unexplained_on_several());
    json!({
        "verdict": result.verdict,
        "clock": result.clock.name(),
        "cpu": cpu.cpu,
        "ran_instead": cpu.ran.iter().take(RAN_LISTED).collect::<Vec<_>>(),
        "waited_for_cpu_ns": cpu.waited,
        "throttled": cpu.throttled,
        "trace": cpu.traced.as_ref().map(|traced| traced.details(&cpu.names)),
        "nanos_per_tick": result.scale.nanos_per_tick(),
        "ticks_are_cycles": result.clock.is_counter(),
        "reports": config.reports,
        "window_ns": config.window,
        "coincidence_ns": config.coincidence,
        "baseline": cpu.baseline,
        "first_ten_ticks": watched.first,
        "percentiles": stored.distribution.as_ref().map(percentiles_of),
        "differences_kept_in": stored.kept_in,
        "differences_not_kept": reserved.then_some(stored.not_kept),
        "highest": highest.collect::<Vec<_>>(),
        "start_ns": result.when(watched.start),
        "cumulative_are": windows_are,
        "cumulative": windows.collect::<Vec<_>>(),
        "causes": causes.collect::<Vec<_>>(),
        "unexplained_at_once": (result.cpus.len() > 1).then(at_once),
        "patterns": patterns(stops, result.when(watched.end), config.window.0),
        "not_watched": {
            "total_ns": nanos(watched.time.blind),
            "share": watched.blind_share(),
            "longest_ns": nanos(watched.time.longest_blind),
            "reading_counters_ns": (watched.samples > 0).then(|| nanos(watched.sampling)),
            "counters_read": watched.samples,
        },
        "counters_not_readable": cpu.available.missing().into_iter().collect::<BTreeMap<_, _>>(),
        "jumps_longer_than_this_are_in_the_file_ns":
            (jumps.given_up() > 0).then(|| nanos(jumps.kept_above())),
        "samples_with_cause_only": jumps.samples_given_up(),
        "jumps_longer_than_this_have_their_samples_ns":
            (jumps.samples_given_up() > 0).then(|| nanos(jumps.samples_kept_above())),
        "thread": cpu.usage,
        "limits": cpu.judgements,
        "coincidences": result.coincidences,
    })
}

fn percentiles_of(distribution: &Distribution) -> Value {
    let are = match (distribution.exact, distribution.step) {
        (true, _) => "exact".to_owned(),
        (false, 1) => format!("exact below {DIRECT} ticks, to 0.1 % above"),
        (false, step) => format!(
            "in steps of {step} ticks, rounded down; to 0.1 % from {} ticks up",
            DIRECT as u64 * step
        ),
    };
    let ticks = percentiles().map(|percent| (percent, distribution.percentile(percent)));
    json!({
        "are": are,
        "min_ticks": distribution.min(),
        "ticks": ticks.collect::<Vec<_>>(),
        "max_ticks": distribution.max(),
    })
}
