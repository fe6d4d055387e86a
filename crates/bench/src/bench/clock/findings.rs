//! What must be known to read the figures of a watch, and the limits that were broken.

use crate::results::finding::{Finding, kinds};
use crate::results::units;
use crate::rig::findings::of_percentiles;

use super::config::{Causes, Config, Length};
use super::distribution::percentiles;
use super::result::{ClockResult, CpuResult, Judgement};

/// What is known of one of the CPUs that were watched.
pub(super) fn of(result: &ClockResult, cpu: &CpuResult, config: &Config) -> Vec<Finding> {
    let (watched, jumps) = (&cpu.watched, &cpu.watched.jumps);
    let length = |ticks: u64| result.nanos_f64(ticks as f64);
    let mut all = result.findings.clone();
    let missing = cpu.available.missing().into_iter();
    // On bare metal there is no steal time to miss.
    let missing = missing.filter(|(name, _)| *name != "steal time");
    let missing = missing.map(|(name, reason)| format!("{name} ({reason})"));
    let unread = missing.fold(
        Finding::of(&kinds::COUNTERS_NOT_READABLE),
        |found, counter| found.listed("counters", counter),
    );
    all.extend((!unread.figures.is_empty()).then_some(unread));
    if config.causes == Causes::Trace {
        all.extend(of_trace(cpu));
    }
    let sampled = config.causes == Causes::Counters;
    let not_sampled = if sampled { watched.not_sampled } else { 0 };
    let set_back = watched.time.steps_back;
    let counted = |kind, count| Finding::counted(kind, count, None);
    all.extend(counted(&kinds::JUMPS_NOT_SAMPLED, not_sampled));
    all.extend(counted(&kinds::CLOCK_SET_BACK, set_back));
    // Memory for a time is reserved by how quick the clock was before; where it got quicker, what was kept is not all.
    let (not_kept, readings) = (cpu.stored.not_kept, Some(watched.readings));
    all.extend(Finding::counted(
        &kinds::DIFFERENCES_COUNTED,
        not_kept,
        readings,
    ));
    let longest = |ticks| move |found: Finding| found.measure("longest_ns", length(ticks));
    let given_up = counted(&kinds::JUMP_COUNTERS_LEFT_OUT, jumps.samples_given_up());
    all.extend(given_up.map(longest(jumps.samples_kept_above())));
    let given_up = counted(&kinds::JUMPS_COUNTED, jumps.given_up());
    all.extend(given_up.map(longest(jumps.kept_above())));
    if cpu.percentile(50.0) == Some(0) {
        let mean = watched.mean().map_or(0.0, |mean| result.nanos_f64(mean));
        all.push(Finding::of(&kinds::BELOW_RESOLUTION).measure("mean_ns", mean));
    }
    // On a CPU that others use a thread may begin late.
    if let Length::Duration(asked) = config.length
        && result.interrupted.is_none()
    {
        let (ns, asked) = (
            result.nanos(watched.elapsed()).0 as f64,
            asked.as_nanos() as f64,
        );
        if ns < asked * 0.9 {
            let found = Finding::of(&kinds::WATCHED_SHORT).measure("watched_ns", ns);
            all.push(found.measure("asked_ns", asked));
        }
    }
    if watched.ranking.windows_are_cut() {
        all.push(Finding::of(&kinds::WINDOW_SUMS_CUT));
    }
    let options = "--duration or --iterations";
    all.extend(of_percentiles(percentiles(), watched.readings, options));
    all
}

/// What the trace lacks, and how well it fits.
fn of_trace(cpu: &CpuResult) -> Vec<Finding> {
    let Some(traced) = &cpu.traced else {
        return vec![Finding::of(&kinds::TRACE_NOT_MATCHED)];
    };
    let (lost_ns, lost) = traced.lost();
    let (kept_above, error) = (traced.kept_above(), traced.error());
    let mut all = vec![Finding::of(&kinds::TRACE_ERROR).measure("error_ns", error as f64)];
    let lost = Finding::counted(&kinds::TRACE_RECORDS_LOST, lost as u64, None);
    all.extend(lost.map(|found| found.measure("lost_ns", lost_ns as f64)));
    if kept_above > 0 {
        all.push(Finding::of(&kinds::TRACE_CUT).measure("kept_above_ns", kept_above as f64));
    }
    all
}

pub(super) fn broken_limits<'a>(judged: impl Iterator<Item = &'a Judgement>) -> Vec<String> {
    let broken = judged.filter(|it| it.broken);
    let in_words = broken.map(|it| {
        let found = units::duration(it.found_ns);
        format!(
            "--fail-above {} is broken on CPU {}: {found}",
            it.limit, it.cpu
        )
    });
    in_words.collect()
}
