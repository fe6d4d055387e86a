//! What the threads saw, put together.

use std::time::Duration;

use crate::time::{AnyClock, Clock, ReadingKind, Ticks};

use super::cause::Cause;
use super::coincidence;
use super::config::{Config, Length};
use super::jump::Jump;
use super::limit::Judgement;
use super::result::{ClockResult, CpuResult};

/// Puts together what the threads saw.
pub(super) fn conclude(
    config: &Config,
    scale: AnyClock,
    notes: Vec<String>,
    cpus: Vec<CpuResult>,
    interrupted: Option<String>,
) -> ClockResult {
    let mut result = ClockResult {
        clock: config.clock,
        scale,
        cpus,
        coincidences: None,
        notes,
        interrupted,
    };
    if config.clock == ReadingKind::Realtime {
        result.notes.push(
            "CLOCK_REALTIME can be set: a step forward looks like a jump, on all CPUs at once; the other clocks have none"
                .to_owned(),
        );
    }
    tell_of_full_memory(&mut result);
    tell_of_late_starts(&mut result, config);
    start_at_zero(&mut result);
    coincide(&mut result, config);
    judge(&mut result, config);
    result
}

/// Memory for a time is reserved by how quick the clock was before; where it got quicker, what was kept is not all.
fn tell_of_full_memory(result: &mut ClockResult) {
    for cpu in &result.cpus {
        if cpu.stored.not_kept > 0 {
            result.notes.push(format!(
                "CPU {}: the clock was read faster than in the baseline, and the memory held all but {} of {} differences: \
                 they are counted instead, to 0.1 %, and exactly below 4096 ticks where the baseline is",
                cpu.cpu, cpu.stored.not_kept, cpu.watched.readings
            ));
        }
    }
}

/// On a CPU that others use a thread may begin late; that the time was shorter than asked for is to be said.
fn tell_of_late_starts(result: &mut ClockResult, config: &Config) {
    let Length::Duration(asked) = config.length else {
        return;
    };
    for cpu in &result.cpus {
        let watched = Duration::from_nanos(result.scale.to_nanos(Ticks(cpu.watched.elapsed())).0);
        if result.interrupted.is_none() && watched.as_secs_f64() < asked.as_secs_f64() * 0.9 {
            result.notes.push(format!(
                "CPU {}: watched for {:.3} s of the {:.3} s asked for: others had the CPU at the beginning or the end",
                cpu.cpu,
                watched.as_secs_f64(),
                asked.as_secs_f64()
            ));
        }
    }
}

/// Counts all times from the first reading of all.
fn start_at_zero(result: &mut ClockResult) {
    let starts = result.cpus.iter().map(|cpu| cpu.watched.start);
    let first = starts.min().unwrap_or(0);
    for cpu in &mut result.cpus {
        cpu.watched.count_from(first);
    }
}

fn coincide(result: &mut ClockResult, config: &Config) {
    if result.cpus.len() < 2 {
        return;
    }
    let tolerance = result.scale.ticks_in(config.coincidence).0;
    // A clock that is set back is set back for all CPUs: that is no stop.
    let begins: Vec<Vec<u64>> = result
        .cpus
        .iter()
        .map(|cpu| stops(cpu).map(|(_, jump)| jump.begin).collect())
        .collect();
    let others = coincidence::others(&begins, tolerance);
    let elapsed = result
        .cpus
        .iter()
        .map(|cpu| cpu.watched.elapsed())
        .max()
        .unwrap_or(0);
    result.coincidences = Some(coincidence::summarise(&begins, &others, tolerance, elapsed));
    for (cpu, others) in result.cpus.iter_mut().zip(others) {
        let places: Vec<usize> = stops(cpu).map(|(at, _)| at).collect();
        for (at, others) in places.into_iter().zip(others) {
            cpu.coincident[at] = others;
        }
    }
}

/// The jumps that are no steps backwards, with their places among all.
fn stops(cpu: &CpuResult) -> impl Iterator<Item = (usize, &Jump)> {
    let jumps = cpu.watched.jumps.jumps().iter().enumerate();
    jumps.filter(|(_, jump)| jump.cause != Cause::Backward)
}

fn judge(result: &mut ClockResult, config: &Config) {
    let nanos_per_tick = result.scale.nanos_per_tick();
    for cpu in &mut result.cpus {
        let limits = config.limits.iter().map(|limit| {
            let found = match limit.percent {
                None => Some(cpu.watched.largest),
                Some(percent) => cpu.percentile(percent),
            };
            let found_ns = found.unwrap_or(0) as f64 * nanos_per_tick;
            Judgement {
                cpu: cpu.cpu,
                limit: limit.describe(),
                found_ns,
                broken: found_ns > limit.length.0 as f64,
            }
        });
        cpu.judgements = limits.collect();
    }
}

#[cfg(test)]
#[path = "conclude_tests.rs"]
mod tests;
