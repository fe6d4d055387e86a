//! What must be known to read the figures of a watch, and the limits that were broken, in sentences.

use crate::results::units;
use crate::stats::resolvable;

use super::config::{Causes, Config, Length};
use super::distribution::percentiles;
use super::result::{ClockResult, CpuResult, Judgement};

pub(super) fn of(result: &ClockResult, config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    for (name, reason) in result.cpus.iter().flat_map(|cpu| cpu.available.missing()) {
        let text = format!("{name} ({reason})");
        // On bare metal there is no steal time to miss.
        if name != "steal time" && !missing.contains(&text) && missing.len() < 3 {
            missing.push(text);
        }
    }
    if !missing.is_empty() {
        notes.push(format!(
            "not readable here, so no cause can be found in them: {}",
            missing.join("; ")
        ));
    }
    let not_sampled: u64 = result.cpus.iter().map(|cpu| cpu.watched.not_sampled).sum();
    if not_sampled > 0 && config.causes == Causes::Counters {
        notes.push(format!(
            "{not_sampled} jumps are not sampled: reading counters may take a tenth of the time, of that a hundredth for \
             jumps below 1 us"
        ));
    }
    if config.causes == Causes::Trace {
        notes.extend(of_trace(result));
    }
    for cpu in &result.cpus {
        let of_cpu = of_cpu(result, cpu, config).into_iter();
        notes.extend(of_cpu.map(|note| format!("CPU {}: {note}", cpu.cpu)));
    }
    let fewest = result.cpus.iter().map(|cpu| cpu.watched.readings).min();
    let fewest = fewest.unwrap_or(0);
    if let Some(percent) = percentiles().find(|&percent| !resolvable(percent, fewest)) {
        notes.push(format!(
            "with {fewest} iterations p{percent} is little else than the maximum"
        ));
    }
    notes
}

/// What the trace lacks, and how well it fits.
fn of_trace(result: &ClockResult) -> Vec<String> {
    let duration = |nanos: u64| units::duration(nanos as f64);
    let mut notes = Vec::new();
    for cpu in &result.cpus {
        let name = format!("CPU {}", cpu.cpu);
        let Some(traced) = &cpu.traced else {
            notes.push(format!(
                "{name}: the clock was set back, so that no jump can be matched with the trace"
            ));
            continue;
        };
        let (lost_ns, lost) = traced.lost();
        if lost > 0 {
            notes.push(format!(
                "{name}: records of the trace lost: {lost} times, {} together; what ran then is not known",
                duration(lost_ns)
            ));
        }
        if traced.kept_above() > 0 {
            notes.push(format!(
                "{name}: of the trace all is kept that took more than {}; jumps of the rest are not sampled",
                duration(traced.kept_above())
            ));
        }
    }
    let errors = result.cpus.iter().filter_map(|cpu| cpu.traced.as_ref());
    if let Some(error) = errors.map(|traced| traced.error()).max() {
        notes.push(format!(
            "jumps are matched with the trace, whose clock is CLOCK_MONOTONIC_RAW, to {}",
            duration(error)
        ));
    }
    notes
}

fn of_cpu(result: &ClockResult, cpu: &CpuResult, config: &Config) -> Vec<String> {
    let (watched, jumps) = (&cpu.watched, &cpu.watched.jumps);
    let length = |ticks: u64| units::duration(result.nanos_f64(ticks as f64));
    let mut notes = Vec::new();
    // Memory for a time is reserved by how quick the clock was before; where it got quicker, what was kept is not all.
    let (not_kept, readings) = (cpu.stored.not_kept, watched.readings);
    if not_kept > 0 {
        notes.push(format!(
            "the clock was read faster than in the baseline, and the memory held all but {not_kept} of {readings} \
             differences: they are counted instead, to 0.1 %, and exactly below 4096 ticks where the baseline is"
        ));
    }
    if cpu.percentile(50.0) == Some(0) {
        let mean = watched.mean().map(|mean| result.nanos_f64(mean));
        notes.push(format!(
            "the clock does not move between most readings: what a reading costs is below its resolution, {} in the mean",
            units::duration(mean.unwrap_or(0.0))
        ));
    }
    // On a CPU that others use a thread may begin late.
    if let Length::Duration(asked) = config.length
        && result.interrupted.is_none()
    {
        let seconds = result.nanos(watched.elapsed()).0 as f64 / 1e9;
        let asked = asked.as_secs_f64();
        if seconds < asked * 0.9 {
            notes.push(format!(
                "watched for {seconds:.3} s of the {asked:.3} s asked for: others had the CPU at the beginning or the \
                 end"
            ));
        }
    }
    if watched.ranking.windows_are_cut() {
        notes.push(
            "there were more jumps in a window than there is room for: the sums over windows are lower bounds (a shorter \
             --window has room for all)"
                .to_owned(),
        );
    }
    if jumps.samples_given_up() > 0 {
        notes.push(format!(
            "{} jumps up to {} have their cause in jumps.csv, but not its counters, which are kept for the longest",
            jumps.samples_given_up(),
            length(jumps.samples_kept_above()),
        ));
    }
    if jumps.given_up() > 0 {
        notes.push(format!(
            "jumps.csv, the pattern and what happened at once have all jumps above {}; {} others are only counted \
             (--keep-jumps)",
            length(jumps.kept_above()),
            jumps.given_up()
        ));
    }
    if watched.time.steps_back > 0 {
        notes.push(format!(
            "the clock was set back {} times, by {} at the most; these are no jumps, and are taken out of the times",
            watched.time.steps_back,
            length(watched.time.largest_step_back)
        ));
    }
    notes
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
