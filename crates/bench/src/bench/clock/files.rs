//! What a watch leaves in the folder of a CPU: its jumps, and how often each difference occurred.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::host::counters::RisenCounters;
use crate::results::hlog::{LoggedRound, RoundLog};
use crate::results::schema::clock::{HISTOGRAM_FILE, JUMPS_FILE};
use crate::results::{ReportError, SampleWriter};
use crate::stats::{TimedSamples, interval_of};

use super::cause::{Cause, STEAL_TICK_NS};
use super::config::{Config, Length};
use super::jump::Jump;
use super::result::{ClockResult, CpuResult};

/// The file of their distribution in nanoseconds.
pub(super) const DISTRIBUTION: &str = "histogram.hgrm";

/// The file of the jumps by interval.
const LOG: &str = "jump.hlog";

/// An upper estimate of a row of the jumps, in bytes.
pub(super) const BYTES_PER_JUMP: u64 = 160;
/// The same of all other files of a CPU.
pub(super) const BYTES_PER_CPU: u64 = 512 << 10;

/// A row of `jumps.csv`. What was not measured is empty.
#[derive(Debug, Serialize)]
struct JumpRow {
    round: u32,
    t_ns: u64,
    jump_cycles: Option<i64>,
    jump_ns: i64,
    cause: String,
    other_cpus: u32,
    window_ns: Option<u64>,
    window_other_jumps: Option<u64>,
    smis: Option<u32>,
    involuntary_switches: Option<u32>,
    voluntary_switches: Option<u32>,
    major_faults: Option<u32>,
    minor_faults: Option<u32>,
    steal_ns: Option<u64>,
    throttled_ns: Option<u64>,
    interrupts: Option<String>,
    softirqs: Option<String>,
    trace: Option<String>,
    rest_ns: Option<u64>,
}

impl JumpRow {
    /// The row of a jump. A step of the clock backwards has negative lengths.
    fn new(round: u32, result: &ClockResult, cpu: &CpuResult, jump: &Jump) -> Self {
        let sign = if jump.cause == Cause::Backward { -1 } else { 1 };
        let available = &cpu.available;
        let sample = cpu.watched.jumps.sample(jump);
        let deltas = sample.map(|sample| sample.deltas);
        let read = |missing: &Option<String>| deltas.filter(|_| missing.is_none());
        let traced = cpu.traced.as_ref();
        let (trace, rest_ns) = traced.and_then(|traced| traced.in_words(jump)).unzip();
        JumpRow {
            round,
            t_ns: result.when(jump.begin),
            jump_cycles: result
                .clock
                .is_counter()
                .then_some(sign * jump.length as i64),
            jump_ns: sign * result.nanos(jump.length).0 as i64,
            cause: jump.cause.describe(&cpu.names),
            other_cpus: jump.other_cpus,
            window_ns: sample.map(|sample| result.nanos(sample.window).0),
            window_other_jumps: sample.map(|sample| sample.others),
            smis: read(&available.smis).map(|it| it.smis),
            involuntary_switches: deltas.map(|it| it.involuntary_switches),
            voluntary_switches: deltas.map(|it| it.voluntary_switches),
            major_faults: deltas.map(|it| it.major_faults),
            minor_faults: deltas.map(|it| it.minor_faults),
            steal_ns: read(&available.steal).map(|it| u64::from(it.steal_ticks) * STEAL_TICK_NS),
            throttled_ns: read(&available.throttling).map(|it| it.throttled_ns),
            interrupts: read(&available.interrupts)
                .map(|it| list(&it.interrupts, &cpu.names.interrupts)),
            softirqs: read(&available.softirqs).map(|it| list(&it.softirqs, &cpu.names.softirqs)),
            trace,
            rest_ns,
        }
    }
}

/// `LOC:2;RES:1`.
fn list(risen: &RisenCounters, names: &[String]) -> String {
    let rows = risen.rows().iter();
    let mut parts: Vec<String> = rows
        .map(|&(row, by)| {
            let name = names.get(usize::from(row)).map_or("?", String::as_str);
            format!("{}:{by}", name.split(' ').next().unwrap_or(name))
        })
        .collect();
    if risen.left_out > 0 {
        parts.push(format!("and {} more", risen.left_out));
    }
    parts.join(";")
}

/// A row of `histogram.csv`.
#[derive(Debug, Serialize)]
struct HistogramRow {
    round: u32,
    difference_ticks: u64,
    difference_ns: f64,
    differences: u64,
}

/// Adds the jumps of a round to `jumps.csv` in the folder, and to `histogram.csv` its differences, if that is wanted
/// and they were counted.
pub(super) fn add(
    folder: &Path,
    round: u32,
    result: &ClockResult,
    cpu: &CpuResult,
    histogram: bool,
) -> Result<(), ReportError> {
    let mut file = SampleWriter::open(folder, &JUMPS_FILE, round)?;
    for jump in cpu.watched.jumps.iter() {
        file.append(&JumpRow::new(round, result, cpu, jump))?;
    }
    file.finish()?;
    let Some(distribution) = cpu.stored.distribution.as_ref().filter(|_| histogram) else {
        return Ok(());
    };
    let mut file = SampleWriter::open(folder, &HISTOGRAM_FILE, round)?;
    for (ticks, differences) in distribution.counts() {
        file.append(&HistogramRow {
            round,
            difference_ticks: ticks,
            difference_ns: (result.nanos_f64(ticks as f64) * 1e3).round() / 1e3,
            differences,
        })?;
    }
    file.finish()
}

/// The log of the jumps of a CPU by interval, from the first reading of all CPUs on; `None` where it was watched too
/// short for one. A step backwards is no jump.
pub(super) fn interval_log(
    round: u32,
    result: &ClockResult,
    cpu: &CpuResult,
    config: &Config,
) -> Option<RoundLog> {
    let watched = &cpu.watched;
    let end_ns = result.when(watched.end);
    let run = match config.length {
        Length::Duration(time) => time,
        Length::Iterations(_) | Length::Jumps(_) => Duration::from_nanos(end_ns),
    };
    let interval = interval_of(run, config.hlog_interval)?;
    let mut jumps = TimedSamples::within(0, end_ns);
    let mut kept = 0;
    for jump in watched
        .jumps
        .iter()
        .filter(|it| it.cause != Cause::Backward)
    {
        let length_ns = i64::try_from(result.nanos(jump.length).0);
        jumps.push(result.when(jump.begin), length_ns.unwrap_or(i64::MAX));
        kept += 1;
    }
    let round = LoggedRound {
        number: round,
        interval,
        zero: result.begun_at,
    };
    RoundLog::of(
        LOG.to_owned(),
        jumps,
        watched.found.saturating_sub(kept),
        &round,
    )
}
